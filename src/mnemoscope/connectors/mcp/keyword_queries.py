"""Asking word by word, for servers that look for the whole query as it stands.

A question is never a substring of its answer; its words are.
"""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.text.tokenize import words
from mnemoscope.types import Hit

_SHORTEST = 2
_MOST = 64
"""Words that are asked for; each is a call, and an endless question must not be endless calls."""


def keywords(text: str) -> list[str]:
    """The words worth asking for, in their order, each once."""
    return [word for word in dict.fromkeys(words(text)) if len(word) >= _SHORTEST][:_MOST]


def voted(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    """All hits, those first that most words found; equals in the order they were found."""
    votes: dict[str, int] = {}
    first: dict[str, Hit] = {}
    for hits in found:
        for hit in hits:
            votes[hit.id] = votes.get(hit.id, 0) + 1
            first.setdefault(hit.id, hit)
    ordered = sorted(first.values(), key=lambda hit: -votes[hit.id])
    return [Hit(hit.id, float(votes[hit.id]), hit.text, hit.sources) for hit in ordered]
