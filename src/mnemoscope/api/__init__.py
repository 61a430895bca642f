"""The Python API: options in, results out. The command line and notebooks call these functions.

    import mnemoscope as ms

    results = ms.run("locomo", systems=["bm25", "hybrid", MyMemory], out="runs/a")
    results.to_frame()
    ms.compare(results["bm25"], results["hybrid"])

Arguments have the names and meanings of the command line's options. The functions print only a
progress bar, and only on a terminal. Notes and warnings go to the logger `mnemoscope`. After an
interruption the same call continues; recorded results are kept.
"""

from typing import TYPE_CHECKING, Any

from mnemoscope.api.arguments import RunLike, Where
from mnemoscope.api.comparisons import compare, compare_many, gate, plan, questions
from mnemoscope.api.export_runs import export
from mnemoscope.api.finished_runs import cite, load, report, sign, verify
from mnemoscope.api.new_runs import dry_run, estimate, execute, run, run_config, simulate
from mnemoscope.api.plot_runs import plot
from mnemoscope.api.reruns import answer, judge, score
from mnemoscope.api.run_progress import Progress, ProgressUpdate
from mnemoscope.api.shown_questions import show, show_failed
from mnemoscope.api.system_tests import (
    durability_test,
    erasure_test,
    load_test,
    load_test_config,
)
from mnemoscope.runner.run_setup import RunConfig, require_checkpoints

if TYPE_CHECKING:
    from mnemoscope.api.dataset_runs import DatasetResults, run_datasets
    from mnemoscope.api.drafted_questions import draft_questions, review_questions
    from mnemoscope.api.imports import import_memories
    from mnemoscope.api.judge_variants import judging_rules
    from mnemoscope.api.outside_answers import score_answers
    from mnemoscope.api.recall_bench import canary_records, is_recall_bench, read_recall_bench
    from mnemoscope.api.replayed_logs import replay
    from mnemoscope.api.store_gates import gate_store

_ON_DEMAND = {
    "DatasetResults": "dataset_runs",
    "canary_records": "recall_bench",
    "draft_questions": "drafted_questions",
    "gate_store": "store_gates",
    "import_memories": "imports",
    "is_recall_bench": "recall_bench",
    "judging_rules": "judge_variants",
    "read_recall_bench": "recall_bench",
    "replay": "replayed_logs",
    "review_questions": "drafted_questions",
    "run_datasets": "dataset_runs",
    "score_answers": "outside_answers",
}
"""Names that few callers use, and their modules."""

__all__ = [
    "DatasetResults",
    "Progress",
    "ProgressUpdate",
    "RunConfig",
    "RunLike",
    "Where",
    "answer",
    "canary_records",
    "cite",
    "compare",
    "compare_many",
    "draft_questions",
    "dry_run",
    "durability_test",
    "erasure_test",
    "estimate",
    "execute",
    "export",
    "gate",
    "gate_store",
    "import_memories",
    "is_recall_bench",
    "judge",
    "judging_rules",
    "load",
    "load_test",
    "load_test_config",
    "plan",
    "plot",
    "questions",
    "read_recall_bench",
    "replay",
    "report",
    "require_checkpoints",
    "review_questions",
    "run",
    "run_config",
    "run_datasets",
    "score",
    "score_answers",
    "show",
    "show_failed",
    "sign",
    "simulate",
    "verify",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
