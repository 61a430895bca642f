"""Many systems at once: groups that cannot be told apart, rank intervals, all pairs.

Pairs are formed on the questions that all systems measured. All pairs share one error rate. If a
system failed on some questions, a pair is told apart only if it is so both without these questions
and with every failure counted as wrong, so that no system rises by failing where it would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.credit import is_plain
from mnemoscope.analysis.disclosure_pairs import is_right_metric, right_metric, text_outcomes
from mnemoscope.analysis.measure import Depth
from mnemoscope.analysis.pairing import NotComparable, distinct_labels, recorded_depth
from mnemoscope.isolation.levels import recorded_isolation
from mnemoscope.metrics import PRIMARY, dedupe, headline, metric_of, score
from mnemoscope.stats.clustered import FEW_CLUSTERS
from mnemoscope.stats.groups import Pair, all_pairs, letters, rank_intervals
from mnemoscope.types import FAILED, Trial

Floats = NDArray[np.float64]

_LEAST_COVERAGE = 0.5
"""Systems that measured a smaller share of the questions would leave too few for all others."""


class RankedSystem(msgspec.Struct, frozen=True):
    """One system among others, by one metric."""

    system: str
    mean: float
    """Over the questions that all systems measured."""
    lowest: float
    """Over all questions, with every failed one counted as wrong."""
    failed: int
    letters: str
    """Systems that share a letter cannot be told apart."""
    ranks: tuple[int, int]
    """The best and the worst rank that the system may have."""
    is_best: bool
    """Whether it cannot be told apart from the system with the highest mean."""


class SystemPair(msgspec.Struct, frozen=True):
    """Two systems on the same questions; `first` has the higher mean or came first."""

    first: str
    second: str
    delta: float
    """The mean of first - second."""
    ci95: tuple[float, float]
    """The simultaneous 95 % interval: all pairs hold at once."""
    is_decided: bool


class SystemGroups(msgspec.Struct, frozen=True):
    """All pairs of several systems on one benchmark, and what follows for each system."""

    benchmark: str
    metric: str
    questions: int
    """Questions that all systems measured."""
    clusters: int
    left_out: int
    """Questions that failed in at least one of the systems."""
    unshared: int
    """Questions that some of the runs do not have."""
    these_only: bool
    """Whether there are too few clusters to speak of other ones."""
    systems: list[RankedSystem]
    """The competitors, best first."""
    pairs: list[SystemPair]
    apart: list[str] = []
    """Systems that were given the labels, which do not compete."""
    notes: list[str] = []

    def of(self, system: str) -> RankedSystem | None:
        return next((one for one in self.systems if one.system == system), None)


class QuestionKey(NamedTuple):
    """A question in all runs of one benchmark."""

    cluster: str
    question: str


class LabelledRun(NamedTuple):
    """A finished run with a label that no other run of its set has."""

    label: str
    run: RunDirectory
    manifest: Manifest

    @property
    def sees_labels(self) -> bool:
        return recorded_isolation(self.manifest.isolation, self.manifest.identity).sees_labels


def labelled(runs: Sequence[RunDirectory]) -> list[LabelledRun]:
    """Give every run a label of its own; raise UsageError for a run that is given twice."""
    seen: dict[Path, RunDirectory] = {}
    for run in runs:
        if (place := run.path.resolve()) in seen:
            raise UsageError(f"{run.path} is given twice")
        seen[place] = run
    names = distinct_labels(runs)
    return [LabelledRun(name, run, run.manifest()) for name, run in zip(names, runs, strict=True)]


def shared_depth(runs: Sequence[LabelledRun]) -> Depth:
    """Return the depth of all runs; raise NotComparable if data, options or depth differ."""
    first = runs[0]
    depth = recorded_depth(first.run)
    for one in runs:
        if one.manifest.state != "complete":
            raise NotComparable(f"{one.run.path} is not complete (state {one.manifest.state})")
        found = differences(
            first.manifest.identity["benchmark"], one.manifest.identity["benchmark"], "benchmark."
        )
        if (own := recorded_depth(one.run)) != depth:
            found.append(f"ranking depth: {depth.returned} → {own.returned}")
        if found:
            raise NotComparable(f"{first.label} and {one.label} differ in {'; '.join(found)}")
    return depth


def primary_metric(runs: Iterable[LabelledRun]) -> str:
    """Return the metric that groups are formed by: recall@10, or the first that all runs have.

    Disclosure runs are grouped by the share of right questions.
    """
    runs = list(runs)
    if metric := right_metric([one.run for one in runs]):
        return metric
    found = [one.run.read_json("metrics.json")["overall"] for one in runs]
    shared = [name for name in found[0] if all(name in own for own in found)]
    names = headline(shared) or shared
    if not names:
        raise NotComparable("the runs have no metric of their rankings in common")
    return PRIMARY if PRIMARY in names else names[0]


def system_groups(runs: Sequence[RunDirectory], metric: str = "") -> SystemGroups:
    """Compare all pairs of systems by one metric, with one error rate.

    Raises NotComparable if the runs differ in data, options or depth, or share too little.
    """
    every = labelled(runs)
    depth = shared_depth(every)
    rivals = [one for one in every if not one.sees_labels]
    notes = _same_system(rivals)
    measured = []
    for one in rivals:
        questions = one.run.read_json("metrics.json")["questions"]
        if questions["measured"] >= _LEAST_COVERAGE * questions["scorable"] > 0:
            measured.append(one)
        else:
            counts = f"{questions['measured']:,} of {questions['scorable']:,} questions"
            notes.append(f"{one.label} measured {counts}: too few for a group")
    if len(measured) < 2:
        raise NotComparable("groups need at least two systems that measured half of the questions")
    name = metric or primary_metric(measured)
    if not is_right_metric(name) and any(
        name not in one.run.read_json("metrics.json")["overall"] for one in measured
    ):
        known = ", ".join(measured[0].run.read_json("metrics.json")["overall"])
        raise UsageError(f"not all of these runs have the metric {name!r}; the first has {known}")
    tables = [_values(one, depth, name) for one in measured]
    keys = [key for key in tables[0] if all(key in table for table in tables)]
    _check_labels(measured, tables, keys)
    values = np.array([[table[key].value for table in tables] for key in keys]).reshape(
        len(keys), len(tables)
    )
    common = ~np.isnan(values).any(axis=1)
    if not common.any():
        raise NotComparable("no question was measured by all systems")
    clusters = [key.cluster for key in keys]
    found = _Decisions.of(values, common, clusters)
    unshared = len(set().union(*tables)) - len(keys)
    return SystemGroups(
        benchmark=str(every[0].manifest.identity["benchmark"]["name"]),
        metric=name,
        questions=int(common.sum()),
        clusters=found.clusters,
        left_out=int((~common).sum()),
        unshared=unshared,
        these_only=found.clusters < FEW_CLUSTERS,
        systems=_ranked([one.label for one in measured], values, found),
        pairs=_listed([one.label for one in measured], found),
        apart=[one.label for one in every if one.sees_labels],
        notes=[*notes, *_left_out(measured, values, unshared)],
    )


def question_values(runs: Sequence[RunDirectory], metric: str = "") -> tuple[Floats, list[str]]:
    """Return a row for each question that all systems measured, and the cluster of each."""
    every = labelled(runs)
    depth = shared_depth(every)
    name = metric or primary_metric(every)
    tables = [_values(one, depth, name) for one in every]
    keys = [key for key in tables[0] if all(key in table for table in tables)]
    values = np.array([[table[key].value for table in tables] for key in keys])
    common = ~np.isnan(values).any(axis=1)
    kept = [key.cluster for key, is_common in zip(keys, common, strict=True) if is_common]
    return values[common], kept


def groups_or_reason(runs: Sequence[RunDirectory], metric: str = "") -> SystemGroups | str | None:
    """Return the groups for a table, the reason why it has none, or None for fewer than two."""
    competing = sum(not one.sees_labels for one in labelled(runs))
    if competing < 2:
        return None
    try:
        return system_groups(runs, metric)
    except NotComparable as error:
        return str(error)


class _Decisions(NamedTuple):
    """The pairs on the common questions, and which of them are told apart."""

    pairs: list[Pair]
    decided: list[bool]
    order: list[int]
    means: Floats
    lowest: Floats
    clusters: int

    @classmethod
    def of(cls, values: Floats, common: NDArray[np.bool_], clusters: Sequence[str]) -> _Decisions:
        kept = [name for name, is_common in zip(clusters, common, strict=True) if is_common]
        pairs = all_pairs(values[common], kept)
        decided = [pair.decided for pair in pairs]
        filled = np.nan_to_num(values, nan=0.0)
        if not common.all():
            as_wrong = all_pairs(filled, clusters)
            decided = [
                is_decided and other.decided and pair.row.delta * other.row.delta > 0
                for is_decided, pair, other in zip(decided, pairs, as_wrong, strict=True)
            ]
        means, lowest = values[common].mean(axis=0), filled.mean(axis=0)
        # By the lowest mean: a system does not rise by failing. Ties keep the given order.
        order = sorted(range(len(means)), key=lambda i: (-round(lowest[i], 12), i))
        return cls(pairs, decided, order, means, lowest, len(set(kept)))

    @property
    def above(self) -> list[tuple[int, int]]:
        """(better, worse) of every pair that is told apart."""
        return [
            (pair.second, pair.first) if pair.row.delta > 0 else (pair.first, pair.second)
            for pair, is_decided in zip(self.pairs, self.decided, strict=True)
            if is_decided
        ]


def _ranked(labels: Sequence[str], values: Floats, found: _Decisions) -> list[RankedSystem]:
    above = found.above
    of_system = letters(len(labels), above, found.order)
    ranks = rank_intervals(len(labels), above)
    best = found.order[0]
    apart = {pair for pair in above if best in pair}
    failed = np.isnan(values).sum(axis=0)
    return [
        RankedSystem(
            system=labels[i],
            mean=float(found.means[i]),
            lowest=float(found.lowest[i]),
            failed=int(failed[i]),
            letters=of_system[i],
            ranks=(ranks[i].best, ranks[i].worst),
            is_best=not any(i in pair for pair in apart) or i == best,
        )
        for i in found.order
    ]


def _listed(labels: Sequence[str], found: _Decisions) -> list[SystemPair]:
    """The pairs in the order of the systems, the better of two first."""
    place = {system: rank for rank, system in enumerate(found.order)}
    rows = []
    for pair, is_decided in zip(found.pairs, found.decided, strict=True):
        upper, lower, sign = pair.first, pair.second, -1.0
        if place[upper] > place[lower]:
            upper, lower, sign = lower, upper, 1.0
        low, high = sorted(sign * end for end in pair.interval)
        row = SystemPair(
            labels[upper], labels[lower], sign * pair.row.delta, (low, high), is_decided
        )
        rows.append((place[upper], place[lower], row))
    return [row for _, _, row in sorted(rows, key=lambda one: one[:2])]


class _Value(NamedTuple):
    """The value of one question in one run; NaN if the question failed."""

    value: float
    evidence: frozenset[str]


def _values(one: LabelledRun, depth: Depth, metric: str) -> dict[QuestionKey, _Value]:
    """The values of all questions with evidence; repeated reports of one run read it once.

    The questions of disclosure are texts, each with one value for all its rooms.
    """
    if is_right_metric(metric):
        return {
            QuestionKey(text.cluster, name): _Value(
                np.nan if text.is_right is None else float(text.is_right), text.evidence
            )
            for name, text in text_outcomes(one.run, metric).items()
        }
    one.run.ensure_unedited()
    state = one.run.trials_path.stat()
    return _read_values(one.run.path, (state.st_size, state.st_mtime_ns), depth, metric)


@lru_cache(maxsize=64)
def _read_values(
    path: Path, state: tuple[int, int], depth: Depth, metric: str
) -> dict[QuestionKey, _Value]:
    trials = RunDirectory(path, checked=False).trials()
    return {
        key_of(trial): _Value(
            np.nan if trial.status in FAILED else value_of(depth, trial, metric),
            frozenset(trial.evidence),
        )
        for trial in trials
        if trial.evidence
    }


def key_of(trial: Trial) -> QuestionKey:
    return QuestionKey(trial.cluster or trial.scenario, trial.question)


def value_of(depth: Depth, trial: Trial, metric: str) -> float:
    """Compute one metric of one trial, which is much faster than all metrics."""
    about, k = metric_of(metric), metric.partition("@")[2]
    if about is None or about.at != "k" or not k.isdigit() or not is_plain(trial):
        return depth.values(trial)[depth.names.index(metric)]
    ranking: Sequence[str] = trial.ranking
    if len(ranking) > depth.returned:
        ranking = dedupe(ranking)[: depth.returned]
    found = score(ranking, trial.evidence, ks=(int(k),), cuts=(), grades=trial.grades)
    return found[metric]


def _check_labels(
    runs: Sequence[LabelledRun],
    tables: Sequence[dict[QuestionKey, _Value]],
    keys: Sequence[QuestionKey],
) -> None:
    if not keys:
        raise NotComparable("the runs share no questions with evidence")
    for one, table in zip(runs, tables, strict=True):
        for key in keys:
            if table[key].evidence != tables[0][key].evidence:
                raise NotComparable(
                    f"{runs[0].label} and {one.label} have different evidence for question "
                    f"{key.question}: the runs were made from other labels"
                )


def _same_system(runs: Sequence[LabelledRun]) -> list[str]:
    """Notes on systems that were run several times under several names."""
    labels: dict[str, list[str]] = {}
    for one in runs:
        labels.setdefault(one.manifest.fingerprint, []).append(one.label)
    return [
        f"{'; '.join(same)}: one system, run {len(same)} times"
        for same in labels.values()
        if len(same) > 1
    ]


def _left_out(runs: Sequence[LabelledRun], values: Floats, unshared: int) -> list[str]:
    notes = []
    failed = np.isnan(values)
    if failed.any():
        counts = failed.sum(axis=0).tolist()
        named = ", ".join(f"{one.label} {n:,}" for one, n in zip(runs, counts, strict=True) if n)
        notes.append(
            f"{int(failed.any(axis=1).sum()):,} of {len(values):,} questions failed in at least "
            f"one system ({named}): the groups leave them out, and tell systems apart only if "
            "counting failures as wrong does, too"
        )
    if unshared:
        notes.append(f"{unshared:,} questions are not in all runs; the groups leave them out")
    return notes
