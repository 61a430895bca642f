"""What a question asks for: its kind, its focus, the people it names, the day it names."""

from __future__ import annotations

import re
from typing import NamedTuple

from mnemoscope.text.english import STOP_WORDS

KINDS = ("thing", "what", "how", "person", "place", "reason", "number", "duration", "date", "yes")
"""`what` has a noun after it ("which city"), `thing` has none ("what did she buy")."""

_AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|has|have|had|will|would|can|could|should|might|may|must|"
    r"shall|isn't|aren't|wasn't|weren't|doesn't|don't|didn't|hasn't|haven't|won't|wouldn't)"
)
_YES = re.compile(
    rf"(?:\w+ly,? |so,? |and |but )?{_AUXILIARY}\s+(?!you (?:remind|tell|remember))", re.I
)
_CHOICE = re.compile(r"\b(?:which|who|what|prefer|rather|more|either|first)\b.*\bor\b", re.I | re.S)
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("date", r"\bwhen\b(?! (?:i|we|he|she|they|it|you)\b)(?=.{0,12}\b" + _AUXILIARY + r"\b)"),
        (
            "date",
            r"^\W*when\b|\b(?:what|which) (?:exact |specific )?(?:date|day|month|year|season|"
            r"weekend|week)\b(?! of the week)|\bin (?:what|which) (?:month|year)\b",
        ),
        (
            "duration",
            r"\bhow (?:long|much time|old)\b|\bhow many (?:days?|weeks?|months?|years?|"
            r"hours?|minutes?|decades?)\b",
        ),
        (
            "number",
            r"\bhow (?:many|much|often|far|tall|big|high|fast|large)\b|\bwhat (?:number|"
            r"percentage|percent|amount|price|time)\b",
        ),
        ("person", r"\b(?:who|whom|whose)\b(?! (?:is|are|was) .{0,40}\b(?:like|about)\b)"),
        (
            "place",
            r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|country|place|places|state|town|cities|"
            r"countries|location|locations|venue|area|areas)\b",
        ),
        (
            "reason",
            r"\bwhy\b|\bhow come\b|\bwhat (?:is|was|were|are) (?:\S+ ){0,3}(?:reasons?|"
            r"motivations?|purpose)\b|\bwhat for\b|\bwhat (?:made|inspired|motivated|prompted|"
            r"motivates|inspires|led)\b",
        ),
        ("how", r"^\W*how\b|\bhow (?:do|does|did|is|was|has|have|are|were|can|will)\b"),
        ("what", rf"\b(?:what|which)\s+(?!{_AUXILIARY}\b)(?!kind of (?:a )?{_AUXILIARY})\w"),
    )
)
_NOUNS = re.compile(
    rf"\b(?:what|which|how many|how much)\s+(?!{_AUXILIARY}\b)"
    rf"((?:[\w'-]+\s+){{1,6}}?)(?={_AUXILIARY}\b)",
    re.IGNORECASE,
)
_IS_THE = re.compile(
    r"\b(?:what|who|where) (?:is|are|was|were|'s) (?:the |his |her |their |my |[\w'-]+['’]s? )?"
    r"((?:[\w'-]+ ?){1,3})",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"\b(?:what|which)\s+(?:[\w+'/-]+\s+){0,3}?(?:[\w/]{2,}(?<!s)s|people|children)\s+"
    rf"(?:{_AUXILIARY}|of)\b|\bwhat all\b|\b(?:some|kinds|types) of\b|"
    r"\bwhat (?:has|have|does|do|are)\b|\bwhere (?:has|have)\b|\bwho (?:are|have)\b|"
    r"\bin what ways\b|\bboth\b|\blist\b|\border\b|"
    r"\b(?:what|which) are\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.?!] )(?<!^)\b[A-ZÀ-Þ][^\W\d_]+(?:['’]s)?\b")
_SUBJECT = re.compile(
    rf"\b{_AUXILIARY}\s+(?:both\s+)?((?-i:[A-ZÀ-Þ])[^\W\d_]+)(?:\s+and\s+((?-i:[A-ZÀ-Þ])[^\W\d_]+))?"
    r"|((?-i:[A-ZÀ-Þ])[^\W\d_]+)['’]s?\b",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\b(?:I|I'm|I've|my|mine|me|we|our)\b")
_LONGEST = 2000
"""Characters of a question that are looked at."""
_TYPE_WORDS = frozenset(
    "kind kinds type types sort sorts name names different specific new".split()
)


class Asked(NamedTuple):
    """What the wording of a question says about its answer."""

    kind: str
    focus: tuple[str, ...]
    """The noun that says what is asked for, as in "which city"."""
    several: bool
    names: frozenset[str]
    """Capitalised words in lower case, without the possessive ending."""
    subjects: frozenset[str]
    """Those of the names that the question is about: "did Odile", "Odile's"."""
    mine: bool
    """Asked in the first person."""


def asked_for(question: str) -> Asked:
    question = question[:_LONGEST]
    found = (re.sub(r"['’]s?$", "", name).lower() for name in _NAME.findall(question))
    names = frozenset(name for name in found if name not in STOP_WORDS)
    subjects = {part.lower() for match in _SUBJECT.findall(question) for part in match if part}
    return Asked(
        _kind(question),
        _focus(question, names),
        bool(_SEVERAL.search(question)),
        names,
        names & subjects,
        bool(_FIRST.search(question)),
    )


def _kind(question: str) -> str:
    last = re.split(r"[.!]\s+(?=[A-Z])", question.strip())[-1]
    if _YES.match(last) and not _CHOICE.search(last):
        return "yes"
    for text in (last, question):
        for kind, pattern in _RULES:
            if pattern.search(text):
                return kind
    return "thing"


def _focus(question: str, names: frozenset[str]) -> tuple[str, ...]:
    match = _NOUNS.search(question) or _IS_THE.search(question)
    if match is None:
        return ()
    words = re.findall(r"[^\W\d_]+", match[1].lower())
    return tuple(
        word
        for word in words
        if word not in STOP_WORDS and word not in _TYPE_WORDS and word not in names
    )[-2:]
