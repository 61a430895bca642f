"""Runs of Recall Bench that were made elsewhere: their figures as printed and as their marks give.

The marks are those of the file. Where it has no marks of single questions, only its printed figures
are known, without intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope.analysis.estimates import Estimate
from mnemoscope.analysis.longitudinal import (
    CheckpointFigures,
    HallucinationRate,
    LongitudinalFigures,
    longitudinal,
)
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.analysis.recall_bench_format import Header
from mnemoscope.types import CORE_CATEGORIES, Checkpoint

FileKind = Literal["result", "progress", "questions"]
_SAME = 5e-4
"""Printed means have three decimals or more."""
_WEEK = 7
_NO_HITS: Estimate = {"mean": None, "n": 0, "ci95": None}


class PrintedCell(msgspec.Struct, frozen=True):
    """The printed mean of a category or a difficulty."""

    mean: float | None
    count: int
    eligible: int = 0


class PrintedCheckpoint(msgspec.Struct, frozen=True):
    """What a file prints of one checkpoint of one persona."""

    persona: str
    label: str
    days: int
    ingested: int
    questions: int
    """How many answers were judged."""
    overall: float | None
    hallucination: float | None
    """In percent."""
    categories: dict[str, PrintedCell] = {}
    difficulties: dict[str, PrintedCell] = {}
    failed: int = 0


class Reproduced(msgspec.Struct, frozen=True):
    """A printed figure, and what the marks of the same file give."""

    persona: str
    checkpoint: str
    figure: str
    printed: float
    recomputed: float

    @property
    def is_same(self) -> bool:
        return abs(self.printed - self.recomputed) <= _SAME


class RecallBenchRun(msgspec.Struct, frozen=True):
    """The content of a result.json, a progress.jsonl or a questions.jsonl."""

    path: Path
    kind: FileKind
    settings: Header
    printed: list[PrintedCheckpoint]
    records: list[QuestionRecord]
    """The answers with their marks; none if the file has aggregates only."""
    notes: list[str] = []

    @property
    def label(self) -> str:
        """The name of the file without its endings."""
        name = self.path.name.removesuffix(".xz").removesuffix(".gz")
        short = name.removesuffix(".jsonl").removesuffix(".json").removesuffix(f".{self.kind}")
        return str(self.path.parent.name or short) if short == self.kind else short

    @property
    def plan(self) -> dict[str, list[Checkpoint]]:
        """Each persona's checkpoints."""
        asked: dict[tuple[str, str], list[str]] = {}
        for record in self.records:
            asked.setdefault((record.scenario, record.checkpoint), []).append(record.question.id)
        found: dict[str, list[Checkpoint]] = {}
        for one in self.printed:
            found.setdefault(one.persona, []).append(
                Checkpoint(
                    one.label,
                    one.days,
                    memories=one.ingested,
                    questions=tuple(asked.get((one.persona, one.label), ())),
                    ingested_days=one.ingested,
                    eligible={name: cell.eligible for name, cell in one.categories.items()},
                )
            )
        return found

    @property
    def without_marks(self) -> list[PrintedCheckpoint]:
        """The checkpoints of which the file has aggregates only."""
        known = {(record.scenario, record.checkpoint) for record in self.records}
        return [
            one for one in self.printed if one.questions and (one.persona, one.label) not in known
        ]

    def reproduced(self) -> list[Reproduced]:
        """Every printed figure that the marks of the file give again, and whether they do."""
        by_place: dict[tuple[str, str], list[QuestionRecord]] = {}
        for record in self.records:
            if record.score is not None:
                by_place.setdefault((record.scenario, record.checkpoint), []).append(record)
        return [
            found
            for one in self.printed
            if (own := by_place.get((one.persona, one.label)))
            for found in _recomputed(one, own)
        ]

    def figures(self) -> LongitudinalFigures:
        """The figures of each checkpoint, from the marks where there are any."""
        found = longitudinal(self.records, self.plan)
        missing = {one.label for one in self.without_marks}
        pooled = [
            _printed_figures(point, [one for one in self.printed if one.label == point["label"]])
            if point["label"] in missing
            else point
            for point in found["checkpoints"]
        ]
        shown = [
            name for point in pooled for name, cell in point["categories"].items() if cell["n"]
        ]
        names = dict.fromkeys((*CORE_CATEGORIES, *found["categories"], *shown))
        return {**found, "checkpoints": pooled, "categories": list(names)}


def week_of(persona: str, days: Sequence[int]) -> str:
    """The cluster of a question: the week of its first relevant day, as for personas."""
    return f"{persona}/week-{(min(days) - 1) // _WEEK + 1}" if days else persona


def _recomputed(
    printed: PrintedCheckpoint, records: Sequence[QuestionRecord]
) -> Iterator[Reproduced]:
    where = (printed.persona, printed.label)
    marks = [(record.question, record.score) for record in records if record.score is not None]

    def mean(chosen: Sequence[int]) -> float:
        return sum(chosen) / len(chosen)

    if printed.overall is not None:
        overall = mean([score.composite for _, score in marks])
        yield Reproduced(*where, "overall score", printed.overall, overall)
    if printed.hallucination is not None:
        rate = 100 * mean([score.hallucination == 0 for _, score in marks])
        yield Reproduced(*where, "hallucination rate", printed.hallucination, rate)
    for kind in ("category", "difficulty"):
        cells = printed.categories if kind == "category" else printed.difficulties
        for name, cell in cells.items():
            own = [score.composite for asked, score in marks if getattr(asked, kind) == name]
            if own and cell.mean is not None:
                yield Reproduced(*where, name, cell.mean, mean(own))


def _printed_figures(
    point: CheckpointFigures, printed: Sequence[PrintedCheckpoint]
) -> CheckpointFigures:
    """The printed figures of all personas at a checkpoint, weighted by their answers."""
    judged = sum(one.questions for one in printed)
    overall = _pooled([PrintedCell(one.overall, one.questions) for one in printed])
    rates = _pooled([PrintedCell(one.hallucination, one.questions) for one in printed])
    rate: HallucinationRate = {
        "rate": None if rates["mean"] is None else rates["mean"] / 100,
        "n": rates["n"],
        "ci95": None,
    }
    names = dict.fromkeys(name for one in printed for name in one.categories)
    levels = dict.fromkeys(name for one in printed for name in one.difficulties)
    cells = {name: [c for o in printed if (c := o.categories.get(name))] for name in names}
    return {
        **point,
        "planned": judged,
        "asked": judged,
        "judged": judged,
        "failed": sum(one.failed for one in printed),
        "overall": overall,
        "recall_quality": _NO_HITS,
        "hallucination": rate,
        "categories": {
            name: {
                **_pooled(own),
                "asked": sum(cell.count for cell in own),
                "eligible": sum(cell.eligible for cell in own),
                "hit@10": None,
            }
            for name, own in cells.items()
        },
        "difficulties": {
            name: _pooled([c for o in printed if (c := o.difficulties.get(name))])
            for name in levels
        },
    }


def _pooled(cells: Sequence[PrintedCell]) -> Estimate:
    known = [(cell.mean, cell.count) for cell in cells if cell.mean is not None and cell.count]
    n = sum(count for _, count in known)
    mean = sum(value * count for value, count in known) / n if n else None
    return {"mean": mean, "n": n, "ci95": None}
