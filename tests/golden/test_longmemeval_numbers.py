"""The whole of LongMemEval S (499 of 500) through the command line: figures, economy, memory.

One run of three systems, in processes of its own with a fresh cache, takes a minute or two.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.verify import verify
from mnemoscope.protocols import load_protocol

Shared = Callable[[str], Path]
GIGABYTE = 1 << 30
SYSTEMS = ("bm25", "dense", "hybrid")
SESSIONS = 23_806
DISTINCT_TEXTS = 18_437


class Run:
    """A finished run: its folder and the most memory its processes ever held together."""

    def __init__(self, folder: Path, peak: int) -> None:
        self.folder = folder
        self.peak = peak

    def read(self, system: str, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / system / name).read_text())
        return content

    def counters(self, name: str) -> dict[str, int]:
        return {one: self.read(one, "timing.json")["counters"].get(name, 0) for one in SYSTEMS}


def tree_of(root: int) -> set[int]:
    """The ids of a process and its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(state[1])
    tree: set[int] = set()
    found = {root}
    while found:
        tree |= found
        found = {pid for pid, parent in parents.items() if parent in tree} - tree
    return tree


def resident(tree: set[int]) -> int:
    """Bytes that each process of the tree holds, added up: what they share counts for each."""
    pages = 0
    for pid in tree:
        with suppress(OSError):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def held(tree: set[int]) -> int:
    """Bytes that the tree holds, what its processes share counted once.

    The kernel visits every page for it, which takes far longer than `resident`.
    """
    total = 0
    for pid in tree:
        with suppress(OSError):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(row.split()[1]) for row in rollup if row.startswith("Pss:"))
    return total * 1024


@pytest.fixture(scope="module")
def s_run(shared_data: Shared, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run; where the tests of this file are spread over processes, still only one."""
    data = shared_data("longmemeval")
    folder = tmp_path_factory.mktemp("longmemeval")
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tmp_path_factory.getbasetemp().parent / "longmemeval"
        folder.mkdir(exist_ok=True)
    done = folder / "peak"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            done.write_text(str(run_all(data, folder)))
    return Run(folder / "runs", int(done.read_text()))


def run_all(data: Path, folder: Path) -> int:
    """Run the three systems; the most memory that all processes held together."""
    process = subprocess.Popen(
        [
            *(Path(sys.executable).with_name("mnemoscope"), "run", "longmemeval"),
            *("--data", data, "--out", folder / "runs", "--no-arms", "--variant", "s"),
            *(part for system in SYSTEMS for part in ("--system", system)),
        ],
        env={**os.environ, "MNEMOSCOPE_CACHE": str(folder / "cache")},
        stdout=subprocess.DEVNULL,
    )
    peak = most = 0
    while process.poll() is None:
        tree = tree_of(process.pid)
        if (seen := resident(tree)) > most:
            most = seen + (seen >> 6)  # look again when it has grown by 2 %
            peak = max(peak, held(tree))
        time.sleep(1)  # the peak lasts
    assert process.returncode == 0
    return peak


@pytest.mark.parametrize(
    ("system", "recall", "mrr"),
    [("bm25", 0.95, 0.91), ("dense", 0.975, 0.93), ("hybrid", 0.975, 0.945)],
)
def test_sessions_are_recalled_at_least_this_well(
    s_run: Run, system: str, recall: float, mrr: float
) -> None:
    metrics = s_run.read(system, "metrics.json")
    overall = metrics["overall"]
    assert metrics["questions"]["asked"] == 499
    assert metrics["questions"]["measured"] == overall["recall@10"]["n"] == 469
    assert overall["recall@10"]["mean"] >= recall
    assert overall["mrr@50"]["mean"] >= mrr


@pytest.mark.parametrize("system", SYSTEMS)
def test_nothing_failed_and_all_evidence_was_indexed(s_run: Run, system: str) -> None:
    metrics = s_run.read(system, "metrics.json")
    assert metrics["statuses"] == {"answered": 499}
    assert metrics["ingestion"]["memories"] == SESSIONS
    assert metrics["ingestion"]["evidence_reached"] == 1.0


def test_each_distinct_text_is_tokenised_once_whoever_asks(s_run: Run) -> None:
    computed, reused = s_run.counters("texts_tokenised"), s_run.counters("tokens_reused")
    assert sum(computed.values()) == DISTINCT_TEXTS
    assert {system: computed[system] + reused[system] for system in SYSTEMS} == {
        "bm25": SESSIONS,
        "dense": 0,
        "hybrid": SESSIONS,
    }


def test_each_distinct_text_is_embedded_once_whoever_asks(s_run: Run) -> None:
    computed, reused = s_run.counters("texts_embedded"), s_run.counters("vectors_reused")
    assert sum(computed.values()) == DISTINCT_TEXTS
    assert {system: computed[system] + reused[system] for system in SYSTEMS} == {
        "bm25": 0,
        "dense": SESSIONS,
        "hybrid": SESSIONS,
    }


def test_the_run_says_that_it_was_made_on_a_part_of_the_dataset(s_run: Run) -> None:
    [note] = s_run.read("bm25", "manifest.json")["notes"]
    assert note.startswith("longmemeval_s_cleaned.499of500.json.xz is not the pinned file")


def test_499_of_500_questions_are_unverified_for_that_reason(s_run: Run) -> None:
    run = RunDirectory(s_run.folder / "bm25")

    found = verify(run, load_protocol("mnemoscope-retrieval-1"))

    assert found.status == "UNVERIFIED"
    assert found.gate("coverage").why == "499 of 500 questions were asked"
    expected = "sha256 b6060898fa74…, the protocol says d6f21ea9d60a…"
    assert found.gate("dataset").why == expected
    assert set(found.failed) == {"dataset", "evidence", "granularity", "arms", "coverage"}


def test_all_processes_together_stay_below_two_gigabytes(s_run: Run) -> None:
    assert 0.1 * GIGABYTE < s_run.peak < 2 * GIGABYTE
