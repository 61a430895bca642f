"""Judges give a score to an answer, against the reference and what is known of the truth.

A judge that cannot come to a score raises `Unjudged`; that is recorded as such and is no zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import Entry, Registry
from mnemoscope.types import Grade, Question, Scale, Scenario, Score

ACCURACY = Scale("accuracy")
"""Right or wrong, 1 or 0."""
RUBRIC = Scale("composite", 0, 6)
"""Recall Bench's marks, given as a Score."""
MARKS = {"correctness": 3, "completeness": 2, "hallucination": 1}
"""The rubric's marks, and the most that each can be."""


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

    `begin` is called before the first case of a scenario. A judge may declare, as attributes of its
    class, the `scale` of its grades, what it `needs` of a dataset (see `needs_of`), and with
    `wants_recalled = True` that it looks at what was recalled.
    """

    def begin(self, scenario: Scenario) -> None: ...

    def judge(self, case: Case) -> Score | Grade: ...


class EachCaseAlone:
    """A judge that has nothing to prepare for a scenario."""

    def begin(self, scenario: Scenario) -> None: ...


JUDGES = Registry(
    "judge",
    {
        "ledger": Entry(
            "mnemoscope.judges.ledger_judge:LedgerJudge",
            "exact, from a simulated persona's ledger, no model",
        ),
        "exact": Entry(
            "mnemoscope.judges.plain_judges:Exact",
            "1 for what equals the reference, normalised; no model",
        ),
        "f1": Entry(
            "mnemoscope.judges.plain_judges:F1",
            "LoCoMo's official word overlap, by category; no model",
        ),
        "rouge-l": Entry(
            "mnemoscope.judges.plain_judges:RougeL", "longest common subsequence with it; no model"
        ),
        "binary": Entry("mnemoscope.judges.model_judges:Binary", "a model says CORRECT or WRONG"),
        "rubric": Entry(
            "mnemoscope.judges.model_judges:Rubric", "a model gives Recall Bench's marks, 0 to 6"
        ),
        "longmemeval": Entry(
            "mnemoscope.judges.model_judges:LongMemEvalJudge",
            "a model says CORRECT or WRONG, by a prompt for each question type",
        ),
        "likelihood": Entry(
            "mnemoscope.judges.likelihood:LikelihoodGain",
            "how much likelier what was recalled makes the reference, by a small local model",
        ),
    },
    group="mnemoscope.judges",
)


def scale_of(judge: object) -> Scale | None:
    """The scale that a judge or its class declares, if it does."""
    found = getattr(judge, "scale", None)
    return found if isinstance(found, Scale) else None


def needs_of(judge: object) -> Mapping[str, str]:
    """What a judge needs of a dataset, and what is said where a `{dataset}` lacks it."""
    return dict(getattr(judge, "needs", {}))


def judge_class(name: str) -> object:
    """The class behind a judge's name; none for a model's name."""
    try:
        return JUDGES.get(name)
    except UsageError:  # a mistake in the name is reported where the judge is built
        return None


__all__ = [
    "ACCURACY",
    "JUDGES",
    "MARKS",
    "RUBRIC",
    "Case",
    "EachCaseAlone",
    "Judge",
    "Unjudged",
    "judge_class",
    "needs_of",
    "scale_of",
]
