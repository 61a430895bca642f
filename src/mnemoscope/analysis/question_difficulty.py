"""What several systems find: questions that none or all find, that separate them, and agreement.

A vote is a system, or several variants of one system: they are not independent. Systems that are
given the labels or do not read the question say nothing about it and are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.analysis.measure import withheld_note
from mnemoscope.analysis.pairing import NotComparable
from mnemoscope.analysis.system_groups import (
    LabelledRun,
    QuestionKey,
    key_of,
    labelled,
    shared_depth,
    value_of,
)
from mnemoscope.metrics import dedupe, metric_of
from mnemoscope.types import FAILED, Trial

Floats = NDArray[np.float64]

LEAST_FOR_DISCRIMINATION = 8
"""Votes below which an item-rest correlation is noise: with seven, r = 0.75 is not significant."""
_SAME_LISTS = 0.9
"""Systems with the same top k for at least this share of the questions have one vote."""
_UNINFORMED = ("none", "random", "recency", "full-context")
"""They do not read the question."""
_FOUND = 0.5


class ItemDifficulty(msgspec.Struct, frozen=True):
    """One question and the systems that find its evidence."""

    question: str
    category: str
    text: str
    evidence: tuple[str, ...]
    difficulty: float
    """The share of the votes that find it: 1 for a question that all find."""
    discrimination: float | None
    """The correlation over votes of finding this and of the share of the others found; None with
    fewer than eight votes, or if all or none find it. Below 0, weaker systems find it more often:
    the labels may be wrong."""
    found_by: tuple[str, ...]
    missed_by: tuple[str, ...]


class LabelCandidate(msgspec.Struct, frozen=True):
    """A memory that several votes rank high though it is not labelled as evidence."""

    question: str
    category: str
    text: str
    evidence: tuple[str, ...]
    memory: str
    votes: int
    """Independent systems that have it among their first hits."""
    systems: tuple[str, ...]
    evidence_votes: int
    """Votes that have any of the evidence there."""


class QuestionAnalysis(msgspec.Struct, frozen=True):
    """What several systems find on one benchmark."""

    benchmark: str
    metric: str
    systems: list[str]
    votes: list[list[str]]
    """The systems by vote: variants of one system share a vote."""
    questions: int
    left_out: int
    top: int
    agree: int
    expected_candidates: float
    """Candidates if every vote ranked at random."""
    items: list[ItemDifficulty]
    candidates: list[LabelCandidate]
    notes: list[str] = []
    withheld: dict[str, str] = {}
    """The categories of which no figure is given, and why."""

    @property
    def none_find(self) -> list[ItemDifficulty]:
        return [one for one in self.items if not one.found_by]

    @property
    def all_find(self) -> list[ItemDifficulty]:
        return [one for one in self.items if not one.missed_by]

    @property
    def separating(self) -> list[ItemDifficulty]:
        """Questions that some find, those that tell most about the systems first."""
        split = [one for one in self.items if one.found_by and one.missed_by]
        if any(one.discrimination is not None for one in split):
            return sorted(split, key=lambda one: (-(one.discrimination or 0.0), one.question))
        return sorted(split, key=lambda one: (abs(one.difficulty - 0.5), one.question))


def analyse_questions(
    runs: Sequence[RunDirectory],
    *,
    metric: str = "hit@10",
    category: str = "",
    top: int = 1,
    agree: int | None = None,
) -> QuestionAnalysis:
    """Compare the runs question by question.

    `metric` is a hit metric. Candidates for missing labels are memories that at least `agree` votes
    (default: two thirds, at least two) have among their first `top` hits.
    """
    every = labelled(runs)
    depth = shared_depth(every)
    kept = [one for one in every if not one.sees_labels and _system(one) not in _UNINFORMED]
    if len(kept) < 2:
        raise NotComparable(
            "give runs of at least two systems; oracle and systems that do not read the question "
            "(none, random, recency, full-context) do not count"
        )
    about = metric_of(metric)
    if metric not in depth.names or about is None or about.interval != "proportion":
        known = [
            name for name in depth.names if getattr(metric_of(name), "interval", "") == "proportion"
        ]
        raise UsageError(
            f"{metric!r} is not a hit metric of these runs; they have {', '.join(known)}"
        )
    tables = [
        {key_of(trial): trial for trial in one.run.trials() if trial.evidence} for one in kept
    ]
    shared = [key for key in tables[0] if all(key in table for table in tables)]
    known_categories = sorted({tables[0][key].category for key in shared} - {""})
    if category and category not in known_categories:
        raise UsageError(f"no category {category!r}; the runs have {', '.join(known_categories)}")
    shared = [key for key in shared if not category or tables[0][key].category == category]
    keys = [key for key in shared if not any(table[key].status in FAILED for table in tables)]
    if not keys:
        raise NotComparable("no question was measured by all systems")
    votes = _votes(kept, tables, keys, top)
    needed = agree if agree is not None else max(2, -(-2 * len(votes) // 3))
    if not needed >= 2:
        raise UsageError(f"--agree {needed}: agreement needs at least two systems")
    values = np.array(
        [[value_of(depth, table[key], metric) >= _FOUND for table in tables] for key in keys]
    )
    texts = {line["id"]: line["question"] for line in kept[0].run.questions()}
    labels = [one.label for one in kept]
    labelled_votes = [[labels[place] for place in vote] for vote in votes]
    setting = _Setting(labels, votes, keys, tables, texts)
    candidates, expected = _candidates(setting, top, needed)
    notes = []
    if dropped := [one.label for one in every if one not in kept]:
        notes.append(f"left out, since they do not read the question: {'; '.join(dropped)}")
    if merged := [vote for vote in labelled_votes if len(vote) > 1]:
        named = " / ".join("; ".join(vote) for vote in merged)
        notes.append(f"variants of one system, or the same rankings, have one vote: {named}")
    if len(votes) < LEAST_FOR_DISCRIMINATION:
        notes.append(
            f"{len(votes)} independent systems are too few for discrimination, which needs "
            f"{LEAST_FOR_DISCRIMINATION}: the questions that split them most evenly come first"
        )
    withheld = {
        name: why
        for one in kept
        for name, why in one.manifest.withheld.items()
        if category in ("", name)
    }
    notes += dict.fromkeys(map(withheld_note, withheld.values()))
    if len(shared) > len(keys):
        notes.append(f"{len(shared) - len(keys):,} questions failed in a system and are left out")
    return QuestionAnalysis(
        benchmark=str(kept[0].manifest.identity["benchmark"]["name"]),
        metric=metric,
        systems=labels,
        votes=labelled_votes,
        questions=len(keys),
        left_out=len(shared) - len(keys),
        top=top,
        agree=needed,
        expected_candidates=expected,
        items=_items(setting, values),
        candidates=candidates,
        notes=notes,
        withheld=withheld,
    )


class _Setting(NamedTuple):
    labels: Sequence[str]
    votes: Sequence[Sequence[int]]
    keys: Sequence[QuestionKey]
    tables: Sequence[Mapping[QuestionKey, Trial]]
    texts: Mapping[str, str]

    def of_question(self, key: QuestionKey) -> tuple[str, str, str, tuple[str, ...]]:
        trial = self.tables[0][key]
        return key.question, trial.category, self.texts.get(key.question, ""), trial.evidence


def _system(one: LabelledRun) -> str:
    return Spec.parse(str(one.manifest.identity["system"]["spec"])).name


def _votes(
    runs: Sequence[LabelledRun],
    tables: Sequence[Mapping[QuestionKey, Trial]],
    keys: Sequence[QuestionKey],
    top: int,
) -> list[list[int]]:
    """Group the runs whose agreement counts once: one system's variants, or the same rankings."""
    lists = [[table[key].ranking[:top] for key in keys] for table in tables]
    votes: list[list[int]] = []
    for place, one in enumerate(runs):
        alike = [
            vote
            for vote in votes
            if any(
                _system(runs[other]) == _system(one)
                or _share_equal(lists[other], lists[place]) >= _SAME_LISTS
                for other in vote
            )
        ]
        votes = [vote for vote in votes if vote not in alike]
        votes.append(sorted([place, *(other for vote in alike for other in vote)]))
    return sorted(votes)


