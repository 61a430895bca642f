"""Texts with choices and slots: `[one|two]` stands for one of the texts, `{slot}` for a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_START = re.compile(
    r'((?:^|(?<!\b[ap]\.m)(?<!\bmisc)[.!?:]"? |: "|\n- )"?)([a-z][\w+]*)', re.MULTILINE
)
_QUOTED_START = re.compile(r'(^> [^:\n]+: ")([a-z][\w+]*)', re.MULTILINE)
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeio]|un(?!i))(?!eu|one\b|once\b)")
_COLON = re.compile(r": $")


def choose(text: str, random: Random) -> str:
    """The text with every choice made; a choice may contain others."""
    while "[" in text:
        text = _CHOICE.sub(lambda match: random.choice(match[1].split("|")), text)
    return text


def put(text: str, slots: Mapping[str, str]) -> str:
    """The text with these slots filled; unknown slots stay."""
    return _SLOT.sub(lambda match: slots.get(match[1], match[0]), text)


def write(text: str, random: Random, slots: Mapping[str, str]) -> str:
    """One text of the template, with `an` before vowels and capitals where sentences begin."""
    filled = put(choose(text, random), slots).strip()
    return sentence_case(_ARTICLE.sub(r"\1n ", filled))


def sentence_case(text: str) -> str:
    """Give each sentence a capital first letter; but not words such as eBPF or after a.m."""

    def start(match: re.Match[str]) -> str:
        before, word = match[1], match[2]
        if not word.islower() or _COLON.search(before):
            return match[0]
        return before + word[0].upper() + word[1:]

    return _QUOTED_START.sub(
        lambda match: match[1] + match[2][0].upper() + match[2][1:], _START.sub(start, text)
    )
