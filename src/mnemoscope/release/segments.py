"""Statements cut so that each piece speaks of one metric, with what proves it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from mnemoscope.release.claim_patterns import estimates, intervals, metrics, p_values
from mnemoscope.release.statements import Statement

_JOINED = re.compile(r"^(?:[\s,&/()]|and|or|both|as well as)*$", re.IGNORECASE)
_CUT = re.compile(r"[,;]\s|\b(?:and|but|while|whereas|although|though|however)\b|\s[–—]\s")
_SAME = re.compile(
    r"\b(?:from|to|vs\.?|versus|against|compared|than|baseline|was|before|between|up|down|by)\b|→|->|"
    r"^[\s(,;=:Δ~≈+-]*(?:i\.e\.|or|and|a|an|gain|rise|of|delta|difference|is|,|\s)*[\s(,;=:+-]*$",
    re.IGNORECASE,
)


class Segment(NamedTuple):
    """What is said of one metric, or of several in one breath."""

    names: tuple[str, ...]
    text: str


def with_followers(said: Sequence[Statement]) -> list[Statement]:
    """Sentences that only bring an interval or a p belong to the sentence before them."""
    merged: list[Statement] = []
    for one in said:
        if merged and one.kind == "sentence" and _follows(merged[-1], one):
            merged[-1] = merged[-1]._replace(text=f"{merged[-1].text} {one.text}")
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


def _follows(before: Statement, one: Statement) -> bool:
    return (
        before.kind == "sentence"
        and before.block == one.block
        and not metrics(one.text)
        and bool(intervals(one.text) or p_values(one.text))
    )


def _cut(text: str, after: int, before: int) -> int:
    """Where one metric's piece ends: the last comma or `and` outside of deeper brackets."""
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
