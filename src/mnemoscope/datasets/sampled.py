"""A few of a dataset's questions, drawn by a seed: for trying things out, and for small budgets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from mnemoscope.core.dataset import DataFile, Dataset
from mnemoscope.core.errors import UsageError
from mnemoscope.core.nouns import Checkpoint, Scalar, Scenario


class Sampled:
    """The same dataset, of which only so many questions are asked.

    Which ones depends on the seed and the questions' ids alone. A scenario that none of them is of
    is left out.
    """

    def __init__(self, whole: Dataset, questions: int, seed: int) -> None:
        if questions < 1:
            raise UsageError(f"--questions {questions}: ask at least one")
        self._whole = whole
        self.findings = whole.findings
        self._number = questions
        self._seed = seed
        self.name = whole.name
        self.pool_known = whole.pool_known
        drawn = self._draw()
        self._chosen = frozenset(id for _, id, _ in drawn)
        self.expected_scenarios: int | None = len({place for _, _, place in drawn})

    @property
    def category_names(self) -> Mapping[str, str]:
        return self._whole.category_names

    @property
    def original_ids(self) -> Mapping[tuple[str, str], str]:
        return self._whole.original_ids

    @property
    def options(self) -> dict[str, Scalar]:
        return {**self._whole.options, "questions": self._number, "questions_seed": self._seed}

    def files(self) -> list[DataFile]:
        return self._whole.files()

    def counts(self) -> Mapping[str, int]:
        return self._whole.counts()

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
