"""Writes the files derived from a run's journal: rankings, questions, figures, timings.

The same journal always gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NotRequired, TypedDict

import msgspec

from mnemoscope._store.jsonl import write_json, write_records
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.answers import ANSWERS, answer_sheet, as_read, scale_of
from mnemoscope.analysis.change_scores import change_scores
from mnemoscope.analysis.costs import Costs, accounts
from mnemoscope.analysis.diagnosis import classify, receipts_of
from mnemoscope.analysis.disclosure_rates import disclosure, has_rooms
from mnemoscope.analysis.forgetting import Forgetting, forgetting
from mnemoscope.analysis.hallucination import views
from mnemoscope.analysis.longitudinal import longitudinal
from mnemoscope.analysis.measure import Depth, evidence_ranks, measure
from mnemoscope.analysis.question_records import Plan, QuestionRecord, assemble
from mnemoscope.analysis.recall_bench_format import (
    common_errors,
    failure_line,
    question_line,
    result,
)
from mnemoscope.metrics import summarise_latency
from mnemoscope.runner.merge import timing_key
from mnemoscope.runner.progress_log import header_of, now
from mnemoscope.types import (
    FAILED,
    AnswerKey,
    Expectation,
    Grade,
    Ingestion,
    Question,
    Score,
    Status,
    Timing,
    Trial,
)

CHECKPOINT_FILES = ("longitudinal.json", "result.json", "failures.jsonl")
"""The additional files of a run over checkpoints."""
FORGETTING = "forgetting.json"


class RunTiming(TypedDict):
    """The content of timing.json: figures that depend on the machine."""

    recall_ms: dict[str, float] | None
    """Latency of the recalls: n, mean, p50, p95, p99 and max; None if none was timed."""
    answer_ms: NotRequired[dict[str, float]]
    """The same of answering, if there are answers."""
    judge_ms: NotRequired[dict[str, float]]
    index_ms: float
    index_bytes: int | None
    """None if the system reports no size."""
    scenarios_indexed: int
    counters: dict[str, int]
    accounts: Costs


class RecordedRanking(TypedDict):
    """One line of raw_retrievals.jsonl; `mnemoscope score` reads the same format."""

    question: str
    scenario: str
    category: str
    status: Status
    evidence: tuple[str, ...]
    depth: int
    """How many hits were asked for."""
    ranking: tuple[str, ...]
    scores: tuple[float | None, ...]
    sources: dict[str, tuple[str, ...]]
    ordered: NotRequired[tuple[str, ...]]
    places: NotRequired[dict[str, int]]
    carried: NotRequired[dict[str, tuple[str, ...]]]
    texts: NotRequired[dict[str, str]]


class RecordedQuestion(TypedDict):
    """One line of questions.jsonl of a run without checkpoints, of TOFU, or of change."""

    id: str
    scenario: str
    category: str
    question: str
    reference: str
    expects: Expectation
    evidence: tuple[str, ...]
    status: Status | None
    checkpoint: NotRequired[str]
    session: NotRequired[str]
    """Where it was asked, and its cluster, if it was asked in several rooms."""
    cluster: NotRequired[str]
    evidence_ranks: NotRequired[Sequence[int]]
    """Missing if the recall failed."""
    answer: NotRequired[str]
    verdict: NotRequired[Score | Grade | None]
    """None if the answer was not judged."""
    error: NotRequired[str]
    failure: NotRequired[str]
    """The class of the failure, as in answers.json."""
    rivals: NotRequired[tuple[str, ...]]
    """The memories that compete with the evidence; with the key, of the benchmark `change`."""
    key: NotRequired[AnswerKey]


class _RecordedTrial(Trial, frozen=True, omit_defaults=True, tag_field="phase", tag="recall"):
    """A trial whose scores stay as they are written: no figure uses them."""

    scores: msgspec.Raw = msgspec.Raw(b"[]")  # type: ignore[assignment]


def finish(
    run: RunDirectory,
    manifest: Manifest,
    questions: Mapping[str, Question],
    depth: Depth,
    plan: Plan = MappingProxyType({}),
) -> list[QuestionRecord]:
    """Write the derived files, and record their hashes in the manifest.

    Returns the question records of a run over checkpoints; else an empty list.
    """
    records: list[QuestionRecord] = []
    about_change = any(question.rivals for question in questions.values())
    forgets = not about_change and any(one.forget for points in plan.values() for one in points)
    is_longitudinal = bool(manifest.checkpoints) and not (forgets or about_change)
    also: list[str] = list(CHECKPOINT_FILES) if is_longitudinal else []
    journal = list(run.journal(_RecordedTrial))
    last = manifest.checkpoints[-1] if manifest.checkpoints else ""
    final = [line for line in journal if line.checkpoint == last]
    trials = [line for line in final if isinstance(line, Trial)]
    ingestions = [line for line in final if isinstance(line, Ingestion)]
    timings = list(run.timings())
    rows = assemble(journal, questions, timings if is_longitudinal else ())
    in_rooms = not is_longitudinal and has_rooms(rows)
    measured = (trial for trial in trials if trial.status not in FAILED)
    ranks = {id(trial): evidence_ranks(trial) for trial in measured}
    reader = manifest.identity.get("reader")
    if is_longitudinal:
        records = [row for row in rows if row.checkpoint]
        _finish_checkpoints(run, records, timings, manifest, plan)
    else:
        receipts = receipts_of(ingestions)
        diagnosed = reader and not (forgets or in_rooms) and scale_of(manifest).bounded
        failures = (
            classify(row, receipts.get(row.scenario)) if diagnosed and row.answer else None
            for row in as_read(manifest, rows)
        )
        lines = [
            _question(
                row if not manifest.private else _without_texts(row),
                failure,
                ranks.get(id(row.trial)),
                in_rooms=in_rooms,
                about_change=about_change,
            )
            for row, failure in zip(rows, failures, strict=True)
        ]
        write_records(run.path / "questions.jsonl", lines)
    if forgets:
        write_json(run.path / FORGETTING, _forgetting(rows, plan, manifest))
        also.append(FORGETTING)
    elif reader and not in_rooms:  # a mean over rooms would reward silence
        write_json(run.path / ANSWERS, answer_sheet(manifest, rows, ingestions))
        also.append(ANSWERS)
    rankings = [_ranking(trial, depth.returned) for trial in trials]
    write_records(run.path / "raw_retrievals.jsonl", rankings)
    figures = measure(trials, ingestions, depth, ranks, manifest.withheld)
    if in_rooms:
        figures["disclosure"] = disclosure(rows, depth.returned, evidence_ranks)
    if about_change:
        figures["change"] = change_scores(rows)
    write_json(run.path / "metrics.json", {"benchmark": manifest.identity["benchmark"], **figures})
    write_json(run.path / "timing.json", timing(timings, system_answers=reader == "system"))
    ends = [own[-1] for own in plan.values() if own]
    asked = sum(len(end.questions) for end in ends) if ends else len(questions)
    manifest.counts = {"trials": len(trials), "questions": asked}
    run.finish(manifest, also=also)
    return records


def _forgetting(rows: Sequence[QuestionRecord], plan: Plan, manifest: Manifest) -> Forgetting:
    if scale_of(manifest).name != "rouge_l" or manifest.identity.get("appellate_judge"):
        return {"score": None, "why": "forgetting is measured by the judge rouge-l alone"}
    forgotten = {id for points in plan.values() for point in points for id in point.forget}
    return forgetting(rows, forgotten=forgotten)


def _finish_checkpoints(
    run: RunDirectory,
    records: Sequence[QuestionRecord],
    timings: Sequence[Timing],
    manifest: Manifest,
    plan: Plan,
) -> None:
    """Write the files of a run over checkpoints: Recall Bench's formats and our figures."""
    figures = longitudinal(records, plan, depth=int(manifest.identity["depth"]))
    hallucination = views(records, plan, figures)
    errors = common_errors(records)
    write_json(
        run.path / "longitudinal.json",
        {**figures, "hallucination": hallucination, "errors": errors},
    )
    stamp = now()
    shown = bool(manifest.identity.get("judge_memory_window"))
    write_records(
        run.path / "questions.jsonl",
        [question_line(record, timestamp=stamp, memory_context=shown) for record in records],
    )
    failures = (failure_line(r, timestamp=stamp, memory_context=shown) for r in records)
    write_records(run.path / "failures.jsonl", [line for line in failures if line])
    took: dict[str, float] = {}
    for timing in timings:
        took[timing.scenario] = took.get(timing.scenario, 0.0) + (timing.index_ms or 0.0)
    started = manifest.started or datetime.now(UTC)
    write_json(
        run.path / "result.json",
        result(
            records,
            plan,
            header_of(manifest),
            timestamp=stamp,
            duration_ms=round((datetime.now(UTC) - started).total_seconds() * 1000),
            ingest_ms=took,
        ),
    )


