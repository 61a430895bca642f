"""Choose the extractive reader's constants on simulated lives that nothing else is made from.

Usage: python benchmarks/calibrate_reader.py [--quick]
Lives are simulated with seeds from 9001; every question is put to `oracle`, `bm25` and `hybrid`.
1. The weights of a sentence's features are those under which the sentences that hold a right answer
   are likeliest to be taken (conditional logistic regression, oracle and bm25).
2. Every other constant is changed in turn to the best of its row; the worth of a setting is the
   ledger judge's mean composite over categories, then over the three systems.
3. The outcome is checked on lives with seeds from 9101, which had no say.
Prints all it chose from; docs/decisions/0006 quotes it. About ten minutes on one core.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mnemoscope.datasets.personas import Personas
from mnemoscope.judges import Case
from mnemoscope.judges.ledger_judge import LedgerJudge
from mnemoscope.personas.simulate.history_files import write_history
from mnemoscope.personas.simulate.simulator import simulate
from mnemoscope.personas.simulate.story import SHIPPED, shipped_story
from mnemoscope.readers import Passage
from mnemoscope.readers.answer_cues import cues
from mnemoscope.readers.extractive import WEIGHTS, Extractive, within
from mnemoscope.readers.passage_index import library
from mnemoscope.readers.sentence_features import FEATURES, consider
from mnemoscope.systems.builtin.baselines import Oracle
from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.systems.builtin.hybrid import Hybrid
from mnemoscope.text.matching import Sentence, any_says
from mnemoscope.types import Query, Question, Scenario

SYSTEMS: Mapping[str, Any] = {"oracle": Oracle, "bm25": Bm25, "hybrid": Hybrid}
DEPTH = 10
CHOOSE, CHECK = 9001, 9101
"""The first seeds of the lives to choose on and of those to check on; one a persona."""
GRID: Mapping[str, Sequence[float]] = {
    "threshold": (0.3, 0.4, 0.45, 0.5, 0.55, 0.6),
    "sure": (0.02, 0.03, 0.04),
    "missing": (0, 0.2, 0.4),
    "margin": (1.5, 3, 5, 7),
    "margin_several": (3, 5, 7),
    "related": (0, 0.3, 0.5),
    "gain": (0, 5, 10),
    "spread": (0, 1, 2, 4),
    "same_thing": (0.45, 0.6, 0.75),
    "sentences": (1, 3, 5, 6),
}
"""`sentences` ends at 6 because an answer has to be short: the judge would let it run on."""
PENALTY = 1e-3

Floats = NDArray[np.float32]


class Put(NamedTuple):
    """A question with what a system recalled for it."""

    system: str
    question: Question
    passages: Sequence[Passage]
    seen: int


Life = tuple[Scenario, list[Put]]


def lives(first_seed: int, days: int, personas: Sequence[str]) -> list[Life]:
    with tempfile.TemporaryDirectory() as place:
        for number, persona in enumerate(personas):
            write_history(simulate(shipped_story(persona), days, first_seed + number), Path(place))
        ranges = f"{days // 2}d,{days}d"
        scenarios = Personas(Path(place), ranges=ranges, groups=True).scenarios()
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


def sentences(data: Sequence[Life]) -> Iterator[tuple[Floats, NDArray[np.bool_]]]:
    """Of each question with an answer in words: all sentences' features, and which hold it."""
    books = library("wordllama")
    for _, asked in data:
        for put in asked:
            question = put.question
            if put.system == "hybrid" or question.expects != "answer" or question.key is None:
                continue
            if question.category in ("temporal-reasoning", "cross-reference"):
                continue  # a date or a subject's name is in every sentence of the right section
            read = within(put.passages, Extractive().budget)
            digests = books.digests([(text, passage.session) for passage, text in read])
            right = [
                passage.id in question.evidence
                and any(any_says([Sentence(said.text)], item) for item in question.key.required)
                for (passage, _), digest in zip(read, digests, strict=True)
                for said in digest.cited
            ]
            told = [digest for digest in digests if digest.cited]
            if any(right) and not all(right):
                reading = consider(question.text, cues(question.text), told, books)
                yield reading.features, np.array(right)


