"""Rows of numbers that grow at their end and can be forked without a copy.

A fork shares the rows that were there when it was made. Neither side sees what the other adds.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingArray:
    """Rows of numbers in one buffer, which doubles when it is full."""

    def __init__(self, dtype: DTypeLike, width: tuple[int, ...] = ()) -> None:
        self._buffer: NDArray[Any] = np.empty((0, *width), dtype)
        self._length = 0

    @property
    def values(self) -> NDArray[Any]:
        """The rows so far; rows that are added later do not appear in it."""
        return self._buffer[: self._length]

    def reserve(self, more: int) -> None:
        """Make room for this many more rows."""
        needed = self._length + more
        if needed > len(self._buffer):
            # Exactly what the first rows need: most arrays are filled once.
            room = max(needed, 2 * len(self._buffer))
            grown = np.empty((room, *self._buffer.shape[1:]), self._buffer.dtype)
            grown[: self._length] = self.values
            self._buffer = grown

    def append(self, rows: NDArray[Any]) -> None:
        self.reserve(len(rows))
        self._buffer[self._length : self._length + len(rows)] = rows
        self._length += len(rows)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Remove the other rows; forks keep theirs."""
        self._buffer = self.values[kept]
        self._length = len(self._buffer)

    def fork(self) -> Self:
        twin = type(self).__new__(type(self))
        twin._buffer, twin._length = self.values, self._length  # without room: it grows elsewhere
        return twin