def timing(timings: list[Timing], *, system_answers: bool = False) -> RunTiming:
    """Latency of recall, cost of indexing and of models: figures that depend on the machine."""
    counters: Counter[str] = Counter()
    for line in timings:
        if line.counters:
            counters.update(line.counters)
    # A scenario whose worker was lost was indexed again; the last time counts.
    last = {timing_key(line): line for line in timings}.values()
    latency = summarise_latency(line.recall_ms for line in last if line.recall_ms is not None)
    indexed = [line for line in last if line.index_ms is not None]
    # A system may report no index size.
    sizes = {line.scenario: n for line in indexed if (n := line.index_bytes) is not None}
    phases: dict[str, Any] = {}
    for name in ("answer_ms", "judge_ms"):
        took = summarise_latency(
            value for line in timings if (value := getattr(line, name)) is not None
        )
        if took:
            phases[name] = {k: round(v, 4) for k, v in took._asdict().items()}
    return {
        "recall_ms": {k: round(v, 4) for k, v in latency._asdict().items()} if latency else None,
        **phases,  # type: ignore[typeddict-item]
        "index_ms": round(sum(line.index_ms or 0 for line in indexed), 3),
        "index_bytes": sum(sizes.values()) if sizes else None,
        "scenarios_indexed": len({line.scenario for line in indexed}),
        "counters": dict(sorted(counters.items())),
        "accounts": accounts(timings, system_answers=system_answers),
    }


