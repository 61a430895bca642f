"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most similar; an empty text if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return near[0] if near else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to print before the known names; an empty text if none is similar."""
    near = nearest(name, known)
    return f"did you mean {near!r}? " if near else ""
