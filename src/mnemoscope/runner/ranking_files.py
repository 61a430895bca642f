"""Reads a file of rankings in our format, TREC's or pgmnemo's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import numbered_records
from mnemoscope.datasets.trec import read_run
from mnemoscope.types import FAILED, Hit, Question, Status

Format = Literal["jsonl", "trec", "pgmnemo"]
_PGMNEMO_DEPTH = 10
_DEPTH_BY_QID, _DEPTH_BY_TEXT = 20, 50
"""How deep pgmnemo looks for the first hit, although it keeps only the ten best ids. Lines of its
LongMemEval files have a `qid`, lines of its LoCoMo files have none."""


@dataclass
class RankingFile:
    """Question id to hits. `first_ranks` are the file's own ranks of the first evidence."""

    hits: dict[str, list[Hit]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Questions that were not measured according to the file, with their status."""
    first_ranks: dict[str, int] = field(default_factory=dict)
    first_rank_depth: int = 0
    asked_for: int = 0
    """How many hits were asked for, if the file says so."""
    cut: dict[str, int] = field(default_factory=dict)
    """The length of each list that may go on after its end: the file does not say otherwise."""

    @property
    def depth(self) -> int:
        return max(self.asked_for, max(map(len, self.hits.values()), default=0))

    def state_depth(self, depth: int) -> None:
        """Take the user's word that so many hits were asked for: shorter lists are complete."""
        if depth < self.depth:
            raise UsageError(f"--depth {depth}: the file has lists of {self.depth} hits")
        self.asked_for = depth
        self.cut = {question: length for question, length in self.cut.items() if length >= depth}


class _RankingLine(msgspec.Struct, frozen=True):
    question: str
    ranking: list[str]
    scores: list[float | None] = []
    sources: dict[str, tuple[str, ...]] = {}
    ordered: tuple[str, ...] = ()
    texts: dict[str, str] = {}
    status: Status = "answered"
    depth: int = 0


class _PgmnemoLine(msgspec.Struct, frozen=True):
    retrieved_top10: list[str]
    question: str
    category: int = 0
    conv_id: str = ""
    qid: str = ""
    first_hit_rank: int | None = None


def read_rankings(
    path: Path, format: Format, questions: Sequence[Question], *, keep_repeats: bool = False
) -> RankingFile:
    """Read the file; `keep_repeats` keeps the rank of a repeated label, as pgmnemo's rules do."""
    if format == "trec":
        run = read_run(path)
        return RankingFile(
            {q: [Hit(id, score) for id, score in own] for q, own in run.topics.items()},
            cut={topic: len(own) for topic, own in run.topics.items()},
        )
    if format == "pgmnemo":
        return _read_pgmnemo(path, questions, keep_repeats)
    return _read_jsonl(path)


def _read_jsonl(path: Path) -> RankingFile:
    rankings = RankingFile()
    for number, line in numbered_records(path, _RankingLine):
        _claim(rankings, line.question, path, number)
        scores = line.scores or [None] * len(line.ranking)
        if len(scores) != len(line.ranking):
            raise DataError("scores and ranking differ in length", file=path, line=number)
        rankings.asked_for = max(rankings.asked_for, line.depth)
        if line.status in FAILED:
            rankings.failures[line.question] = line.status
        if len(line.ranking) >= line.depth:
            rankings.cut[line.question] = len(line.ranking)
        rankings.hits[line.question] = [
            Hit(id, score, line.texts.get(id, ""), line.sources.get(id, ()), id in line.ordered)
            for id, score in zip(line.ranking, scores, strict=True)
        ]
    return rankings


def _read_pgmnemo(path: Path, questions: Sequence[Question], keep_repeats: bool) -> RankingFile:
    """LoCoMo lines are matched by conversation, category and text, not by number."""
    waiting: dict[tuple[str, str, str], list[str]] = {}
    for question in reversed(questions):
        key = (question.cluster, question.category, question.text)
        waiting.setdefault(key, []).append(question.id)
    rankings = RankingFile()
    for number, line in numbered_records(path, _PgmnemoLine):
        if line.qid:
            id, prefix = line.qid, ""
            rankings.first_rank_depth = _DEPTH_BY_QID
        else:
            rankings.first_rank_depth = _DEPTH_BY_TEXT
            same = waiting.get((line.conv_id, str(line.category), line.question))
            id = same.pop() if same else f"{path.name} line {number}"
            prefix = f"{line.conv_id}/"
        _claim(rankings, id, path, number)
        labels = _mark_repeats(line.retrieved_top10) if keep_repeats else line.retrieved_top10
        rankings.hits[id] = [Hit(prefix + label) for label in labels]
        rankings.first_ranks[id] = line.first_hit_rank or 0
        if len(line.retrieved_top10) >= _PGMNEMO_DEPTH:
            rankings.cut[id] = len(labels)
    return rankings


def _claim(rankings: RankingFile, question: str, path: Path, line: int) -> None:
    if question in rankings.hits:
        raise DataError(f"a second ranking for question {question!r}", file=path, line=line)


def _mark_repeats(labels: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    marked = []
    for label in labels:
        seen[label] += 1
        marked.append(label if seen[label] == 1 else f"{label}#{seen[label]}")
    return marked
