"""Adapters that run in the environments of the integrations.

Those environments contain Python, the system and this package, but not Mnemoscope. So adapters
import only the standard library and one another. They import the system's packages inside their
methods, because Mnemoscope reads their options where those packages are missing.
"""
