"""Several judges for one case, and their combined verdict."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low
from typing import Any

from mnemoscope._store.errors import UsageError
from mnemoscope.judges import MARKS, Case, Judge, Unjudged
from mnemoscope.judges.appeal import ask
from mnemoscope.types import Grade, Scenario, Score

_BEST = 6


class PanelOfJudges:
    """Combines grades by majority, where a tie fails, and scores by the lower median of each mark.

    A judge without a verdict is not counted. The case is unjudged if fewer than half of the judges
    reach a verdict, or if scores and grades are mixed. Votes are stored as shares of the best mark:
    a composite of 3 is 0.5.
    """

    def __init__(self, judges: Sequence[tuple[str, Judge]]) -> None:
        names = [name for name, _ in judges]
        if len(judges) < 2 or len(set(names)) < len(names):
            raise UsageError("a panel needs two or more judges with different names")
        self._judges = tuple(judges)

    @property
    def wants_recalled(self) -> bool:
        return any(getattr(judge, "wants_recalled", False) for _, judge in self._judges)

    def identity(self) -> dict[str, Any]:
        return {
            "panel": {
                name: dict(judge.identity()) if hasattr(judge, "identity") else {}
                for name, judge in self._judges
            }
        }

    def begin(self, scenario: Scenario) -> None:
        for _, judge in self._judges:
            judge.begin(scenario)

    def judge(self, case: Case) -> Score | Grade:
        verdicts: dict[str, Score | Grade] = {}
        unjudged: list[str] = []
        for name, judge in self._judges:
            try:
                verdicts[name] = ask(judge, case)
            except Unjudged as error:
                unjudged.append(f"{name}: {error}")
        if 2 * len(verdicts) < len(self._judges):
            raise Unjudged(
                f"only {len(verdicts)} of {len(self._judges)} judges reached a verdict; "
                + "; ".join(unjudged)
            )
        return _combined(verdicts, unjudged)


def _combined(verdicts: dict[str, Score | Grade], unjudged: Sequence[str]) -> Score | Grade:
    scores = {name: one for name, one in verdicts.items() if isinstance(one, Score)}
    if 0 < len(scores) < len(verdicts):
        others = [name for name in verdicts if name not in scores]
        raise Unjudged(
            f"judges that give marks by the rubric ({', '.join(scores)}) and judges that give one "
            f"number ({', '.join(others)}) cannot be combined; use judges of one kind"
        )
    votes = {
        name: one.composite / _BEST if isinstance(one, Score) else one.value
        for name, one in verdicts.items()
    }
    reasons = [f"{name}: {one.reasoning}" for name, one in verdicts.items() if one.reasoning]
    reasoning = "\n".join([*reasons, *(f"{one} (not counted)" for one in unjudged)])
    if scores:
        correctness, completeness, hallucination = (
            median_low(getattr(score, mark) for score in scores.values()) for mark in MARKS
        )
        return Score(correctness, completeness, hallucination, reasoning, votes)
    passes = sum(not one.fails for one in verdicts.values())
    return Grade(float(2 * passes > len(verdicts)), reasoning, votes)
