"""Pair the values of two runs by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.answers import ANSWERS
from mnemoscope.analysis.entitled import withheld
from mnemoscope.analysis.measure import Depth
from mnemoscope.analysis.question_records import records_of
from mnemoscope.types import FAILED, Trial

Floats = NDArray[np.float64]


class NotComparable(MnemoscopeError):
    """Two results that cannot be compared, such as results on different data."""


@dataclass(frozen=True)
class PairedValues:
    """Values of both runs: one row a question, one column a metric."""

    metrics: list[str]
    questions: list[str]
    base: Floats
    cand: Floats
    """NaN where a question has no value of a metric, in both runs."""
    categories: list[str]
    clusters: list[str]
    spans: Mapping[str, float] = field(default_factory=dict)
    """The range of a metric, if it is known beforehand."""

    def span(self, column: int) -> float:
        """The range of a metric: 1 for values from 0 to 1, else that of the values."""
        if (known := self.spans.get(self.metrics[column])) is not None:
            return known
        values = np.concatenate([self.base[:, column], self.cand[:, column]])
        low, high = min(0.0, float(np.nanmin(values))), max(1.0, float(np.nanmax(values)))
        return high - low

    def of_metrics(self, names: Sequence[str]) -> PairedValues:
        """Return these metrics, in this order."""
        places = [self.metrics.index(name) for name in names]
        base, cand = self.base[:, places], self.cand[:, places]
        return replace(self, metrics=list(names), base=base, cand=cand)

    def of_category(self, category: str) -> PairedValues:
        """Return the values of one category."""
        chosen = np.array(self.categories) == category
        questions, clusters = (
            [one for one, keep in zip(all_of, chosen, strict=True) if keep]
            for all_of in (self.questions, self.clusters)
        )
        return replace(
            self,
            questions=questions,
            base=self.base[chosen],
            cand=self.cand[chosen],
            categories=[category] * len(clusters),
            clusters=clusters,
        )


class PairedTrials(NamedTuple):
    """The trials of both runs for the same questions; only questions that have evidence."""

    trials: list[tuple[Trial, Trial]]
    only_base: int
    only_cand: int
    failed: int
    """Shared questions that failed in at least one of the runs."""

    @property
    def clusters(self) -> int:
        return len({before.cluster for before, _ in self.trials})

    def values(self, depth: Depth, metrics: Sequence[str]) -> PairedValues:
        columns = [depth.names.index(name) for name in metrics]
        return PairedValues(
            list(metrics),
            [before.question for before, _ in self.trials],
            depth.all_values([before for before, _ in self.trials])[:, columns],
            depth.all_values([after for _, after in self.trials])[:, columns],
            [before.category for before, _ in self.trials],
            [before.cluster for before, _ in self.trials],
        )


class PairedAnswers(NamedTuple):
    """Grades of the questions that have an answer and were judged in both runs."""

    values: PairedValues
    left_out: int
    """Questions that failed or were not judged in at least one of the runs."""

    @property
    def metric(self) -> str:
        return self.values.metrics[0]


def known_metrics(depth: Depth, pairs: PairedTrials) -> list[str]:
    """Return the metrics that do not depend on hits after the end of a list, in either run."""
    cut = [trial for pair in pairs.trials for trial in pair if trial.cut is not None]
    changes = [np.subtract(depth.highest(one), depth.values(one)) for one in cut]
    is_known = ~np.any(changes, axis=0) if cut else np.ones(len(depth.names), dtype=bool)
    return [name for name, known in zip(depth.names, is_known, strict=True) if known]


def distinct_labels(runs: Sequence[RunDirectory]) -> list[str]:
    """The labels of the runs; if two are the same, the ends of their paths or the paths."""
    names = [run.label for run in runs]
    if len(set(names)) < len(names):
        names = ["/".join(run.path.resolve().parts[-2:]) for run in runs]
    return names if len(set(names)) == len(names) else [str(run.path) for run in runs]


def recorded_depth(run: RunDirectory) -> Depth:
    """Return the depth of the run's rankings, from its metrics.json."""
    metrics = run.read_json("metrics.json")
    return Depth(metrics["depth"], metrics.get("recorded_depth", 0))


def pair_trials(base: RunDirectory, cand: RunDirectory) -> PairedTrials:
    """Pair the questions that both runs measured; raise NotComparable if they share none."""
    before = {trial.question: trial for trial in base.trials() if trial.evidence}
    after = {trial.question: trial for trial in cand.trials() if trial.evidence}
    shared = [(before[question], after[question]) for question in before if question in after]
    if not shared:
        raise NotComparable("the two runs share no questions")
    measured = [pair for pair in shared if not any(trial.status in FAILED for trial in pair)]
    if not measured:
        raise NotComparable("the two runs share no measured questions: each failed in one of them")
    n = len(shared)
    return PairedTrials(measured, len(before) - n, len(after) - n, n - len(measured))


def pair_answers(base: RunDirectory, cand: RunDirectory) -> PairedAnswers | str | None:
    """Pair the answers of two runs.

    Returns the reason as a string if the answers cannot be compared, and None if a run has no
    answers or has checkpoints.
    """
    runs = (base, cand)
    manifests = [run.manifest() for run in runs]
    if not all((run.path / ANSWERS).exists() for run in runs) or any(
        manifest.checkpoints for manifest in manifests
    ):
        return None
    roles = ("judge", "appellate_judge")
    before, after = ({role: one.identity.get(role) for role in roles} for one in manifests)
    if differences(before, after):
        return (
            "the answers were judged by different judges and are not compared; "
            "judge both runs with the same judge (`mnemoscope judge`)"
        )
    if why := next(filter(None, map(withheld, manifests)), ""):
        return f"the answers are not compared: {why}"
    metrics = [str(run.read_json(ANSWERS)["figures"]["metric"]) for run in runs]
    asked = [record for record in records_of(base) if record.question.expects == "answer"]
    theirs = {record.question.id: record.value for record in records_of(cand)}
    shared = [
        (record, own, other)
        for record in asked
        if (own := record.value) is not None
        and (other := theirs.get(record.question.id)) is not None
    ]
    if metrics[0] != metrics[1] or not shared:
        return "no question has a judged answer in both runs"
    values = PairedValues(
        metrics[:1],
        [record.question.id for record, _, _ in shared],
        np.array([[own] for _, own, _ in shared]),
        np.array([[other] for _, _, other in shared]),
        [record.question.category for record, _, _ in shared],
        [record.question.cluster or record.scenario for record, _, _ in shared],
    )
    return PairedAnswers(values, len(asked) - len(shared))
