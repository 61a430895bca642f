"""The F1 judge: LoCoMo's official answer scoring, with its rule for each category.

A question whose category is none of LoCoMo's five numbers gets the plain F1.
"""

from __future__ import annotations

from mnemoscope.judges import Case
from mnemoscope.judges.exact import without_asking
from mnemoscope.text.overlap import locomo_f1
from mnemoscope.types import Grade, Scale, Scenario

_ADVERSARIAL = "5"


class F1:
    """The share of words that answer and reference have in common; asks no model."""

    scale = Scale("f1")

    def begin(self, scenario: Scenario) -> None:
        """Nothing to prepare: each case stands for itself."""

    def judge(self, case: Case) -> Grade:
        question = case.question
        # By LoCoMo's rule, two phrases decide there, whatever the reader says of itself.
        official = question.category == _ADVERSARIAL
        if not official and (settled := without_asking(case)) is not None:
            return settled
        return Grade(locomo_f1(case.answer, question.reference, question.category))
