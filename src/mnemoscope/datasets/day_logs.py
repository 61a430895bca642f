"""Daily logs in Markdown: find them, read them, split them into sessions and sections.

All text is kept: the text before the first heading becomes a separate piece.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.text.fact_ledger import date_wordings

Granularity = Literal["day", "session", "section"]

DAY_FILE = re.compile(r"day-(\d{4,})\.md")
LAST_DAY = 1_000_000
"""The longest history; later dates would leave the calendar."""
PRINCIPAL = "principal"
PREFACE = "preface"
"""The piece before the first session heading: the narration of the agent."""

_SESSION = re.compile(r"^#[ \t]+session:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_SECTION = re.compile(r"^### ", re.MULTILINE)
_FRONTMATTER_LINE = re.compile(r"[\w-]+[ \t]*:.*|[ \t#-].*|")


class Piece(NamedTuple):
    """Part of a day that becomes one memory."""

    suffix: str
    """The part of its id after the id of the day."""
    text: str
    session: str


def day_files(folder: Path) -> dict[int, Path]:
    """The log of each day, in the order of days."""
    if not folder.is_dir():
        raise MissingData(f"{folder} is missing: it should contain the daily logs, day-0001.md …")
    found: dict[int, Path] = {}
    for path in folder.iterdir():
        if not (name := DAY_FILE.fullmatch(path.name)):
            continue
        day = int(name[1])
        if not 1 <= day <= LAST_DAY:
            raise DataError(
                f"day {day} is out of range: days count from 1 to {LAST_DAY}", file=path
            )
        if day in found:
            raise DataError(f"day {day} occurs twice: also in {found[day].name}", file=path)
        found[day] = path
    if not found:
        raise MissingData(f"{folder} contains no daily logs: name the files day-0001.md …")
    return dict(sorted(found.items()))


def read_day(path: Path) -> str:
    """The log's text without its frontmatter."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text: {error}", file=path) from None
    return body(text.replace("\r\n", "\n")).strip()


def body(text: str) -> str:
    """The text after the frontmatter. Prose between two rules does not count as frontmatter."""
    first, *lines = text.split("\n")
    if first.rstrip() != "---":
        return text
    for number, line in enumerate(lines):
        if line.rstrip() == "---":
            return "\n".join(lines[number + 1 :])
        if not _FRONTMATTER_LINE.fullmatch(line):
            break
    return text


def pieces(text: str, granularity: Granularity) -> list[Piece]:
    """Split a day. Blank pieces are dropped, but every day keeps at least one piece."""
    if granularity == "day":
        return [Piece("", text, "")]
    cut = _sections if granularity == "section" else _whole
    found = [piece for session in _sessions(text) for piece in cut(session)]
    return found or [Piece(f"/{PRINCIPAL}", "", PRINCIPAL)]


def _sessions(text: str) -> Iterator[Piece]:
    headings = list(_SESSION.finditer(text))
    if not headings:
        yield Piece(f"/{PRINCIPAL}", text, PRINCIPAL)
        return
    taken: set[str] = set()
    if text[: headings[0].start()].strip():
        taken.add(PREFACE)
        yield Piece(f"/{PREFACE}", text[: headings[0].start()], "")
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        session = heading[1]
        yield Piece(f"/{_unused_name(session, taken)}", text[heading.end() : end], session)


def _unused_name(session: str, taken: set[str]) -> str:
    """The session id, with a number appended if the day already used it."""
    name, number = session, 1
    while name in taken:
        number += 1
        name = f"{session}-{number}"
    taken.add(name)
    return name


def _whole(session: Piece) -> Iterator[Piece]:
    if text := session.text.strip():
        yield session._replace(text=text)


def _sections(session: Piece) -> Iterator[Piece]:
    """Sections are numbered from 1; the text before the first heading is number 0."""
    starts = [match.start() for match in _SECTION.finditer(session.text)]
    for number, (start, end) in enumerate(
        zip([0, *starts], [*starts, len(session.text)], strict=True)
    ):
        if text := session.text[start:end].strip():
            yield Piece(f"{session.suffix}/{number}", text, session.session)


def drift(text: str, today: date) -> int:
    """-1 or 1 if the log never names its date but the date before or after it; else 0.

    A tie gives -1: a plan may name the next day, but a log rarely names the day before.
    """
    if mentions(text, today):
        return 0
    before, after = (mentions(text, today + timedelta(days=days)) for days in (-1, 1))
    if after > before:
        return 1
    return -1 if before else 0


def mentions(text: str, day: date) -> int:
    """How often the text names the date, in any format that includes the year."""
    # A set, because May is its own abbreviation.
    return sum(_occurrences(text, wording) for wording in set(date_wordings(day)))


def _occurrences(text: str, wording: str) -> int:
    """Whole dates only: 13 March 2026 does not name 3 March 2026."""
    count, place = 0, text.find(wording)
    while place >= 0:
        end = place + len(wording)
        if not any(map(str.isdigit, text[place - 1 : place] + text[end : end + 1])):
            count += 1
        place = text.find(wording, end)
    return count


def digest(files: Sequence[Path]) -> str:
    """One hash over the names and contents of many files, in order."""
    total = hashlib.sha256()
    for path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{content}  {path.name}\n".encode())
    return total.hexdigest()
