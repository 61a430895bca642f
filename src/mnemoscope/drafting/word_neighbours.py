"""Words of a similar meaning: neighbours of a noun among the nouns of the corpus itself.

The vectors are static and packaged (WordLlama), so this needs no model and no network. Only words
with a vector of their own take part: the mean of word pieces is close to words spelt alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mnemoscope.models.embedders import WordLlamaEmbedder
from mnemoscope.text.english import stem_words

CLOSE = 0.6
"""Below this cosine, neighbours are of the same field rather than of the same meaning."""
FITTING = 0.08
"""Below this cosine with its memory, a synonym is likely one of another sense."""
_SAME_ROOT = 4


class WordNeighbours:
    """The neighbours of words among the given nouns, in lower case."""

    def __init__(self, nouns: Iterable[str]) -> None:
        self._embedder = WordLlamaEmbedder()
        self._words = sorted(
            {word for word in nouns if word.isalpha() and self._embedder.token_count(word) == 1}
        )
        self._place = {word: place for place, word in enumerate(self._words)}
        self._stems = stem_words(self._words)

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return self._embedder.embed(self._words)

    def close(self, word: str) -> list[str]:
        """Words of nearly the same meaning and another stem, the closest first."""
        if (place := self._place.get(word.lower())) is None:
            return []
        cosines = self._vectors @ self._vectors[place]
        near = [
            one for one in np.flatnonzero(cosines >= CLOSE).tolist() if self._differ(place, one)
        ]
        order = sorted(near, key=lambda one: (-float(cosines[one]), self._words[one]))
        return [self._words[one] for one in order]

    def fitting(self, words: Sequence[str], text: str) -> str:
        """The word that is closest to the text as a whole; empty if none is close to it.

        It chooses between the senses of a noun: a course is a lesson here and a track there.
        """
        if not words:
            return ""
        cosines = self._embedder.embed(words) @ self._embedder.embed([text])[0]
        best = int(np.argmax(cosines))
        return words[best] if cosines[best] >= FITTING else ""

    def _differ(self, place: int, other: int) -> bool:
        """Whether these are two words, not two forms of one, in the same number."""
        one, two = self._words[place], self._words[other]
        if self._stems[place] == self._stems[other] or one[:_SAME_ROOT] == two[:_SAME_ROOT]:
            return False
        return one not in two and two not in one and one.endswith("s") == two.endswith("s")
