"""Score rankings in which a hit takes several places without an order among them.

A hit that names n memories takes n places. Without an order among the n, each metric is its mean
over all orders. The built-in metrics have closed forms. A metric without one is sampled with a
fixed seed: the standard error of one question is at most 0.5 / sqrt(1000) = 0.016.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from mnemoscope.metrics.installed import MetricAt, metric_columns
from mnemoscope.metrics.metric import PlaceGroup, UnorderedTopK
from mnemoscope.metrics.ndcg import ideal_gains
from mnemoscope.metrics.ranking import values_at

DRAWS = 1000
_SEED = 1


class HitPlaces(NamedTuple):
    """One hit: what it is credited with, and how many places it takes."""

    credited: Collection[str]
    places: int


def place_groups(
    hits: Sequence[HitPlaces], evidence: Collection[str], grades: Mapping[str, int] | None = None
) -> list[PlaceGroup]:
    """Return the groups of places that have evidence which no earlier group has."""
    missing, before = set(evidence), 0
    groups: list[PlaceGroup] = []
    for hit in hits:
        fresh = sorted(missing.intersection(hit.credited))
        size = max(hit.places, len(fresh), 1)  # one place has at most one evidence id
        if fresh:
            missing.difference_update(fresh)
            own = tuple(grades.get(id_, 1) if grades else 1 for id_ in fresh)
            groups.append(PlaceGroup(before, size, own))
        before += size
    return groups


def score_unordered(
    hits: Sequence[HitPlaces],
    evidence: Collection[str],
    *,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    grades: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """Compute all metrics of one ranking, each as its mean over all orders of each hit's places.

    Places after the deepest k do not count, as in the expectation for a random ranking.
    """
    wanted = frozenset(evidence)
    if not wanted:
        raise ValueError("a question without evidence cannot be scored; leave it out")
    groups = place_groups(hits, wanted, grades)
    every = tuple(grades.get(id_, 1) if grades else 1 for id_ in wanted)
    ideals, total = ideal_gains(every), len(wanted)
    columns = metric_columns(ks, cuts)
    scores: dict[str, float] = {}
    sampled: dict[str, float] = {}
    for column in columns:
        inside = tuple(group for group in groups if group.before < column.k)
        value: float | None = 0.0
        if inside:
            top = UnorderedTopK(column.k, inside, total, ideals[min(total, column.k)])
            value = column.metric.expectation(top)
        if value is None:
            sampled = sampled or _sampled(groups, every, ks, cuts, columns)
            value = sampled[column.name]
        scores[column.name] = value
    return scores


def _sampled(
    groups: Sequence[PlaceGroup],
    grades: tuple[int, ...],
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    columns: Sequence[MetricAt],
) -> dict[str, float]:
    """Return the means over random orders of each group."""
    draw = random.Random(_SEED)
    deepest = max((*ks, *cuts), default=0)
    sums = [0.0] * len(columns)
    for _ in range(DRAWS):
        ranked: list[tuple[int, int]] = []
        for group in groups:
            places = draw.sample(
                range(group.before + 1, group.before + group.size + 1), len(group.grades)
            )
            ranked += zip(places, group.grades, strict=True)
        ranked = sorted(place for place in ranked if place[0] <= deepest)
        positions = tuple(rank for rank, _ in ranked)
        gains = tuple(grade for _, grade in ranked)
        values = values_at(positions, (1,) * len(positions), gains, grades, ks, cuts)
        sums = [before + value for before, value in zip(sums, values, strict=True)]
    return {column.name: own / DRAWS for column, own in zip(columns, sums, strict=True)}
