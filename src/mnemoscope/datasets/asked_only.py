"""A dataset with only the questions that were asked elsewhere, after the last memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from mnemoscope.datasets.base import Dataset, Findings, reviewed_of, withheld_of
from mnemoscope.types import Reviewed, Scalar, Scenario

ASKED = "asked"
"""The option of the dataset with the ids, so that the run can be judged again."""
AT = "asked_at"


def asked_only(whole: Dataset, asked: str | None, at: str = "") -> Dataset:
    """The questions with these ids, separated by spaces; None takes all."""
    return whole if asked is None else AskedOnly(whole, asked.split(), at)


class AskedOnly:
    """The questions of one checkpoint of another harness, without our own checkpoints.

    That harness samples the questions of a checkpoint; those that it did not ask are not missing.
    """

    def __init__(self, whole: Dataset, asked: Sequence[str], at: str) -> None:
        self._whole = whole
        self._asked = frozenset(asked)
        self.info, self.name, self.pool_known = whole.info, whole.name, whole.pool_known
        self.category_names, self.original_ids = whole.category_names, whole.original_ids
        self.files, self.counts = whole.files, whole.counts
        self.paths = getattr(whole, "paths", None)
        self.is_private = getattr(whole, "is_private", False)
        self.expected_scenarios = whole.expected_scenarios
        self.options: dict[str, Scalar] = {
            **whole.options,
            AT: at,
            ASKED: " ".join(sorted(self._asked)),
        }

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
        for scenario in self._whole.scenarios():
            if left := tuple(q for q in scenario.questions if q.id in self._asked):
                yield replace(scenario, questions=left, checkpoints=())
