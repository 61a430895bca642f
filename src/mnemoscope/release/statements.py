"""Split a text into statements, and statements into segments about one metric each.

Statements are headings, table rows and sentences, each with its line. Code blocks and comments are
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from mnemoscope.release.claim_patterns import estimates, intervals, metrics, p_values

Kind = Literal["heading", "row", "sentence"]

_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(?=\S)")
_RULE = re.compile(r"^[\s|:+-]+$")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]*)[^)]*\)")
_ABBREVIATION = re.compile(r"(?:\b(?:vs|e\.g|i\.e|approx|ca|cf|etc|fig|no|resp|incl)\.)$", re.I)
_END = re.compile(r"(?<=[.!?])[)\"”’*_]*\s+")
_JOINED = re.compile(r"^(?:[\s,&/()]|and|or|both|as well as)*$", re.IGNORECASE)
_CUT = re.compile(r"[,;]\s|\b(?:and|but|while|whereas|although|though|however)\b|\s[–—]\s")
_SAME = re.compile(
    r"\b(?:from|to|vs\.?|versus|against|compared|than|baseline|was|before|between|up|down|by)\b|→|->|"
    r"^[\s(,;=:Δ~≈+-]*(?:i\.e\.|or|and|a|an|gain|rise|of|delta|difference|is|,|\s)*[\s(,;=:+-]*$",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """A heading, a table row or a sentence."""

    kind: Kind
    line: int
    text: str
    section: str
    """The heading above it."""
    head: tuple[str, ...] = ()
    """A table row's column titles."""
    block: int = 0
    """The number of its paragraph, list item or table."""

    @property
    def columns(self) -> list[tuple[str, str]]:
        """A table row's cells, each with the title of its column."""
        return [
            (self.head[n] if n < len(self.head) else "", cell)
            for n, cell in enumerate(_cells(self.text))
        ]


class Segment(NamedTuple):
    """The part of a statement about one metric, or about several together."""

    names: tuple[str, ...]
    text: str


def statements(text: str) -> list[Statement]:
    found: list[Statement] = []
    section, head = "", tuple[str, ...]()
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    for number, (kind, lines) in enumerate(_blocks(text)):
        first, content = lines[0]
        if kind == "heading":
            section = plain(content)
            found.append(Statement("heading", first, section, section, block=number))
        elif kind == "row":
            # The first line is a header only if a rule follows it.
            headed = len(lines) > 1 and bool(_RULE.match(lines[1][1]))
            head = tuple(map(plain, _cells(content))) if headed else ()
            found += [
                Statement("row", line, plain(row), section, head, number)
                for line, row in lines[headed:]
                if not _RULE.match(row)
            ]
        else:
            found += [Statement("sentence", n, s, section, (), number) for n, s in _split(lines)]
    return found


def plain(text: str) -> str:
    """The text without emphasis and code marks; a link keeps its target in brackets."""
    text = _LINK.sub(lambda link: f"{link[1]} ({link[2]})", text)
    return re.sub(r"[*`]|(?<!\w)_+|_+(?!\w)", "", text).strip()


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _blocks(text: str) -> Iterator[tuple[Kind, list[tuple[int, str]]]]:
    """The lines of each heading, table, paragraph and list item."""
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


def with_followers(said: Sequence[Statement]) -> list[Statement]:
    """Join sentences that only give an interval or a p to the sentence before them."""
    merged: list[Statement] = []
    for one in said:
        before = merged[-1] if merged else None
        if (
            before
            and before.kind == one.kind == "sentence"
            and before.block == one.block
            and not metrics(one.text)
            and (intervals(one.text) or p_values(one.text))
        ):
            merged[-1] = before._replace(text=f"{before.text} {one.text}")
        else:
            merged.append(one)
    return merged


def segments(text: str) -> list[Segment]:
    """The pieces of a statement, one for each metric that it names."""
    groups: list[tuple[int, int, tuple[str, ...]]] = []
    for start, end, names in metrics(text):
        if groups and _JOINED.match(text[groups[-1][1] : start]):
            groups[-1] = (groups[-1][0], end, (*groups[-1][2], *names))
        else:
            groups.append((start, end, names))
    if not groups:
        return []
    if len(groups) > 1 and re.search(r"\b(?:respectively|each|both)\b", text, re.IGNORECASE):
        return [Segment(tuple(n for _, _, names in groups for n in names), text)]
    cuts = [_cut(text, before[1], after[0]) for before, after in pairwise(groups)]
    return [
        Segment(names, text[begin:end])
        for (_, _, names), begin, end in zip(groups, [0, *cuts], [*cuts, len(text)], strict=True)
    ]


def bare_estimates(segment: Segment) -> int:
    """How many figures of a segment have no interval; `from 0.79 to 0.80 (+1 pp)` is one figure."""
    found = estimates(segment.text)
    groups = sum(
        1
        for number, one in enumerate(found)
        if number == 0 or not _SAME.search(segment.text[found[number - 1].end() : one.start()])
    )
    return max(0, groups - intervals(segment.text))


def _cut(text: str, after: int, before: int) -> int:
    """The end of one metric's piece: the last comma or `and` outside of deeper brackets."""
    depth = _depth(text, before)
    places = [
        after + found.start()
        for found in _CUT.finditer(text[after:before])
        if _depth(text, after + found.start()) <= depth
    ]
    return places[-1] if places else before


def _depth(text: str, place: int) -> int:
    opened = text[:place]
    return sum(map(opened.count, "([")) - sum(map(opened.count, ")]"))
