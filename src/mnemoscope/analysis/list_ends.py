"""What is known about the hits after the end of a list: only how much evidence is left.

A list ends because the system had no more hits, because no more were asked for, or because a file
stops there. In the last two cases a figure beyond the end lies between two bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import msgspec

from mnemoscope.metrics import dedupe
from mnemoscope.types import Trial


class Bounds(TypedDict):
    """A metric that is only known to lie between two values."""

    bounds: list[float]
    n: int
    cut: int
    """Questions whose lists end too early."""


def may_go_on(trial: Trial, depth: int) -> bool:
    """Whether the system may have had more hits than the list, for which `depth` were asked."""
    if trial.cut is not None:
        return True
    return len(trial.ranking) >= depth and not 0 < trial.pool <= len(set(trial.ranking))


def continued(trial: Trial) -> Trial:
    """The trial with the best end that its list could have: the evidence that is missing."""
    listed = {id for hit in trial.ranking for id in trial.sources.get(hit, (hit,))}
    missing = [id for id in dedupe(trial.evidence) if id not in listed]
    missing.sort(key=lambda id: -trial.grades.get(id, 1))
    found = len(set(trial.evidence)) - len(missing)
    best = (*trial.ranking, *missing[: max(0, trial.reachable - found)])
    return msgspec.structs.replace(trial, ranking=best)


def left_over(trial: Trial) -> bool:
    """Whether evidence exists that the list does not have."""
    if not trial.sources:  # most lists: each hit is the memory that it names
        wanted = frozenset(trial.evidence)
        found = len(wanted.intersection(trial.ranking))
        return found < min(len(wanted), trial.reachable)
    return len(continued(trial).ranking) > len(trial.ranking)


def may_have_more(trial: Trial, ranks: Sequence[int], depth: int) -> bool:
    """Whether evidence could be among the first ten hits of a list that ends before them."""
    is_short = not ranks and len(trial.ranking) < 10
    return is_short and may_go_on(trial, depth) and left_over(trial)
