"""A dataset whose texts have their dates in front: the same texts for all systems."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.subset import Subset
from mnemoscope.text.dates import with_day
from mnemoscope.types import Scenario

DATED_TEXTS = "dated_texts"
"""The option of the dataset that says so, so that the run can be judged again."""


def with_dates(whole: Dataset, *, on: bool) -> Dataset:
    return DatedTexts(whole) if on else whole


class DatedTexts(Subset):
    """All scenarios and questions; the text of a memory that has a time begins with its day."""

    def __init__(self, whole: Dataset) -> None:
        super().__init__(whole, None, None, 0)
        self.options[DATED_TEXTS] = True

    def scenarios(self) -> Iterator[Scenario]:
        for scenario in super().scenarios():
            memories = tuple(
                replace(memory, text=with_day(memory.text, memory.at))
                for memory in scenario.memories
            )
            yield replace(scenario, memories=memories)
