"""Mnemoscope measures how well AI agents' memory systems remember.

Every name is imported on first use, because each process of a run imports this package.
"""

TYPE_CHECKING = False  # that of `typing`, which takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any

    from mnemoscope._store.errors import MnemoscopeError
    from mnemoscope.api import (
        RunConfig,
        answer,
        cite,
        compare,
        compare_many,
        draft_questions,
        dry_run,
        durability_test,
        erasure_test,
        estimate,
        export,
        gate,
        gate_store,
        import_memories,
        judge,
        judging_rules,
        load,
        load_test,
        plan,
        plot,
        questions,
        read_recall_bench,
        replay,
        report,
        review_questions,
        run,
        run_datasets,
        score,
        score_answers,
        show,
        show_failed,
        sign,
        simulate,
        verify,
    )
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

__version__ = "0.1.0"
_KEPT = {
    **dict.fromkeys(
        (
            *("Grade", "Hit", "Memory", "Query", "Question", "Receipt", "Scale", "Scenario"),
            *("Score", "System"),
        ),
        "mnemoscope.types",
    ),
    "MnemoscopeError": "mnemoscope._store.errors",
}
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
    "draft_questions",
    "dry_run",
    "durability_test",
    "erasure_test",
    "estimate",
    "export",
    "gate",
    "gate_store",
    "import_memories",
    "judge",
    "judging_rules",
    "load",
    "load_test",
    "plan",
    "plot",
    "questions",
    "read_recall_bench",
    "replay",
    "report",
    "review_questions",
    "run",
    "run_datasets",
    "score",
    "score_answers",
    "show",
    "show_failed",
    "sign",
    "simulate",
    "verify",
]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name == "types":
        return import_module("mnemoscope.types")
    if name in _KEPT:  # systems import these in each call, so the next access must be direct
        found = globals()[name] = getattr(import_module(_KEPT[name]), name)
        return found
    if name not in __all__:
        raise AttributeError(f"module 'mnemoscope' has no attribute {name!r}")
    return getattr(import_module("mnemoscope.api"), name)


def __dir__() -> list[str]:
    return __all__
