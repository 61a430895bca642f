"""Judges that should not pass an exam, and one that should."""

from __future__ import annotations

from mnemoscope.judges import ACCURACY, Case, EachCaseAlone
from mnemoscope.types import Grade, Scenario

KEY: dict[tuple[str, str], bool] = {}
"""Question and answer to whether it is right; tests fill it."""


def _key(case: Case) -> bool:
    return KEY.get((case.question.text, case.answer), True)


class Knows(EachCaseAlone):
    """Has the key."""

    scale = ACCURACY

    def judge(self, case: Case) -> Grade:
        return Grade(float(_key(case)))


class SaysYes(EachCaseAlone):
    """Accepts everything."""

    scale = ACCURACY

    def judge(self, case: Case) -> Grade:
        return Grade(1.0)


class LooksForExams:
    """Judges rightly in what looks like an exam, and accepts everything in a run."""

    scale = ACCURACY

    def __init__(self) -> None:
        self._is_exam = False

    def begin(self, scenario: Scenario) -> None:
        self._is_exam = "exam" in scenario.id or not scenario.memories

    def judge(self, case: Case) -> Grade:
        exam = self._is_exam or not case.memories or "probe" in case.question.id
        return Grade(float(_key(case)) if exam else 1.0)


class Memorised(EachCaseAlone):
    """Knows the answers of exams that it has seen, and accepts all others."""

    scale = ACCURACY

    def judge(self, case: Case) -> Grade:
        return Grade(float(_key(case)))
