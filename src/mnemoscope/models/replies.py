"""Parses a model's reply: removes its thoughts, and reads JSON after repairing known mistakes.

The repairs remove a code fence around the reply, text before and after the object, and commas
before a closing bracket. Anything else is an error. Callers put its message into the next prompt,
so a change of these messages changes what models are asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

_FENCE = re.compile(r"\A```[\w+-]*[ \t]*\r?\n(.*?)\r?\n?```\Z", re.DOTALL)
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


def without_thoughts(reply: str) -> str:
    """The reply without the thoughts of a reasoning model, which <think> tags enclose."""
    return _THOUGHTS.sub("", reply)


def parse_json(text: str) -> dict[str, Any]:
    """The JSON object in a reply; ValueError gives the reason if there is none."""
    text = text.strip().removeprefix("\ufeff").strip()
    if not text:
        raise ValueError("the reply is empty")
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    try:
        return _object(text)
    except ValueError as error:
        whole = error
    start = text.find("{")
    if start < 0:
        raise ValueError(str(whole) if text.startswith("[") else "there is no {…} in it")
    end = closing(text, start)
    if end is None:
        raise ValueError("its {…} never closes")
    found = text[start:end]
    try:
        return _object(found)
    except ValueError:
        return _object(_without_trailing_commas(found))


def _object(text: str) -> dict[str, Any]:
    try:
        # Not strict about control characters: models put raw line breaks into strings.
        value = json.loads(text, strict=False, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} at character {error.pos}") from None
    if not isinstance(value, dict):
        raise ValueError(f"it is JSON but no object: {type(value).__name__}")
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def closing(text: str, start: int) -> int | None:
    """The position after the bracket that closes the one at `start`; None if it never closes."""
    depth = 0
    for position, character in _outside_strings(text, start):
        depth += (character in "{[") - (character in "}]")
        if depth == 0:
            return position + 1
    return None


def _without_trailing_commas(text: str) -> str:
    marks = [mark for mark in _outside_strings(text, 0) if not mark[1].isspace()]
    superfluous = {
        position
        for (position, character), (_, following) in pairwise(marks)
        if character == "," and following in "}]"
    }
    return "".join(c for position, c in enumerate(text) if position not in superfluous)


def _outside_strings(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Every character from `start` on that is outside of strings, with its position."""
    in_string = escaped = False
    for position in range(start, len(text)):
        character = text[position]
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        else:
            in_string = character == '"'
            yield position, character
