"""How passages stand in a prompt: as excerpts with headings, or as turns under their dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from mnemoscope.readers import Passage

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
# The words that lead the parts of a prompt with turns.
_LEAD = re.compile(r"(conversation|question|answer)\s*:", re.IGNORECASE)


def excerpts_of(passages: Sequence[Passage]) -> str:
    return "\n\n".join(map(_excerpt, passages))


def turns_of(passages: Sequence[Passage]) -> str:
    """One line for each passage, under a line with its date where the date changes.

    It takes some 25 tokens a passage less than an excerpt does. A text cannot pose as a part of the
    prompt: it has no line breaks, and such a lead is marked.
    """
    lines: list[str] = []
    before = ""
    for passage in passages:
        date = _plain_date(passage.at) if passage.at else "no date"
        if date != before:
            lines.append(date)
            before = date
        text = " ".join(passage.text.split())
        lines.append(f"> {text}" if _LEAD.match(text) else text)
    return "\n".join(lines)


def long_date(at: datetime) -> str:
    """A date such as 8 May 2023 (Monday), 13:56, in English with any locale."""
    day = f"{_plain_date(at)} ({_DAYS[at.weekday()]})"
    return f"{day}, {at:%H:%M}" if (at.hour, at.minute) != (0, 0) else day


def _plain_date(at: datetime) -> str:
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def _excerpt(passage: Passage) -> str:
    """A line with the date, then the text, every line marked so that it cannot pose as prompt."""
    date = long_date(passage.at) if passage.at else "no date"
    session = " ".join(passage.session.split())
    head = f"[{date}, session {session}]" if session else f"[{date}]"
    return "\n".join([head, *(f"> {line}" for line in passage.text.strip().splitlines())])
