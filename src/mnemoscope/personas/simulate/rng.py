"""Repeatable randomness: one stream for each purpose, and draws from a shuffled list.

The name of its purpose seeds a stream, so a new use of randomness does not change another. The
simulator never uses the global generator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


class Rng:
    """The source of all streams of one simulated history."""

    def __init__(self, seed: int, persona: str) -> None:
        self._root = f"{seed}\x1f{persona}"

    def stream(self, purpose: str, key: object = "") -> Random:
        digest = sha256(f"{self._root}\x1f{purpose}\x1f{key}".encode()).digest()
        return Random(int.from_bytes(digest[:16], "big"))


class ShuffledCycle(Generic[T]):
    """Items in random order; each is drawn once before any is drawn again."""

    def __init__(self, items: Iterable[T], random: Random) -> None:
        self._all = list(items)
        self._random = random
        self._left: list[T] = []

    def __len__(self) -> int:
        return len(self._all)

    def draw(self, avoid: Collection[T] = ()) -> T:
        """The next item that is not in `avoid`; any item if all of them are."""
        if not avoid and self._left:  # the common case, without the search
            return self._left.pop()
        for _ in range(2):
            for place in range(len(self._left) - 1, -1, -1):
                if self._left[place] not in avoid:
                    return self._left.pop(place)
            self._begin()
        return self._left.pop()

    def draws(self, most: int) -> Iterator[T]:
        """Draw up to `most` items, each when it is asked for."""
        for _ in range(most):
            if not self._left:
                self._begin()
            yield self._left.pop()

    def _begin(self) -> None:
        self._left = list(self._all)
        self._random.shuffle(self._left)
