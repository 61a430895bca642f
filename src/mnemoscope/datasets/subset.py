"""Parts of a dataset, for trying things out and for small budgets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope.datasets.base import DataFile, Dataset
from mnemoscope.types import Checkpoint, Scalar, Scenario


def part_of(
    whole: Dataset, scenarios: int | None = None, questions: int | None = None, seed: int = 0
) -> Dataset:
    """The first so many scenarios, and of their questions so many; None leaves them all."""
    if scenarios is not None:
        whole = FirstScenarios(whole, scenarios)
    return whole if questions is None else Sampled(whole, questions, seed)


class _Part:
    """What a part has in common with the whole."""

    def __init__(self, whole: Dataset, chosen: dict[str, Scalar]) -> None:
        self._whole = whole
        self._options = chosen
        self.findings = whole.findings
        self.info = whole.info
        self.name = whole.name
        self.pool_known = whole.pool_known
        self.expected_scenarios = whole.expected_scenarios

    @property
    def category_names(self) -> Mapping[str, str]:
        return self._whole.category_names

    @property
    def original_ids(self) -> Mapping[tuple[str, str], str]:
        return self._whole.original_ids

    @property
    def options(self) -> dict[str, Scalar]:
        return {**self._whole.options, **self._options}

    def files(self) -> list[DataFile]:
        return self._whole.files()

    def counts(self) -> Mapping[str, int]:
        return self._whole.counts()


class FirstScenarios(_Part):
    """The first so many scenarios of a dataset."""

    def __init__(self, whole: Dataset, scenarios: int) -> None:
        if scenarios < 1:
            raise UsageError(f"--scenarios {scenarios}: take at least one")
        super().__init__(whole, {"scenarios": scenarios})
        self._number = scenarios
        there = whole.expected_scenarios
        self.expected_scenarios = scenarios if there is None else min(scenarios, there)

    def scenarios(self) -> Iterator[Scenario]:
        for scenario in islice(self._whole.scenarios(), self._number):
            self.findings = self._whole.findings
            yield scenario


class Sampled(_Part):
    """The same dataset, of which only so many questions are asked.

    Which ones depends on the seed and the questions' ids alone. A scenario that none of them is of
    is left out.
    """

    def __init__(self, whole: Dataset, questions: int, seed: int) -> None:
        if questions < 1:
            raise UsageError(f"--questions {questions}: ask at least one")
        super().__init__(whole, {"questions": questions, "questions_seed": seed})
        self._number = questions
        self._seed = seed
        drawn = self._draw()
        self._chosen = frozenset(id for _, id, _ in drawn)
        self.expected_scenarios = len({place for _, _, place in drawn})

    def scenarios(self) -> Iterator[Scenario]:
        for scenario in self._whole.scenarios():
            self.findings = self._whole.findings  # reading anew begins a new account
            left = tuple(q for q in scenario.questions if q.id in self._chosen)
            if left:
                yield msgspec.structs.replace(
                    scenario,
                    questions=left,
                    checkpoints=tuple(self._cut(point) for point in scenario.checkpoints),
                )

    def _draw(self) -> list[tuple[bytes, str, int]]:
        return sorted(
            (hashlib.sha256(f"{self._seed}/{question.id}".encode()).digest(), question.id, place)
            for place, scenario in enumerate(self._whole.scenarios())
            for question in scenario.questions
        )[: self._number]

    def _cut(self, point: Checkpoint) -> Checkpoint:
        left = tuple(id for id in point.questions if id in self._chosen)
        return msgspec.structs.replace(point, questions=left)
