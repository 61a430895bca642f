"""Judges that compare words with the reference and ask no model: exact, f1, rouge-l."""

from __future__ import annotations

from mnemoscope.judges import ACCURACY, Case, EachCaseAlone, Unjudged
from mnemoscope.text.overlap import Tokens, locomo_f1, normal_answer, rouge_l
from mnemoscope.types import Grade, Scale

_ADVERSARIAL = "5"


class Exact(EachCaseAlone):
    """1 for what equals the reference once case, articles and commas are gone; else 0."""

    scale = ACCURACY

    def judge(self, case: Case) -> Grade:
        if (settled := without_asking(case)) is not None:
            return settled
        said, wanted = normal_answer(case.answer), normal_answer(case.question.reference)
        return Grade(float(said == wanted))


class F1(EachCaseAlone):
    """LoCoMo's official answer scoring: shared words, with its rule for each category.

    A question whose category is none of LoCoMo's five numbers gets the plain F1.
    """

    scale = Scale("f1")

    def judge(self, case: Case) -> Grade:
        question = case.question
        # By LoCoMo's rule, two phrases decide there, whatever the reader says of itself.
        official = question.category == _ADVERSARIAL
        if not official and (settled := without_asking(case)) is not None:
            return settled
        return Grade(locomo_f1(case.answer, question.reference, question.category))


class RougeL(EachCaseAlone):
    """F1 of the longest common subsequence; `tokens=whitespace` as Nexus cuts them."""

    scale = Scale("rouge_l")

    def __init__(self, tokens: Tokens = "words") -> None:
        self._tokens = tokens

    def judge(self, case: Case) -> Grade:
        if (settled := without_asking(case)) is not None:
            return settled
        return Grade(rouge_l(case.answer, case.question.reference, self._tokens))


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
