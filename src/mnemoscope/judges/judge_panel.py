"""A panel: several judges for one case, and what they come to together."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low
from typing import Any

from mnemoscope._store.errors import UsageError
from mnemoscope.judges import MARKS, Case, Judge, Unjudged
from mnemoscope.judges.appeal import ask
from mnemoscope.types import Grade, Scenario, Score

_BEST = 6


class JudgePanel:
    """Grades by majority, a tie fails; scores by the median of each mark, the lower of two middles.

    A judge that comes to no verdict is left out; with fewer than half of them the case is unjudged.
    Where some judges give scores and others grades it is unjudged too: the two measure different
    things. Votes are kept as shares of the best mark, so a composite of 3 is 0.5.
    """

    def __init__(self, judges: Sequence[tuple[str, Judge]]) -> None:
        names = [name for name, _ in judges]
        if len(judges) < 2 or len(set(names)) < len(names):
            raise UsageError("a panel needs two judges or more, each under another name")
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
        heard: dict[str, Score | Grade] = {}
        silent: list[str] = []
        for name, judge in self._judges:
            try:
                heard[name] = ask(judge, case)
            except Unjudged as error:
                silent.append(f"{name}: {error}")
        if 2 * len(heard) < len(self._judges):
            raise Unjudged(
                f"only {len(heard)} of {len(self._judges)} judges came to a verdict; "
                + "; ".join(silent)
            )
        return _together(heard, silent)


def _together(heard: dict[str, Score | Grade], silent: Sequence[str]) -> Score | Grade:
    scores = {name: said for name, said in heard.items() if isinstance(said, Score)}
    if 0 < len(scores) < len(heard):
        others = [name for name in heard if name not in scores]
        raise Unjudged(
            f"judges that give marks by the rubric ({', '.join(scores)}) and judges that give one "
            f"number ({', '.join(others)}) cannot sit together; make a panel of one sort"
        )
    votes = {
        name: said.composite / _BEST if isinstance(said, Score) else said.value
        for name, said in heard.items()
    }
    told = [f"{name}: {said.reasoning}" for name, said in heard.items() if said.reasoning]
    reasoning = "\n".join([*told, *(f"{one} (not counted)" for one in silent)])
    if scores:
        correctness, completeness, hallucination = (
            median_low(getattr(score, mark) for score in scores.values()) for mark in MARKS
        )
        return Score(correctness, completeness, hallucination, reasoning, votes)
    passes = sum(not said.fails for said in heard.values())
    return Grade(float(2 * passes > len(heard)), reasoning, votes)
