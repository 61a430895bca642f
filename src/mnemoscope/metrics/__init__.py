"""Metrics as objects, and the scores of a ranking, of a random ranking and of the best ranking."""

from mnemoscope.metrics.installed import (
    METRICS,
    PRIMARY,
    headline,
    installed_metrics,
    is_builtin,
    metric_names,
    metric_of,
)
from mnemoscope.metrics.latency import Latency, summarise_latency
from mnemoscope.metrics.metric import Metric, PlaceGroup, RandomTopK, TopK, UnorderedTopK
from mnemoscope.metrics.metric_check import check_metric
from mnemoscope.metrics.ranking import (
    Find,
    best_score,
    dedupe,
    is_vacuous,
    merged_positions,
    relevant_positions,
    score,
    score_all,
    score_by_chance,
    score_merged,
)
from mnemoscope.metrics.token_budget import BUDGETS, recall_within, recalls_of_places
from mnemoscope.metrics.unordered import HitPlaces, place_groups, score_unordered

__all__ = [
    "BUDGETS",
    "METRICS",
    "PRIMARY",
    "Find",
    "HitPlaces",
    "Latency",
    "Metric",
    "PlaceGroup",
    "RandomTopK",
    "TopK",
    "UnorderedTopK",
    "best_score",
    "check_metric",
    "dedupe",
    "headline",
    "installed_metrics",
    "is_builtin",
    "is_vacuous",
    "merged_positions",
    "metric_names",
    "metric_of",
    "place_groups",
    "recall_within",
    "recalls_of_places",
    "relevant_positions",
    "score",
    "score_all",
    "score_by_chance",
    "score_merged",
    "score_unordered",
    "summarise_latency",
]
