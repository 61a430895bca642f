"""Write a persona run in Recall Bench's format: result.json and the lines of its three journals.

Keys and percentages are Recall Bench's; `checkpoint` and `status` are ours. The mean of an empty
list is null. Timestamps are arguments, so that the output is reproducible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import read_records
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.longitudinal import DIFFICULTIES, columns, disclosure, status_of
from mnemoscope.analysis.measure import evidence_ranks
from mnemoscope.analysis.question_records import Plan, QuestionRecord, by_checkpoint, records_of
from mnemoscope.types import CATEGORIES, FAILED, GROUP_CATEGORIES, Checkpoint, Question, Score

JsonObject = dict[str, Any]
"""An object of Recall Bench's files, whose schema is that project's."""


class Header(msgspec.Struct, frozen=True, rename="camel"):
    """The settings of the run, with the names and order of Recall Bench's files."""

    adapter_name: str
    sample: int | None = None
    judge_memory_window: int | None = None
    groups_enabled: bool = False
    synthesis_model: str | None = None
    embedding_provider: str | None = None
    embedding_model: str | None = None
    judge_model: str | None = None
    appellate_judge_model: str | None = None


def progress_header(header: Header, plan: Plan, *, timestamp: str) -> JsonObject:
    """Return the first line of progress.jsonl."""
    return {
        "type": "header",
        "timestamp": timestamp,
        "adapterName": header.adapter_name,
        "ranges": _ranges(plan),
        **_settings(header),
    }


def progress_checkpoint(
    records: Sequence[QuestionRecord],
    points: Sequence[Checkpoint],
    index: int,
    persona: str,
    *,
    timestamp: str,
    ingest_ms: float = 0.0,
) -> JsonObject:
    """Return the line of progress.jsonl for one of a persona's checkpoints."""
    point = points[index]
    own = [r for r in records if r.scenario == persona and r.checkpoint == point.label]
    before = _ingested(points[index - 1]) if index else 0
    return {
        "type": "checkpoint",
        "timestamp": timestamp,
        "personaId": persona,
        "checkpointIndex": index + 1,
        "totalCheckpoints": len(points),
        **_figures(own, point),
        "ingestMs": ingest_ms,
        "queryMs": sum(record.ms or 0.0 for record in own),
        "newDaysIngested": _ingested(point) - before,
        "newQuestionCount": point.new,
        "historicalEvaluated": max(len(own) - point.new, 0),
        "historicalAvailable": point.historical,
    }


def progress_summary(
    records: Sequence[QuestionRecord], *, timestamp: str, duration_ms: float
) -> JsonObject:
    """Return the last line of progress.jsonl."""
    return {
        "type": "summary",
        "timestamp": timestamp,
        "durationMs": duration_ms,
        **_totals(records),
    }


def question_line(
    record: QuestionRecord, *, timestamp: str, memory_context: bool = False
) -> JsonObject:
    """Return the line of questions.jsonl for one question at one checkpoint."""
    final = record.score
    return {
        "timestamp": timestamp,
        "personaId": record.scenario,
        **_asked(record),
        "score": _score(final),
        "composite": final.composite if final else None,
        "usedAppellate": _primary(record) is not None,
        **_retrieval(record),
        "memoryContextProvided": memory_context,
        "latencyMs": record.ms,
        **_appealed(record),
    }


def failure_line(
    record: QuestionRecord, *, timestamp: str, memory_context: bool = False
) -> JsonObject | None:
    """Return the line of failures.jsonl; None if the final score is not a failure.

    Questions that failed or were not judged are not listed; questions.jsonl has their status.
    """
    final, primary = record.score, _primary(record)
    if final is None or not final.fails:
        return None
    return {
        "timestamp": timestamp,
        "personaId": record.scenario,
        **_asked(record),
        "primaryScore": _score(primary or final),
        "appellateScore": _score(final) if primary else None,
        **_retrieval(record),
        "memoryContextProvided": memory_context,
        "latencyMs": record.ms,
    }


def result(
    records: Sequence[QuestionRecord],
    plan: Plan,
    header: Header,
    *,
    timestamp: str,
    duration_ms: float,
    ingest_ms: Mapping[str, float] | None = None,
) -> JsonObject:
    """Return result.json; `ingest_ms` is the total ingestion time of each persona."""
    took = ingest_ms or {}
    settings = {key: value for key, value in _settings(header).items() if value is not None}
    content = {
        "timestamp": timestamp,
        "adapterName": header.adapter_name,
        "ranges": _ranges(plan),
        "personas": [
            _persona(persona, [r for r in records if r.scenario == persona], plan, header, took)
            for persona in plan
        ],
        "heatmap": _heatmap(records, plan),
        "metadata": {"durationMs": duration_ms, **_totals(records), **settings},
    }
    return content | _disclosure(records)


def _persona(
    persona: str,
    records: Sequence[QuestionRecord],
    plan: Plan,
    header: Header,
    took: Mapping[str, float],
) -> JsonObject:
    at = by_checkpoint(records)
    totals = _totals(records)
    content = {
        "personaId": persona,
        "adapterName": header.adapter_name,
        "rangeResults": [
            {
                **_figures(at.get(point.label, []), point, scores=True),
                "questionResults": [
                    {
                        **_asked(record),
                        "score": _score(record.score),
                        "compositeScore": record.score.composite if record.score else None,
                        "latencyMs": record.ms,
                        **_appealed(record),
                    }
                    for record in at.get(point.label, [])
                ],
            }
            for point in plan[persona]
        ],
        "heatmap": _heatmap(records, {persona: plan[persona]}),
        "totalIngestionMs": took.get(persona, 0.0),
        "totalQueryMs": sum(record.ms or 0.0 for record in records),
        "uniqueQAPairCount": totals["uniqueQAPairCount"],
        "totalEvalsRun": totals["totalEvalsRun"],
    }
    return content | _disclosure(records)


