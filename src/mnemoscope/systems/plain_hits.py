"""Hits of our own systems: memories as they are, so that their ids and scores say all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from mnemoscope.types import Hit


class PlainHits(Sequence[Hit]):
    """Hits without texts and sources, kept as two lists: a `Hit` is made where one is asked for.

    The ids are those of ingested memories, which `system_replies` would accept.
    """

    __slots__ = ("ids", "scores")

    def __init__(self, ids: list[str], scores: list[float]) -> None:
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
