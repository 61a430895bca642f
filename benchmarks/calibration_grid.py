"""The cells of the calibration page for differences, levels, few conversations and equivalence."""

from __future__ import annotations

from itertools import product

import numpy as np

from calibration_cells import Bound, Cell, Facts, Plan, Task, share
from calibration_models import DESIGNS, Changes, Random, hits, normal_sums
from calibration_rules import Bools, differences, differences_of_these, levels_of_hits
from mnemoscope.stats.clustered import ALPHA, Floats, critical_value
from mnemoscope.stats.distributions import normal_quantile

REPETITIONS = 40_000
DIFFERENCES = "Differences"
CHANGES = "Differences of hits"
LEVELS = "Levels"
FEW = "One to four conversations"
EQUIVALENCE = "Equivalence"
OVERALL = Bound(0.945, 0.965)
UNEQUAL = Bound(0.94)
LEVEL = Bound(0.925)

# The figures of section 3 of the specification, by the labels of the cell.
_NORMAL = {
    ("LoCoMo", "normal", 1.0): 0.957,
    ("LoCoMo", "normal", 2.5): 0.956,
    ("LoCoMo", "normal", 10.0): 0.953,
    ("LoCoMo", "skewed", 2.5): 0.939,
    ("LoCoMo", "skewed", 10.0): 0.916,
    ("LoCoMo", "1 in 10 differs", 2.5): 0.914,
    ("LoCoMo", "1 in 10 differs", 10.0): 0.717,
    ("10 very unequal (900…7)", "normal", 1.0): 0.993,
    ("10 very unequal (900…7)", "normal", 2.5): None,
    ("10 very unequal (900…7)", "normal", 10.0): 0.966,
    ("5 equal", "normal", 2.5): 0.949,
    ("5 unequal (400…10)", "normal", 2.5): 0.982,
    ("20 equal", "normal", 2.5): 0.951,
    ("469 single questions", "normal", 1.0): None,
}
_CHANGES = {
    ("LoCoMo", "normal"): (0.947, 0.961),
    ("LoCoMo", "skewed"): (0.921, 0.953),
    ("20 equal", "normal"): (0.945, 0.962),
    ("6 equal", "normal"): (0.943, 0.982),
    ("5 equal", "normal"): (0.930, 0.981),
    ("10 very unequal (900…7)", "normal"): (0.940, 0.996),
    ("469 single questions", "normal"): (0.951, 0.965),
}
_LEVELS = {
    "LoCoMo": ((0.926, 0.975), (0.842, 0.978)),
    "10 very unequal (900…7)": ((0.951, 0.997), (0.958, 0.995)),
    "5 equal": ((0.932, 0.983), (0.970, 0.988)),
    "5 unequal (400…10)": ((0.953, 0.997), (0.959, 0.999)),
    "469 single questions": ((0.933, 0.955), (0.925, 0.933)),
}
_OTHERS = {"2 equal": 0.949, "3 equal": 0.944, "3 unequal (300, 60, 20)": 0.963, "4 equal": None}
_FALSE_EQUIVALENT = {
    "LoCoMo": (0.020, 0.023),
    "5 equal": (0.016, 0.023),
    "10 very unequal (900…7)": (0.002, 0.017),
}
_EQUIVALENT = {
    ("LoCoMo", 2.5): (0.27, 0.29),
    ("LoCoMo", 4.0): (0.88, 0.88),
    ("LoCoMo", 6.0): (1.0, 1.0),
    ("5 equal", 2.5): (0.19, 0.22),
    ("5 equal", 4.0): (0.70, 0.72),
    ("5 equal", 6.0): (0.98, 0.98),
}


def tasks() -> list[Task]:
    """All simulations of this module, in the order of the page."""
    return [
        *(_difference(*key, fact) for key, fact in _NORMAL.items()),
        *_all_changes(),
        *_all_levels(),
        *_few(),
        *_equivalence(),
    ]


