"""Rankings, token budgets and clocks turned into numbers, one question at a time."""

from mnemoscope.metrics.chance import is_vacuous, score_by_chance
from mnemoscope.metrics.latency import Latency, summarise_latency
from mnemoscope.metrics.ranking import (
    Find,
    dedupe,
    merged_positions,
    metric_names,
    relevant_positions,
    score,
    score_merged,
)
from mnemoscope.metrics.token_budget import BUDGETS, budget_names, recall_within

__all__ = [
    "BUDGETS",
    "Find",
    "Latency",
    "budget_names",
    "dedupe",
    "is_vacuous",
    "merged_positions",
    "metric_names",
    "recall_within",
    "relevant_positions",
    "score",
    "score_by_chance",
    "score_merged",
    "summarise_latency",
]
