"""What a finished run leaves beside its journal: rankings, questions, figures, timings.

All of it is rebuilt from the journal; running it again over the same journal gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnemoscope.analysis.measure import SEED, Depth, evidence_ranks, measure
from mnemoscope.core.jsonl import encode_line, write_atomically
from mnemoscope.core.nouns import FAILED, Question, Timing, Trial
from mnemoscope.core.rundir import Manifest, RunDirectory
from mnemoscope.metrics import summarise_latency


def finish(
    run: RunDirectory,
    manifest: Manifest,
    questions: Mapping[str, Question],
    depth: Depth,
    seed: int = SEED,
) -> None:
    """Write everything that is derived, then vouch for it in the manifest."""
    trials = list(run.trials())
    rankings = [_ranking(trial, depth.returned) for trial in trials]
    write_lines(run.path / "raw_retrievals.jsonl", rankings)
    write_lines(
        run.path / "questions.jsonl",
        [_question(trial, questions[trial.question]) for trial in trials],
    )
    figures = measure(trials, run.ingestions(), depth, seed)
    run.write_json("metrics.json", {"benchmark": manifest.identity["benchmark"], **figures})
    run.write_json("timing.json", timing(list(run.timings())))
    manifest.counts = {"trials": len(trials), "questions": len(questions)}
    run.finish(manifest)


def timing(timings: list[Timing]) -> dict[str, Any]:
    """Latency of recall, cost of indexing: the figures that differ from machine to machine."""
    counters: Counter[str] = Counter()
    for line in timings:
        counters.update(line.counters)
    # A scenario whose worker was lost was indexed again; the last time is the one that held.
    last = {(line.scenario, line.question): line for line in timings}.values()
    latency = summarise_latency(line.recall_ms for line in last if line.recall_ms is not None)
    indexed = [line for line in last if line.index_ms is not None]
    return {
        "recall_ms": {k: round(v, 4) for k, v in latency._asdict().items()} if latency else None,
        "index_ms": round(sum(line.index_ms or 0 for line in indexed), 3),
        "index_bytes": sum(line.index_bytes or 0 for line in indexed),
        "scenarios_indexed": len(indexed),
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
