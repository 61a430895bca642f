"""How cost grows with memories, questions, checkpoints, workers and nodes: exponents and a plot.

    python benchmarks/growth.py --write docs/growth.md
    python benchmarks/growth.py --axis memories --memories 10,1000,10000 --questions-each 100
    python benchmarks/growth.py --points points.jsonl --write docs/growth.md

Each point is a whole `mnemoscope run` in a process of its own. Everything up to a million memories
takes about half an hour of CPU time and 8 GB of memory at most. With --points, each point is
written to a file as soon as it is measured, and the same command continues an interrupted one. The
exit code is 1 if a goal does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from growth_page import PICTURE, goals, page
from growth_plot import picture
from growth_points import AXES, Measured, Point, Sizes, measured
from mnemoscope._store.jsonl import Journal, read_records

DEFAULTS = {
    "memories": (10, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    "questions": (1, 100, 300, 1_000, 3_000, 10_000),
    "checkpoints": (1, 4, 12, 36, 143),
    "workers": (1, 2),
}
SYSTEMS = ("bm25", "dense")


def main(arguments: Sequence[str] | None = None) -> int:
    given = parsed(arguments)
    sizes = Sizes(
        questions_each=given.questions_each,
        memories_each=given.memories_each,
        nodes=given.cluster,
        **{axis: getattr(given, axis) for axis in DEFAULTS},
    )
    wanted = list(sizes.points(given.axis, given.system))
    found = measure_all(wanted, given.rounds, given.points, given.scratch)
    Console().print(table(found))
    if given.write is not None:
        text = page(found, sizes, given.rounds)
        given.write.parent.mkdir(parents=True, exist_ok=True)
        given.write.write_text(text)
        print(f"written: {given.write}")
        if (drawn := picture(found)) is not None:
            place = given.write.parent / PICTURE
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(drawn.content)
            print(f"written: {place}")
    reached = goals(found)
    for goal in reached:
        print({True: "holds", False: "DOES NOT HOLD", None: "not measured"}[goal.holds], goal.text)
    return int(any(goal.holds is False for goal in reached))


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for axis, standard in DEFAULTS.items():
        shown = ",".join(map(str, standard))
        parser.add_argument(
            f"--{axis}", type=_sizes, default=standard, help=f"the sizes of this axis [{shown}]"
        )
    parser.add_argument("--questions-each", type=int, default=10_000, help="on the axis memories")
    parser.add_argument("--memories-each", type=int, default=10_000, help="on the axis questions")
    parser.add_argument("--axis", action="append", choices=AXES, help="repeatable; default: all")
    parser.add_argument(
        "--cluster", action="append", help="NODES=ADDRESS of a Ray cluster; repeatable"
    )
    parser.add_argument("--system", action="append", help="repeatable; default: bm25 and dense")
    parser.add_argument("--rounds", type=int, default=3, help="of points that cost below 20 s")
    parser.add_argument("--points", type=Path, help="a JSONL file that keeps the measured points")
    parser.add_argument("--scratch", type=Path, help="the folder for data; default: the system's")
    parser.add_argument("--write", type=Path, help="the page; its plot goes to img/ beside it")
    given = parser.parse_args(arguments)
    given.axis, given.system = given.axis or list(AXES), given.system or list(SYSTEMS)
    given.cluster = _clusters(given.cluster or ())
    return given


def _sizes(text: str) -> tuple[int, ...]:
    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: write whole numbers such as 10,1000,10000")
    return found


def _clusters(given: Sequence[str]) -> dict[int, str]:
    """Read NODES=ADDRESS."""
    found: dict[int, str] = {}
    for text in given:
        nodes, _, address = text.partition("=")
        if not nodes.isdecimal() or not int(nodes) or not address:
            raise SystemExit(f"--cluster {text}: write NODES=ADDRESS, such as 2=127.0.0.1:6379")
        found[int(nodes)] = address
    if not found:
        print("the axis nodes is not measured without --cluster NODES=ADDRESS", flush=True)
    return dict(sorted(found.items()))


def measure_all(
    wanted: Sequence[Point], rounds: int, kept: Path | None, scratch: Path | None
) -> list[Measured]:
    """Measure the points that the file does not have yet."""
    known: dict[Point, Measured] = {}
    if kept is not None and kept.exists():
        Journal(kept).close()  # a killed process leaves an incomplete last line
        for record in read_records(kept, _KeptPoint):
            known[record.point] = record.measured
    for place, point in enumerate(wanted, 1):
        about = f"{place}/{len(wanted)} {point.system}, {point.size:,} {point.axis}"
        if point in known:
            continue
        print(f"{about} …", end="", file=sys.stderr, flush=True)
        one = known[point] = measured(point, rounds, scratch)
        print(f" {one.cpu_s:.1f} CPU s, {one.peak_bytes / 1e6:,.0f} MB", file=sys.stderr)
        if kept is not None:
            with Journal(kept) as file:
                file.append(_KeptPoint(point, one))
    return [known[point] for point in wanted]


class _KeptPoint(msgspec.Struct, frozen=True):
    """One line of the file of --points."""

    point: Point
    measured: Measured


def table(found: Sequence[Measured]) -> Table:
    shown = Table(title="Cost of whole runs", title_justify="left")
    for name in ("axis", "system", "size", "CPU s", "peak MB", "wall s", "recall@10"):
        shown.add_column(name, justify="left" if name in ("axis", "system") else "right")
    for one in found:
        mean, low, high = one.recall
        shown.add_row(
            *(one.axis, one.system, f"{one.size:,}", f"{one.cpu_s:.1f}"),
            *(f"{one.peak_bytes / 1e6:,.0f}", f"{one.wall_s:.0f}"),
            f"{mean:.3f} [{low:.2f}, {high:.2f}]",
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())
