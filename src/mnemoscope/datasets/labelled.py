"""Shared code of datasets that consist of a corpus, queries and relevance judgments.

It reads records by id, names invalid lines, collects judgments, and builds and counts questions.
It does not know the field names of any format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

import msgspec

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope._store.jsonl import decode_lines
from mnemoscope.datasets.base import Findings
from mnemoscope.types import Question, Scenario

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

OFFENDERS_NAMED = 10
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Bounded: Python raises its own error for a number of thousands of digits.
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


class Judgment(NamedTuple):
    """The relevance grade of one document for one topic, and the line it was read from."""

    line: int
    grade: int


Judgments = dict[str, dict[str, Judgment]]


def present(path: Path, purpose: str) -> Path:
    """The path, if it is a file; MissingData otherwise."""
    if not path.is_file():
        raise MissingData(f"{path} is missing: it should contain {purpose}")
    return path


def refuse(problem: str, offenders: Sequence[tuple[int, object]], file: Path) -> NoReturn:
    """Raise a DataError that names the first of the invalid entries, given as (line, what)."""
    named = ", ".join(f"{what} (line {line})" for line, what in offenders[:OFFENDERS_NAMED])
    more = len(offenders) - OFFENDERS_NAMED
    rest = f" and {more} more" if more > 0 else ""
    raise DataError(f"{problem}: {named}{rest}", file=file, line=offenders[0][0])


def records_by_id(
    path: Path, kind: type[T], id_of: Callable[[T], K], findings: Findings
) -> dict[K, tuple[int, T]]:
    """Every record of a JSONL file by its id, with its line; ids must be unique."""
    found: dict[K, tuple[int, T]] = {}
    repeated: list[tuple[int, object]] = []
    for line, record in records(path, kind, findings):
        key = id_of(record)
        if key in found:
            repeated.append((line, f"{key!r}, first in line {found[key][0]}"))
        else:
            found[key] = (line, record)
    if repeated:
        refuse("duplicate ids", repeated, path)
    if not found:
        raise DataError("contains no records", file=path)
    return found


def records(path: Path, kind: type[T], findings: Findings) -> Iterator[tuple[int, T]]:
    """The records of a JSONL file with their line numbers."""
    with path.open("rb") as file:
        lines = _without_byte_order_mark(file, path, findings)
        yield from decode_lines(lines, msgspec.json.Decoder(kind), path)


def columns(
    path: Path, width: int, findings: Findings, *, separator: bytes | None = None
) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line of a table; the default separator is white space."""
    with path.open("rb") as file:
        lines = _without_byte_order_mark(file, path, findings)
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if b"\0" in line:
                raise DataError("contains a NUL byte; is it a text file?", file=path, line=number)
            # Split as bytes: str.split would also split an id at Unicode white space.
            fields = line.rstrip(b"\r\n").split(separator)
            if len(fields) != width:
                raise DataError(f"{len(fields)} columns, expected {width}", file=path, line=number)
            try:
                yield number, [field.decode() for field in fields]
            except UnicodeDecodeError as error:
                raise DataError(str(error), file=path, line=number) from None


def _without_byte_order_mark(
    lines: Iterable[bytes], path: Path, findings: Findings
) -> Iterator[bytes]:
    for number, line in enumerate(lines):
        if number == 0 and line.startswith(BYTE_ORDER_MARK):
            findings.add("byte order mark skipped", str(path))
            yield line.removeprefix(BYTE_ORDER_MARK)
        else:
            yield line


def collect_judgments(
    rows: Iterable[tuple[int, str, str, str]], path: Path, findings: Findings
) -> Judgments:
    """Judgments by topic and document, from rows of (line, topic, document, unparsed grade)."""
    judgments: Judgments = {}
    for line, topic, document, written in rows:
        if not WHOLE_NUMBER.fullmatch(written):
            raise DataError(f"grade {written!r} is not an integer", file=path, line=line)
        judgment = Judgment(line, int(written))
        earlier = judgments.setdefault(topic, {}).setdefault(document, judgment)
        if earlier is judgment:
            continue
        if earlier.grade != judgment.grade:
            raise DataError(
                f"{document!r} for {topic!r} is graded {judgment.grade} here"
                f" and {earlier.grade} in line {earlier.line}",
                file=path,
                line=line,
            )
        findings.add("duplicate judgment", f"{path}, line {line}")
    if not judgments:
        raise DataError("contains no judgments", file=path)
    return judgments


def judged_question(
    id: str, text: str, judged: Mapping[str, Judgment], findings: Findings
) -> Question:
    """A question whose evidence is the documents with a positive grade."""
    relevant = {document: one.grade for document, one in judged.items() if one.grade > 0}
    if not relevant:
        findings.add("question without relevant memory", id)
    graded = any(grade != 1 for grade in relevant.values())
    return Question(id=id, text=text, evidence=tuple(relevant), grades=relevant if graded else {})


def note_empty_texts(scenario: Scenario, findings: Findings) -> None:
    for memory in scenario.memories:
        if not memory.text.strip():
            findings.add("empty memory text", memory.id)
    for question in scenario.questions:
        if not question.text.strip():
            findings.add("empty question text", question.id)


def count(scenario: Scenario) -> Counter[str]:
    """Counts of memories, questions and evidence, and of the questions of each category."""
    categories = Counter(question.category for question in scenario.questions if question.category)
    return Counter(
        {
            "memories": len(scenario.memories),
            "questions": len(scenario.questions),
            "evidence": sum(len(question.evidence) for question in scenario.questions),
            **dict(sorted(categories.items())),
        }
    )
