"""A list that grows at its end and can be forked without a copy.

A fork shares the items that were there when it was made. Neither side sees what the other adds.
A host process imports this module, so it does not need numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class GrowingList(Generic[T]):
    """A list that only the object that made it extends in place."""

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)
        self._is_own = True

    def extend(self, items: Iterable[T]) -> None:
        if not self._is_own:
            self._items, self._is_own = self._items[: self._length], True
        self._items.extend(items)
        self._length = len(self._items)

    def fork(self) -> Self:
        twin = type(self).__new__(type(self))
        twin._items, twin._length, twin._is_own = self._items, self._length, False
        return twin

    def since(self, start: int) -> list[T]:
        return self._items[start : self._length]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: int) -> T:
        """The item at a place from 0 on; a place beyond the end is the caller's mistake."""
        return self._items[place]

    def at(self, places: Iterable[int]) -> list[T]:
        """The items at these places."""
        items = self._items
        return [items[place] for place in places]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items[: self._length])
