"""Judges score an answer against the reference or the answer key.

A judge that reaches no verdict raises `Unjudged`. The case is recorded as unjudged, not as zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import Entry, Registry
from mnemoscope.types import Grade, Question, Scale, Scenario, Score

ACCURACY = Scale("accuracy")
"""1 for a correct answer, 0 for a wrong one."""
RUBRIC = Scale("composite", 0, 6)
"""The marks of Recall Bench, as a Score."""
MARKS = {"correctness": 3, "completeness": 2, "hallucination": 1}
"""The marks of the rubric, and the maximum of each."""


class Unjudged(Exception):
    """The judge reached no verdict on the case."""


class Case(Struct, frozen=True, omit_defaults=True):
    """One answer to judge."""

    question: Question
    answer: str
    abstained: bool = False
    """Whether the reader abstained."""
    memories: int = 0
    """How many memories of the scenario the system had ingested."""
    excerpts: str = ""
    """The days around the evidence, if a judge asked for them."""
    recalled: tuple[str, ...] = ()
    """The recalled passages, for judges with `wants_recalled = True`."""
    policy: str = ""
    """What may be told in which session, if the scenario has a policy."""


class Judge(Protocol):
    """Scores answers: with a Score by the rubric, or with one number, a Grade.

    `begin` is called before the first case of a scenario. The class of a judge may declare the
    `scale` of its grades, what it `needs` from a dataset (see `needs_of`), and `wants_recalled =
    True` if it judges the recalled passages.
    """

    def begin(self, scenario: Scenario) -> None: ...

    def judge(self, case: Case) -> Score | Grade: ...


class EachCaseAlone:
    """A judge that prepares nothing for a scenario."""

    def begin(self, scenario: Scenario) -> None: ...


JUDGES = Registry(
    "judge",
    {
        "ledger": Entry(
            "mnemoscope.judges.ledger_judge:LedgerJudge",
            "exact, by the ledger of a simulated persona; no model",
        ),
        "exact": Entry(
            "mnemoscope.judges.plain_judges:Exact",
            "1 if the answer equals the normalised reference; no model",
        ),
        "substring": Entry(
            "mnemoscope.judges.plain_judges:Substring",
            "1 if the answer contains the normalised reference, as MemoryAgentBench; no model",
        ),
        "f1": Entry(
            "mnemoscope.judges.plain_judges:F1",
            "LoCoMo's official word overlap, by category; no model",
        ),
        "rouge-l": Entry(
            "mnemoscope.judges.plain_judges:RougeL",
            "longest common subsequence with the reference; no model",
        ),
        "contains": Entry(
            "mnemoscope.judges.contains:Contains",
            "1 if a short answer contains every word of the reference; no model",
        ),
        "cascade": Entry(
            "mnemoscope.judges.contains:Cascade",
            "contains, and for the other answers one token of a model, with its log-odds",
        ),
        "binary": Entry(
            "mnemoscope.judges.model_judges:Binary", "a model replies CORRECT or WRONG"
        ),
        "rubric": Entry(
            "mnemoscope.judges.model_judges:Rubric", "a model gives Recall Bench's marks, 0 to 6"
        ),
        "longmemeval": Entry(
            "mnemoscope.judges.longmemeval_judge:LongMemEvalJudge",
            "a model replies yes or no, by the official rules of LongMemEval or deviations by name",
        ),
        "nuggets": Entry(
            "mnemoscope.judges.nuggets_judge:NuggetsJudge",
            "a model marks each item of a rubric; BEAM's official score or the mean mark, by name",
        ),
        "likelihood": Entry(
            "mnemoscope.judges.likelihood:LikelihoodGain",
            "how much the recalled text raises the likelihood of the reference; small local model",
        ),
    },
    group="mnemoscope.judges",
)


def scale_of(judge: object) -> Scale | None:
    """The scale that a judge or its class declares; None if it declares none."""
    found = getattr(judge, "scale", None)
    return found if isinstance(found, Scale) else None


def needs_of(judge: object) -> Mapping[str, str]:
    """What a judge needs from a dataset, and the error if `{dataset}` lacks it."""
    return dict(getattr(judge, "needs", {}))


def judge_class(name: str) -> object:
    """The class of a judge; None for the name of a model."""
    try:
        return JUDGES.get(name)
    except UsageError:  # a wrong name is reported when the judge is built
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
