"""Durability tests: kill a system that we started, start it again, and count what is gone.

Erasure tests: let it forget memories, and search its files for their texts.
"""

from mnemoscope.durability.durability_result import DurabilityResult
from mnemoscope.durability.durability_run import DurabilityOptions, run_durability
from mnemoscope.durability.erasure_result import ErasureResult
from mnemoscope.durability.erasure_run import ErasureOptions, run_erasure

__all__ = [
    "DurabilityOptions",
    "DurabilityResult",
    "ErasureOptions",
    "ErasureResult",
    "run_durability",
    "run_erasure",
]
