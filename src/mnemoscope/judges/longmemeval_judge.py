"""LongMemEval's judge: CORRECT or WRONG, by another prompt for each type of question.

The type is the question's category; one that is not known is unjudged, never judged by the prompt
of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mnemoscope.judges import ACCURACY, Case, Unjudged
from mnemoscope.judges.exact import without_asking
from mnemoscope.judges.model_judge import (
    HOLES,
    family_identity,
    fill,
    load_family,
    read_verdict,
    settle,
)
from mnemoscope.models.model_loader import load_model
from mnemoscope.types import Grade, Question, Scenario

_ABSTENTION = "abstention"
_PROMPTS = {
    "single-session-user": "single-session",
    "single-session-assistant": "single-session",
    "single-session-preference": "single-session-preference",
    "multi-session": "multi-session",
    "temporal-reasoning": "temporal-reasoning",
    "knowledge-update": "knowledge-update",
}


class LongMemEval:
    """`prompt` is the beginning of six names: each goes on with a type, or with abstention."""

    scale = ACCURACY
    needs: ClassVar[Mapping[str, str]] = {
        "longmemeval question types": "the longmemeval judge knows no question types of {dataset}"
    }

    def __init__(self, model: str, prompt: str = "judge-longmemeval") -> None:
        self._model = load_model(model)
        kinds = (*dict.fromkeys(_PROMPTS.values()), _ABSTENTION)
        self._prompts = load_family(prompt, kinds, HOLES)

    def identity(self) -> dict[str, Any]:
        return family_identity(self._model, self._prompts)

    def begin(self, scenario: Scenario) -> None:
        """Nothing to prepare: each case stands for itself."""

    def judge(self, case: Case) -> Grade:
        kind = _kind(case.question)
        if (settled := without_asking(case)) is not None:
            return settled
        return settle(self._model, fill(self._prompts[kind], case), read_verdict)


def _kind(question: Question) -> str:
    if question.expects == "abstain":
        return _ABSTENTION
    if question.category not in _PROMPTS:
        raise Unjudged(
            f"question {question.id}: {question.category!r} is no question type of LongMemEval; "
            f"known are {', '.join(_PROMPTS)}; judge other datasets with binary"
        )
    return _PROMPTS[question.category]
