"""The entries of Recall Bench's files: one answer with its marks, one checkpoint with its figures.

What does not add up is an error that names the place: marks outside of the rubric, a composite that
is not their sum, counts that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

from msgspec import convert

from mnemoscope._store.errors import DataError
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.analysis.recall_bench_runs import PrintedCell, PrintedCheckpoint, week_of
from mnemoscope.judges import MARKS
from mnemoscope.runner.foreign_fields import field_of, list_of, number_of, object_of, text_of
from mnemoscope.types import (
    CATEGORIES,
    FAILED,
    Answer,
    Expectation,
    Question,
    Score,
    Status,
    Verdict,
)

_BEST = sum(MARKS.values())
_MOST_DAYS = 2**53


def refuse(problem: str, path: Path, place: str) -> NoReturn:
    raise DataError(f"{place}: {problem}", file=path)


def read_entry(
    value: Any, path: Path, place: str, persona: str, checkpoint: str, composite: str
) -> QuestionRecord:
    """One answer; `composite` is the name of the field with the sum of its marks."""
    one = object_of(value, "the entry", path, place)
    pair = object_of(field_of(one, "qa", path, place), "qa", path, place)
    question = _question(pair, persona, path, place)
    marks = read_marks(one.get("score"), "score", path, place)
    stated = number_of(one.get(composite), composite, path, place)
    if marks is not None and stated is not None and stated != marks.composite:
        refuse(f"{composite} is {stated:g}, and the marks add up to {marks.composite}", path, place)
    if marks is None and stated is not None:
        refuse(f"{composite} is {stated:g}, and there are no marks", path, place)
    status = text_of(one.get("status"), "status", path, place) or ("answered" if marks else "error")
    if status not in get_args(Status):
        refuse(f"status is {status!r:.40}, which is unknown", path, place)
    if marks is not None and status in (*FAILED, "unjudged"):
        refuse(f"status is {status}, and there are marks", path, place)
    text = text_of(field_of(one, "systemAnswer", path, place), "systemAnswer", path, place) or ""
    primary = read_marks(one.get("primaryScore"), "primaryScore", path, place)
    ms = number_of(one.get("latencyMs"), "latencyMs", path, place)
    ended = convert("answered" if status == "unjudged" else status, Status)
    answer = Answer(persona, question.id, ended, text, checkpoint=checkpoint)
    verdict = None
    if marks is not None or status == "unjudged":
        verdict = Verdict(persona, question.id, marks, primary, checkpoint=checkpoint)
    return QuestionRecord(question, None, answer, verdict, persona, checkpoint, ms)


def _question(pair: Mapping[str, Any], persona: str, path: Path, place: str) -> Question:
    def text(name: str) -> str:
        found = text_of(field_of(pair, name, path, place), f"qa.{name}", path, place)
        return found or refuse(f"qa.{name} is empty", path, place)

    category = text("category")
    if category not in CATEGORIES:
        refuse(f"qa.category is {category!r:.60}, not one of {', '.join(CATEGORIES)}", path, place)
    days = list_of(field_of(pair, "relevantDays", path, place), "qa.relevantDays", path, place)
    for day in days:
        whole(day, "qa.relevantDays", path, place, least=1)
    reference = "referenceAnswer" if "referenceAnswer" in pair else "answer"
    expected = text_of(pair.get("expectedDisclosure"), "qa.expectedDisclosure", path, place)
    expects: Expectation = "abstain" if category == "negative-recall" else "answer"
    if expected in ("refuse", "partial"):
        expects = "refuse" if expected == "refuse" else "partial"
    return Question(
        text("id"),
        text("question"),
        reference=text_of(pair.get(reference), f"qa.{reference}", path, place) or "",
        category=category,
        expects=expects,
        difficulty=text_of(pair.get("difficulty"), "qa.difficulty", path, place) or "",
        cluster=week_of(persona, days),
        relevant_days=tuple(days),
    )


def read_marks(value: Any, name: str, path: Path, place: str) -> Score | None:
    if value is None:
        return None
    given = object_of(value, name, path, place)
    correctness, completeness, hallucination = (
        whole(field_of(given, part, path, place), f"{name}.{part}", path, place, most)
        for part, most in MARKS.items()
    )
    reasoning = text_of(given.get("reasoning"), f"{name}.reasoning", path, place) or ""
    return Score(correctness, completeness, hallucination, reasoning)


def whole(
    value: Any, name: str, path: Path, place: str, most: int = _MOST_DAYS, least: int = 0
) -> int:
    """A whole number in a range."""
    number = number_of(value, name, path, place)
    if number is None or not least <= number <= most or number != int(number):
        limit = f"{least} to {most}" if most < _MOST_DAYS else f"{least} or more"
        refuse(f"{name} is {value!r:.40}, expected a whole number, {limit}", path, place)
    return int(number)


def read_checkpoint(
    value: Any, path: Path, place: str, persona: str, label: str, days: int
) -> PrintedCheckpoint:
    """The printed figures of a checkpoint, whose counts must add up."""
    point = object_of(value, "the entry", path, place)

    def count(of: Mapping[str, Any], name: str, least: int = 0) -> int:
        return whole(field_of(of, name, path, place), name, path, place, least=least)

    judged, ingested = count(point, "questionsEvaluated"), count(point, "daysIngested")
    if ingested > days:
        refuse(f"daysIngested is {ingested}, and the checkpoint is at day {days}", path, place)
    categories: dict[str, PrintedCell] = {}
    for number, one in enumerate(
        list_of(field_of(point, "categoryScores", path, place), "categoryScores", path, place)
    ):
        own = f"{place}.categoryScores[{number}]"
        cell = object_of(one, "the entry", path, own)
        name = text_of(field_of(cell, "category", path, own), "category", path, own) or ""
        if name in categories or name not in CATEGORIES:
            refuse(f"category is {name!r:.60}, which is unknown or there twice", path, own)
        categories[name] = _cell(cell, "meanScore", "questionCount", path, own)
        scores = cell.get("scores")
        if (
            scores is not None
            and len(list_of(scores, "scores", path, own)) != categories[name].count
        ):
            refuse(f"{len(scores)} scores, and questionCount is another number", path, own)
    levels = object_of(point.get("difficultyScores") or {}, "difficultyScores", path, place)
    difficulties = {
        name: _cell(object_of(one, name, path, place), "mean", "count", path, f"{place}.{name}")
        for name, one in levels.items()
    }
    for kind, cells in (("categoryScores", categories), ("difficultyScores", difficulties)):
        total = sum(cell.count for cell in cells.values())
        if cells and total != judged:
            refuse(f"{kind} count {total} answers, and questionsEvaluated is {judged}", path, place)
    return PrintedCheckpoint(
        persona,
        label,
        days,
        ingested,
        judged,
        _figure(point.get("overallScore"), "overallScore", _BEST, judged, path, place),
        _figure(point.get("hallucinationRate"), "hallucinationRate", 100, judged, path, place),
        categories,
        difficulties,
        whole(point.get("questionsFailed", 0), "questionsFailed", path, place),
    )


def _cell(cell: Mapping[str, Any], mean: str, count: str, path: Path, place: str) -> PrintedCell:
    n = whole(field_of(cell, count, path, place), count, path, place)
    eligible = cell.get("eligibleCount")
    known = n if eligible is None else whole(eligible, "eligibleCount", path, place)
    if known < n:
        refuse(f"{n} answers, and only {known} questions are eligible", path, place)
    return PrintedCell(_figure(cell.get(mean), mean, _BEST, n, path, place), n, known)


def _figure(value: Any, name: str, best: float, n: int, path: Path, place: str) -> float | None:
    """A printed mean; Recall Bench prints 0 where there is none."""
    found = number_of(value, name, path, place)
    if found is not None and not 0 <= found <= best:
        refuse(f"{name} is {found:g}, expected 0 to {best:g}", path, place)
    return found if n else None


def check_answers(
    printed: PrintedCheckpoint, records: Sequence[QuestionRecord], path: Path, place: str
) -> None:
    """Whether the answers of a checkpoint are those that its counts mean."""
    judged = sum(record.score is not None for record in records)
    if judged != printed.questions:
        problem = f"questionsEvaluated is {printed.questions}, and {judged} answers have marks"
        refuse(problem, path, place)
    for kind in ("category", "difficulty"):
        cells = printed.categories if kind == "category" else printed.difficulties
        for name, cell in cells.items():
            own = [r for r in records if r.score and getattr(r.question, kind) == name]
            if len(own) != cell.count:
                problem = f"{name} counts {cell.count} answers, and {len(own)} have marks"
                refuse(problem, path, place)
    for record in records:
        if max(record.question.relevant_days, default=0) > printed.days:
            asked = f"{record.question.id} is asked at day {printed.days}"
            refuse(f"{asked}, before the last of its relevant days", path, place)
