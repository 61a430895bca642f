"""Files of Recall Bench in place of runs: read, report, compare, and follow canaries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory, is_run
from mnemoscope.api.arguments import RunLike, Where, existing

if TYPE_CHECKING:
    from mnemoscope.analysis.question_records import QuestionRecord
    from mnemoscope.analysis.recall_bench_runs import RecallBenchRun

_RESULT = "result.json"


def read_recall_bench(file: Where) -> RecallBenchRun:
    """Read a result.json, progress.jsonl or questions.jsonl of Recall Bench, and check its counts.

    `figures()` of the result are the figures of each checkpoint, `reproduced()` compares the
    printed ones with what the marks in the file give.
    """
    from mnemoscope.runner.recall_bench_files import read_run

    return read_run(existing(file))


def is_recall_bench(run: RunLike) -> bool:
    """Whether the path is a file of Recall Bench, and not a run directory."""
    from mnemoscope.runner.recall_bench_files import kind_of

    path = existing(run)
    return path.is_file() and kind_of(path) is not None


def recall_bench_pair(base: Path, cand: Path) -> tuple[RecallBenchRun, RecallBenchRun] | None:
    """Both as runs of Recall Bench, if one of them is such a file; None if neither is.

    A run of ours on personas is compared by its own result.json.
    """
    if not any(is_recall_bench(path) for path in (base, cand)):
        return None
    first, second = (read_recall_bench(_result_of(path)) for path in (base, cand))
    return first, second


def canary_records(run: Where) -> list[QuestionRecord]:
    """The judged questions of a persona run, or of a file of Recall Bench."""
    from mnemoscope.analysis.recall_bench_format import read_records_of

    path = existing(run)
    if not is_recall_bench(path):
        return read_records_of(RunDirectory(path))
    found = read_recall_bench(path)
    if not found.records:
        raise UsageError(
            f"{path} has aggregates only, so no question can be followed; give the result.json or "
            "the questions.jsonl of the run"
        )
    return found.records


def _result_of(path: Path) -> Path:
    if not is_run(path):
        return path
    RunDirectory(path).ensure_unedited()
    if not (path / _RESULT).is_file():
        raise UsageError(
            f"{path} has no {_RESULT}: only runs of personas have Recall Bench's files"
        )
    return path / _RESULT