def _figures(
    records: Sequence[QuestionRecord], point: Checkpoint, *, scores: bool = False
) -> JsonObject:
    judged = _composites(records)
    return {
        "range": {"label": point.label, "days": point.days},
        "daysIngested": _ingested(point),
        "questionsEvaluated": len(judged),
        "questionsFailed": sum(status_of(r) in (*FAILED, "unjudged") for r in records),
        "overallScore": _mean(judged),
        "hallucinationRate": _rate(records),
        "categoryScores": [
            {
                "category": category,
                "meanScore": _mean(own),
                "questionCount": len(own),
                "eligibleCount": point.eligible.get(category, 0),
                **({"scores": own} if scores else {}),
            }
            for category in CATEGORIES
            for own in [_composites(r for r in records if r.question.category == category)]
        ],
        "difficultyScores": {
            level: {"mean": _mean(own), "count": len(own)}
            for level in DIFFICULTIES
            for own in [_composites(r for r in records if r.question.difficulty == level)]
        },
    }


def _heatmap(records: Sequence[QuestionRecord], plan: Plan) -> list[JsonObject]:
    """Pool the scores of all personas, so that each weighs by its number of questions."""
    at = by_checkpoint(records)
    return [
        {
            "range": column.label,
            "category": category,
            "score": _mean(own),
            "questionCount": len(own),
            "eligibleCount": column.eligible[category],
        }
        for column in columns(plan)
        for category in CATEGORIES
        for own in [
            _composites(r for r in at.get(column.label, []) if r.question.category == category)
        ]
    ]


def _disclosure(records: Sequence[QuestionRecord]) -> JsonObject:
    found = {
        expected: {
            "evaluations": own["evaluations"],
            "uniquePairs": own["unique_pairs"],
            "meanScore": own["score"]["mean"],
            "hallucinationRate": 100 * (own["hallucination"]["rate"] or 0.0),
        }
        for expected, own in disclosure(records).items()
        if own["evaluations"]
    }
    return {"disclosureBreakdown": found} if found else {}


def _asked(record: QuestionRecord) -> JsonObject:
    return {
        "checkpoint": record.checkpoint,
        "status": status_of(record),
        "qa": _qa(record.question),
        "systemAnswer": record.answer.text if record.answer else "",
    }


def _primary(record: QuestionRecord) -> Score | None:
    """Return the first judge's score, if the appellate judge decided."""
    return record.verdict.primary if record.verdict else None


def _appealed(record: QuestionRecord) -> JsonObject:
    primary = _primary(record)
    return {"primaryScore": _score(primary)} if primary else {}


def _qa(question: Question) -> JsonObject:
    block: JsonObject = {
        "id": question.id,
        "question": question.text,
        "referenceAnswer": question.reference,
        "category": question.category,
        "difficulty": question.difficulty,
        "relevantDays": list(question.relevant_days),
    }
    if question.category == GROUP_CATEGORIES[1]:
        block["expectedDisclosure"] = question.expects
    if question.session:
        block["querySession"] = question.session
    if question.forbidden:
        block["forbiddenSessions"] = list(question.forbidden)
    return block


def _score(score: Score | None) -> JsonObject | None:
    if score is None:
        return None
    marks: JsonObject = msgspec.to_builtins(msgspec.structs.replace(score, votes={}))
    return marks


def _retrieval(record: QuestionRecord) -> JsonObject:
    if record.trial is None or not record.trial.ranking:
        return {}
    first = min(evidence_ranks(record.trial), default=None)
    return {"retrieval": {"ids": list(record.trial.ranking), "firstEvidenceRank": first}}


def _totals(records: Sequence[QuestionRecord]) -> JsonObject:
    return {
        "totalEvalsRun": len(_composites(records)),
        "uniqueQAPairCount": len({(r.scenario, r.question.id) for r in records}),
        "appellateInvocations": sum(_primary(r) is not None for r in records),
    }


def _settings(header: Header) -> JsonObject:
    settings: JsonObject = msgspec.to_builtins(header)
    del settings["adapterName"]
    return settings


def _ranges(plan: Plan) -> list[JsonObject]:
    return [{"label": column.label, "days": column.days} for column in columns(plan)]


def _ingested(point: Checkpoint) -> int:
    return point.ingested_days or point.days


def _composites(records: Iterable[QuestionRecord]) -> list[int]:
    return [score.composite for record in records if (score := record.score)]


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _rate(records: Iterable[QuestionRecord]) -> float | None:
    marks = [score.hallucination for record in records if (score := record.score)]
    return 100 * marks.count(0) / len(marks) if marks else None


def common_errors(records: Iterable[QuestionRecord]) -> dict[str, int]:
    """Return the three most frequent error messages, with counts."""
    return dict(Counter(error for one in records for error in one.errors).most_common(3))


def read_records_of(run: RunDirectory) -> list[QuestionRecord]:
    """Read the records of a finished persona run."""
    if run.manifest().state != "complete":
        raise UsageError(f"{run.path} is not complete; repeat the command that started it")
    if any("qa" not in line for line in read_records(run.path / "questions.jsonl", dict)):
        raise UsageError(f"{run.path} has no checkpoints; this needs a run of personas")
    return [record for record in records_of(run) if record.checkpoint]
