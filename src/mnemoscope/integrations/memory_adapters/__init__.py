"""Adapters that run in the environments of the systems on the shelf.

There is no Mnemoscope there, only Python, the system and this package: adapters import nothing but
the standard library and one another, and the system's own packages inside their methods, because
Mnemoscope reads their options where those packages are missing.
"""