def _block(design: str) -> int:
    return max(1, 1_000_000 // len(DESIGNS[design]))


def _difference(design: str, kind: str, deff: float, fact: float | None) -> Task:
    sizes = DESIGNS[design]

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        critical = critical_value(ALPHA, sizes.tolist())

        def covered(block: int) -> Bools:
            rows = differences(sizes, normal_sums(sizes, deff, kind, random, block))
            return ~rows.missed(0.0, critical)

        rate = share(count, _block(design), covered)
        required = None
        if kind == "normal":
            required = {"LoCoMo": OVERALL, "10 very unequal (900…7)": UNEQUAL}.get(design)
        facts = Facts(fact, fact, 2_000) if fact else None
        return [Cell(DIFFERENCES, (design, kind, f"{deff:g}"), rate, count, required, facts)]

    return Task(DIFFERENCES, f"{design}, {kind}, {deff:g}", REPETITIONS, simulate)


def _all_changes() -> list[Task]:
    found = []
    for (design, kind), (low, high) in _CHANGES.items():
        for changed, tilt, spread in product((0.03, 0.1, 0.3), (0.0, 1 / 3), (0.0, 0.3)):
            if kind == "skewed" and not spread:
                continue
            if design.startswith("469") and spread:
                continue  # With one question each, the spread is a part of the noise.
            model = Changes(changed, changed * tilt, changed * spread, kind)
            found.append(_change(design, model, Facts(low, high, 4_000)))
    return found


def _change(design: str, model: Changes, facts: Facts) -> Task:
    sizes = DESIGNS[design]

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        truth, _ = model.truth()
        critical = critical_value(ALPHA, sizes.tolist())

        def covered(block: int) -> Bools:
            sums, _, _ = model.draw(sizes, random, block)
            return ~differences(sizes, sums).missed(truth, critical)

        rate = share(count, _block(design), covered)
        required = UNEQUAL if design.startswith("10 very unequal") else None
        return [Cell(CHANGES, (design, *labels), rate, count, required, facts)]

    labels = (
        model.kind,
        f"{100 * model.changed:.0f} %",
        f"{100 * model.mean:.1f} pp",
        f"{100 * model.spread:.1f} pp",
    )
    return Task(CHANGES, ", ".join((design, *labels)), REPETITIONS // 2, simulate)


def _all_levels() -> list[Task]:
    found = []
    for design, ranges in _LEVELS.items():
        for p in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999):
            iccs = (0.0,) if design.startswith("469") else (0.0, 0.01, 0.05)
            facts = Facts(*ranges[p > 0.95], 2_000)
            found += [_level(design, p, icc, facts) for icc in iccs]
    return found


def _level(design: str, p: float, icc: float, facts: Facts) -> Task:
    sizes = DESIGNS[design]

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        def covered(block: int) -> Bools:
            sums, _ = hits(sizes, p, icc, random, block)
            low, high = levels_of_hits(sizes, sums)
            return (low <= p) & (p <= high)

        rate = share(count, _block(design), covered)
        required = LEVEL if p <= 0.95 else None
        return [Cell(LEVELS, (design, f"{p:g}", f"{icc:g}"), rate, count, required, facts)]

    return Task(LEVELS, f"{design}, {p:g}, {icc:g}", REPETITIONS // 2, simulate)


def _few() -> list[Task]:
    designs = ["1 conversation (150)", *_OTHERS]
    changed = (0.02, 0.1, 0.3)
    return [
        *(_these(design, share_changed) for design in designs for share_changed in changed),
        *(_level_of_these(design) for design in designs),
        *(_others(design, fact) for design, fact in _OTHERS.items()),
    ]


def _these(design: str, changed: float) -> Task:
    """The difference "on these conversations only": of the mean that these conversations expect."""
    sizes = DESIGNS[design]
    model = Changes(changed, changed / 3, 0.3 * changed)

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        z = normal_quantile(1 - ALPHA / 2)

        def covered(block: int) -> Bools:
            sums, squares, expected = model.draw(sizes, random, block)
            rows = differences_of_these(sizes, sums, squares)
            return ~rows.missed(expected @ sizes / sizes.sum(), z)

        rate = share(count, _block(design), covered)
        labels = (design, f"difference, {100 * changed:.0f} % changed", "these conversations")
        return [Cell(FEW, labels, rate, count, None, Facts(0.946, 0.999, 4_000))]

    return Task(FEW, f"{design}, difference, {changed}", REPETITIONS, simulate)


def _level_of_these(design: str) -> Task:
    sizes = DESIGNS[design]

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        def covered(block: int) -> Bools:
            sums, expected = hits(sizes, 0.8, 0.05, random, block)
            low, high = levels_of_hits(sizes, sums)
            truth: Floats = expected @ sizes / sizes.sum()
            return (low <= truth) & (truth <= high)

        rate = share(count, _block(design), covered)
        labels = (design, "level, p = 0.8, ICC 0.05", "these conversations")
        return [Cell(FEW, labels, rate, count, LEVEL)]

    return Task(FEW, f"{design}, level", REPETITIONS, simulate)


def _others(design: str, fact: float | None) -> Task:
    """Both intervals of a difference, read as statements about other conversations."""
    sizes = DESIGNS[design]

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        critical = critical_value(ALPHA, sizes.tolist())
        z = normal_quantile(1 - ALPHA / 2)
        sums = normal_sums(sizes, 2.5, "normal", random, count)
        rows, bare = (differences(sizes, sums, span) for span in (1.0, 0.0))
        # The questions have variance 1, so the interval of these conversations has this width.
        narrow = np.abs(sums.sum(axis=1)) <= z * np.sqrt(sizes.sum())
        held = {
            "difference, deff 2.5": ~rows.missed(0.0, critical),
            "the same without imaginary questions": ~bare.missed(0.0, critical),
            "interval of these, misread": narrow,
        }
        # The specification measured this without the imaginary questions.
        facts = [None, Facts(fact, fact, 2_000) if fact else None, None]
        return [
            Cell(
                FEW, (design, name, "other conversations"), float(right.mean()), count, None, known
            )
            for (name, right), known in zip(held.items(), facts, strict=True)
        ]

    return Task(FEW, f"{design}, others", REPETITIONS, simulate)


def _equivalence() -> list[Task]:
    cells = product(_FALSE_EQUIVALENT, (2.5, 4.0, 6.0), (1.0, 10.0))
    return [_band(design, band, deff) for design, band, deff in cells]


def _band(design: str, band: float, deff: float) -> Task:
    """The verdict "equivalent", with the true difference at the band's edge and at 0."""
    sizes = DESIGNS[design]

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        critical = critical_value(ALPHA, sizes.tolist())
        rows = differences(sizes, normal_sums(sizes, deff, "normal", random, count))
        width = band * np.sqrt(deff / sizes.sum())
        rates = []
        for truth in (width, 0.0):
            reach = np.abs(rows.delta + truth) + critical * rows.se
            rates.append(float((reach <= width).mean()))
        false = Facts(*_FALSE_EQUIVALENT[design], 8_000)
        known = _EQUIVALENT.get((design, band))
        labels = (design, f"{band:g} se", f"{deff:g}")
        return [
            Cell(EQUIVALENCE, (*labels, "at the edge"), rates[0], count, None, false),
            Cell(
                EQUIVALENCE,
                (*labels, "0"),
                rates[1],
                count,
                None,
                Facts(*known, 8_000, rounding=0.005) if known else None,
            ),
        ]

    return Task(EQUIVALENCE, f"{design}, {band:g}, {deff:g}", REPETITIONS, simulate)
