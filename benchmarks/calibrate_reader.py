"""Choose the extractive reader's constants on simulated lives that nothing else is made from.

Usage: python benchmarks/calibrate_reader.py [--quick]
Lives are simulated with seeds from 9001, every question is put to `oracle`, `bm25` and `hybrid`, the
reader answers from what they recall, and the ledger judge scores it. The value of a setting is the
mean composite over categories, then over the three systems. One constant is changed at a time, to
the best of its row, for two rounds; then the result is checked on lives with seeds from 9101. Prints
the rows it chose from; docs/decisions/0006 quotes them.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from mnemoscope.core.nouns import Query, Question, Scenario
from mnemoscope.datasets.personas import Personas
from mnemoscope.judges import Case
from mnemoscope.judges.ledger import Ledger
from mnemoscope.personas.files import write_life
from mnemoscope.personas.simulate import simulate
from mnemoscope.personas.story import SHIPPED, shipped_story
from mnemoscope.readers import Passage
from mnemoscope.readers.extractive import Extractive
from mnemoscope.systems.arms import Oracle
from mnemoscope.systems.bm25 import Bm25
from mnemoscope.systems.hybrid import Hybrid

SYSTEMS: Mapping[str, Any] = {"oracle": Oracle, "bm25": Bm25, "hybrid": Hybrid}
DEPTH = 10
CHOOSE, CHECK = 9001, 9101
"""The first seeds of the lives to choose on and of those to check on; one a persona."""
GRID: Mapping[str, Sequence[float]] = {
    "threshold": (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6),
}


class Put(NamedTuple):
    """A question with what a system recalled for it."""

    system: str
    question: Question
    passages: Sequence[Passage]
    seen: int


Life = tuple[Scenario, list[Put]]


def lives(first_seed: int, days: int, personas: Sequence[str], folder: Path) -> list[Life]:
    for number, persona in enumerate(personas):
        life = simulate(shipped_story(persona), days, first_seed + number)
        write_life(life, folder)
    scenarios = Personas(folder, ranges=f"{days // 2}d,{days}d", groups=True).scenarios()
    return [(scenario, list(puts(scenario))) for scenario in scenarios]


def puts(scenario: Scenario) -> Iterator[Put]:
    """Every question of every checkpoint, put to every system that has seen exactly so much."""
    memories = {memory.id: memory for memory in scenario.memories}
    questions = {question.id: question for question in scenario.questions}
    for checkpoint in scenario.checkpoints:
        for name, make in SYSTEMS.items():
            system = make()
            system.reset(scenario.id)
            system.remember(scenario.memories[: checkpoint.memories])
            for id in checkpoint.questions:
                question = questions[id]
                query = Query(question.text, question.now, question.session)
                hits = system.recall(question if name == "oracle" else query, DEPTH)
                found = (memories[hit.id] for hit in hits)
                passages = [Passage(m.id, m.text, m.at, m.session) for m in found]
                yield Put(name, question, passages, checkpoint.memories)


def scores(data: Sequence[Life], arguments: Mapping[str, Any]) -> dict[tuple[str, str], list[int]]:
    """Composites by system and category."""
    reader = Extractive(**arguments)
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for scenario, asked in data:
        judge = Ledger()
        judge.begin(scenario)
        for put in asked:
            reply = reader.read(Query(put.question.text, put.question.now), put.passages)
            case = Case(put.question, reply.text, abstained=reply.abstained, memories=put.seen)
            found[put.system, put.question.category].append(judge.judge(case).composite)
    return found


def value(found: Mapping[tuple[str, str], Sequence[int]]) -> float:
    """The mean over categories, then over systems: no category counts for its size."""
    return fmean(
        fmean(fmean(own) for (name, _), own in found.items() if name == system)
        for system in SYSTEMS
    )


def climb(data: Sequence[Life], rounds: int) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    best = value(scores(data, chosen))
    print(
        f"\nAs shipped: {best:.4f}\n\n| constant | tried (mean composite) | chosen |\n|---|---|---|"
    )
    for _ in range(rounds):
        for name, tried in GRID.items():
            row = {each: value(scores(data, {**chosen, name: each})) for each in tried}
            top = max(row, key=lambda each: row[each])
            if row[top] > best:
                best, chosen[name] = row[top], top
            cells = ", ".join(f"{each:g}: {row[each]:.4f}" for each in tried)
            print(f"| {name} | {cells} | {chosen.get(name, 'as shipped')} |", flush=True)
    return chosen


def table(data: Sequence[Life], arguments: Mapping[str, Any]) -> None:
    found = scores(data, arguments)
    categories = sorted({category for _, category in found})
    print("\n| category | n | " + " | ".join(SYSTEMS) + " |\n|" + "---|" * (len(SYSTEMS) + 2))
    for category in categories:
        cells = [f"{fmean(found[system, category]):.2f}" for system in SYSTEMS]
        print(f"| {category} | {len(found['oracle', category])} | " + " | ".join(cells) + " |")
    means = [
        fmean(fmean(own) for (name, _), own in found.items() if name == system)
        for system in SYSTEMS
    ]
    print("| mean of categories | | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")


def main(quick: bool) -> None:
    personas, days, rounds = (SHIPPED[:2], 90, 1) if quick else (SHIPPED, 180, 2)
    with tempfile.TemporaryDirectory() as place:
        data = lives(CHOOSE, days, personas, Path(place) / "choose")
        held_out = lives(CHECK, days, personas, Path(place) / "check")
    print(f"{len(data)} lives of {days} days, {sum(len(own) for _, own in data)} answers to judge")
    chosen = climb(data, rounds)
    print(
        "\nChosen:", ", ".join(f"{name}={each:g}" for name, each in chosen.items()) or "as shipped"
    )
    print(f"\nOn the lives it was chosen on: {value(scores(data, chosen)):.4f}")
    table(data, chosen)
    print(f"\nOn the held-out lives: {value(scores(held_out, chosen)):.4f}")
    table(held_out, chosen)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
