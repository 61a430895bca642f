"""Splits a passage into sentences to cite, each with its heading and session.

It parses the Markdown that logs use: headings, bullets, quotes with their attribution.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_SESSION = re.compile(r"session:\s*(\S.*)", re.IGNORECASE)
_BULLET = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_ONLY_A_DATE = re.compile(
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?(?:\d{4}-\d\d-\d\d|"
    r"\d{1,2}(?:st|nd|rd|th)? [a-z]{3,9}\.?,? \d{4}|[a-z]{3,9}\.? \d{1,2}, \d{4})\.?$",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W_]").search
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_STOP = re.compile(
    r"(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bvs\.)(?<!\be\.g\.)"
    r"(?<!\bi\.e\.)(?<!\b[A-Z]\.)(?:(?<=[.!?…])|(?<=[.!?…][\"'”’)\]]))\s+(?=[\"'“‘(\[]?[A-Z0-9$€£])"
)


class Cited(NamedTuple):
    """One sentence and its context."""

    text: str
    heading: str = ""
    session: str = ""
    section: int = 0
    """The number of the section within the passage."""


def cut(text: str, session: str = "") -> list[Cited]:
    """All sentences of a passage, in order."""
    found: list[Cited] = []
    heading = ""
    section, empty = 0, False

    def close() -> None:
        # Without text under it, the heading is cited.
        if heading and empty:
            found.append(Cited(heading, heading, session, section))

    for kind, block in _blocks(_FRONT_MATTER.sub("", text, count=1)):
        if kind != "heading":
            empty = False
            found += (Cited(part, heading, session, section) for part in _parts(kind, block))
            continue
        close()
        section, empty = section + 1, True
        named = _SESSION.match(block)
        session, heading = (named[1], "") if named else (session, block)
    close()
    return found


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Headings, bullets, quotes and paragraphs; lines of one quote or paragraph are joined."""
    lines = map(str.strip, text.splitlines())
    for kind, group in groupby(lines, _kind):
        if kind == "heading":
            for line in group:
                match = _HEADING.match(line)
                assert match is not None, "the kind was found by this pattern"
                yield kind, match[2]
        elif kind == "bullet":
            yield from ((kind, _BULLET.sub("", line, count=1)) for line in group)
        elif kind == "quote":
            yield from _quotes(line.lstrip("> ") for line in group)
        elif kind == "prose":
            yield kind, " ".join(group)


def _kind(line: str) -> str:
    if not _WORDS(line):
        return "blank"
    if line[0] == "#" and _HEADING.match(line):
        return "heading"
    if line[0] == ">":
        return "quote"
    return "bullet" if _BULLET.match(line) else "prose"


def _quotes(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """One block per attribution, so that a quote keeps its speaker."""
    running = ""
    for line in lines:
        if running and re.match(r"[^\W\d][\w .'’-]{0,40}: ", line):
            yield "quote", running
            running = line
        else:
            running = f"{running} {line}".strip()
    if running:
        yield "quote", running


def _parts(kind: str, block: str) -> list[str]:
    if kind == "quote":
        return [block]
    # Skip the date of a page: every sentence is cited with its date.
    return [part for part in _STOP.split(block) if part and not _ONLY_A_DATE.match(part)]
