"""Hits that are memories as they are, so that their ids and scores say all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from mnemoscope.types import Hit


class PlainHits(Sequence[Hit]):
    """Hits without texts and sources, kept as two lists: a `Hit` is made where one is asked for.

    `system_replies` would accept the ids: they are those of ingested memories, or were checked.
    """

    __slots__ = ("ids", "scores")

    def __init__(self, ids: Sequence[str], scores: Sequence[float | None]) -> None:
        self.ids, self.scores = ids, scores

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> PlainHits: ...

    def __getitem__(self, place: int | slice) -> Hit | PlainHits:
        if isinstance(place, slice):
            return PlainHits(self.ids[place], self.scores[place])
        return Hit(self.ids[place], self.scores[place])
