"""Which later passages could change an answer: those that share the rarest words with it."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from typing import NamedTuple

from mnemoscope.datasets.day_logs import pieces
from mnemoscope.datasets.persona_folder import Entry
from mnemoscope.personas.audit.audited_log import AuditedLife
from mnemoscope.personas.write.question_wording import COMMON, word_stems

PASSAGES = 8
"""So many are shown."""
_SHARED = 0.34
"""Of what the question's words weigh, a passage has to share so much to be about the same."""


class Passage(NamedTuple):
    """A section of a day's log."""

    day: int
    text: str


class Passages:
    """All sections of a life."""

    def __init__(self, life: AuditedLife) -> None:
        self._life = life

    @cached_property
    def _all(self) -> list[tuple[Passage, frozenset[str]]]:
        return [
            (Passage(day, piece.text), word_stems(piece.text))
            for day, text in self._life.logs.items()
            for piece in pieces(text, "section")
        ]

    @cached_property
    def _seldom(self) -> dict[str, float]:
        """How much it says that a passage holds a word: the logarithm of how few do."""
        counts = Counter(word for _, words in self._all for word in words)
        return {word: math.log(len(self._all) / count) for word, count in counts.items()}

    def after(self, entry: Entry) -> list[Passage]:
        """The passages after its evidence that most likely speak of the same, in their order."""
        asked = word_stems(entry.question) - COMMON
        whole = sum(self._seldom.get(word, 0.0) for word in asked)
        last = max(entry.relevant_days)
        weighed = [
            (sum(self._seldom[word] for word in asked & words), passage)
            for passage, words in self._all
            if passage.day > last
        ]
        near = [pair for pair in weighed if pair[0] > 0 and pair[0] >= _SHARED * whole]
        near.sort(key=lambda pair: (-pair[0], pair[1].day))
        return sorted((passage for _, passage in near[:PASSAGES]), key=lambda p: p.day)
