"""Choose the thresholds of the carrying test on one half of the data, and report on the other.

    python benchmarks/choose_carrying.py --data ../shared/data/locomo

The data: hits labelled by hand (tests/text/carrying_hits.jsonl), and facts that a rule-based
system wrote from pairs of LoCoMo's turns (tests/fact_merger.py). Thresholds are chosen on
the odd labelled memories and conversations 1 to 5; the report is on the even ones and on 6 to 10.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT / "src"), str(_ROOT)]

from tests.fact_merger import FactMerger  # noqa: E402

from mnemoscope.datasets import open_dataset  # noqa: E402
from mnemoscope.text import carrying  # noqa: E402
from mnemoscope.types import Memory, Query, Scenario  # noqa: E402

GRID = {
    "ANSWER_SHARE": (0.5, 0.6, 0.7),
    "CONTEXT_SHARE": (0.2, 0.3, 0.4),
    "WHOLE_SHARE": (0.4, 0.5, 0.6),
}


class Case(NamedTuple):
    """One hit: the pool, its text, the memory, the question, and whether it carries it."""

    test: carrying.CarryingTest
    text: str
    memory: str
    question: str
    reference: str
    carries: bool

    @property
    def right(self) -> bool:
        got = self.test.carries(self.text, self.memory, self.question, self.reference)
        return got == self.carries


def labelled(half: int, *, references: bool = True) -> Iterator[Case]:
    """Hits labelled by hand."""
    lines = (_ROOT / "tests/text/carrying_hits.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    pool = [
        Memory(r["id"], r["text"], datetime.fromisoformat(r["at"]), speaker=r["speaker"])
        for r in rows
    ]
    test = carrying.CarryingTest(pool)
    for row in rows[half::2]:
        for _, carries, text in row["hits"]:
            reference = row["answer"] if references else ""
            yield Case(test, text, row["id"], row["question"], reference, carries)


def merged(scenarios: Sequence[Scenario]) -> Iterator[Case]:
    """The fact made from each evidence, and the other facts that bm25 ranks among the first 10."""
    for scenario in scenarios:
        test, system = carrying.CarryingTest(scenario.memories), FactMerger()
        system.remember(scenario.memories)
        fact_of = {id: fact for fact, ids in system.made_of.items() for id in ids}
        for question in scenario.questions:
            about = (question.text, question.reference)
            found = system.recall(Query(question.text), 10)
            for id in question.evidence:
                if id in fact_of:
                    yield Case(test, system.texts[fact_of[id]], id, *about, True)
                    for hit in found:
                        if hit.id != fact_of[id]:
                            yield Case(test, hit.text, id, *about, False)


def report(name: str, cases: Sequence[Case]) -> tuple[float, float]:
    """Print and return the rates of false rejects and of false accepts."""
    yes, no = ([c for c in cases if c.carries is wanted] for wanted in (True, False))
    rejects, accepts = (sum(not case.right for case in own) for own in (yes, no))
    print(
        f"{name}: {len(yes)} carry, {rejects} rejected ({rejects / len(yes):.1%}); "
        f"{len(no)} do not, {accepts} accepted ({accepts / len(no):.1%})"
    )
    return rejects / len(yes), accepts / len(no)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of locomo10.json")
    parser.add_argument("--grid", action="store_true", help="also try other thresholds")
    options = parser.parse_args()
    scenarios = list(open_dataset("locomo", options.data, {"granularity": "turn"}).scenarios())
    if options.grid:
        choosing = [list(labelled(0)), list(labelled(0, references=False))]
        choosing.append(list(merged(scenarios[:1])))
        for chosen in product(*GRID.values()):
            for name, value in zip(GRID, chosen, strict=True):
                setattr(carrying, name, value)
            wrong = [
                sum(not case.right for case in cases if case.carries is wanted)
                for cases in choosing
                for wanted in (True, False)
            ]
            print(chosen, "wrong (labelled, without reference, LoCoMo):", wrong)
        return
    for name, half, part in (("chosen on", 0, scenarios[:5]), ("held back", 1, scenarios[5:])):
        report(f"{name}, labelled by hand", list(labelled(half)))
        report(f"{name}, without a reference answer", list(labelled(half, references=False)))
        report(f"{name}, LoCoMo facts", list(merged(part)))


if __name__ == "__main__":
    main()
