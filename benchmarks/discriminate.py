"""Does the long-horizon benchmark tell systems apart? One table over six personas and 1,000 days.

    python benchmarks/discriminate.py [--days 1000] [--personas ID,ID] [--seed 42] [--keep DIR]

The judge's ceiling (the references themselves) and floor (other questions' references), then every
arm and built-in system by category, and what must hold of them, each said to hold or not.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from mnemoscope import api
from mnemoscope.datasets.personas import Personas
from mnemoscope.judges import Case
from mnemoscope.judges.ledger_judge import LedgerJudge
from mnemoscope.personas.simulate.history_files import write_history
from mnemoscope.personas.simulate.simulator import simulate
from mnemoscope.personas.simulate.story import SHIPPED, shipped_story
from mnemoscope.types import Scenario

BASELINES = ("none", "random", "recency", "oracle")
SYSTEMS = ("fts5", "bm25", "dense", "hybrid", "graph")
EARLY = 90
UNANSWERABLE = ("negative-recall", "information-boundary")

Figures = Mapping[str, Mapping[str, Any]]
"""System to its checkpoint's figures."""


def lives(folder: Path, personas: list[str], days: int, seed: int) -> None:
    for persona in personas:
        if not (folder / persona).exists():
            write_history(simulate(shipped_story(persona), days, seed), folder)


def judge_bounds(dataset: Personas) -> tuple[float, float]:
    """What the references themselves get, and what those of other questions get."""
    own: list[int] = []
    others: list[int] = []
    for scenario in dataset.scenarios():
        own += scores(scenario, [question.reference for question in scenario.questions])
        others += scores(scenario, _strangers(scenario))
    return sum(own) / len(own), sum(others) / len(others)


def scores(scenario: Scenario, answers: list[str]) -> list[int]:
    judge = LedgerJudge()
    judge.begin(scenario)
    seen = len(scenario.memories)
    return [
        judge.judge(Case(question, answer, memories=seen)).composite
        for question, answer in zip(scenario.questions, answers, strict=True)
    ]


def _strangers(scenario: Scenario) -> list[str]:
    """For each question the reference of another one, drawn at random."""
    draw = random.Random(42)
    questions = scenario.questions
    return [
        draw.choice([one for one in questions if one is not question]).reference
        for question in questions
    ]


def measured(
    dataset: Personas, folder: Path, systems: Sequence[str] = (*SYSTEMS, *BASELINES)
) -> dict[str, list[dict[str, Any]]]:
    """System to the figures of its checkpoints."""
    results = api.run(
        dataset,
        systems=list(systems),
        out=folder,
        timeout=120.0,
        baselines=False,
        heatmap_png=False,
        skip_preflight=True,
    )
    return {
        run.label: run.directory.read_json("longitudinal.json")["checkpoints"]
        for run in results.runs
    }


def checks(
    ceiling: float, floor: float, early: Figures, late: Figures
) -> Iterator[tuple[str, bool, str]]:
    """What the benchmark must show: what, whether, and the figures it is read from."""

    def cell(system: str, category: str) -> float:
        return float(late[system]["categories"][category]["mean"] or 0.0)

    def overall(figures: Figures, system: str) -> float:
        return float(figures[system]["overall"]["mean"])

    yield "references are judged at least 5.9", ceiling >= 5.9, f"{ceiling:.3f}"
    yield "other questions' references at most 1.5", floor <= 1.5, f"{floor:.3f}"
    categories = [name for name in late["oracle"]["categories"] if name not in UNANSWERABLE]
    beaten = [
        f"{name}: {system} {cell(system, name):.2f} > {cell('oracle', name):.2f}"
        for name in categories
        for system in (*SYSTEMS, *BASELINES)
        if cell(system, name) > cell("oracle", name)
    ]
    yield "oracle is best in every answerable category", not beaten, "; ".join(beaten) or "all"
    silent = [name for name in categories if abs(cell("none", name) - 1.0) > 1e-9]
    quiet = f"negative-recall {cell('none', 'negative-recall'):.2f}, elsewhere 1"
    yield "none earns only what honest silence earns", not silent, ", ".join(silent) or quiet
    old = "recency-bias-resistance"
    fell = cell("recency", old) <= 1.5 and cell("hybrid", old) >= cell("recency", old) + 1.5
    told = f"recency {cell('recency', old):.2f}, hybrid {cell('hybrid', old):.2f}"
    yield "recency collapses on old facts, hybrid holds", fell, told
    for one, other in (("bm25", "dense"), ("dense", "bm25")):
        won = [name for name in late[one]["categories"] if cell(one, name) > cell(other, name)]
        yield f"{one} beats {other} in a category", bool(won), ", ".join(won) or "nowhere"
    best = max(SYSTEMS, key=lambda system: overall(late, system))
    loss = overall(early, best) - overall(late, best)
    told = f"{best} {overall(early, best):.2f} → {overall(late, best):.2f}"
    yield "the best system loses at least 0.5", loss >= 0.5, told


def table(late: Figures, label: str) -> Table:
    shown = Table("category", *late, title=f"{label}, mean composite 0–6")
    for category in late["oracle"]["categories"]:
        cells = (late[system]["categories"][category]["mean"] for system in late)
        shown.add_row(category, *("--" if cell is None else f"{cell:.2f}" for cell in cells))
    shown.add_section()
    shown.add_row("OVERALL", *(f"{own['overall']['mean']:.2f}" for own in late.values()))
    rates = (own["hallucination"]["rate"] for own in late.values())
    shown.add_row("hallucination", *(f"{rate:.1%}" for rate in rates))
    hits = (own["retrieval"]["hit@10"]["mean"] for own in late.values())
    shown.add_row("hit@10", *(f"{hit:.2f}" for hit in hits))
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--personas", default=",".join(SHIPPED))
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    console = Console(width=140)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        personas = given.personas.split(",")
        lives(folder / "lives", personas, given.days, given.seed)
        dataset = Personas(
            folder / "lives",
            personas=given.personas,
            ranges=f"{EARLY}d,{given.days}d",
            groups=True,
        )
        ceiling, floor = judge_bounds(dataset)
        figures = measured(dataset, folder / "runs")
        early = {system: points[0] for system, points in figures.items()}
        late = {system: points[-1] for system, points in figures.items()}
        console.print(table(early, f"{EARLY} days"), table(late, f"{given.days} days"))
        failed = 0
        for what, holds, told in checks(ceiling, floor, early, late):
            failed += not holds
            console.print(f"{'holds' if holds else '[red]DOES NOT HOLD[/]'}: {what} ({told})")
        if given.json:
            given.json.write_bytes(msgspec.json.encode(figures))
    return failed


if __name__ == "__main__":
    sys.exit(main())
