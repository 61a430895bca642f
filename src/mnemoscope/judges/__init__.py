"""Judges give a score to an answer, against the reference and what is known of the truth.

A judge that cannot come to a score raises `Unjudged`; that is recorded as such and is no zero.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from mnemoscope._store.registry import Entry, Registry
from mnemoscope.types import Grade, Question, Scenario, Score


class Unjudged(Exception):
    """The judge looked at the case and could not come to a score."""


class Case(Struct, frozen=True, omit_defaults=True):
    """One answer to be judged."""

    question: Question
    answer: str
    abstained: bool = False
    """Whether the reader says that this is no answer but that it found nothing."""
    memories: int = 0
    """How many of the scenario's memories the system had seen."""
    excerpts: str = ""
    """The days around the evidence, for judges that want to see them; empty where not asked for."""
    recalled: tuple[str, ...] = ()
    """The passages that the answer was made from, for judges with `wants_recalled = True`."""


class Judge(Protocol):
    """Scores answers: by the rubric with a Score, or with one number, a Grade.

    `begin` is called before the first case of a scenario.
    """

    def begin(self, scenario: Scenario) -> None: ...

    def judge(self, case: Case) -> Score | Grade: ...


JUDGES = Registry(
    "judge",
    {
        "ledger": Entry(
            "mnemoscope.judges.ledger_judge:Ledger",
            "exact, from a simulated persona's ledger, no model",
        ),
        "exact": Entry(
            "mnemoscope.judges.exact:Exact", "1 for what equals the reference, normalised; no model"
        ),
        "f1": Entry(
            "mnemoscope.judges.f1:F1", "LoCoMo's official word overlap, by category; no model"
        ),
        "rouge-l": Entry(
            "mnemoscope.judges.rouge:RougeL", "longest common subsequence with it; no model"
        ),
        "binary": Entry("mnemoscope.judges.binary:Binary", "a model says CORRECT or WRONG"),
        "rubric": Entry(
            "mnemoscope.judges.rubric:Rubric", "a model gives Recall Bench's marks, 0 to 6"
        ),
        "longmemeval": Entry(
            "mnemoscope.judges.longmemeval_judge:LongMemEval",
            "a model says CORRECT or WRONG, by a prompt for each question type",
        ),
        "likelihood": Entry(
            "mnemoscope.judges.likelihood:LikelihoodGain",
            "how much likelier what was recalled makes the reference, by a small local model",
        ),
    },
    group="mnemoscope.judges",
)

__all__ = ["JUDGES", "Case", "Judge", "Unjudged"]
