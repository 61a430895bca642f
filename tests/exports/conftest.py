"""One small benchmark with runs of four systems, for all tests of exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import mnemoscope as ms
from mnemoscope.results import Results

HOSTILE = r"a_b%$x^2$&#{}~\input<>|--'`\"[*] =1+é中"
"""A label of a system, as wild as a folder may be named."""


@contextmanager
def ledger_in(folder: Path) -> Iterator[None]:
    """Count the attempts of shared runs in a ledger of their own, not in that of other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_DATA_HOME", str(folder / "data-home"))
        yield


class Quiet:
    """Recalls nothing for one question of three, and fails on another one."""

    def remember(self, memories: list[ms.Memory]) -> None:
        self.memories = memories

    def recall(self, query: ms.Query, k: int) -> list[str]:
        number = int(query.text.split()[0].rpartition("q")[2])
        if number % 10 == 7:
            raise RuntimeError("no answer")
        return [] if number % 3 == 0 else [memory.id for memory in self.memories[:k]]


class SmallRuns(NamedTuple):
    data: Path
    folder: Path
    results: Results


@pytest.fixture(scope="session")
def small_runs(
    tmp_path_factory: pytest.TempPathFactory, write_locomo: Callable[..., Path]
) -> SmallRuns:
    """bm25, a system with a hostile label, one that fails and returns empty lists, baselines."""
    folder = tmp_path_factory.mktemp("exports")
    data = write_locomo(folder / "locomo10.json", conversations=5, sessions=15, questions=10)
    runs = folder / "runs"
    with ledger_in(folder):
        ms.run("locomo", systems=["bm25", "recency", Quiet], data=data, out=runs, progress=False)
    (runs / "recency").rename(runs / HOSTILE)  # the label of a run is the name of its folder
    return SmallRuns(data, runs, ms.load(runs))
