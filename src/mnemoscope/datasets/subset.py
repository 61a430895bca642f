"""Parts of a dataset, for trials and for small budgets."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from msgspec.structs import replace

from mnemoscope._store.errors import UsageError
from mnemoscope.datasets.base import Dataset, Findings, reviewed_of, withheld_of
from mnemoscope.types import Reviewed, Scalar, Scenario

Draw = Literal["random", "category"]
"""How questions are drawn: each with the same chance, or so many of each category."""


def part_of(
    whole: Dataset,
    scenarios: int | None = None,
    questions: int | None = None,
    seed: int = 0,
    draw: Draw = "random",
) -> Dataset:
    """The first `scenarios` of a dataset with `questions` of their questions; None takes all."""
    if draw != "random" and questions is None:
        raise UsageError(f"--draw {draw} needs --questions N: the number of questions to draw")
    if scenarios is None and questions is None:
        return whole
    return Subset(whole, scenarios, questions, seed, draw)


class Subset:
    """The first scenarios of a dataset, with a sample of their questions.

    The sample depends only on the seed, the question ids and, if drawn by category, the
    categories. Scenarios without a sampled question are omitted.
    """

    def __init__(
        self,
        whole: Dataset,
        scenarios: int | None,
        questions: int | None,
        seed: int,
        draw: Draw = "random",
    ) -> None:
        if scenarios is not None and scenarios < 1:
            raise UsageError(f"--scenarios {scenarios}: must be 1 or more")
        if questions is not None and questions < 1:
            raise UsageError(f"--questions {questions}: must be 1 or more")
        self._whole = whole
        self._scenarios = scenarios
        self.info, self.name, self.pool_known = whole.info, whole.name, whole.pool_known
        self.category_names, self.original_ids = whole.category_names, whole.original_ids
        self.files, self.counts = whole.files, whole.counts
        self.paths = getattr(whole, "paths", None)
        self.is_private = getattr(whole, "is_private", False)
        self.options: dict[str, Scalar] = dict(whole.options)
        self.expected_scenarios = whole.expected_scenarios
        self._asked: frozenset[str] | None = None
        if scenarios is not None:
            self.options["scenarios"] = scenarios
            self.expected_scenarios = min(scenarios, whole.expected_scenarios or scenarios)
        if questions is not None:
            self.options |= {"questions": questions, "questions_seed": seed}
            if draw != "random":
                self.options["questions_draw"] = draw
            ordered = sorted(
                (_order(seed, question.id), question.id, place, question.category)
                for place, scenario in enumerate(self.scenarios())
                for question in scenario.questions
            )
            drawn = ordered[:questions] if draw == "random" else _by_category(ordered, questions)
            self._asked = frozenset(id for _, id, _, _ in drawn)
            self.expected_scenarios = len({place for _, _, place, _ in drawn})

    @property
    def findings(self) -> Findings:
        return self._whole.findings

    @property
    def withheld(self) -> Mapping[str, str]:
        return withheld_of(self._whole)

    @property
    def reviewed(self) -> Reviewed | None:
        return reviewed_of(self._whole)

    def scenarios(self) -> Iterator[Scenario]:
        for scenario in islice(self._whole.scenarios(), self._scenarios):
            if (asked := self._asked) is None:
                yield scenario
            elif left := tuple(q for q in scenario.questions if q.id in asked):
                points = tuple(
                    replace(point, questions=tuple(id for id in point.questions if id in asked))
                    for point in scenario.checkpoints
                )
                yield replace(scenario, questions=left, checkpoints=points)


_Drawn = tuple[bytes, str, int, str]


def _order(seed: int, id: str) -> bytes:
    return hashlib.sha256(f"{seed}/{id}".encode()).digest()


def _by_category(ordered: Sequence[_Drawn], questions: int) -> list[_Drawn]:
    """So many of each category as its share of all questions, by largest remainders."""
    sizes = Counter(category for *_, category in ordered)
    wanted = min(questions, len(ordered))
    shares = {category: wanted * size / len(ordered) for category, size in sorted(sizes.items())}
    takes = {category: int(share) for category, share in shares.items()}
    left = wanted - sum(takes.values())
    for category in sorted(shares, key=lambda name: (takes[name] - shares[name], name))[:left]:
        takes[category] += 1
    return [
        one
        for category, take in takes.items()
        for one in islice((one for one in ordered if one[3] == category), take)
    ]