def fit(data: Sequence[Life]) -> dict[str, float]:
    """The weights that make a right sentence likeliest to be the best of its question's."""
    cases = list(sentences(data))

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        total, slope = 0.0, np.zeros_like(weights)
        for features, right in cases:
            score = features @ weights
            share = np.exp(score - score.max())
            share /= share.sum()
            hit = share[right].sum() + 1e-12
            total -= np.log(hit)
            slope += features.T @ share - features[right].T @ (share[right] / hit)
        return (
            total / len(cases) + PENALTY * float(weights @ weights),
            slope / len(cases) + 2 * PENALTY * weights,
        )

    found = minimize(loss, np.zeros(len(FEATURES)), jac=True, method="L-BFGS-B").x
    print(f"\n{len(cases)} questions with right and other sentences; weights:")
    weights = {name: round(float(each), 1) for name, each in zip(FEATURES, found, strict=True)}
    print(", ".join(f"{name} {each:g}" for name, each in weights.items()))
    for count in (1, 3, 5):
        hits = fmean(
            bool(right[np.argsort(-(features @ found))[:count]].any()) for features, right in cases
        )
        print(f"a right sentence among the best {count}: {hits:.3f}")
    return weights


def scores(data: Sequence[Life], arguments: Mapping[str, Any]) -> dict[tuple[str, str], list[int]]:
    """Composites by system and category."""
    reader = Extractive(form="sentences", **arguments)
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for scenario, asked in data:
        judge = LedgerJudge()
        judge.begin(scenario)
        for put in asked:
            reply = reader.read(Query(put.question.text, put.question.now), put.passages)
            case = Case(
                put.question, reply.text, abstained=bool(reply.abstained), memories=put.seen
            )
            found[put.system, put.question.category].append(judge.judge(case).composite)
    return found


def worth(found: Mapping[tuple[str, str], Sequence[int]]) -> float:
    return fmean(of_system(found, system) for system in SYSTEMS)


def of_system(found: Mapping[tuple[str, str], Sequence[int]], system: str) -> float:
    """The mean over categories: none counts for its size."""
    return fmean(fmean(own) for (name, _), own in found.items() if name == system)


def climb(data: Sequence[Life], grid: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    best = worth(scores(data, chosen))
    print(f"\nAll other constants as shipped: {best:.4f}")
    print("\n| constant | mean composite | chosen |\n|---|---|---|")
    for name, tried in grid.items():
        row = {each: worth(scores(data, {**chosen, name: each})) for each in tried}
        top = max(row, key=lambda each: row[each])
        if row[top] > best:
            best, chosen[name] = row[top], top
        cells = ", ".join(f"{each:g}: {row[each]:.4f}" for each in tried)
        print(f"| {name} | {cells} | {chosen.get(name, 'as shipped')} |", flush=True)
    return chosen


def table(data: Sequence[Life], arguments: Mapping[str, Any]) -> None:
    found = scores(data, arguments)
    print(f"{worth(found):.4f}\n\n| category | n | " + " | ".join(SYSTEMS) + " |")
    print("|" + "---|" * (len(SYSTEMS) + 2))
    for category in sorted({category for _, category in found}):
        cells = [f"{fmean(found[system, category]):.2f}" for system in SYSTEMS]
        print(f"| {category} | {len(found['oracle', category])} | " + " | ".join(cells) + " |")
    means = " | ".join(f"{of_system(found, system):.2f}" for system in SYSTEMS)
    print(f"| mean of categories | | {means} |")


def main(quick: bool) -> None:
    personas, days = (SHIPPED[:2], 90) if quick else (SHIPPED, 180)
    data = lives(CHOOSE, days, personas)
    answers = sum(len(own) for _, own in data)
    print(f"{len(data)} histories of {days} days, {answers} answers to judge")
    WEIGHTS.update(fit(data))
    chosen = climb(data, GRID)
    print(
        "\nChosen:", ", ".join(f"{name}={each:g}" for name, each in chosen.items()) or "no change"
    )
    print("\nOn the histories it was chosen on: ", end="")
    table(data, chosen)
    print("\nOn held-out histories: ", end="")
    table(lives(CHECK, days, personas), chosen)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
