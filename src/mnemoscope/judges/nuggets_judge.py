"""`nuggets`: BEAM's score by rubric items, under a protocol that has a name.

The official script cuts the score of an item to a whole number, so that half marks count nothing,
and scores the order of events by Kendall's tau alone. Other projects average the marks. Both are
reported under the name of BEAM: a grade is only comparable within a protocol. The prompts are ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, Literal

from mnemoscope.judges import Case, EachCaseAlone, Unjudged
from mnemoscope.judges.longmemeval_judge import read_yes_no
from mnemoscope.judges.model_judges import fenced, read_object, settle
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.prompts import load_family
from mnemoscope.types import Grade, Scale

ORDERING = "event_ordering"
"""The category whose official score is the order of the events."""
_KINDS = ("item", "same")
_HOLES = frozenset({"question", "item", "answer"})
_NEEDED = frozenset({"item", "answer"})
_MARKS = (0.0, 0.5, 1.0)


class NuggetsJudge(EachCaseAlone):
    """The mean mark of an answer over the items of its rubric; a model marks each item 0, 0.5 or 1.

    Args:
        model: The spec of the model.
        prompt: The prefix of two prompt files, NAME-item and NAME-same.
        protocol: `official` cuts half marks to 0 and scores the category event_ordering by the
            order of the events; `fractional` is the mean of the marks for every category.
    """

    scale = Scale("nuggets")
    needs: ClassVar[Mapping[str, str]] = {
        "rubric items": "the judge nuggets marks the items of a rubric, and {dataset} has none"
    }

    def __init__(
        self,
        model: str,
        prompt: str = "judge-nuggets",
        protocol: Literal["official", "fractional"] = "official",
    ) -> None:
        self._model = load_model(model)
        self._prompts = load_family(prompt, _KINDS, _HOLES, _NEEDED)
        self._protocol = protocol

    def identity(self) -> dict[str, Any]:
        known = {kind: prompt.identity() for kind, prompt in self._prompts.items()}
        return {"model": self._model.identity(), "prompts": known, "protocol": self._protocol}

    def judge(self, case: Case) -> Grade:
        question = case.question
        if not question.rubric:
            raise Unjudged(f"question {question.id} has no rubric items")
        if not case.answer.strip():
            right = case.abstained and question.expects == "abstain"
            return Grade(float(right), "The answer is empty.")
        if self._protocol == "official" and question.category == ORDERING:
            return self._order(case)
        marks = [self._mark(case, item) for item in question.rubric]
        counted = [math.floor(mark) for mark in marks] if self._protocol == "official" else marks
        listed = ", ".join(f"{mark:g}" for mark in marks)
        return Grade(math.fsum(counted) / len(counted), f"Marks of the items: {listed}.")

    def _mark(self, case: Case, item: str) -> float:
        filled = self._prompts["item"].fill(
            question=case.question.text, item=item, answer=fenced("answer", case.answer)
        )
        return settle(self._model, filled, read_mark)

    def _order(self, case: Case) -> Grade:
        """Each line of the answer takes the place of the first event that it is about."""
        events = list(case.question.rubric)
        found: list[str] = []
        left = list(events)
        for line in case.answer.split("\n"):
            match = next((event for event in left if self._is_same(case, event, line)), None)
            if match is not None:
                left.remove(match)
            found.append(line if match is None else match)
        value = order_score(events, found)
        return Grade(value, f"{len(events) - len(left)} of {len(events)} events are named.")

    def _is_same(self, case: Case, event: str, line: str) -> bool:
        if not line.strip():
            return False
        filled = self._prompts["same"].fill(
            question=case.question.text, item=event, answer=fenced("answer", line)
        )
        return not settle(self._model, filled, read_yes_no).fails


def read_mark(reply: str) -> float:
    """The mark from a JSON object: 0, 0.5 or 1."""
    mark = read_object(reply).get("score")
    if isinstance(mark, bool) or not isinstance(mark, int | float) or mark not in _MARKS:
        raise ValueError('it holds no "score" that is 0, 0.5 or 1')
    return float(mark)


def order_score(expected: Sequence[str], found: Sequence[str]) -> float:
    """Kendall's tau-b between two lists, from 0 to 1; what a list lacks is tied at its end.

    The ranks are those of the official script, in which a repeated line has its last place. Where
    tau is undefined, only equal lists get 1: the script gives no number.
    """
    union = list(dict.fromkeys([*expected, *found]))
    ranks = [
        [places.get(item, len(union) + 1) for item in union]
        for places in ({item: n for n, item in enumerate(one, 1)} for one in (expected, found))
    ]
    tau = _tau_b(*ranks)
    return float(list(expected) == list(found)) if tau is None else (tau + 1) / 2


def _tau_b(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Kendall's tau-b (Kendall 1945); None if all of a list is tied."""
    concordant = untied_first = untied_second = 0
    for (a, b), (c, d) in combinations(zip(first, second, strict=True), 2):
        one, other = (a > c) - (a < c), (b > d) - (b < d)
        concordant += one * other
        untied_first += one != 0
        untied_second += other != 0
    if not untied_first or not untied_second:
        return None
    return concordant / math.sqrt(untied_first * untied_second)
