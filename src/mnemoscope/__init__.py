"""Mnemoscope measures how well AI agents' memory systems remember."""

from mnemoscope.core.nouns import Hit, Memory, Query, Question, Receipt, Scenario

__version__ = "0.1.0"
__all__ = ["Hit", "Memory", "Query", "Question", "Receipt", "Scenario", "__version__"]
