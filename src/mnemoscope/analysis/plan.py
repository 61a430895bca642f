"""Plan a comparison before its candidate runs: what the rule of `compare` would find.

The power is simulated: clusters with the variance components of an earlier pair of runs, and the
rule that decides. A base alone has no differences between runs, so something must be assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.compare import declaration_of, secondary_family, shared_depth, values_of
from mnemoscope.analysis.comparison import Declared
from mnemoscope.analysis.disclosure_pairs import pair_texts
from mnemoscope.analysis.pairing import PairedAnswers, known_metrics, pair_answers, pair_trials
from mnemoscope.stats.clustered import (
    ALPHA,
    FEW_CLUSTERS,
    ClusterSums,
    cluster_sums,
    critical_value,
    difference,
)
from mnemoscope.stats.distributions import chi_square_quantile
from mnemoscope.stats.power import (
    DRAWS,
    POWER,
    Components,
    clusters_needed,
    components,
    noncentrality,
    simulated_detectable,
    simulated_power,
)

_MOST_NUMBERS = 8_000_000
"""So many random numbers at most; with thousands of clusters there are fewer draws."""
_FEWEST_DRAWS = 2_000
_MOST_LOOKS = 1_000
TYPICAL_CHANGE = 0.2
"""The share of questions that is assumed to change between two systems if nothing is known."""
_NO_VARIANCE = 1e-15
_LIMITS = (0.9, 0.1)
"""Upper tails of χ² that give 80 % limits of a standard error."""


class PlannedMetric(msgspec.Struct, frozen=True):
    """What the rule finds in one metric.

    Without five clusters, or if all differences are equal, nothing can be planned: None.
    """

    metric: str
    role: Literal["primary", "secondary"]
    n: int
    clusters: int
    between: float
    """τ²: the variance of differences between clusters."""
    within: float
    """σ²: their variance between the questions of a cluster."""
    critical: float | None = None
    power: float | None = None
    """How often a true difference of `detect` gives `better`, with these clusters."""
    power_range: tuple[float, float] | None = None
    """The variances are estimates from few clusters: 80 % limits, here and below."""
    detectable: float | None = None
    """The difference that is found with power 0.8."""
    detectable_range: tuple[float, float] | None = None
    needed: int | None = None
    """How many clusters of the mean size find `detect` with power 0.8; None if above 100,000."""
    needed_range: tuple[int | None, int | None] | None = None
    endless: float | None = None
    """What is found with power 0.8 with endlessly many questions in as many clusters."""
    equivalent: float | None = None
    """How often two equal systems are called equivalent; None without a band."""


class PlannedComparison(msgspec.Struct, frozen=True):
    """The full result of `mnemoscope plan`."""

    benchmark: str
    base: str
    cand: str
    """The other run of the pair; empty if only a base is known."""
    detect: float
    declared: Declared
    band: float | None
    looks: int
    assumed: str
    """Where the variances of the differences come from."""
    rows: list[PlannedMetric]
    """The primary metric first."""
    notes: list[str]

    @property
    def primary(self) -> PlannedMetric:
        return self.rows[0]


class Rule(NamedTuple):
    """What decides about one metric."""

    critical: float
    alpha: float
    """For a number of clusters whose critical value is not known."""
    band: float | None = None
    span: float = 1.0


def plan(
    base: RunDirectory,
    cand: RunDirectory | None = None,
    *,
    detect: float,
    primary: str = "",
    secondaries: Sequence[str] | None = None,
    band: float | None = None,
    looks: int = 1,
    changed: float | None = None,
) -> PlannedComparison:
    """Plan a comparison with `base` from the differences between it and `cand`.

    Without `cand` the differences are assumed to vary as the base's own values do, or, with
    `changed`, as if this share of questions changed from hit to miss or back. The metrics are those
    of the runs' protocol, else recall@10 and the headline metrics, if `primary` names none.
    """
    _check_numbers(detect, band, looks, changed)
    if cand is not None and changed is not None:
        raise UsageError("--changed is an assumption for a base alone; the pair has its own share")
    other = cand or base
    depth = shared_depth(base, other)
    pairs = pair_trials(base, other)
    texts = pair_texts(base, other)
    answers = texts or pair_answers(base, other)
    graded = answers if isinstance(answers, PairedAnswers) else None
    of_rankings = known_metrics(depth, pairs)
    notes: list[str] = []
    given = declaration_of(base, other, of_rankings, texts, notes)
    if primary or secondaries is not None:
        first = primary or given.primary
        others = given.secondaries if secondaries is None else secondaries
        given = Declared(first, [name for name in dict.fromkeys(others) if name != first], "plan")
    declared = msgspec.structs.replace(given, alpha=ALPHA / looks)
    known = [*of_rankings, *([graded.metric] if graded else [])]
    names = [declared.primary, *declared.secondaries]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"these runs have no metric {unknown[0]!r}; they have {', '.join(known)}")
    table = values_of(names, pairs, depth, graded)
    sums = cluster_sums(table.base if cand is None else table.cand - table.base, table.clusters)
    columns = [sums.column(place) for place in range(len(names))]
    spans = [table.span(place) for place in range(len(names))]
    rows = []
    family = (
        secondary_family(ClusterSums(*(part[:, 1:] for part in sums)), declared.alpha)
        if len(names) > 1
        else None
    )
    for place, (name, column, span) in enumerate(zip(names, columns, spans, strict=True)):
        found = difference(column, span)
        parts = components(column)
        if changed is not None:
            parts = _rescaled(parts, changed * span**2)
        if place and family is not None:
            rule = Rule(family.critical(found), declared.alpha / (len(names) - 1), band, span)
        else:
            rule = Rule(found.critical(declared.alpha), declared.alpha, band, span)
        sizes = column.sizes[:, 0].tolist()
        rows.append(planned(name, "secondary" if place else "primary", sizes, parts, detect, rule))
    return PlannedComparison(
        benchmark=str(base.manifest().identity["benchmark"]["name"]),
        base=base.label,
        cand=cand.label if cand else "",
        detect=detect,
        declared=declared,
        band=band,
        looks=looks,
        assumed=_assumed(base, cand, changed),
        rows=rows,
        notes=notes,
    )


@lru_cache
def told_apart(questions: int, changed: float = TYPICAL_CHANGE) -> float | None:
    """The difference that so many questions find with power 0.8, if this share of them changes.

    For a set of questions without a run: each question is its own cluster, and a changed one goes
    from hit to miss or back. None if no difference would be found.
    """
    if questions < FEW_CLUSTERS:
        return None
    critical = critical_value(ALPHA, [1.0] * questions)
    # The rule adds two questions that change to the variance; see stats/clustered.py.
    error = sqrt(changed / questions + 2 / questions**2)
    found = noncentrality(POWER, critical, questions - 1) * error
    return found if found < 1 else None


def planned(
    name: str,
    role: Literal["primary", "secondary"],
    sizes: Sequence[float],
    parts: Components,
    detect: float,
    rule: Rule,
) -> PlannedMetric:
    """What the rule finds in clusters of these sizes, whose differences have these components."""
    groups, n = len(sizes), sum(sizes)
    if groups < FEW_CLUSTERS or parts.between + parts.within < _NO_VARIANCE:
        return PlannedMetric(name, role, round(n), groups, *parts)
    draws = max(_FEWEST_DRAWS, min(DRAWS, _MOST_NUMBERS // groups))

    def power(scale: float, delta: float = detect, band: float | None = None) -> float:
        found = simulated_power(
            sizes,
            _times(parts, scale),
            delta,
            critical=rule.critical,
            band=band,
            span=rule.span,
            draws=draws,
        )
        return found.equivalent if band is not None else found.better

    def least(parts: Components, span: float) -> float:
        return simulated_detectable(sizes, parts, critical=rule.critical, span=span, draws=draws)

    def needed(scale: float) -> int | None:
        return clusters_needed(detect, _times(parts, scale), n / groups, alpha=rule.alpha)

    freedom = groups - 1
    low, high = (freedom / chi_square_quantile(end, freedom) for end in _LIMITS)
    return PlannedMetric(
        name,
        role,
        round(n),
        groups,
        *parts,
        critical=rule.critical,
        power=power(1.0),
        power_range=(power(high), power(low)),
        detectable=(found := least(parts, rule.span)),
        detectable_range=(found * sqrt(low), found * sqrt(high)),
        needed=needed(1.0),
        needed_range=(needed(low), needed(high)),
        endless=least(Components(parts.between, 0.0), 0.0),
        equivalent=None if rule.band is None else power(1.0, 0.0, rule.band),
    )


def _times(parts: Components, scale: float) -> Components:
    return Components(parts.between * scale, parts.within * scale)


def _rescaled(parts: Components, total: float) -> Components:
    """The same share between clusters of another total variance."""
    before = parts.between + parts.within
    return _times(parts, total / before) if before > 0 else Components(0.0, total)


def _assumed(base: RunDirectory, cand: RunDirectory | None, changed: float | None) -> str:
    if cand is not None:
        return f"the differences between {base.label} and {cand.label}, question by question"
    if changed is not None:
        return (
            f"an assumption: {100 * changed:g} % of the questions change by the whole range of the "
            f"metric, clustered as the values of {base.label}"
        )
    return (
        f"an assumption: the differences vary as the values of {base.label} do, which is too much "
        "for a candidate whose values correlate with them above 0.5 and too little below; an "
        "earlier pair (--cand) or a share of changed questions (--changed) is better"
    )


def _check_numbers(detect: float, band: float | None, looks: int, changed: float | None) -> None:
    if not (detect > 0 and np.isfinite(detect)):
        raise UsageError(f"--detect {detect}: the difference to detect must be above 0")
    if band is not None and not (band > 0 and np.isfinite(band)):
        raise UsageError(f"--band {band}: the equivalence band must be above 0")
    if not 1 <= looks <= _MOST_LOOKS:
        raise UsageError(f"--looks {looks}: give a number from 1 to {_MOST_LOOKS:,}")
    if changed is not None and not 0 < changed <= 1:
        raise UsageError(f"--changed {changed}: give a share above 0 and up to 1, such as 0.1")
