"""Durability tests: kill a system that we started, start it again, and count what is gone."""

from mnemoscope.durability.durability_result import DurabilityResult
from mnemoscope.durability.durability_run import DurabilityOptions, run_durability

__all__ = ["DurabilityOptions", "DurabilityResult", "run_durability"]
