"""Words as the reader compares them: a process-wide vocabulary with stems and vectors.

A word's row depends on the word alone, so what has been read before never changes a score.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from mnemoscope.models.embedders import Embedder
from mnemoscope.text import english
from mnemoscope.text.english import stem_words

_WORD = re.compile(r"[^\W_]+")
STOP_WORDS = english.STOP_WORDS | {"ever", "let", "said", "say", "tell", "us", "whose"}
"""Beyond the usual ones, what questions are made of."""


class Vocabulary:
    """Every content word met so far, as a row: its vector and the number of its stem."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        # Row 0 stands for no word, so that a sentence without content words has something to show.
        self._rows: dict[str, int] = {"": 0}
        self._stem_ids: dict[str, int] = {}
        self._vectors: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._stems: NDArray[np.int32] = np.zeros(0, np.int32)
        self._waiting: list[str] = [""]

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, text: str) -> list[int]:
        """The rows of a text's content words, in their order, after the row of no word."""
        found = [0]
        for word in _WORD.findall(text.lower()):
            if word in STOP_WORDS:
                continue
            row = self._rows.get(word)
            if row is None:
                row = self._rows[word] = len(self._rows)
                self._waiting.append(word)
            found.append(row)
        return found

    def vectors(self) -> NDArray[np.float32]:
        self._settle()
        return self._vectors

    def stems(self) -> NDArray[np.int32]:
        self._settle()
        return self._stems

    def _settle(self) -> None:
        """Take in the words that were met since the last time, all at once."""
        if not self._waiting:
            return
        known = len(self._rows) - len(self._waiting)
        fresh = self._embedder.embed(self._waiting)
        if len(self._rows) > len(self._vectors):
            # Room for twice as many, so that growing word by word stays cheap.
            vectors = np.zeros((2 * len(self._rows), fresh.shape[1]), np.float32)
            stems = np.zeros(len(vectors), np.int32)
            if known:
                vectors[:known] = self._vectors[:known]
                stems[:known] = self._stems[:known]
            self._vectors, self._stems = vectors, stems
        self._vectors[known : len(self._rows)] = fresh
        ids = self._stem_ids
        for row, stem in enumerate(stem_words(self._waiting), start=known):
            self._stems[row] = ids.setdefault(stem, len(ids))
        self._waiting = []
