"""Judges that compare words with the reference, without a model: exact, substring, f1, rouge-l."""

from __future__ import annotations

from mnemoscope.judges import ACCURACY, Case, EachCaseAlone, Unjudged
from mnemoscope.text.overlap import Tokens, locomo_f1, normal_answer, rouge_l, without_articles
from mnemoscope.types import Grade, Scale

_ADVERSARIAL = "5"


class Exact(EachCaseAlone):
    """1 if the answer equals the reference without case, punctuation and articles; else 0."""

    scale = ACCURACY

    def judge(self, case: Case) -> Grade:
        if (settled := without_asking(case)) is not None:
            return settled
        answer, reference = normal_answer(case.answer), normal_answer(case.question.reference)
        return Grade(float(answer == reference))


class Substring(EachCaseAlone):
    """MemoryAgentBench's `substring_exact_match`: the answer contains the reference somewhere.

    Both are compared without case, punctuation and articles. A long answer that lists everything
    passes; `contains` is the rule that does not accept it.
    """

    scale = ACCURACY

    def judge(self, case: Case) -> Grade:
        if (settled := without_asking(case)) is not None:
            return settled
        reference = without_articles(case.question.reference)
        return Grade(float(reference in without_articles(case.answer)))


class F1(EachCaseAlone):
    """The official answer score of LoCoMo: word overlap, with a rule for each category.

    Questions of other categories get the plain F1.
    """

    scale = Scale("f1")

    def judge(self, case: Case) -> Grade:
        question = case.question
        # LoCoMo's rule looks for two phrases and ignores whether the reader abstained.
        official = question.category == _ADVERSARIAL
        if not official and (settled := without_asking(case)) is not None:
            return settled
        return Grade(locomo_f1(case.answer, question.reference, question.category))


class RougeL(EachCaseAlone):
    """F1 of the longest common subsequence; `tokens=whitespace` tokenises like Nexus."""

    scale = Scale("rouge_l")

    def __init__(self, tokens: Tokens = "words") -> None:
        self._tokens = tokens

    def judge(self, case: Case) -> Grade:
        if (settled := without_asking(case)) is not None:
            return settled
        return Grade(rouge_l(case.answer, case.question.reference, self._tokens))


def without_asking(case: Case) -> Grade | None:
    """The grade of a case that needs no comparison; Unjudged if it has no reference."""
    question = case.question
    if not question.reference.strip():
        if question.expects == "abstain":
            does = "abstains" if case.abstained else "answers"
            return Grade(
                float(case.abstained), f"The question has no answer, and the system {does}."
            )
        raise Unjudged(f"question {question.id} has no reference")
    if not case.answer.strip():
        return Grade(0.0, "The answer is empty.")
    return None
