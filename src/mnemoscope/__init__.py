"""Mnemoscope measures how well AI agents' memory systems remember.

The functions of `mnemoscope.api` are imported on first use, so `import mnemoscope` stays fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.types import (
    Grade,
    Hit,
    Memory,
    Query,
    Question,
    Receipt,
    Scale,
    Scenario,
    Score,
    System,
)

if TYPE_CHECKING:
    from mnemoscope.api import (
        RunConfig,
        answer,
        cite,
        compare,
        compare_many,
        dry_run,
        estimate,
        gate,
        judge,
        load,
        plan,
        questions,
        report,
        run,
        score,
        sign,
        simulate,
        verify,
    )

__version__ = "0.1.0"
_FROM_API = (
    *("RunConfig", "answer", "cite", "compare", "compare_many", "dry_run", "estimate", "gate"),
    *("judge", "load", "plan", "questions", "report", "run", "score", "sign", "simulate", "verify"),
)
__all__ = [
    "Grade",
    "Hit",
    "Memory",
    "MnemoscopeError",
    "Query",
    "Question",
    "Receipt",
    "RunConfig",
    "Scale",
    "Scenario",
    "Score",
    "System",
    "__version__",
    "answer",
    "cite",
    "compare",
    "compare_many",
    "dry_run",
    "estimate",
    "gate",
    "judge",
    "load",
    "plan",
    "questions",
    "report",
    "run",
    "score",
    "sign",
    "simulate",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _FROM_API:
        raise AttributeError(f"module 'mnemoscope' has no attribute {name!r}")
    return getattr(import_module("mnemoscope.api"), name)


def __dir__() -> list[str]:
    return __all__
