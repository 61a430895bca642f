"""Which kinds of answer a question asks for, and which kinds a sentence may contain.

The patterns are for English: a "why" question fits a sentence with "because".
"""

from __future__ import annotations

import re
from typing import NamedTuple


def _any(*words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)


_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
KINDS: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "number": (
        _any(
            "how (?:many|much|long|large|big|high|low|far|often|old|fast|few)",
            "percent(?:age)?|number|amount|rate|cost|price|budget|sum|figure|size|dose|limit",
            "ceiling|threshold",
        ),
        re.compile(r"\d"),
    ),
    "person": (
        _any("who(?:m|se)?", "which (?:person|colleague|people)"),
        re.compile(r"\b[A-ZÀ-Þ][^\W\d_]+ [A-ZÀ-Þ][^\W\d_]+"),
    ),
    "date": (
        _any("when", "(?:what|which) (?:day|date|month)", "dates?", "deadline"),
        re.compile(rf"\d{{4}}-\d\d-\d\d|\d (?:{_MONTH})|(?:{_MONTH})[a-z]* \d"),
    ),
    "reason": (
        _any("why", "reasons?", "grounds", "what for", "how come", "rationale", r"justif\w+"),
        _any("because", "since", "as", "reasons?", "due to", "given", "so that", "grounds"),
    ),
    "decision": (
        _any(
            r"decid\w+|decision|chose|chosen|choose|choice|pick(?:ed)?|settled?|selected|outcome",
            r"agreed?|taken|in the end|end(?:ed)? up|verdict|resol\w+|conclu\w+|adopt\w+",
        ),
        _any(
            r"decid\w+|decision|chose|chosen|choose|choice|pick(?:ed)?|settled?|selected|outcome",
            r"agreed?|went with|go with|going with|opted|adopt\w+|verdict|resol\w+|approved",
            r"won|final\w*|it is to be|took|carried",
        ),
    ),
    "doubt": (
        _any(r"object\w*|against|oppos\w+|doubt\w*|resist\w*|critici\w+|disagree\w*|concern\w*"),
        _any(
            r"object\w*|against|oppos\w+|doubt\w*|resist\w*|critici\w+|disagree\w*|warn\w*",
            r"fear\w*|worr\w+|concern\w*|reject\w*|refus\w+|cannot|but|too",
        ),
    ),
}
"""Kinds of answers: the pattern of a question for it, and of a sentence that contains it."""
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
    """What the wording of a question reveals about its answer."""

    kinds: tuple[bool, ...]
    """For each of KINDS, whether the question asks for it."""
    current: bool
    several: bool
    named: frozenset[str]
    """Words with a capital or a digit, in lower case: these must match."""


def cues(question: str) -> Cues:
    named = {word.lower() for run in _NAMED.findall(question) for word in re.findall(r"\w+", run)}
    return Cues(
        tuple(bool(asks.search(question)) for asks, _ in KINDS.values()),
        bool(_CURRENT(question)),
        bool(_SEVERAL(question)),
        frozenset(named),
    )


def looks(sentence: str) -> tuple[bool, ...]:
    """For each of KINDS, whether the sentence may contain one."""
    return tuple(bool(holds.search(sentence)) for _, holds in KINDS.values())
