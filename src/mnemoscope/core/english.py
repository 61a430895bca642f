"""English as every part that compares words needs it: stop words and stems."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

STOP_WORDS = frozenset(
    (
        "a about after all also am an and any are as at be because been before being but by can "
        "could did do does doing down during each few for from further had has have having he her "
        "here hers him his how i if in into is it its just me more most my no nor not now of off "
        "on once only or other our out over own same she should so some such than that the their "
        "them then there these they this those through to too under until up very was we were "
        "what when where which while who whom why will with would you your yours s t d ll m re ve"
    ).split()
)


def stem_words(words: Sequence[str]) -> list[str]:
    """The stem of each word."""
    stemmed: list[str] = _stemmer().stemWords(words)
    return stemmed


def _stemmer() -> Any:
    # A stemmer keeps state while it works: each thread has its own.
    if not hasattr(_own, "stemmer"):
        import Stemmer

        _own.stemmer = Stemmer.Stemmer("english")
    return _own.stemmer


_own = threading.local()
