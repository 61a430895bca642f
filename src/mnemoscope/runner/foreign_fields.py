"""What a file of answers contains, and how its fields are read; errors name the place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope.analysis.foreign_verdicts import TheirFigure

AnswerFormat = Literal["jsonl", "mem0", "longmemeval", "recall-bench"]
_WORDS = {
    **dict.fromkeys(("correct", "right", "yes", "true", "pass", "1"), 1.0),
    **dict.fromkeys(("wrong", "incorrect", "no", "false", "fail", "0"), 0.0),
}


class GivenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the file."""

    place: str
    """Where it is: `line 3`, or the path of its object."""
    question: str = ""
    """The id of the question, as the file has it; empty if it has none."""
    text: str = ""
    """The question's text, if the file has it."""
    group: str = ""
    """The conversation, as the file names it."""
    answer: str | None = None
    """None if the file records that there is none."""
    error: str = ""
    verdicts: dict[str, float] = {}
    """Each verdict on it by its name, from 0 to 1."""
    is_right: bool | None = None
    """By the file's own rule over its verdicts; None without a verdict."""


@dataclass
class AnswerFile:
    """The answers of a file, and the figures that it prints of them."""

    format: AnswerFormat
    answers: list[GivenAnswer]
    figures: list[TheirFigure] = field(default_factory=list)
    """Their figures, the headline first: as printed, and recomputed from their verdicts."""
    about: dict[str, str] = field(default_factory=dict)
    """What the file says of itself: models, prompt."""
    asked_at: str = ""
    """The checkpoint whose answers these are, of a file with several."""
    elsewhere: int = 0
    """Answers at the other checkpoints of the file."""
    notes: list[str] = field(default_factory=list)


def decoded(path: Path, content: bytes) -> Any:
    """The JSON value of a whole file; an error names the line."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{error}", file=path, line=_line_of(str(error), content)) from None


def _line_of(problem: str, content: bytes) -> int | None:
    """The line of msgspec's `(byte N)`; at the end of the file, the last line."""
    _, _, rest = problem.partition("(byte ")
    number = rest.partition(")")[0]
    if number.isdigit():
        return content.count(b"\n", 0, int(number)) + 1
    return content.rstrip().count(b"\n") + 1 if "truncated" in problem else None


def text_of(value: Any, name: str, path: Path, place: str) -> str | None:
    """The text of a field; numbers are written out, and null is None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    raise DataError(
        f"{place}: {name} is {_kind(value)}, expected a text, a number or null", file=path
    )


def verdict_of(value: Any, name: str, path: Path, place: str) -> float | None:
    """A verdict from 0 to 1: a number, true or false, or a word such as CORRECT or no."""
    if value is None:
        return None
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float) and 0 <= value <= 1:
        return float(value)
    if isinstance(value, str) and (mark := _WORDS.get(value.strip().casefold())) is not None:
        return mark
    raise DataError(
        f"{place}: {name} is {value!r:.60}, expected true or false, a number from 0 to 1, or a "
        "word such as CORRECT or WRONG, yes or no",
        file=path,
    )


def object_of(value: Any, name: str, path: Path, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{place}: {name} is {_kind(value)}, expected an object", file=path)
    return value


def list_of(value: Any, name: str, path: Path, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"{place}: {name} is {_kind(value)}, expected an array", file=path)
    return value


def field_of(content: Mapping[str, Any], name: str, path: Path, place: str) -> Any:
    if name not in content:
        raise DataError(f"{place}: the field {name} is missing", file=path)
    return content[name]


def number_of(value: Any, name: str, path: Path, place: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{place}: {name} is {_kind(value)}, expected a number", file=path)
    return float(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "an array", str: "a text", bool: "true or false"}
    return names.get(type(value), "a number")


def majority(verdicts: Mapping[str, float]) -> bool | None:
    """Whether more than half of the verdicts pass; None without one."""
    if not verdicts:
        return None
    return 2 * sum(mark >= 0.5 for mark in verdicts.values()) > len(verdicts)
