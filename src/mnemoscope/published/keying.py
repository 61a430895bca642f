"""Which column of a LoCoMo table is which category: found by arithmetic, never by its name.

Five incompatible namings of the four categories are in use. But the overall is the mean of the
categories weighted by their sizes, so where only one assignment of columns to sizes gives the
printed overall, the columns are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import permutations
from typing import NamedTuple

SIZES = {1: 282, 2: 321, 3: 96, 4: 841}
"""Questions in each scorable category of LoCoMo, by its official integer."""
NAMES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

FIT = Decimal("0.02")
"""Points by which an overall may miss its categories and still be reproduced."""
APART = Decimal("0.05")
"""Points by which every other assignment has to miss.

More than FIT, because sources' own overalls miss their own categories by several hundredths (the
mean of several runs beside categories of a majority vote): an assignment that is 0.03 off is not
refuted.
"""


class Assignment(NamedTuple):
    """One reading of a table's columns."""

    misses: Decimal
    """Points between the printed overall and the one recomputed."""
    categories: dict[str, int]


def tolerance(printed: Iterable[str]) -> Decimal:
    """FIT, or what rounding alone can do: half of the last place in the overall and in its parts.

    Collections drop trailing zeros, so the finest place in the table counts for all of it.
    """
    places = max(-int(Decimal(value).as_tuple().exponent) for value in printed)
    return max(FIT, Decimal(1).scaleb(-max(places, 0)))


def recomputed(values: Mapping[int, str]) -> Decimal:
    """The overall that these values of categories 1–4 make."""
    total = sum((SIZES[key] * Decimal(value) for key, value in values.items()), Decimal(0))
    return total / sum(SIZES[key] for key in values)


def assignments(columns: Mapping[str, str], overall: str) -> list[Assignment]:
    """Every assignment of four columns to the four categories, the closest first."""
    readings = []
    for order in permutations(SIZES):
        values = dict(zip(order, columns.values(), strict=True))
        misses = abs(recomputed(values) - Decimal(overall))
        readings.append(Assignment(misses, dict(zip(columns, order, strict=True))))
    return sorted(readings, key=lambda reading: reading.misses)


def only_assignment(columns: Mapping[str, str], overall: str) -> dict[str, int] | None:
    """Column to category, where one assignment alone reproduces the overall; else nothing."""
    if len(columns) != len(SIZES):
        return None
    allowed = tolerance([overall, *columns.values()])
    best, second = assignments(columns, overall)[:2]
    if best.misses <= allowed and second.misses > max(allowed, APART):
        return best.categories
    return None
