"""Find passwords, keys and tokens in texts, and mask them.

What is reported of a secret is its kind and its line, never its value.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mnemoscope.importers.secret_patterns import LONG_WORD, WHOLE, is_likely, secret_patterns

BEGIN, END = "\ue000", "\ue001"
"""Enclose the kind of a masked secret until the memory is written; they are removed from texts."""
_INVISIBLE = re.compile("(?<=[A-Za-z0-9_-])[\u200b\u2060\ufeff\u00ad]+(?=[A-Za-z0-9_-])")
"""Characters that web pages put into long words; no pattern would match a key with them."""
_REST = re.compile(r"[A-Za-z0-9_+/=~%-]*")


class Secret(NamedTuple):
    """A secret that was found; its value is not kept."""

    kind: str
    line: int
    """Of the text, from 1."""


class MaskedText(NamedTuple):
    """A text in which each secret is replaced by its kind between two marks."""

    text: str
    secrets: tuple[Secret, ...]


def mask(text: str, *, again: bool = False) -> MaskedText:
    """Replace every secret of the text; lines keep their numbers.

    `again`: its marks are ours, and stay.
    """
    if not again:
        text = _INVISIBLE.sub("", text.replace(BEGIN, "").replace(END, ""))
    merged: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(_spans(text)):
        if merged and start < merged[-1][1]:
            first = merged[-1]
            merged[-1] = (first[0], max(first[1], end), first[2])
        else:
            merged.append((start, end, kind))
    parts, at = [], 0
    for start, end, kind in merged:
        parts += [text[at:start], f"{BEGIN}{kind}{END}", "\n" * text.count("\n", start, end)]
        at = end
    found = tuple(Secret(kind, text.count("\n", 0, start) + 1) for start, _, kind in merged)
    return MaskedText("".join([*parts, text[at:]]), found)


def is_masked(text: str) -> bool:
    return BEGIN in text


def shown(text: str) -> str:
    """The text with its marks as a reader sees them."""
    return text.replace(BEGIN, "[secret: ").replace(END, "]")


def _spans(text: str) -> set[tuple[int, int, str]]:
    found: set[tuple[int, int, str]] = set()
    has_long_word = LONG_WORD.search(text) is not None
    for kind, pattern, names, needs_long_word in secret_patterns():
        if needs_long_word and not has_long_word:
            continue
        for match in pattern.finditer(text):
            if not is_likely(kind, match):
                continue
            groups = [name for name in names if name != "quote" and match[name]]
            start, end = match.span(groups[0]) if groups else match.span()
            if kind == "password":
                end = start + len(text[start:end].rstrip(".,;:)")) or end
            elif kind not in WHOLE and (rest := _REST.match(text, end)):
                end = rest.end()
            if BEGIN not in text[start:end]:
                found.add((start, end, kind))
    return found
