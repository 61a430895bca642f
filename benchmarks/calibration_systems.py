"""The cells of the calibration page for all pairs of twenty systems."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from calibration_cells import Bound, Cell, Facts, Plan, Task
from calibration_models import DESIGNS, Random
from calibration_rules import Bools, Estimates, differences
from mnemoscope.stats.clustered import ALPHA, Floats, critical_value
from mnemoscope.stats.groups import SIMILAR, all_pairs, moderated

PAIRS = "All pairs of twenty systems"
FOUND = "Differences found among twenty systems"
SYSTEMS = 20
RANGE = 20.0
"""From the worst to the best system, in root mean square standard errors of a difference."""
_BLOCK = 500

_HALF = SYSTEMS // 2
SPREADS: dict[str, Floats] = {
    "equal spread": np.ones(SYSTEMS),
    "unequal spread": np.geomspace(0.5, 2.0, SYSTEMS),
    "half with sd 2": np.repeat([1.0, 2.0], _HALF),
    "half with sd 3": np.repeat([1.0, 3.0], _HALF),
    "one with sd 3": np.append(np.ones(SYSTEMS - 1), 3.0),
}
"""The standard deviation of each system's conversation means."""
FACTORS = "two hidden factors"

_MISSED: dict[tuple[str, str], tuple[float, float] | None] = {
    ("LoCoMo", "equal spread"): (0.048, 0.048),
    ("LoCoMo", "unequal spread"): (0.062, 0.062),
    ("LoCoMo", FACTORS): (0.028, 0.028),
    ("LoCoMo", "half with sd 2"): None,
    ("LoCoMo", "half with sd 3"): None,
    ("LoCoMo", "one with sd 3"): None,
    ("20 equal", "equal spread"): (0.022, 0.050),
    ("20 equal", "unequal spread"): (0.022, 0.050),
    ("20 equal", FACTORS): (0.022, 0.050),
    ("20 equal", "half with sd 2"): None,
    ("20 equal", "half with sd 3"): None,
    ("20 equal", "one with sd 3"): None,
    ("5 equal", "equal spread"): (0.043, 0.060),
    ("5 equal", "unequal spread"): (0.043, 0.060),
    ("5 equal", FACTORS): (0.043, 0.060),
    ("10 very unequal (900…7)", "equal spread"): (0.025, 0.035),
    ("10 very unequal (900…7)", "unequal spread"): (0.025, 0.035),
    ("10 very unequal (900…7)", FACTORS): (0.025, 0.035),
}
_FOUND: dict[tuple[str, str], tuple[float, float] | None] = {  # the rule, then Bonferroni
    ("LoCoMo", "equal spread"): (0.75, 0.57),
    ("LoCoMo", "unequal spread"): (0.71, 0.57),
    ("LoCoMo", FACTORS): (0.64, 0.50),
    ("20 equal", "equal spread"): None,
    ("20 equal", "unequal spread"): None,
    ("20 equal", FACTORS): None,
}


def tasks() -> list[Task]:
    """All simulations of this module, in the order of the page."""
    return [
        *(_missed(*key, facts) for key, facts in _MISSED.items()),
        *(_found(*key, facts) for key, facts in _FOUND.items()),
    ]


class Reaches(NamedTuple):
    """How far the interval of each pair reaches: repetitions x pairs."""

    rows: Estimates
    rule: Floats
    bonferroni: Floats

    def excludes(self, truth: Floats | float, reach: Floats) -> Bools:
        found: Bools = np.abs(self.rows.delta - truth) > reach
        return found


def decide(design: str, means: Floats) -> Reaches:
    """`groups.all_pairs` of conversation means: repetitions x systems x conversations."""
    sizes = DESIGNS[design]
    critical, is_moderated = rule_of_pairs(design)
    first, second = np.triu_indices(SYSTEMS, 1)
    rows = differences(sizes, (means[:, second] - means[:, first]) * sizes)
    corrected = critical_value(ALPHA / len(first), sizes.tolist()) * rows.se
    if not is_moderated:
        return Reaches(rows, corrected, corrected)
    own = np.zeros((len(means), SYSTEMS, SYSTEMS))
    own[:, first, second] = own[:, second, first] = rows.se**2
    used = np.sqrt(moderated(own, len(sizes) - 1)[:, first, second])
    similar = np.log(rows.se**2).std(axis=1, keepdims=True) <= SIMILAR
    return Reaches(rows, np.where(similar, critical * used, corrected), corrected)


def _missed(design: str, spread: str, facts: tuple[float, float] | None) -> Task:
    """How often the simultaneous interval of at least one of 190 pairs misses the truth."""

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        missed = 0
        for start in range(0, count, _BLOCK):
            drawn = draw(spread, random, min(_BLOCK, count - start), len(DESIGNS[design]))
            found = decide(design, drawn)
            missed += int(found.excludes(0.0, found.rule).any(axis=1).sum())
        rule = "moderated if similar" if rule_of_pairs(design)[1] else "Bonferroni"
        known = Facts(*facts, 400) if facts else None
        bound = Bound(0.0, 0.055)
        return [Cell(PAIRS, (design, spread, rule), missed / count, count, bound, known)]

    return Task(PAIRS, f"{design}, {spread}", 20_000, simulate)


def _found(design: str, spread: str, facts: tuple[float, float] | None) -> Task:
    """Which share of 190 true differences is told apart, with equally spaced systems."""
    sizes = DESIGNS[design]

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        # The order of the systems has nothing to do with their spreads.
        order = np.random.default_rng(5).permutation(SYSTEMS)
        drawn = draw(spread, random, count, len(sizes))
        first, second = np.triu_indices(SYSTEMS, 1)
        pooled = (drawn[:, second] - drawn[:, first]) @ (sizes / sizes.sum())
        unit = float(np.sqrt((pooled**2).mean()))
        truth = RANGE * unit * (order / (SYSTEMS - 1) - 0.5)
        found = decide(design, drawn + truth[:, None])
        shares = [
            float(found.excludes(0.0, reach).mean()) for reach in (found.rule, found.bonferroni)
        ]
        known = [
            Facts(fact, fact, 400, comparable=False) if facts else None for fact in facts or (0, 0)
        ]
        return [
            Cell(FOUND, (design, spread, rule), share, count, None, fact)
            for rule, share, fact in zip(
                ("moderated if similar", "Bonferroni"), shares, known, strict=True
            )
        ]

    return Task(FOUND, f"{design}, {spread}", 2_000, simulate)


def draw(spread: str, random: Random, count: int, groups: int) -> Floats:
    """Conversation means of equally good systems: repetitions x systems x conversations."""
    own = random.standard_normal((count, SYSTEMS, groups))
    if spread != FACTORS:
        return own * SPREADS[spread][:, None]
    loads = np.random.default_rng(2).standard_normal((SYSTEMS, 2))
    factors: Floats = loads @ random.standard_normal((count, 2, groups))
    return 0.5 * own + factors


@lru_cache(maxsize=4)
def rule_of_pairs(design: str) -> tuple[float, bool]:
    """The critical value of the product, and whether it moderates variances, from one example."""
    sizes = DESIGNS[design]
    names = [str(place) for place, size in enumerate(sizes) for _ in range(int(size))]
    pairs = all_pairs(np.random.default_rng(1).random((len(names), SYSTEMS)), names)
    critical = (pairs[0].interval.high - pairs[0].row.delta) / pairs[0].row.se
    corrected = critical_value(ALPHA / len(pairs), sizes.tolist())
    return critical, abs(critical - corrected) > 1e-9 * corrected
