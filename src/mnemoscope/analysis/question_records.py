"""The record of one question in one run, assembled from the journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import read_records
from mnemoscope._store.run_directory import JournalLine, RunDirectory
from mnemoscope.types import (
    FAILED,
    Answer,
    AnswerKey,
    Checkpoint,
    Grade,
    Ingestion,
    Question,
    Score,
    Status,
    Timing,
    Trial,
    Verdict,
)

BEST_SCORE = 6
Plan = Mapping[str, Sequence[Checkpoint]]
"""Persona to its checkpoints, in order."""


class QuestionRecord(NamedTuple):
    """The lines of the journal for one question at one checkpoint."""

    question: Question
    trial: Trial | None = None
    answer: Answer | None = None
    verdict: Verdict | None = None
    scenario: str = ""
    """In persona runs, the id of the persona."""
    checkpoint: str = ""
    ms: float | None = None
    """Milliseconds for recalling and answering."""

    @property
    def status(self) -> Status | None:
        """How answering ended, whatever the verdict; None where no answer was asked for."""
        if self.answer is not None:
            return self.answer.status
        if self.trial is not None and self.trial.status in FAILED:
            return self.trial.status
        return "answered" if self.verdict is not None else None

    @property
    def final(self) -> Score | Grade | None:
        """The final score or grade; None where the question failed or was not judged."""
        if self.verdict is None or self.status in FAILED:
            return None
        return self.verdict.final

    @property
    def score(self) -> Score | None:
        """The final score by Recall Bench's rubric; None for judges that give one number."""
        final = self.final
        return final if isinstance(final, Score) else None

    @property
    def cluster(self) -> str:
        """The cluster of the question: questions of one cluster are not independent."""
        return self.question.cluster or self.scenario

    @property
    def value(self) -> float | None:
        """The final score or grade as one number."""
        final = self.final
        return None if final is None else value_of(final)

    @property
    def primary(self) -> Score | Grade | None:
        """The first judge's score or grade, if the appellate judge decided."""
        if self.verdict is None or self.final is None:
            return None
        graded = self.verdict.score is None
        return self.verdict.primary_grade if graded else self.verdict.primary

    @property
    def errors(self) -> list[str]:
        """The error messages of recalling, answering and judging."""
        lines = (self.trial, self.answer, self.verdict)
        return [line.error for line in lines if line is not None and line.error]


_PART_OF = {Answer: "answer", Verdict: "verdict"}


def assemble(
    lines: Iterable[JournalLine], questions: Mapping[str, Question], timings: Iterable[Timing] = ()
) -> list[QuestionRecord]:
    """Assemble the journal's lines into one record for each question at each checkpoint.

    The records are in the order in which the journal first names them.
    """
    parts: dict[tuple[str, str, str], dict[str, Any]] = {}
    for line in lines:
        if isinstance(line, Ingestion):
            continue
        if line.question not in questions:
            raise UsageError(
                f"question {line.question} of the journal is not in the benchmark: "
                "the run was made from other data"
            )
        own = parts.setdefault((line.scenario, line.checkpoint, line.question), {})
        own["trial" if isinstance(line, Trial) else _PART_OF[type(line)]] = line
    took: dict[tuple[str, str, str], float] = {}
    for timing in timings:
        key = (timing.scenario, timing.checkpoint, timing.question)
        took[key] = took.get(key, 0.0) + (timing.recall_ms or 0.0) + (timing.answer_ms or 0.0)
    return [
        QuestionRecord(
            questions[key[2]],
            own.get("trial"),
            own.get("answer"),
            own.get("verdict"),
            key[0],
            key[1],
            round(took[key], 3) if key in took else None,
        )
        for key, own in parts.items()
    ]


def records_of(run: RunDirectory) -> list[QuestionRecord]:
    """Read the records of a finished run."""
    journal = list(run.journal())
    clusters = {line.question: line.cluster for line in journal if isinstance(line, Trial)}
    # Persona runs have Recall Bench's format, which nests the question in "qa".
    lines = read_records(run.path / "questions.jsonl", dict)
    questions = {
        line["id"]: Question(
            line["id"],
            line["question"],
            reference=line["referenceAnswer" if "referenceAnswer" in line else "reference"],
            category=line["category"],
            evidence=tuple(line.get("evidence", ())),
            expects=line.get("expects", "answer"),
            session=line.get("session", ""),
            difficulty=line.get("difficulty", ""),
            cluster=clusters.get(line["id"]) or line.get("cluster", ""),
            relevant_days=tuple(line.get("relevantDays", ())),
            rivals=tuple(line.get("rivals", ())),
            key=msgspec.convert(line["key"], AnswerKey) if "key" in line else None,
        )
        for line in (one.get("qa", one) for one in lines)
    }
    return assemble(journal, questions)


def in_order(records: Iterable[QuestionRecord]) -> list[QuestionRecord]:
    """Sort the records, so that figures do not depend on the order of the questions."""
    return sorted(records, key=lambda one: (one.scenario, one.checkpoint, one.question.id))


def by_category(records: Iterable[QuestionRecord]) -> dict[str, list[QuestionRecord]]:
    """Group the records by category, sorted by name; records without a category are left out."""
    found: dict[str, list[QuestionRecord]] = {}
    for record in records:
        found.setdefault(record.question.category, []).append(record)
    return {name: found[name] for name in sorted(found) if name}


def by_checkpoint(records: Iterable[QuestionRecord]) -> dict[str, list[QuestionRecord]]:
    """Group the records by checkpoint."""
    found: dict[str, list[QuestionRecord]] = {}
    for record in records:
        found.setdefault(record.checkpoint, []).append(record)
    return found


def value_of(mark: Score | Grade) -> float:
    """Return the value of a grade, or a rubric score as a share of the best score."""
    return mark.composite / BEST_SCORE if isinstance(mark, Score) else float(mark.value)


def changed(before: Score | Grade, after: Score | Grade) -> bool:
    """Whether two judges gave different marks; their reasoning is ignored."""

    def marks(mark: Score | Grade) -> tuple[float, ...]:
        if isinstance(mark, Score):
            return mark.correctness, mark.completeness, mark.hallucination
        return (mark.value,)

    return marks(before) != marks(after)
