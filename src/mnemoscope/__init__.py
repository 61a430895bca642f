"""Mnemoscope measures how well AI agents' memory systems remember."""

from mnemoscope.types import Hit, Memory, Query, Question, Receipt, Scenario, System

__version__ = "0.1.0"
__all__ = ["Hit", "Memory", "Query", "Question", "Receipt", "Scenario", "System", "__version__"]
