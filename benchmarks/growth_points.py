"""The points that benchmarks/growth.py measures: data and command of each, and what it cost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from growth_corpus import write_collection, write_conversations
from process_cost import process_cost

Axis = Literal["memories", "questions", "checkpoints", "workers", "nodes"]
CONVERSATIONS, TURNS, ASKED = 16, 2_000, 250
"""The scenarios of the axes workers and nodes: how many, and what each has."""
PERSONA, DAYS = "executive-assistant", 1_000
"""The history of the axis checkpoints."""
_CHEAP_CPU_S = 20.0
"""Points that cost less are measured in several rounds."""
_MNEMOSCOPE = (sys.executable, "-m", "mnemoscope")


class Point(NamedTuple):
    """One run to measure; `size` is the number that its axis varies."""

    axis: Axis
    system: str
    size: int
    memories: int = 0
    questions: int = 0
    cluster: str = ""
    """The address of the Ray cluster, on the axis nodes."""


class Measured(msgspec.Struct, frozen=True):
    """What one run cost, and what it found."""

    axis: Axis
    system: str
    size: int
    cpu_s: float
    """The least of its rounds."""
    peak_bytes: int
    """The largest of its rounds."""
    wall_s: float
    """That of the round with the least CPU time."""
    memories: int
    asked: int
    """Questions at all checkpoints together."""
    recall: tuple[float, float, float]
    """recall@10 with its interval."""
    page_bytes: int
    """The size of report.html."""


COSTS: dict[str, Callable[[Measured], float]] = {
    "CPU time": lambda one: one.cpu_s,
    "peak memory": lambda one: one.peak_bytes,
}
AXES: tuple[Axis, ...] = get_args(Axis)


def curves(found: Sequence[Measured]) -> dict[tuple[Axis, str], list[Measured]]:
    """The points of each axis and system, in order of size."""
    by_curve: dict[tuple[Axis, str], list[Measured]] = {}
    for one in sorted(found, key=lambda one: (AXES.index(one.axis), one.size)):
        by_curve.setdefault((one.axis, one.system), []).append(one)
    return by_curve


class Sizes(NamedTuple):
    """The sizes of each axis."""

    memories: Sequence[int]
    """The first is a run with almost nothing to search."""
    questions: Sequence[int]
    checkpoints: Sequence[int]
    workers: Sequence[int]
    nodes: Mapping[int, str]
    """Number of nodes to the address of a cluster that has so many."""
    questions_each: int
    """The questions of each run of the axis memories."""
    memories_each: int
    """The memories of each run of the axis questions."""

    def points(self, axes: Sequence[Axis], systems: Sequence[str]) -> Iterator[Point]:
        """All points, the cheap ones first; other axes than the first two use one system."""
        for axis in axes:
            sizes: Iterable[int] = getattr(self, axis)
            both = axis in ("memories", "questions")
            for size in sizes:
                for system in systems if both else systems[:1]:
                    if axis == "nodes":
                        yield Point(axis, system, size, cluster=self.nodes[size])
                        continue
                    memories = size if axis == "memories" else self.memories_each
                    questions = size if axis == "questions" else self.questions_each
                    yield Point(axis, system, size, *((memories, questions) if both else ()))


def measured(point: Point, rounds: int, scratch: Path | None = None) -> Measured:
    """Measure a point: each round is a process of its own, with empty caches."""
    found: list[Measured] = []
    with TemporaryDirectory(prefix="mnemoscope-growth-", dir=scratch) as folder:
        data = Path(folder) / "data"
        options = _write_data(point, data)
        while len(found) < rounds and (not found or found[0].cpu_s < _CHEAP_CPU_S):
            with TemporaryDirectory(dir=folder) as own:
                found.append(_one_round(point, options, Path(own)))
    best = min(found, key=lambda one: one.cpu_s)
    return msgspec.structs.replace(best, peak_bytes=max(one.peak_bytes for one in found))


def _write_data(point: Point, data: Path) -> list[str]:
    """Write the data of a point; returns what its command needs."""
    if point.axis in ("memories", "questions"):
        write_collection(data, point.memories, point.questions)
        return ["beir", "--data", str(data), "--workers", "1"]
    if point.axis == "checkpoints":
        # In a process of its own, so that no cost of it counts.
        simulated = [*_MNEMOSCOPE, "personas", "simulate", PERSONA, "--days", str(DAYS)]
        data.mkdir()
        process_cost([*simulated, "--out", str(data / "histories")], _environment(data), data)
        found = ["personas", "--data", str(data / "histories"), "--ranges", ranges(point.size)]
        # Each question is asked once when it becomes eligible, and one earlier question besides.
        found += ["--sample", "1", "--reader", "none", "--judge", "none", "--no-heatmap-png"]
        return [*found, "--workers", "1"]
    write_conversations(data, CONVERSATIONS, TURNS, ASKED)
    found = ["locomo", "--data", str(data), "--granularity", "turn"]
    if point.axis == "nodes":
        # Without a cluster this would measure local processes under another name.
        assert point.cluster
        return [*found, "--executor", point.cluster]
    return [*found, "--workers", str(point.size)]


def ranges(checkpoints: int) -> str:
    """So many checkpoints at equal distances, the last at the end of the history."""
    days = sorted({max(1, DAYS * place // checkpoints) for place in range(1, checkpoints + 1)})
    return ",".join(map(str, days))


def _environment(folder: Path) -> dict[str, str]:
    """Caches and records of the user stay out of it; one thread a process."""
    return {
        "MNEMOSCOPE_CACHE": str(folder / "cache"),
        "MNEMOSCOPE_DATA_HOME": str(folder / "home"),
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
        "TOKENIZERS_PARALLELISM": "false",
    }


def _one_round(point: Point, options: Sequence[str], folder: Path) -> Measured:
    command = [*_MNEMOSCOPE, "run", *options, "--system", point.system, "--no-baselines"]
    cost = process_cost([*command, "--out", str(folder / "runs")], _environment(folder), folder)
    [run] = [path.parent for path in (folder / "runs").glob("*/manifest.json")]
    figures = _read(run / "metrics.json")
    recall = figures["overall"]["recall@10"]
    return Measured(
        point.axis,
        point.system,
        point.size,
        cost.cpu_s,
        cost.peak_bytes,
        cost.wall_s,
        figures["ingestion"]["memories"],
        (run / "trials.jsonl").read_bytes().count(b'{"phase":"recall"'),
        (recall["mean"], *recall["ci95"]),
        (run / "report.html").stat().st_size,
    )


def _read(path: Path) -> Any:
    return msgspec.json.decode(path.read_bytes())
