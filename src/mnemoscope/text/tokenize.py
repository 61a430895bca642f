"""Words, stems and chunks of a text, for the built-in systems."""

from __future__ import annotations

import re
from itertools import filterfalse, pairwise

from mnemoscope.text.english import STOP_WORDS, stem_words

WORD = re.compile(r"\w+")
CHUNKING = "lines-1"
"""The name of the chunking rule; cached vectors depend on it."""
CHUNK_WORDS = 100
"""About 128 tokens: the chunk length with the best retrieval (docs/decisions/0004)."""


_TURN_SHARE = 0.15
"""A turn starts a new chunk if the current one is at least this full."""
_SPEAKER = re.compile(r"[^\W\d][\w .'-]{0,30}: ")


def words(text: str) -> list[str]:
    """Lower-cased words without stop words."""
    return list(filterfalse(STOP_WORDS.__contains__, WORD.findall(text.lower())))


def stems(text: str) -> list[str]:
    """English stems of the words."""
    return stem_words(words(text))


def chunks(text: str, size: int = CHUNK_WORDS) -> list[str]:
    """Chunks of up to about `size` words, split between lines, preferably at a speaker's turn."""
    pieces: list[str] = []
    running: list[str] = []
    for line in text.splitlines():
        tokens = line.split()
        turns = len(running) >= _TURN_SHARE * size and _SPEAKER.match(line)
        if running and (turns or len(running) + len(tokens) > size):
            pieces.append(" ".join(running))
            running = []
        running += tokens
        if len(running) > size:
            *whole, running = _split(running, size)
            pieces += map(" ".join, whole)
    if running or not pieces:
        pieces.append(" ".join(running))
    return pieces


def _split(tokens: list[str], size: int) -> list[list[str]]:
    """Split a long line into equal parts of about `size` words."""
    count = max(1, round(len(tokens) / size))
    bounds = [len(tokens) * part // count for part in range(count + 1)]
    return [tokens[start:end] for start, end in pairwise(bounds)]
