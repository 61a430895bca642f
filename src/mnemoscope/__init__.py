"""Mnemoscope measures how well AI agents' memory systems remember."""

from mnemoscope.core.nouns import Hit, Memory, Query, Question, Receipt, Scenario
from mnemoscope.core.system import System

__version__ = "0.1.0"
__all__ = ["Hit", "Memory", "Query", "Question", "Receipt", "Scenario", "System", "__version__"]
