"""Text as the built-in systems see it: words, stems, chunks.

Tokens are cached by content, because haystacks share sessions and systems share haystacks.
"""

from __future__ import annotations

import re
from itertools import pairwise

from mnemoscope.text.english import STOP_WORDS, stem_words

WORD = re.compile(r"\w+")
CHUNKING = "lines-1"
"""The name of the way texts are cut; cached vectors are of texts cut this way."""
CHUNK_WORDS = 100
"""About 128 tokens: the chunk length that served retrieval best (docs/decisions/0004)."""


_TURN_SHARE = 0.15
"""A turn begins a new chunk once the running one is this full; shorter turns stay together."""
_SPEAKER = re.compile(r"[^\W\d][\w .'-]{0,30}: ")


def words(text: str) -> list[str]:
    """Lower-cased words without stop words."""
    return [word for word in WORD.findall(text.lower()) if word not in STOP_WORDS]


def stems(text: str) -> list[str]:
    """English stems of the words."""
    return stem_words(words(text))


def chunks(text: str, size: int = CHUNK_WORDS) -> list[str]:
    """Pieces of up to about `size` words, cut between lines, at a speaker's turn if one is near."""
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
    """A long line in equal parts of about `size`."""
    count = max(1, round(len(tokens) / size))
    bounds = [len(tokens) * part // count for part in range(count + 1)]
    return [tokens[start:end] for start, end in pairwise(bounds)]