def _ranking(trial: Trial, depth: int) -> RecordedRanking:
    line: RecordedRanking = {
        "question": trial.question,
        "scenario": trial.scenario,
        "category": trial.category,
        "status": trial.status,
        "evidence": trial.evidence,
        "depth": depth,
        "ranking": trial.ranking,
        "scores": trial.scores,
        "sources": trial.sources,
    }
    if trial.ordered:
        line["ordered"] = trial.ordered
    if trial.places:
        line["places"] = trial.places
    if trial.carried:
        line["carried"] = trial.carried
    if trial.texts:
        line["texts"] = trial.texts
    return line


def _without_texts(row: QuestionRecord) -> QuestionRecord:
    """The row of a private run, without the texts of its question."""
    from mnemoscope.runner.private_runs import WITHHELD

    texts = {"text": WITHHELD, "reference": WITHHELD if row.question.reference else ""}
    return row._replace(question=msgspec.structs.replace(row.question, **texts))


def _question(
    row: QuestionRecord,
    failure: str | None,
    ranks: Sequence[int] | None,
    *,
    in_rooms: bool = False,
    about_change: bool = False,
) -> RecordedQuestion:
    question, trial, answer, verdict = row.question, row.trial, row.answer, row.verdict
    evidence = question.evidence if trial is None else trial.evidence
    forgotten = bool(question.evidence) and not evidence
    record: RecordedQuestion = {
        "id": question.id,
        "scenario": row.scenario,
        "category": question.category,
        "question": question.text,
        "reference": question.reference,
        "expects": "abstain" if forgotten else question.expects,
        "evidence": evidence,
        "status": row.status or (trial.status if trial else None),
    }
    if row.checkpoint:
        record["checkpoint"] = row.checkpoint
    if in_rooms:
        record["session"], record["cluster"] = question.session, row.cluster
    if trial is not None and trial.status not in FAILED:
        # Of a trial before the last checkpoint they are not known yet.
        record["evidence_ranks"] = evidence_ranks(trial) if ranks is None else ranks
    if answer is not None:
        record["answer"] = answer.text
    if verdict is not None:
        record["verdict"] = verdict.final
    for line in (trial, answer, verdict):
        if line is not None and line.error:
            record["error"] = line.error
            break
    if failure:
        record["failure"] = failure
    if about_change:
        record["rivals"] = question.rivals
        if question.key is not None:
            record["key"] = question.key
    return record
