"""The exact judge: right is what equals the reference once case, articles and commas are gone."""

from __future__ import annotations

from mnemoscope.judges import ACCURACY, Case, Unjudged
from mnemoscope.text.overlap import normal_answer
from mnemoscope.types import Grade, Scenario


class Exact:
    """1 or 0; asks no model."""

    scale = ACCURACY

    def begin(self, scenario: Scenario) -> None:
        """Nothing to prepare: each case stands for itself."""

    def judge(self, case: Case) -> Grade:
        if (settled := without_asking(case)) is not None:
            return settled
        said, wanted = normal_answer(case.answer), normal_answer(case.question.reference)
        return Grade(float(said == wanted))


def without_asking(case: Case) -> Grade | None:
    """The grade of a case that needs no model; Unjudged where there is nothing to judge by."""
    question = case.question
    if not question.reference.strip():
        if question.expects == "abstain":
            said = "abstains" if case.abstained else "answers"
            return Grade(float(case.abstained), f"The question has no answer, and this {said}.")
        raise Unjudged(f"question {question.id} has no reference to judge by")
    if not case.answer.strip():
        return Grade(0.0, "Says nothing.")
    return None
