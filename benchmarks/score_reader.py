"""Score the extractive reader's short answers: first on data it was not chosen on, then on all.

Usage: python benchmarks/score_reader.py LOCOMO LONGMEMEVAL
LOCOMO and LONGMEMEVAL are the folders of the two datasets; benchmarks/train_reader.py says which
part of them the weights are chosen on. Turn by turn, 50 hits, `oracle`, `hybrid` and `bm25`; on
LongMemEval the oracle variant. F1 is LoCoMo's, by category; on LongMemEval token F1, and a question
without an answer counts 1 if the reader abstains. Prints one Markdown table, which
docs/decisions/0028 quotes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from mnemoscope.datasets.locomo import Locomo
from mnemoscope.datasets.longmemeval import LongMemEval
from mnemoscope.readers import Passage
from mnemoscope.readers.extractive import Extractive
from mnemoscope.systems.builtin.baselines import Oracle
from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.systems.builtin.hybrid import Hybrid
from mnemoscope.text.overlap import locomo_f1, token_f1
from mnemoscope.types import Query, Question, Scenario
from train_reader import CONVERSATIONS

SYSTEMS: dict[str, Callable[[], Any]] = {"oracle": Oracle, "hybrid": Hybrid, "bm25": Bm25}
DEPTH = 50


class Scored(NamedTuple):
    data: str
    chosen_on: bool
    system: str
    answerable: bool
    abstained: bool
    words: int
    f1: float
    seconds: float


def score(scenario: Scenario, data: str, chosen_on: bool) -> Iterator[Scored]:
    memories = {memory.id: memory for memory in scenario.memories}
    reader = Extractive()
    for name, make in SYSTEMS.items():
        system = make()
        system.reset(scenario.id)
        system.remember(scenario.memories)
        for question in scenario.questions:
            query = Query(question.text, question.now, question.session)
            hits = system.recall(question if name == "oracle" else query, DEPTH)
            found = [memories[hit.id] for hit in hits]
            passages = [Passage(one.id, one.text, one.at, one.session) for one in found]
            began = time.process_time()
            reply = reader.read(query, passages)
            taken = time.process_time() - began
            silent = bool(reply.abstained)
            yield Scored(
                data,
                chosen_on,
                name,
                question.expects == "answer",
                silent,
                len(reply.text.split()),
                _f1(data, question, reply.text, silent),
                taken,
            )


def _f1(data: str, question: Question, answer: str, silent: bool) -> float:
    if data == "LoCoMo":
        return locomo_f1(answer, question.reference, question.category)
    return float(silent) if question.expects == "abstain" else token_f1(answer, question.reference)


def rows(scored: list[Scored]) -> Iterator[str]:
    yield (
        "| data | part | system | n | F1, all | F1, with an answer | words "
        "| abstained: rightly | wrongly |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    parts = {"held back": (False,), "chosen on": (True,), "all": (False, True)}
    for data in ("LoCoMo", "LongMemEval"):
        for part, wanted in parts.items():
            for system in SYSTEMS:
                own = [
                    one
                    for one in scored
                    if (one.data, one.system) == (data, system) and one.chosen_on in wanted
                ]
                if not own:
                    continue
                real = [one for one in own if one.answerable]
                empty = [one for one in own if not one.answerable]
                words = fmean(one.words for one in own if not one.abstained)
                yield (
                    f"| {data} | {part} | {system} | {len(own):,} | {fmean(o.f1 for o in own):.3f} "
                    f"| {fmean(o.f1 for o in real):.3f} | {words:.1f} "
                    f"| {fmean(o.abstained for o in empty):.3f} "
                    f"| {fmean(o.abstained for o in real):.3f} |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("locomo", type=Path)
    parser.add_argument("longmemeval", type=Path)
    given = parser.parse_args()
    scored: list[Scored] = []
    for scenario in Locomo(given.locomo, granularity="turn").read():
        scored += score(scenario, "LoCoMo", scenario.id in CONVERSATIONS)
    dataset = LongMemEval(given.longmemeval, variant="oracle", granularity="turn")
    for number, scenario in enumerate(dataset.read()):
        scored += score(scenario, "LongMemEval", number % 2 == 0)
    print("\n".join(rows(scored)))
    print(f"\n{1000 * fmean(one.seconds for one in scored):.1f} ms of processor time a question")


if __name__ == "__main__":
    main()
