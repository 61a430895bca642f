"""Are the sanity arms where they belong: the oracle at the ceiling, the random arm at chance?

Judged from the trials, not from recorded figures. Each function says what is wrong, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from mnemoscope.analysis.measure import Depth
from mnemoscope.types import Trial

CEILING_TOLERANCE = 1e-9
CHANCE_ERRORS = 3.0
"""Standard errors that the random arm may lie from chance: 0.3 % false alarms; a plain 95 %
interval would raise one in twenty."""


def oracle_fault(trials: Sequence[Trial], depth: Depth, primary: str) -> str:
    """The oracle knows the evidence: every metric must reach the best that any ranking could."""
    reached = np.array([depth.values(trial) for trial in trials]).mean(axis=0)
    best = np.array([depth.ceilings(trial) for trial in trials]).mean(axis=0)
    for name, own, ceiling in zip(depth.names, reached, best, strict=True):
        if abs(own - ceiling) > CEILING_TOLERANCE:
            return f"{name} is {own:.4f}, though {ceiling:.4f} can be reached"
    return ""


def random_fault(trials: Sequence[Trial], depth: Depth, primary: str) -> str:
    """A shuffle must score what chance says, in the primary metric.

    Each question has its own exact expectation and its own shuffle, so the differences to chance
    are independent with mean zero. That is much sharper than the figure's interval, which also
    holds how conversations differ in size.
    """
    column = depth.names.index(primary)
    apart = np.array([depth.values(t)[column] - depth.chances(t)[column] for t in trials])
    if not np.isfinite(apart).all():
        return "chance is not known"
    error = float(apart.std(ddof=1)) / sqrt(len(apart)) if len(apart) > 1 else 1.0
    if abs(apart.mean()) <= CHANCE_ERRORS * error + CEILING_TOLERANCE:
        return ""
    return (
        f"{primary} is {apart.mean():+.4f} from chance, more than {CHANCE_ERRORS:g} "
        f"standard errors of {error:.4f}"
    )


FAULTS: dict[str, Callable[[Sequence[Trial], Depth, str], str]] = {
    "oracle": oracle_fault,
    "random": random_fault,
}
"""Arms of which it is known where they belong; of bm25 only that it ran is asked."""
