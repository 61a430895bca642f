"""The ROUGE-L judge: how much of the reference an answer says in the same order."""

from __future__ import annotations

from mnemoscope.judges import Case
from mnemoscope.judges.exact import without_asking
from mnemoscope.text.overlap import Tokens, rouge_l
from mnemoscope.types import Grade, Scale, Scenario


class RougeL:
    """F1 of the longest common subsequence; `tokens=whitespace` as Nexus cuts them."""

    scale = Scale("rouge_l")

    def __init__(self, tokens: Tokens = "words") -> None:
        self._tokens = tokens

    def begin(self, scenario: Scenario) -> None:
        """Nothing to prepare: each case stands for itself."""

    def judge(self, case: Case) -> Grade:
        if (settled := without_asking(case)) is not None:
            return settled
        return Grade(rouge_l(case.answer, case.question.reference, self._tokens))