def _share_equal(first: Sequence[object], second: Sequence[object]) -> float:
    return sum(a == b for a, b in zip(first, second, strict=True)) / len(first)


def _items(setting: _Setting, values: NDArray[np.bool_]) -> list[ItemDifficulty]:
    by_vote = np.column_stack([values[:, list(vote)].mean(axis=1) for vote in setting.votes])
    correlations = _item_rest(by_vote)
    items = []
    for row, key in enumerate(setting.keys):
        found = tuple(label for label, hit in zip(setting.labels, values[row], strict=True) if hit)
        items.append(
            ItemDifficulty(
                *setting.of_question(key),
                difficulty=float(by_vote[row].mean()),
                discrimination=correlations[row],
                found_by=found,
                missed_by=tuple(label for label in setting.labels if label not in found),
            )
        )
    return items


def _item_rest(values: Floats) -> list[float | None]:
    """The correlation of each row with the mean of the other rows, over the columns."""
    questions, votes = values.shape
    if votes < LEAST_FOR_DISCRIMINATION or questions < 2:
        return [None] * questions
    rest = (values.sum(axis=0) - values) / (questions - 1)
    own = values - values.mean(axis=1, keepdims=True)
    rest -= rest.mean(axis=1, keepdims=True)
    scale = np.sqrt((own**2).sum(axis=1) * (rest**2).sum(axis=1))
    found = (own * rest).sum(axis=1)
    return [
        float(np.clip(product / size, -1.0, 1.0)) if size > 1e-12 else None
        for product, size in zip(found, scale, strict=True)
    ]


def _candidates(setting: _Setting, top: int, agree: int) -> tuple[list[LabelCandidate], float]:
    """Memories outside the labels that at least `agree` votes have in their first `top` hits.

    A vote of several systems goes to a memory that more than half of them have.
    """
    found = []
    expected = 0.0
    for key in setting.keys:
        trials = [table[key] for table in setting.tables]
        heads = [dedupe(trial.ranking)[:top] for trial in trials]
        evidence = set(trials[0].evidence)
        counts: Counter[str] = Counter()
        backing = 0
        for vote in setting.votes:
            own = Counter(memory for place in vote for memory in heads[place])
            agreed = [memory for memory, n in own.items() if 2 * n > len(vote)]
            counts.update(agreed)
            backing += not evidence.isdisjoint(agreed)
        for memory, n in counts.items():
            if n >= agree and memory not in evidence:
                backers = [
                    label
                    for label, head in zip(setting.labels, heads, strict=True)
                    if memory in head
                ]
                about = setting.of_question(key)
                found.append(LabelCandidate(*about, memory, n, tuple(backers), backing))
        pool = trials[0].pool
        if pool > len(evidence):
            chance = min(1.0, top / pool)
            n = len(setting.votes)
            reached = sum(
                comb(n, m) * chance**m * (1 - chance) ** (n - m) for m in range(agree, n + 1)
            )
            expected += (pool - len(evidence)) * reached
    found.sort(key=lambda one: (-(one.votes - one.evidence_votes), -one.votes, one.question))
    return found, expected
