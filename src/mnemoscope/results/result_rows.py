"""The rows of a run's results: figures, questions and hits."""

from __future__ import annotations

from typing import NamedTuple


class FigureRow(NamedTuple):
    """One metric of one system in one category."""

    system: str
    metric: str
    category: str
    """`overall`, or a category of questions."""
    checkpoint: str
    """Empty where the benchmark has no checkpoints."""
    n: int
    mean: float | None
    low: float | None
    """Ends of the 95 % interval."""
    high: float | None
    chance: float | None
    ceiling: float | None
    baseline: bool
    group: str = ""
    """Letters, for the primary metric of several systems: systems that share one cannot be told
    apart. Empty elsewhere."""
    best_rank: int | None = None
    """The ranks that the system may have among the others."""
    worst_rank: int | None = None
    vacuous: bool = False
    """Whether the metric is not informative: a random ranking scores high."""
    lowest: float | None = None
    """The bounds that failed questions, or lists that end too early, leave. With an early end there
    is no mean."""
    highest: float | None = None


class QuestionRow(NamedTuple):
    """One question with its result for one system."""

    system: str
    question: str
    scenario: str
    checkpoint: str
    category: str
    text: str
    reference: str
    evidence: tuple[str, ...]
    hits: tuple[str, ...]
    """Ids of the hits, best first."""
    ranks: tuple[int, ...]
    """The ranks of the evidence; empty if none of it was recalled."""
    status: str
    answer: str | None
    verdict: float | None
    """The judge's grade, from 0 to 1 on bounded scales."""
    failure: str
    """Why the question counts as failed; empty if it does not."""


class HitRow(NamedTuple):
    """One hit of one system for one question."""

    system: str
    scenario: str
    question: str
    category: str
    rank: int
    hit: str
    score: float | None
    tokens: int | None
    sources: tuple[str, ...]
    """The memories that it was made from, if that is not the one memory `hit`."""
    is_evidence: bool
    """Whether it is credited with evidence of the question."""
