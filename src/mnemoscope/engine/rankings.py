"""Somebody else's rankings, read from a file: ours, TREC's or pgmnemo's format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope.core.errors import DataError
from mnemoscope.core.jsonl import numbered_records
from mnemoscope.core.nouns import Hit
from mnemoscope.datasets.trec import read_run

Format = Literal["jsonl", "trec", "pgmnemo"]
PGMNEMO_DEPTH = 50
"""pgmnemo keeps the ten best ids, but looks for the first hit among fifty."""


@dataclass
class Rankings:
    """Question id to hits. `first_ranks` is what the file itself says of the first evidence."""

    hits: dict[str, list[Hit]] = field(default_factory=dict)
    first_ranks: dict[str, int] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        return max(map(len, self.hits.values()), default=0)


class _Line(msgspec.Struct, frozen=True):
    question: str
    ranking: list[str]
    scores: list[float | None] = []


class _PgmnemoLine(msgspec.Struct, frozen=True):
    qi: int
    retrieved_top10: list[str]
    question: str
    conv_id: str = ""
    qid: str = ""
    first_hit_rank: int | None = None


def read_rankings(path: Path, format: Format, *, keep_repeats: bool = False) -> Rankings:
    """Read the file; `keep_repeats` lets a repeated label hold its rank, as pgmnemo's rules do."""
    if format == "trec":
        run = read_run(path)
        return Rankings({q: [Hit(id, score) for id, score in own] for q, own in run.topics.items()})
    if format == "pgmnemo":
        return _read_pgmnemo(path, keep_repeats)
    rankings = Rankings()
    for number, line in numbered_records(path, _Line):
        _claim(rankings, line.question, path, number)
        scores = line.scores or [None] * len(line.ranking)
        if len(scores) != len(line.ranking):
            raise DataError("scores and ranking differ in length", file=path, line=number)
        rankings.hits[line.question] = [
            Hit(id, score) for id, score in zip(line.ranking, scores, strict=True)
        ]
    return rankings


def _read_pgmnemo(path: Path, keep_repeats: bool) -> Rankings:
    rankings = Rankings()
    for number, line in numbered_records(path, _PgmnemoLine):
        if line.qid:
            id, prefix = line.qid, ""
        else:
            # Questions are numbered through the whole file; ours within their conversation.
            id, prefix = f"#{line.qi}", f"{line.conv_id}/"
        _claim(rankings, id, path, number)
        labels = _mark_repeats(line.retrieved_top10) if keep_repeats else line.retrieved_top10
        rankings.hits[id] = [Hit(prefix + label) for label in labels]
        rankings.first_ranks[id] = line.first_hit_rank or 0
    return rankings


def _claim(rankings: Rankings, question: str, path: Path, line: int) -> None:
    if question in rankings.hits:
        raise DataError(f"a second ranking for question {question!r}", file=path, line=line)


def _mark_repeats(labels: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    marked = []
    for label in labels:
        seen[label] += 1
        marked.append(label if seen[label] == 1 else f"{label}#{seen[label]}")
    return marked


def renumber(rankings: Rankings, order: Mapping[str, str]) -> Rankings:
    """The same rankings under our question ids, where the file has its own."""
    return Rankings(
        {order.get(id, id): hits for id, hits in rankings.hits.items()},
        {order.get(id, id): rank for id, rank in rankings.first_ranks.items()},
    )
