"""The conformance kit: checks that a system keeps the contract in docs/systems.md.

Every check uses the Driver, so it is the same for every connector.
"""

from mnemoscope.runner.conformance.kit import CHECKS, Result, check_system

__all__ = ["CHECKS", "Result", "check_system"]
