"""Parts of a dataset, for trials and for small budgets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from mnemoscope._store.errors import UsageError
from mnemoscope.datasets.base import Dataset, Findings
from mnemoscope.types import Scalar, Scenario


def part_of(
    whole: Dataset, scenarios: int | None = None, questions: int | None = None, seed: int = 0
) -> Dataset:
    """The first `scenarios` of a dataset with `questions` of their questions; None takes all."""
    if scenarios is None and questions is None:
        return whole
    return Subset(whole, scenarios, questions, seed)


class Subset:
    """The first scenarios of a dataset, with a sample of their questions.

    The sample depends only on the seed and the question ids. Scenarios without a sampled question
    are omitted.
    """

    def __init__(
        self, whole: Dataset, scenarios: int | None, questions: int | None, seed: int
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
        self.options: dict[str, Scalar] = dict(whole.options)
        self.expected_scenarios = whole.expected_scenarios
        self._asked: frozenset[str] | None = None
        if scenarios is not None:
            self.options["scenarios"] = scenarios
            self.expected_scenarios = min(scenarios, whole.expected_scenarios or scenarios)
        if questions is not None:
            self.options |= {"questions": questions, "questions_seed": seed}
            drawn = sorted(
                (hashlib.sha256(f"{seed}/{question.id}".encode()).digest(), question.id, place)
                for place, scenario in enumerate(self.scenarios())
                for question in scenario.questions
            )[:questions]
            self._asked = frozenset(id for _, id, _ in drawn)
            self.expected_scenarios = len({place for _, _, place in drawn})

    @property
    def findings(self) -> Findings:
        return self._whole.findings

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
