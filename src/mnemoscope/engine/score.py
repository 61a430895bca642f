"""Score a ranking file: no system, no harness of ours, only rankings against evidence.

A question that the file leaves out is an error, not a zero: it lowers coverage, and the bounds say
what it could have been.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from mnemoscope.analysis.measure import Depth
from mnemoscope.core.dataset import Dataset
from mnemoscope.core.errors import UsageError
from mnemoscope.core.fingerprint import sha256_file
from mnemoscope.core.jsonl import Journal
from mnemoscope.core.nouns import Hit, Question, Scalar, Trial
from mnemoscope.core.rundir import RunDirectory
from mnemoscope.engine.finish import finish
from mnemoscope.engine.rankings import PGMNEMO_DEPTH, Format, Rankings, read_rankings, renumber
from mnemoscope.engine.run import data_notes, installed
from mnemoscope.engine.worker import Pool

Compat = Literal["pgmnemo"]
COMPAT_OPTIONS: dict[str, dict[str, Scalar]] = {
    "locomo": {"scope": "dataset", "evidence": "naive"},
    "longmemeval": {"abstention": "score"},
}
"""The dataset options that pgmnemo's published figures were made with."""


def score(
    dataset: Dataset,
    file: Path,
    out: Path,
    *,
    format: Format = "jsonl",
    compat: Compat | None = None,
) -> RunDirectory:
    """A finished run directory made from the rankings in `file`."""
    if compat and format != "pgmnemo":
        raise UsageError("--compat pgmnemo goes with --format pgmnemo")
    rankings = read_rankings(file, format, keep_repeats=compat is not None)
    if not rankings.depth:
        raise UsageError(f"{file} holds no ranking")
    data = dataset.files()
    run = RunDirectory(out)
    try:
        manifest = run.open(
            {
                "benchmark": {
                    "name": dataset.name,
                    "options": dataset.options,
                    "sha256": [one.sha256 for one in data],
                },
                "system": {
                    "spec": f"rankings from {file.name}",
                    "format": format,
                    "compat": compat or "",
                    "sha256": sha256_file(file),
                },
                "depth": rankings.depth,
                "versions": {"mnemoscope": installed("mnemoscope")},
            },
            category_names=dict(dataset.category_names),
        )
        # Bare labels repeat across conversations, so the pool that chance needs is unknown.
        pool_known = dataset.pool_known and compat is None
        questions, trials, unused = _trials(dataset, rankings, pool_known=pool_known)
        manifest.notes = [*data_notes(data), *_notes(rankings, compat, unused)]
        run.trials_path.unlink(missing_ok=True)
        with Journal(run.trials_path) as journal:
            for trial in trials:
                journal.append(trial)
        depth = Depth(rankings.depth, PGMNEMO_DEPTH if rankings.first_ranks else 0)
        finish(run, manifest, questions, depth)
    finally:
        run.release()
    return run


def _trials(
    dataset: Dataset, rankings: Rankings, *, pool_known: bool
) -> tuple[dict[str, Question], list[Trial], int]:
    scenarios = [
        (scenario.id, Pool(scenario.memories), scenario.questions)
        for scenario in dataset.scenarios()
    ]
    asked = [question.id for _, _, questions in scenarios for question in questions]
    rankings = renumber(rankings, {f"#{number}": id for number, id in enumerate(asked)})
    unused = len(set(rankings.hits) - set(asked))
    if unused == len(rankings.hits):
        example = next(iter(rankings.hits))
        raise UsageError(
            f"no ranking is for a question of {dataset.name}: the file has ids like {example!r}, "
            f"the dataset ids like {asked[0]!r}"
        )
    names: dict[tuple[str, str], str] = getattr(dataset, "original_ids", {})
    questions: dict[str, Question] = {}
    trials: list[Trial] = []
    for scenario, pool, own in scenarios:
        for question in own:
            questions[question.id] = question
            trials.append(_trial(scenario, pool, question, rankings, names, pool_known=pool_known))
    return questions, trials, unused


def _trial(
    scenario: str,
    pool: Pool,
    question: Question,
    rankings: Rankings,
    names: dict[tuple[str, str], str],
    *,
    pool_known: bool,
) -> Trial:
    hits = rankings.hits.get(question.id)
    if hits is None:
        missing = "" if not question.evidence else "the file has no ranking for this question"
        return pool.trial(scenario, question, error=missing)
    trial = pool.trial(scenario, question, [_renamed(hit, scenario, names) for hit in hits])
    trial = msgspec.structs.replace(trial, first_rank=rankings.first_ranks.get(question.id))
    return trial if pool_known else msgspec.structs.replace(trial, pool=0, unknown=0)


def _renamed(hit: Hit, scenario: str, names: dict[tuple[str, str], str]) -> Hit:
    return msgspec.structs.replace(hit, id=names.get((scenario, hit.id), hit.id))


def _notes(rankings: Rankings, compat: Compat | None, unused: int) -> Iterator[str]:
    if unused:
        yield f"{unused} rankings are for questions that the dataset does not have"
    if rankings.first_ranks:
        yield (
            f"mrr@{PGMNEMO_DEPTH} is made from the first ranks that the file records; "
            f"all other figures from its lists of {rankings.depth}"
        )
    if compat:
        yield (
            "scored by pgmnemo's own rules, for comparability: labels match in any conversation, "
            "repeated labels hold their rank, malformed evidence is cut at the first colon"
        )


def rule_changes(compat: dict[str, Any], sound: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Metric by metric, what pgmnemo's rules give, what sound rules give, and the difference."""
    before, after = compat["overall"], sound["overall"]
    return {
        name: {
            "compat": before[name]["mean"],
            "sound": after[name]["mean"],
            "difference": round(after[name]["mean"] - before[name]["mean"], 6),
        }
        for name in before
        if name in after
    }
