"""Arrays of objects in a model's reply, salvaged object by object where the reply breaks off."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from mnemoscope.models.replies import closing, parse_json, without_thoughts
from mnemoscope.personas.write.llm_writer import Unusable

_START = re.compile(r"\[(?=\s*[{\]])")


class Salvaged(NamedTuple):
    """What could be read of an array."""

    objects: list[dict[str, Any]]
    whole: bool
    """Whether the array ends, and nothing in it was unreadable."""


def read_array(reply: str) -> Salvaged:
    """The objects of the first array of objects; Unusable where there is no array."""
    text = without_thoughts(reply)
    start = _START.search(text)
    if start is None:
        raise Unusable("there is no JSON array of objects in it", "reply with one and nothing else")
    objects: list[dict[str, Any]] = []
    whole, place = True, start.end()
    while (place := _next(text, place)) < len(text):
        if text[place] == "]":
            return Salvaged(objects, whole)
        end = closing(text, place)
        if text[place] != "{" or end is None:
            break
        try:
            objects.append(parse_json(text[place:end]))
        except ValueError:
            whole = False
        place = end
    return Salvaged(objects, False)


def read_whole_array(reply: str) -> list[dict[str, Any]]:
    """The same, where a part is of no use."""
    found = read_array(reply)
    if not found.whole:
        raise Unusable(
            "its JSON array breaks off or holds an object that is no JSON",
            "write a shorter one, whole and valid",
        )
    return found.objects


def _next(text: str, place: int) -> int:
    """Where the next thing stands that is neither space nor comma."""
    while place < len(text) and (text[place].isspace() or text[place] == ","):
        place += 1
    return place
