"""The page of benchmarks/growth.py."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from growth_fit import FEWEST_SIZES, UPPER_RANGE, Exponent, Growth, exponent, growth
from growth_points import (
    ASKED,
    CONVERSATIONS,
    COSTS,
    DAYS,
    PERSONA,
    TURNS,
    Axis,
    Measured,
    Sizes,
    curves,
)

COMMAND = "python benchmarks/growth.py --write docs/growth.md"
PICTURE = Path("img") / "growth.png"
FULL_MEMORIES, FULL_QUESTIONS = 1_000_000, 10_000
MOST_BYTES, MOST_EXPONENT = 8e9, 1.05
LEAST_RECALL = {"bm25": 0.95}
"""Search by words must find the evidence at every size: questions have words of it."""
_TITLES: dict[Axis, str] = {
    "memories": "Memories",
    "questions": "Questions",
    "checkpoints": "Checkpoints",
    "workers": "Workers",
    "nodes": "Nodes",
}


class Goal(NamedTuple):
    """One bound of the full size, and whether it holds; None if that size was not measured."""

    text: str
    holds: bool | None


def growth_of(points: Sequence[Measured], cost: str) -> Growth:
    return growth({one.size: COSTS[cost](one) for one in points})


def goals(found: Sequence[Measured]) -> list[Goal]:
    """The bounds, most of them at a million memories and ten thousand questions."""
    known: list[Goal] = []
    for system in dict.fromkeys(one.system for one in found if one.axis == "memories"):
        points = curves(found)["memories", system]
        if least := LEAST_RECALL.get(system):
            worst = min(points, key=lambda one: one.recall)
            known.append(
                Goal(
                    f"{system}, the evidence is found at every size: recall@10 is at least "
                    f"{_recall(worst)}, must be {least}",
                    worst.recall[0] >= least,
                )
            )
        last = points[-1]
        name = f"{system}, {FULL_MEMORIES:,} memories × {FULL_QUESTIONS:,} questions"
        is_full = last.size >= FULL_MEMORIES and last.asked >= FULL_QUESTIONS
        if not is_full:
            known.append(Goal(f"{name}: not measured", None))
            continue
        known.append(
            Goal(
                f"{name}: peak memory {_gigabytes(last.peak_bytes)} GB, at most "
                f"{_gigabytes(MOST_BYTES)} GB",
                last.peak_bytes <= MOST_BYTES,
            )
        )
        cpu = growth_of(points, "CPU time")
        for what, fitted in (("as measured", cpu.whole), ("of the part that grows", cpu.grown)):
            holds = None if fitted is None else fitted.value <= MOST_EXPONENT
            known.append(
                Goal(
                    f"{system}, exponent of CPU time in memories, {what}: {_shown(fitted)}, at "
                    f"most {MOST_EXPONENT}",
                    holds,
                )
            )
    return known


def page(found: Sequence[Measured], sizes: Sizes, rounds: int) -> str:
    """The whole page in Markdown."""
    lines = [
        "# Growth",
        "",
        "What a run costs as its data grows: CPU time and memory of the whole command against "
        "memories, questions, checkpoints, workers and nodes. One command measures all of it and "
        "writes this page:",
        "",
        "```",
        COMMAND,
        "```",
        "",
        "Flags choose sizes, axes and systems: `python benchmarks/growth.py --help`.",
        "",
        *_how(rounds),
        "",
        "## Goals",
        "",
        *(f"- {_WORDS[goal.holds]}: {goal.text}." for goal in goals(found)),
        "",
        f"![CPU time and peak memory against size]({PICTURE})",
        "",
        "## Exponents",
        "",
        "Cost grows with size to the power of the exponent: 1 is proportional growth. The *last "
        "step* is the exponent between the two largest sizes, without an interval: where a curve "
        "bends upwards, it is larger than that of the whole range.",
        "",
        *_exponents(found),
    ]
    for axis, title in _TITLES.items():
        lines += ["", f"## {title}", "", _about(axis, sizes), ""]
        own = {system: points for (of, system), points in curves(found).items() if of == axis}
        if own:
            lines += _table(axis, own)
        elif axis == "nodes":
            lines.append("**Not measured**: no cluster was given (`--cluster NODES=ADDRESS`).")
        else:
            lines.append("**Not measured** in this run of the benchmark.")
    lines += ["", "## Recall", "", _CHECK, ""]
    lines += _recalls(found)
    return "\n".join(lines) + "\n"


_CHECK = (
    "What the measured runs found. The corpora are synthetic: these figures check the search, and "
    "are not results under a protocol such as Mnemoscope retrieval protocol 2."
)
_WORDS = {True: "**Holds**", False: "**Does not hold**", None: "**Not measured**"}


def _how(rounds: int) -> Iterator[str]:
    yield "How it is measured:"
    yield ""
    yield (
        "- Each point is the whole command `mnemoscope run` in a process of its own, with empty "
        "caches: reading the data, ingesting, asking, the journal, figures, intervals and the "
        "report page."
    )
    yield (
        "- **CPU s** is user and system time of all its processes, with one thread for each "
        f"library. Of points below 20 s, the least of {rounds} rounds counts; others are measured "
        "once. **Wall s** is for information: other programs ran on the machine."
    )
    yield (
        "- **Peak MB** is the largest sum of the resident high-water marks of all processes that "
        "live at the same time. Shared pages count for each process, so it is an upper bound."
    )
    yield (
        "- The corpora are synthetic and seeded: Zipf-distributed words, memories of about 25 "
        "words. Each question consists of words of one memory, its evidence, so recall (last "
        "section) checks that the search is complete at every size. Dense search loses recall as "
        "memories are added, because more of them are similar."
    )
    yield (
        f"- Exponents are least-squares slopes of log cost against log size over the upper range: "
        f"sizes of at least 1/{UPPER_RANGE} of the largest. The interval is Student's t with two "
        "degrees of freedom fewer than points. It covers the scatter around the line, not the "
        "differences between machines."
    )
    yield (
        "- Fixed costs, such as starting Python, would make an exponent look smaller. So there are "
        "two: of the cost **as measured**, and of **the part that grows**, which is the cost above "
        "that of the smallest run of the axis, against the size above that of the smallest run. "
        "The goals must hold for both. A goal holds if the fitted value keeps its bound; the end "
        "of its interval may lie beyond."
    )
    yield f"- Machine: {machine()}."


def machine() -> str:
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return f"{os.cpu_count()} cores, {model}, Python {platform.python_version()}"


def _about(axis: Axis, sizes: Sizes) -> str:
    return {
        "memories": f"One collection in BEIR's layout, {sizes.questions_each:,} questions each.",
        "questions": f"One collection of {sizes.memories_each:,} memories.",
        "checkpoints": f"One persona over {DAYS:,} days (`personas simulate {PERSONA}`), recall "
        "only. Each question is asked when it becomes eligible, and one earlier question at each "
        "checkpoint besides.",
        "workers": f"{CONVERSATIONS} conversations in LoCoMo's layout, each with {TURNS:,} turns "
        f"and {ASKED} questions.",
        "nodes": "The same conversations on a Ray cluster. Only the process of the command counts, "
        "not those of the nodes.",
    }[axis]


def _table(axis: Axis, own: dict[str, list[Measured]]) -> Iterator[str]:
    yield f"| {axis} | system | asked | CPU s | peak MB | wall s | report.html MB |"
    yield "|---:|---|---:|---:|---:|---:|---:|"
    for points in own.values():
        for one in points:
            yield (
                f"| {one.size:,} | {one.system} | {one.asked:,} | {one.cpu_s:,.1f} "
                f"| {one.peak_bytes / 1e6:,.0f} | {one.wall_s:,.0f} "
                f"| {one.page_bytes / 1e6:.1f} |"
            )


def _recalls(found: Sequence[Measured]) -> Iterator[str]:
    """The check that the search of each run is complete."""
    yield "| axis | size | system | recall@10 with its 95 % interval |"
    yield "|---|---:|---|---|"
    for (axis, system), points in curves(found).items():
        for one in points:
            yield f"| {axis} | {one.size:,} | {system} | {_recall(one)} |"


def _recall(one: Measured) -> str:
    mean, low, high = one.recall
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def _exponents(found: Sequence[Measured]) -> Iterator[str]:
    yield "| axis | system | cost | as measured | of the part that grows | last step |"
    yield "|---|---|---|---|---|---|"
    for (axis, system), points in curves(found).items():
        if len(points) < FEWEST_SIZES:
            continue
        for cost in COSTS:
            whole, grown = growth_of(points, cost)
            last = exponent({one.size: COSTS[cost](one) for one in points[-2:]})
            step = "" if last is None else f"{last.value:.2f}"
            yield f"| {axis} | {system} | {cost} | {_shown(whole)} | {_shown(grown)} | {step} |"


def _shown(fitted: Exponent | None) -> str:
    if fitted is None:
        return "too few sizes"
    if fitted.points < FEWEST_SIZES:
        return f"{fitted.value:.2f} (two sizes: no interval)"
    return f"{fitted.value:.2f} [{fitted.low:.2f}, {fitted.high:.2f}], {fitted.points} sizes"


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.2f}".rstrip("0").rstrip(".")
