"""Answers that were given elsewhere: what a file of them contains, and its verdicts if it has any.

`read_answers` reads generic JSON lines, mem0-style evaluations, LongMemEval's hypothesis files and
evaluation logs, and Recall Bench's results. Each answer keeps its place in the file, so that every
error and every count can name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.datasets._io.json_stream import unpacked
from mnemoscope.runner import foreign_formats, foreign_lines
from mnemoscope.runner.foreign_fields import AnswerFile, AnswerFormat, decoded


def read_answers(
    path: Path,
    format: AnswerFormat | None = None,
    fields: Mapping[str, str] | None = None,
    at: str = "",
) -> AnswerFile:
    """Read a file of answers; without a format, by its content.

    `fields` maps our names of fields to those of a generic file. `at` is a checkpoint of Recall
    Bench's results; default: the last.
    """
    content = _content(path)
    chosen = format or _recognised(path, content, mapped=bool(fields))
    if fields and chosen != "jsonl":
        raise UsageError(
            f"--fields is for files of JSON lines, and {path.name} is read as {chosen}"
        )
    if at and chosen != "recall-bench":
        raise UsageError(
            f"--at is for results of Recall Bench, and {path.name} is read as {chosen}"
        )
    if chosen == "jsonl":
        found = foreign_lines.read_lines(path, content, fields or {})
    elif chosen == "longmemeval":
        found = foreign_lines.read_longmemeval(path, content)
    elif chosen == "mem0":
        found = foreign_formats.read_mem0(path, content)
    else:
        found = foreign_formats.read_recall_bench(path, content, at)
    if not found.answers:
        raise DataError("contains no answers", file=path)
    return found


def _content(path: Path) -> bytes:
    try:
        content = b"".join(unpacked(path))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None
    if not content.strip():
        raise DataError("is empty", file=path)
    return content


def _recognised(path: Path, content: bytes, *, mapped: bool) -> AnswerFormat:
    """The format of the file, from its first object."""
    try:
        first: Any = msgspec.json.decode(content.split(b"\n", 1)[0])
    except (msgspec.DecodeError, RecursionError):
        first = None
    if mapped:
        return "jsonl"
    if isinstance(first, dict):
        if "hypothesis" in first and "question_id" in first:
            return "longmemeval"
        if "personas" not in first and "detailed_results" not in first and _is_lines(content):
            return "jsonl"
    whole = first if isinstance(first, dict) and not _is_lines(content) else decoded(path, content)
    if isinstance(whole, dict):
        if "personas" in whole:
            return "recall-bench"
        if "detailed_results" in whole or _is_by_conversation(whole):
            return "mem0"
    if (
        isinstance(whole, list)
        and whole
        and isinstance(whole[0], dict)
        and "hypothesis" in whole[0]
    ):
        return "longmemeval"
    raise DataError(
        "the format is not recognised; give --format jsonl, mem0, longmemeval or recall-bench",
        file=path,
    )


def _is_lines(content: bytes) -> bool:
    """Whether the first line is a whole value and is not the whole file, or is a flat object."""
    first, _, rest = content.strip().partition(b"\n")
    try:
        value = msgspec.json.decode(first)
    except (msgspec.DecodeError, RecursionError):
        return False
    if rest.strip():
        return True
    return isinstance(value, dict) and not _is_by_conversation(value)


def _is_by_conversation(whole: Mapping[str, Any]) -> bool:
    return bool(whole) and all(
        isinstance(own, list) and all(isinstance(one, dict) for one in own)
        for own in whole.values()
    )
