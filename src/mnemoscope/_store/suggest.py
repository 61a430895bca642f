"""Slips of the pen: the name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The one of the known names that is nearest; nothing where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return near[0] if near else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to be put before what is known; nothing where no name is near."""
    near = nearest(name, known)
    return f"did you mean {near!r}? " if near else ""
