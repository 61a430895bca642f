"""A text as statements: headings, table rows and sentences, each with the line it stands on.

Code blocks and comments are no claims and are left out. Nothing here knows what a claim is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["heading", "row", "sentence"]

_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(?=\S)")
_RULE = re.compile(r"^[\s|:+-]+$")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]*)[^)]*\)")
_ABBREVIATION = re.compile(r"(?:\b(?:vs|e\.g|i\.e|approx|ca|cf|etc|fig|no|resp|incl)\.)$", re.I)
_END = re.compile(r"(?<=[.!?])[)\"”’*_]*\s+")


class Statement(NamedTuple):
    """One thing that is said."""

    kind: Kind
    line: int
    text: str
    section: str
    """The heading it stands under."""
    head: tuple[str, ...] = ()
    """A table row's column titles."""
    block: int = 0
    """Statements of one paragraph or list item share it."""

    @property
    def cells(self) -> list[str]:
        return cells(self.text)


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def statements(text: str) -> list[Statement]:
    found: list[Statement] = []
    section, head = "", tuple[str, ...]()
    for number, (kind, lines) in enumerate(_blocks(_without_comments(text))):
        first, content = lines[0]
        if kind == "heading":
            section = plain(content)
            found.append(Statement("heading", first, section, section, block=number))
        elif kind == "row":
            # Without a rule below it the first line is no head, but a row like the others.
            headed = len(lines) > 1 and bool(_RULE.match(lines[1][1]))
            head = tuple(map(plain, cells(content))) if headed else ()
            found += [
                Statement("row", line, plain(row), section, head, number)
                for line, row in lines[headed:]
                if not _RULE.match(row)
            ]
        else:
            found += [Statement("sentence", n, s, section, (), number) for n, s in _split(lines)]
    return found


def plain(text: str) -> str:
    """Without emphasis, code marks and link targets; brackets of numbers stay."""
    text = _LINK.sub(lambda link: f"{link[1]} ({link[2]})", text)
    return re.sub(r"[*`]|(?<!\w)_+|_+(?!\w)", "", text).strip()


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)


def _blocks(text: str) -> Iterator[tuple[Kind, list[tuple[int, str]]]]:
    """Runs of lines that belong together: a heading, a table, a paragraph, a list item."""
    block: list[tuple[int, str]] = []
    kind: Kind = "sentence"
    fenced = ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fenced or fence:
            if fence and (not fenced or fence[1] == fenced):
                fenced = "" if fenced else fence[1]
            line = ""
        line = re.sub(r"^\s*(?:>\s?)+", "", line)
        heading = _HEADING.match(line)
        here: Kind = (
            "heading" if heading else "row" if line.lstrip().startswith("|") else "sentence"
        )
        if block and (here != kind or not line.strip() or heading or _ITEM.match(line)):
            yield kind, block
            block = []
        if line.strip():
            kind = here
            block.append((number, heading[1] if heading else _ITEM.sub("", line, count=1)))
    if block:
        yield kind, block


def _split(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The sentences of a paragraph, each with the line it begins on."""
    starts, text = [], ""
    for number, line in lines:
        starts.append((len(text), number))
        text += plain(line) + " "
    begin = 0
    for end in [*(m.end() for m in _END.finditer(text)), len(text)]:
        sentence = text[begin:end].strip()
        if not sentence or (_ABBREVIATION.search(sentence) and end < len(text)):
            continue
        place = begin + len(text[begin:end]) - len(text[begin:end].lstrip())
        yield max((s, n) for s, n in starts if s <= place)[1], sentence
        begin = end
