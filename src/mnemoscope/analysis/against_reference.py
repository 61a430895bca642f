"""Compare every system of a run with one reference on one metric, question by question.

The reference is bm25 if it ran, else the weakest baseline (`random`, or `none` for answers), else
the expected score of a random ranking. The intervals hold for all systems together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Literal, NamedTuple

import numpy as np

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.answers import ANSWERS
from mnemoscope.analysis.disclosure_pairs import is_right_metric, right_metric, text_outcomes
from mnemoscope.analysis.entitled import withheld
from mnemoscope.analysis.measure import Depth
from mnemoscope.analysis.pairing import recorded_depth
from mnemoscope.analysis.question_records import records_of
from mnemoscope.metrics import PRIMARY, headline
from mnemoscope.stats.clustered import cluster_sums, difference
from mnemoscope.stats.families import max_t
from mnemoscope.types import FAILED

CHANCE = "a random ranking"
_REFERENCES = ("bm25", "random", "none")
Direction = Literal["more", "less", "cannot tell", "not measured"]


class AgainstReference(NamedTuple):
    """One system against the reference."""

    label: str
    reference: str
    metric: str
    of_answers: bool
    direction: Direction
    delta: float
    low: float
    high: float
    clusters: int
    these_only: bool
    """Whether the interval is about these conversations only, because they are too few."""
    systems: int
    """How many systems share the error rate of 5 %."""


class _RunValues(NamedTuple):
    """The values of one run by question, what chance would score, and the clusters."""

    own: dict[str, float]
    chance: dict[str, float]
    clusters: dict[str, str]


def against_reference(runs: Sequence[RunDirectory]) -> list[AgainstReference]:
    """Compare the systems that are not baselines with the reference, in the order of the runs.

    Empty where nothing can be compared: over checkpoints, without a shared metric, or if the
    answers were judged by different judges.
    """
    manifests = {run.path: run.manifest() for run in runs}
    if any(manifest.checkpoints for manifest in manifests.values()):
        return []
    specs = {run.path: str(manifests[run.path].identity["system"]["spec"]) for run in runs}
    reference = next((run for name in _REFERENCES for run in runs if specs[run.path] == name), None)
    systems = [run for run in runs if not manifests[run.path].arm and run is not reference]
    if not systems:
        return []
    compared = [*systems, reference] if reference else systems
    of_answers = all((run.path / ANSWERS).exists() for run in compared)
    judges = [manifests[run.path].identity.get("judge") for run in compared]
    if of_answers and (reference is None or any(judge != judges[0] for judge in judges)):
        return []
    if of_answers and any(withheld(manifests[run.path]) for run in compared):
        return []
    metric = _answer_metric(compared) if of_answers else _shared_metric(compared)
    if not metric or (reference is None and is_right_metric(metric)):
        return []
    values = [_answers(run) if of_answers else _rankings(run, metric) for run in compared]
    if any(not 0 <= value <= 1 for one in values for value in one.own.values()):
        return []  # a scale without limits
    theirs = values[-1].own if reference else None
    clusters = {q: cluster for one in values for q, cluster in one.clusters.items()}
    table = np.full((len(clusters), len(systems)), nan)
    for column, one in enumerate(values[: len(systems)]):
        other = one.chance if theirs is None else theirs
        for row, question in enumerate(clusters):
            if question in one.own and isfinite(other.get(question, nan)):
                table[row, column] = one.own[question] - other[question]
    if reference is None and np.isnan(table).all():
        return []  # the pools are not known, so neither is chance
    name = CHANCE if reference is None else reference.label
    return _compared([run.label for run in systems], name, metric, of_answers, table, clusters)


def _compared(
    labels: Sequence[str],
    reference: str,
    metric: str,
    of_answers: bool,
    table: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    clusters: Mapping[str, str],
) -> list[AgainstReference]:
    measured = [place for place in range(len(labels)) if not np.isnan(table[:, place]).all()]
    sums = cluster_sums(table[:, measured], list(clusters.values())) if measured else None
    family = max_t(sums) if sums else None
    found = []
    for place, label in enumerate(labels):
        about = (label, reference, metric, of_answers)
        if sums is None or family is None or place not in measured:
            found.append(
                AgainstReference(*about, "not measured", nan, nan, nan, 0, False, len(measured))
            )
            continue
        row = difference(sums.column(measured.index(place)))
        low, high = family.interval(row)
        direction: Direction = "more" if low > 0 else "less" if high < 0 else "cannot tell"
        found.append(
            AgainstReference(
                *about,
                direction,
                row.delta,
                max(-1.0, low),
                min(1.0, high),
                row.clusters,
                row.these_only,
                len(measured),
            )
        )
    return found


def _shared_metric(runs: Sequence[RunDirectory]) -> str:
    """The primary metric, or the first headline metric that all runs with rankings have.

    Of disclosure runs it is the share of right questions.
    """
    if metric := right_metric(runs):
        return metric
    names = [list(run.read_json("metrics.json")["overall"]) for run in runs]
    known = [own for own in names if own]
    if not known:
        return ""
    shared = [name for name in known[0] if all(name in own for own in known)]
    return PRIMARY if PRIMARY in shared else next(iter(headline(shared)), "")


def _answer_metric(runs: Sequence[RunDirectory]) -> str:
    metrics = {str(run.read_json(ANSWERS)["figures"]["metric"]) for run in runs}
    return metrics.pop() if len(metrics) == 1 else ""


def _rankings(run: RunDirectory, metric: str) -> _RunValues:
    depth: Depth = recorded_depth(run)
    found = _RunValues({}, {}, {})
    if is_right_metric(metric):
        for name, text in text_outcomes(run, metric).items():
            if text.is_right is not None:
                found.own[name] = float(text.is_right)
                found.clusters[name] = text.cluster
        return found
    if metric not in depth.names:
        return found
    column = depth.names.index(metric)
    for trial in run.trials():
        if trial.evidence and trial.status not in FAILED:
            found.own[trial.question] = depth.values(trial)[column]
            found.chance[trial.question] = depth.chances(trial)[column]
            found.clusters[trial.question] = trial.cluster
    return found


def _answers(run: RunDirectory) -> _RunValues:
    found = _RunValues({}, {}, {})
    for record in records_of(run):
        if record.question.expects == "answer" and record.value is not None:
            found.own[record.question.id] = record.value
            found.clusters[record.question.id] = record.cluster
    return found
