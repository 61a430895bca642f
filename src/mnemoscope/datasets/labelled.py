"""What datasets made of a corpus, queries and relevance judgments have in common.

Lines read by id, offenders named, judgments collected, questions made and counted.
No single format's field names enter here.
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
# Bounded, because Python refuses to convert thousands of digits with an error of its own.
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


class Judgment(NamedTuple):
    """How relevant somebody found one document for one topic, and the line that says so."""

    line: int
    grade: int


Judgments = dict[str, dict[str, Judgment]]


def present(path: Path, purpose: str) -> Path:
    """The path itself, once it is known to be a file."""
    if not path.is_file():
        raise MissingData(f"{path} is missing: it should hold {purpose}")
    return path


def refuse(problem: str, offenders: Sequence[tuple[int, object]], file: Path) -> NoReturn:
    """Raise a DataError that names the first offenders, each given as (line, what)."""
    named = ", ".join(f"{what} (line {line})" for line, what in offenders[:OFFENDERS_NAMED])
    more = len(offenders) - OFFENDERS_NAMED
    rest = f" and {more} more" if more > 0 else ""
    raise DataError(f"{problem}: {named}{rest}", file=file, line=offenders[0][0])


def records_by_id(
    path: Path, kind: type[T], id_of: Callable[[T], K], findings: Findings
) -> dict[K, tuple[int, T]]:
    """Every record of a JSONL file under its id, with its line; no id may occur twice."""
    found: dict[K, tuple[int, T]] = {}
    repeated: list[tuple[int, object]] = []
    for line, record in records(path, kind, findings):
        key = id_of(record)
        if key in found:
            repeated.append((line, f"{key!r}, first in line {found[key][0]}"))
        else:
            found[key] = (line, record)
    if repeated:
        refuse("ids that were used before", repeated, path)
    if not found:
        raise DataError("holds no records", file=path)
    return found


def records(path: Path, kind: type[T], findings: Findings) -> Iterator[tuple[int, T]]:
    """The records of a JSONL file with their line numbers."""
    with path.open("rb") as file:
        lines = _without_byte_order_mark(file, path, findings)
        yield from decode_lines(lines, msgspec.json.Decoder(kind), path)


def columns(
    path: Path, width: int, findings: Findings, *, separator: bytes | None = None
) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line of a table; without a separator, white space separates."""
    with path.open("rb") as file:
        lines = _without_byte_order_mark(file, path, findings)
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if b"\0" in line:
                raise DataError("holds a NUL byte; is it a text file?", file=path, line=number)
            # Split as bytes: str.split would also cut at exotic white space inside an id.
            fields = line.rstrip(b"\r\n").split(separator)
            if len(fields) != width:
                raise DataError(
                    f"{len(fields)} columns where {width} are expected", file=path, line=number
                )
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
    """Judgments by topic and document, from rows of (line, topic, document, grade as written)."""
    judgments: Judgments = {}
    for line, topic, document, written in rows:
        if not WHOLE_NUMBER.fullmatch(written):
            raise DataError(f"grade {written!r} is no whole number", file=path, line=line)
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
        findings.add("repeated judgment", f"{path}, line {line}")
    if not judgments:
        raise DataError("holds no judgments", file=path)
    return judgments


def judged_question(
    id: str, text: str, judged: Mapping[str, Judgment], findings: Findings
) -> Question:
    """The question whose evidence are the documents with a positive grade."""
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
    """Memories, questions and evidence, and the questions of each category."""
    categories = Counter(question.category for question in scenario.questions if question.category)
    return Counter(
        {
            "memories": len(scenario.memories),
            "questions": len(scenario.questions),
            "evidence": sum(len(question.evidence) for question in scenario.questions),
            **dict(sorted(categories.items())),
        }
    )
