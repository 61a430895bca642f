"""The rubric judge: Recall Bench's marks for correctness, completeness and no hallucination.

Three prompts: for questions about what may not be told, for judging with the days around the
evidence in view, and for judging by the reference alone.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from mnemoscope.judges import RUBRIC, Case, Unjudged
from mnemoscope.judges.model_judge import (
    HOLES,
    family_identity,
    fenced,
    fill,
    load_family,
    read_object,
    settle,
)
from mnemoscope.models.chat import Prompt
from mnemoscope.models.model_loader import load_model
from mnemoscope.types import Scenario, Score

_MARKS = {"correctness": 3, "completeness": 2, "hallucination": 1}
_KINDS = ("", "grounded", "boundary")
_HOLES = HOLES | {"excerpts", "session", "forbidden", "expects"}


class Rubric:
    """`prompt` is one name of three: NAME, NAME-grounded, NAME-boundary."""

    scale = RUBRIC

    def __init__(self, model: str, prompt: str = "judge-rubric") -> None:
        self._model = load_model(model)
        self._prompts = load_family(prompt, _KINDS, _HOLES)

    def identity(self) -> dict[str, Any]:
        return family_identity(self._model, self._prompts)

    def begin(self, scenario: Scenario) -> None:
        """Nothing to prepare: each case stands for itself."""

    def judge(self, case: Case) -> Score:
        if not case.question.reference.strip() and _kind(case) != "boundary":
            return _without_reference(case)
        if not case.answer.strip():
            # By the rubric: nothing right, nothing complete, nothing made up either.
            return Score(0, 0, 1, "Says nothing.")
        return settle(self._model, self._fill(case), read_marks)

    def _fill(self, case: Case) -> Prompt:
        question = case.question
        return fill(
            self._prompts[_kind(case)],
            case,
            excerpts=fenced("log", case.excerpts) if case.excerpts else "(none shown)",
            session=question.session or "the principal's own",
            forbidden=", ".join(question.forbidden) or "none",
            expects=question.expects,
        )


def read_marks(reply: str) -> Score:
    """The marks from a JSON object: numbers only, rounded, within the rubric."""
    content = read_object(reply)
    marks: list[int] = []
    for name, most in _MARKS.items():
        mark = content.get(name)
        if isinstance(mark, bool) or not isinstance(mark, int | float) or not isfinite(mark):
            raise ValueError(f'"{name}" is {"missing" if mark is None else "no number"}')
        if not 0 <= round(mark) <= most:
            raise ValueError(f'"{name}" goes from 0 to {most}')
        marks.append(round(mark))
    correctness, completeness, hallucination = marks
    reasoning = str(content.get("reasoning") or "")
    return Score(correctness, completeness, hallucination, reasoning)


def _without_reference(case: Case) -> Score:
    """Where no answer exists either, abstaining is all that is right."""
    if case.question.expects != "abstain":
        raise Unjudged(f"question {case.question.id} has no reference to judge by")
    if case.abstained:
        return Score(3, 2, 1, "The question has no answer, and this abstains.")
    return Score(0, 0, 0, "The question has no answer, and this answers.")


def _kind(case: Case) -> str:
    if case.question.forbidden or case.question.expects in ("refuse", "partial"):
        return "boundary"
    return "grounded" if case.excerpts else ""
