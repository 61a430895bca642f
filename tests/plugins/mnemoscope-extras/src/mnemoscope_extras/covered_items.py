"""A judge without a model: 0 to 10 points for the share of a rubric that an answer covers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mnemoscope.judges import Case, Unjudged
from mnemoscope.text.english import STOP_WORDS, stem_words
from mnemoscope.types import Grade, Scale, Scenario


class CoveredItems:
    """An item is covered if the answer has at least `share` of its content words."""

    scale = Scale("covered-items", 0, 10, passing=5)
    needs: ClassVar[Mapping[str, str]] = {
        "rubric": "the covered-items judge needs a rubric for each question; {dataset} has none"
    }

    def __init__(self, share: float = 0.5) -> None:
        self._share = share

    def begin(self, scenario: Scenario) -> None:
        """Nothing to prepare."""

    def judge(self, case: Case) -> Grade:
        if case.question.expects == "abstain":
            return Grade(10.0 * case.abstained, "Abstains." if case.abstained else "Answers.")
        items = [words(item[0]) for item in case.question.key.required] if case.question.key else []
        if not items:
            raise Unjudged(f"question {case.question.id} has no rubric")
        said = words(case.answer)
        covered = sum(len(item & said) >= self._share * len(item) for item in items)
        return Grade(10 * covered / len(items), f"Covers {covered} of {len(items)} items.")


def words(text: str) -> set[str]:
    return set(stem_words(word for word in text.lower().split() if word not in STOP_WORDS))
