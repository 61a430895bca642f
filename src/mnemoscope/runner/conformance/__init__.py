"""The conformance kit: does a system keep the contract that figures rest on? (docs/systems.md)

Every check goes through the Driver, so it is the same for whatever door a system comes through.
"""

from mnemoscope.runner.conformance.kit import CHECKS, Result, check_system

__all__ = ["CHECKS", "Result", "check_system"]
