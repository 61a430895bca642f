"""Chance that can be repeated: a stream of its own for every purpose, and decks of cards.

Every stream is seeded from the names of what it decides, so that a new use of chance in one place
changes nothing in another. Nothing here or elsewhere in the simulator uses global randomness.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


class Rng:
    """Where all streams of one life come from."""

    def __init__(self, seed: int, persona: str) -> None:
        self._root = f"{seed}\x1f{persona}"

    def stream(self, purpose: str, key: object = "") -> Random:
        digest = sha256(f"{self._root}\x1f{purpose}\x1f{key}".encode()).digest()
        return Random(int.from_bytes(digest[:16], "big"))


class Deck(Generic[T]):
    """Cards in random order; each is dealt once before any is dealt again."""

    def __init__(self, cards: Iterable[T], random: Random) -> None:
        self._all = list(cards)
        self._random = random
        self._left: list[T] = []

    def __len__(self) -> int:
        return len(self._all)

    def deal(self, avoid: Collection[T] = ()) -> T:
        """The next card that is not to be avoided; where all are, any card."""
        for _ in range(2):
            for place in range(len(self._left) - 1, -1, -1):
                if self._left[place] not in avoid:
                    return self._left.pop(place)
            self._shuffle()
        return self._left.pop()

    def _shuffle(self) -> None:
        self._left = list(self._all)
        self._random.shuffle(self._left)
