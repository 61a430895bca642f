"""Folders of Markdown or text: Obsidian vaults, daily notes, documentation.

A note is one memory. A note longer than `section_above` characters becomes one memory for each of
its sections. The front matter gives its time and tags; otherwise a date in its name does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.yaml import parse_yaml
from mnemoscope.datasets.imported_folder import IMPORT_RECORD
from mnemoscope.importers.source_record import (
    DELETED,
    EMPTY,
    NOT_READ,
    SENSITIVE,
    ImportSource,
    LeftOut,
    SourceRecord,
    Yielded,
)
from mnemoscope.importers.source_times import date_in_name, read_time
from mnemoscope.types import Scalar

NOTE_FILES = "*.md,*.markdown,*.mdx,*.txt,*.text,*.rst,*.org,README,README.*"
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?)(?:\r?\n|^)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_UNDERLINE = re.compile(r"(={3,}|-{3,})[ \t]*$")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_DATES = ("date", "created", "created_at", "creation_date", "updated", "modified")
_SENSITIVE = ("sensitive", "is_sensitive", "private")


def read_notes(source: ImportSource) -> Yielded:
    """The notes of a folder in the order of their paths, or one file."""
    if source.path.is_file():
        yield _note(source, source.path, source.path.name)
        return
    patterns = (source.files or NOTE_FILES).split(",")
    paths = sorted(_files(source.path))
    if not paths:
        raise UsageError(f"{source.path} contains no files")
    for number, path in enumerate(paths, 1):
        name = path.relative_to(source.path).as_posix()
        if any(fnmatch(path.name, pattern.strip()) for pattern in patterns):
            yield _note(source, path, name)
        else:
            yield LeftOut("another type of file", name)
        source.share = number / len(paths)


def _files(folder: Path) -> Iterator[Path]:
    """Files below the folder, without hidden ones, links and folders that we made."""
    for place, folders, names in os.walk(folder):
        here = Path(place)
        if IMPORT_RECORD in names and "corpus.jsonl" in names:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = here / name
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _note(source: ImportSource, path: Path, name: str) -> SourceRecord | LeftOut:
    content = path.read_bytes()
    if b"\0" in content[:4096] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return LeftOut(NOT_READ, name)
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return LeftOut("not UTF-8 text", f"{name}, line {line}")
    changed = path.stat().st_mtime if source.file_times else None

    def split(masked: str) -> Yielded:
        return _memories(masked, path, name, source.section_above, changed)

    return SourceRecord(name, text, line=1, split=split)


def _memories(text: str, path: Path, name: str, above: int, changed: float | None) -> Yielded:
    """The memories of one note, whose secrets are masked."""
    text = text.replace("\r\n", "\n")
    front, body, first = _without_front_matter(text, path)
    if any(front.get(field) is True for field in _SENSITIVE):
        yield LeftOut(SENSITIVE, name)
        return
    if front.get("deleted") is True:
        yield LeftOut(DELETED, name)
        return
    if not body.strip():
        yield LeftOut(EMPTY, name)
        return
    at = next((found for field in _DATES if (found := read_time(front.get(field)))), None)
    at = at or date_in_name(path.stem)
    if at is None and changed is not None:
        at = datetime.fromtimestamp(changed, UTC)
    title = str(front.get("title") or path.stem)
    tags = front.get("tags", front.get("tag", ""))
    whole = SourceRecord(
        name,
        body.strip(),
        origin=name,
        at=at,
        session=name,
        tags=",".join(map(str, tags)) if isinstance(tags, list) else str(tags or ""),
        line=first,
        metadata={"title": title},
    )
    if len(body) <= above:
        yield whole
        return
    for section in sections(body, above):
        heading = " > ".join(section.headings)
        metadata: dict[str, Scalar] = {"title": title, "heading": heading}
        path_line = " > ".join((title, *section.headings))
        yield whole._replace(
            place=f"{name}, line {first + section.line - 1}",
            line=first + section.line - 1,
            # A section alone does not say what it is about.
            text=f"{path_line}\n\n{section.text.strip()}",
            origin=f"{name}#{heading}" + (f"#{section.part}" if section.part else ""),
            metadata=metadata if heading else {"title": title},
        )


def _without_front_matter(text: str, path: Path) -> tuple[Mapping[str, Any], str, int]:
    """The fields, the text after them, and its first line."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return {}, text, 1
    try:
        fields = parse_yaml(found[1], path)
    except DataError:
        return {}, text, 1
    if not isinstance(fields, dict):
        return {}, text, 1
    return (
        {str(name).lower(): value for name, value in fields.items()},
        text[found.end() :],
        (found[0].count("\n") + 1),
    )


class NoteSection(NamedTuple):
    """A part of a note."""

    headings: tuple[str, ...]
    """The headings above it, from the outermost."""
    text: str
    line: int
    part: int = 0
    """Its number, from 1, if a section without headings was too long."""


def sections(body: str, above: int) -> Iterator[NoteSection]:
    """Split at headings, and where a section is still too long, at blank lines."""
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    first = 1
    for number, (line, level, title) in enumerate(_marked_lines(body), 1):
        if level:
            yield from _parts(headings, lines, first, above)
            while headings and headings[-1][0] >= level:
                headings.pop()
            headings.append((level, title))
            lines, first = [], number + 1
        else:
            lines.append(line)
    yield from _parts(headings, lines, first, above)


def _parts(
    headings: list[tuple[int, str]], lines: list[str], first: int, above: int
) -> Iterator[NoteSection]:
    if not any(line.strip() for line in lines):
        return
    path = tuple(title for _, title in headings)
    if sum(map(len, lines)) <= above:
        yield NoteSection(path, "\n".join(lines), first)
        return
    starts = _breaks(lines, above)
    for part, (start, end) in enumerate(pairwise([*starts, len(lines)]), 1):
        yield NoteSection(path, "\n".join(lines[start:end]), first + start, part)


def _breaks(lines: list[str], above: int) -> list[int]:
    """Where parts begin that are not too long: at paragraphs, else at lines."""
    starts, size, paragraph = [0], 0, 0
    for number, line in enumerate(lines):
        if number and line.strip() and not lines[number - 1].strip():
            paragraph = number
        if size and size + len(line) > above and line.strip():
            begin = paragraph if paragraph > starts[-1] else number
            starts.append(begin)
            size = sum(map(len, lines[begin:number]))
        size += len(line)
    return starts


def _marked_lines(body: str) -> Iterator[tuple[str, int, str]]:
    """Each line, with the level and the text of the heading that it is; level 0 if it is none."""
    lines = body.split("\n")
    fence = ""
    skip = False
    for number, line in enumerate(lines):
        if skip:
            skip = False
            yield "", 0, ""
            continue
        if fenced := _FENCE.match(line):
            fence = "" if fenced[1] == fence else fence or fenced[1]
        elif not fence:
            if marked := _HEADING.match(line):
                yield line, len(marked[1]), marked[2].rstrip(" \t#")
                continue
            after = lines[number + 1] if number + 1 < len(lines) else ""
            above = lines[number - 1] if number else ""
            underlined = _UNDERLINE.match(after)
            if underlined and line.strip() and not above.strip() and line[0] not in "|-=+ \t":
                skip = True
                yield line, 1 if after[0] == "=" else 2, line.strip()
                continue
        yield line, 0, ""
