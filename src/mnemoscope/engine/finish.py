"""What a finished run leaves beside its journal: rankings, questions, figures, timings.

All of it is rebuilt from the journal; running it again over the same journal gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mnemoscope.analysis.hallucination import views
from mnemoscope.analysis.longitudinal import Plan, Record, longitudinal
from mnemoscope.analysis.measure import SEED, Depth, evidence_ranks, measure
from mnemoscope.analysis.records import assemble, common_errors, failure_line, question_line, result
from mnemoscope.core.jsonl import encode_line, write_atomically
from mnemoscope.core.nouns import FAILED, Question, Timing, Trial
from mnemoscope.core.rundir import Manifest, RunDirectory
from mnemoscope.engine.diary import header_of, now
from mnemoscope.engine.spool import timing_key
from mnemoscope.metrics import summarise_latency

LIFE = ("longitudinal.json", "result.json", "failures.jsonl")
"""What a run over checkpoints records besides what every run does."""


def finish(
    run: RunDirectory,
    manifest: Manifest,
    questions: Mapping[str, Question],
    depth: Depth,
    seed: int = SEED,
    plan: Plan = MappingProxyType({}),
) -> list[Record]:
    """Write everything that is derived, then vouch for it in the manifest.

    Returns what was recorded at checkpoints, if there were any.
    """
    records: list[Record] = []
    if manifest.checkpoints:
        records = _finish_life(run, manifest, questions, plan, seed)
    trials = list(run.trials())
    rankings = [_ranking(trial, depth.returned) for trial in trials]
    write_lines(run.path / "raw_retrievals.jsonl", rankings)
    if not manifest.checkpoints:
        write_lines(
            run.path / "questions.jsonl",
            [_question(trial, questions[trial.question]) for trial in trials],
        )
    figures = measure(trials, run.ingestions(), depth, seed)
    run.write_json("metrics.json", {"benchmark": manifest.identity["benchmark"], **figures})
    run.write_json("timing.json", timing(list(run.timings())))
    manifest.counts = {"trials": len(trials), "questions": _asked(questions, plan)}
    run.finish(manifest, also=LIFE if manifest.checkpoints else ())
    return records


def _asked(questions: Mapping[str, Question], plan: Plan) -> int:
    """How many questions there are to ask, at the end where there are checkpoints."""
    ends = [own[-1] for own in plan.values() if own]
    return sum(len(end.questions) for end in ends) if ends else len(questions)


def _finish_life(
    run: RunDirectory, manifest: Manifest, questions: Mapping[str, Question], plan: Plan, seed: int
) -> list[Record]:
    """What a run over checkpoints leaves in Recall Bench's shape, and its figures in ours."""
    timings = list(run.timings())
    records = assemble(run.journal(), questions, timings)
    figures = longitudinal(records, plan, seed=seed)
    figures["hallucination"] = views(records, plan, figures)
    figures["errors"] = common_errors(records)
    run.write_json("longitudinal.json", figures)
    stamp = now()
    shown = bool(manifest.identity.get("judge_memory_window"))
    write_lines(
        run.path / "questions.jsonl",
        [question_line(record, timestamp=stamp, memory_context=shown) for record in records],
    )
    failures = (failure_line(r, timestamp=stamp, memory_context=shown) for r in records)
    write_lines(run.path / "failures.jsonl", [line for line in failures if line])
    took: dict[str, float] = {}
    for timing in timings:
        took[timing.scenario] = took.get(timing.scenario, 0.0) + (timing.index_ms or 0.0)
    started = manifest.started or datetime.now(UTC)
    run.write_json(
        "result.json",
        result(
            records,
            plan,
            header_of(manifest),
            timestamp=stamp,
            duration_ms=round((datetime.now(UTC) - started).total_seconds() * 1000),
            ingest_ms=took,
        ),
    )
    return records


def timing(timings: list[Timing]) -> dict[str, Any]:
    """Latency of recall, cost of indexing: the figures that differ from machine to machine."""
    counters: Counter[str] = Counter()
    for line in timings:
        counters.update(line.counters)
    # A scenario whose worker was lost was indexed again; the last time is the one that held.
    last = {timing_key(line): line for line in timings}.values()
    latency = summarise_latency(line.recall_ms for line in last if line.recall_ms is not None)
    indexed = [line for line in last if line.index_ms is not None]
    return {
        "recall_ms": {k: round(v, 4) for k, v in latency._asdict().items()} if latency else None,
        "index_ms": round(sum(line.index_ms or 0 for line in indexed), 3),
        "index_bytes": sum({line.scenario: line.index_bytes or 0 for line in indexed}.values()),
        "scenarios_indexed": len({line.scenario for line in indexed}),
        "counters": dict(sorted(counters.items())),
    }


def write_lines(path: Path, records: list[Any]) -> None:
    write_atomically(path, b"".join(map(encode_line, records)))


def _ranking(trial: Trial, depth: int) -> dict[str, Any]:
    return {
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


def _question(trial: Trial, question: Question) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": question.id,
        "scenario": trial.scenario,
        "category": question.category,
        "question": question.text,
        "reference": question.reference,
        "expects": question.expects,
        "evidence": question.evidence,
        "status": trial.status,
    }
    if trial.status not in FAILED:
        record["evidence_ranks"] = evidence_ranks(trial)
    if trial.error:
        record["error"] = trial.error
    return record
