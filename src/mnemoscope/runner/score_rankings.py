"""Scores a file of rankings against the evidence, without running a system.

A question that the file leaves out is an error, not a zero: it lowers coverage, and the bounds show
the lowest and highest possible value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

import mnemoscope
from mnemoscope._store.errors import UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.jsonl import Journal
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.measure import Depth
from mnemoscope.datasets.base import (
    DataFile,
    Dataset,
    DatasetInfo,
    reviewed_of,
    withheld_of,
)
from mnemoscope.runner.finish import finish
from mnemoscope.runner.pipeline import Ask
from mnemoscope.runner.private_runs import is_private, without_texts
from mnemoscope.runner.ranking_files import Format, RankingFile, read_rankings
from mnemoscope.runner.run import SEED, benchmark_identity, data_notes
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.types import Question, Trial

Compat = Literal["pgmnemo"]


def score(
    dataset: Dataset,
    file: Path,
    out: Path,
    *,
    format: Format = "jsonl",
    compat: Compat | None = None,
    depth: int = 0,
) -> RunDirectory:
    """A finished run directory made from the rankings in `file`.

    `depth` is how many hits were asked for, so that a shorter list is known to be complete.
    """
    if compat and format != "pgmnemo":
        raise UsageError("--compat pgmnemo needs --format pgmnemo")
    asked = [
        (scenario.id, trials, question)
        for scenario in dataset.scenarios()
        for trials in [TrialBuilder(scenario)]
        for question in scenario.questions
    ]
    if not asked:
        raise UsageError(f"{dataset.name} contains no questions")
    questions = {question.id: question for _, _, question in asked}
    rankings = read_rankings(
        file, format, list(questions.values()), keep_repeats=compat is not None
    )
    unused = _check(rankings, questions, file, dataset.name)
    if depth:
        rankings.state_depth(depth)
    data = dataset.files()
    run, private = RunDirectory(out), is_private(dataset)
    try:
        manifest = run.open(
            _identity(dataset, data, file, format, compat, rankings.depth),
            category_names=dict(dataset.category_names),
            notes=[*data_notes(data), *_notes(dataset.info, rankings, compat, unused)],
            findings=dict(dataset.findings.counts),
            withheld=dict(withheld_of(dataset)),
            reviewed=reviewed_of(dataset),
            private=private,
            counted=False,  # no system is asked
        )
        # Labels repeat across conversations, so the pool size that chance needs is unknown.
        pool_known = dataset.pool_known and compat is None
        manifest.state = "running"
        run.save(manifest)
        for file in (run.trials_path, run.chain(manifest).path):
            file.unlink(missing_ok=True)
        with Journal(run.trials_path) as journal:
            for one in asked:
                trial = _trial(*one, rankings, dataset.original_ids)
                if not pool_known:
                    trial = msgspec.structs.replace(trial, pool=0, unknown=0, tokens=())
                journal.append(without_texts(trial) if private else trial)
        finish(run, manifest, questions, Depth(rankings.depth, rankings.first_rank_depth))
    finally:
        run.release()
    return run


def _trial(
    scenario: str,
    trials: TrialBuilder,
    question: Question,
    rankings: RankingFile,
    names: Mapping[tuple[str, str], str],
) -> Trial:
    """The trial of a question; `names` maps the ids of a scenario to those of the dataset."""
    hits = rankings.hits.get(question.id)
    error = rankings.failures.get(question.id, "")
    if hits is None and question.evidence:
        error = "the file has no ranking for this question"
    elif error:
        error = f"the file records this question as {error}"
    found = [
        msgspec.structs.replace(hit, id=names.get((scenario, hit.id), hit.id))
        for hit in hits or ()
        if not error
    ]
    trial = trials.trial(Ask("", question), found, error=error)
    cut = rankings.cut.get(question.id)
    if error or (cut is not None and (cut >= rankings.depth or _is_everything(trial))):
        cut = None
    return msgspec.structs.replace(
        trial,
        first_rank=rankings.first_ranks.get(question.id),
        cut=cut,
        # A hit made from several memories has a text of its own, which the file does not have.
        tokens=() if any(hit.sources for hit in found) else trial.tokens,
    )


def _is_everything(trial: Trial) -> bool:
    """Whether the list contains all memories."""
    return 0 < trial.pool <= len(set(trial.ranking))


def _check(
    rankings: RankingFile, questions: Mapping[str, Question], file: Path, dataset: str
) -> int:
    """How many rankings are not for a question of the dataset; an error if none is."""
    if not rankings.depth:
        raise UsageError(f"{file} contains no rankings")
    unused = [id for id in rankings.hits if id not in questions]
    if len(unused) == len(rankings.hits):
        raise UsageError(
            f"no ranking is for a question of {dataset}: the file has ids like {unused[0]!r}, "
            f"the dataset has ids like {next(iter(questions))!r}"
        )
    return len(unused)


def _identity(
    dataset: Dataset,
    data: Sequence[DataFile],
    file: Path,
    format: Format,
    compat: Compat | None,
    depth: int,
) -> dict[str, Any]:
    return {
        "benchmark": benchmark_identity(dataset, data),
        "system": {
            "spec": f"rankings from {file.name}",
            "format": format,
            "compat": compat or "",
            "sha256": sha256_file(file),
        },
        "depth": depth,
        "seed": SEED,
        "versions": {"mnemoscope": mnemoscope.__version__},
    }


def _notes(
    dataset: DatasetInfo, rankings: RankingFile, compat: Compat | None, unused: int
) -> Iterator[str]:
    if unused:
        yield f"{unused} rankings are for questions that are not in the dataset"
    if rankings.first_ranks:
        yield (
            f"mrr@{rankings.first_rank_depth} is computed from the first ranks in the file, "
            f"all other figures from its lists of {rankings.depth}"
        )
    if compat:
        theirs = dataset.published_rules.get(compat)
        rules = f": {theirs.rules}" if theirs else ""
        yield f"scored by pgmnemo's rules, for comparison{rules}"


def rule_changes(compat: dict[str, Any], sound: dict[str, Any]) -> dict[str, dict[str, float]]:
    """For each metric, the value by pgmnemo's rules, by our rules, and the difference."""
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
