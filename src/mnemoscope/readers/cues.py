"""What a question's wording tells of its answer: a number, a name, a date, the latest, several."""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = re.compile(
    r"\bhow (?:many|much|long|large|big|high|low|far|often|old|fast|few)\b|\b(?:percentage|percent|"
    r"number|amount|rate|cost|price|budget|sum|figure|size|dose|limit|ceiling|target|threshold)\b",
    re.IGNORECASE,
).search
_PERSON = re.compile(
    r"\bwho(?:m|se)?\b|\bwhich (?:person|colleague|people)\b", re.IGNORECASE
).search
_DATE = re.compile(
    r"\bwhen\b|\bwhat (?:day|date|month)\b|\bwhich (?:day|date|month)\b|\bdates?\b|\bdeadline\b",
    re.IGNORECASE,
).search
_CURRENT = re.compile(
    r"\b(?:current(?:ly)?|latest|now|nowadays|most recent(?:ly)?|newest|in the end|end(?:ed)? up|"
    r"final(?:ly)?|eventual(?:ly)?|at present|today|as (?:it|things) stands?|up to date|"
    r"last (?:agreed|known)|ultimately|by then|settled on|correct(?:ed)?|actual(?:ly)?)\b",
    re.IGNORECASE,
).search
_SEVERAL = re.compile(
    r"\b(?:two|three|four|both|all|each|every|over time|history|chang(?:e|ed|es)|evol\w+|"
    r"one after (?:the other|another)|sequence|order|first|earlier|later|list|and|why|course of|"
    r"successive|throughout|summar\w+)\b",
    re.IGNORECASE,
).search
_NAMED = re.compile(r"(?<=[^.!?\s] )[A-ZÀ-Þ0-9][\w-]*")


class Cues(NamedTuple):
    number: bool
    person: bool
    date: bool
    current: bool
    several: bool
    named: frozenset[str]
    """Words that the question writes with a capital or a digit, lower-cased: these must match."""


def cues(question: str) -> Cues:
    named = {word.lower() for run in _NAMED.findall(question) for word in re.findall(r"\w+", run)}
    return Cues(
        bool(_NUMBER(question)),
        bool(_PERSON(question)),
        bool(_DATE(question)),
        bool(_CURRENT(question)),
        bool(_SEVERAL(question)),
        frozenset(named),
    )
