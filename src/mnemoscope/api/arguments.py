"""What the functions of the API accept: paths, runs, and several of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.run_directory import RunDirectory, find_runs
from mnemoscope.results import (
    Results,
    RunResult,
)

Where = str | Path


RunLike = str | Path | RunResult


def several(given: str | Sequence[str] | None) -> list[str]:
    return [given] if isinstance(given, str) else list(given or ())


def optional_path(where: Where | None) -> Path | None:
    return None if where is None else Path(where)


def run_path(run: RunLike) -> Path:
    return run.path if isinstance(run, RunResult) else Path(run)


def existing(run: RunLike) -> Path:
    path = run_path(run)
    if not path.exists():
        raise UsageError(f"no such file or folder: {path}")
    return path


def all_runs(runs: Sequence[RunLike] | Results) -> list[RunDirectory]:
    """The runs, with folders of runs replaced by what they contain."""
    given: Sequence[RunLike] = runs.runs if isinstance(runs, Results) else runs
    return [one for run in given for one in find_runs(existing(run))]


def benchmark_of(run: RunDirectory) -> str:
    return str(run.manifest().identity["benchmark"]["name"])


@contextmanager
def readable() -> Iterator[None]:
    """Turn errors of reading a result into NotComparable."""
    from mnemoscope.analysis.compare import NotComparable

    try:
        yield
    except (MissingData, DataError, UnicodeDecodeError, OSError) as error:
        raise NotComparable(str(error)) from error
    except (LookupError, TypeError, ValueError) as error:
        raise NotComparable(f"the result cannot be read: {error!r}") from error
