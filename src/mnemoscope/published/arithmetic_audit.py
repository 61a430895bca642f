"""Check that a source's overall result follows from its categories.

The check is arithmetic only: it does not show that a result was measured well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal

import msgspec

from mnemoscope.published.published_results import Published, load

SIZES = {1: 282, 2: 321, 3: 96, 4: 841}
"""Questions in each scorable category of LoCoMo, by its official integer."""
NAMES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

FIT = Decimal("0.02")
"""The difference in points that still counts as agreement."""


class OverallCheck(msgspec.Struct, frozen=True):
    """A printed overall result and the one computed from its categories, in points."""

    source: str
    system: str
    printed: float
    recomputed: float
    difference: float
    allowed: float
    """The difference that rounding can explain, at least 0.02."""
    agrees: bool
    keying: str
    """How the categories of the columns are known."""


class Audit(msgspec.Struct, frozen=True):
    """The checked overall results, and why the others cannot be checked."""

    checks: list[OverallCheck]
    unchecked: dict[str, int]
    """Each reason with the number of overall results that cannot be checked."""

    @property
    def disagreeing(self) -> list[OverallCheck]:
        return [check for check in self.checks if not check.agrees]


def audit(rows: Iterable[Published] | None = None) -> Audit:
    """Recompute every overall result whose source gives categories of known size."""
    tables: dict[tuple[object, ...], list[Published]] = defaultdict(list)
    for row in load() if rows is None else rows:
        tables[row.table].append(row)
    checks, unchecked = [], Counter[str]()
    for table in tables.values():
        parts = [row for row in table if row.category]
        for overall in (row for row in table if row.category is None and row.unit == "fraction"):
            reason = _reason(overall, parts)
            if reason:
                unchecked[reason] += 1
            else:
                checks.append(_check(overall, parts))
    return Audit(checks, dict(unchecked.most_common()))


def tolerance(printed: Iterable[str]) -> Decimal:
    """FIT, or the effect of rounding: half of the last digit of the overall and of its parts.

    Collections drop trailing zeros, so the finest digit in the table counts for all of it.
    """
    places = max(-int(Decimal(value).as_tuple().exponent) for value in printed)
    return max(FIT, Decimal(1).scaleb(-max(places, 0)))


def recomputed(values: Mapping[int, str]) -> Decimal:
    """The overall result of these values of categories 1–4."""
    total = sum((SIZES[key] * Decimal(value) for key, value in values.items()), Decimal(0))
    return total / sum(SIZES[key] for key in values)


def _reason(overall: Published, parts: list[Published]) -> str:
    """Why this overall result cannot be checked; empty if it can."""
    keys = {row.category.id for row in parts if row.category}
    if not parts:
        return "the source gives no categories, or the collection left them out"
    if None in keys:
        return "which column is which category is unknown"
    if not set(SIZES) <= keys:
        return "only some of the categories are given"
    if overall.n != sum(SIZES.values()):
        return "the overall is over other questions than the categories"
    if "overall recomputed" in overall.notes:
        return "the overall was itself recomputed from the categories"
    return ""


def _check(overall: Published, parts: list[Published]) -> OverallCheck:
    of = {row.category.id: row for row in parts if row.category}
    values = {key: of[key].as_printed.value for key in SIZES}
    printed = Decimal(overall.as_printed.value)
    whole = recomputed(values)
    allowed = tolerance([overall.as_printed.value, *values.values()])
    keying = {row.category.keying for row in of.values() if row.category}
    return OverallCheck(
        source=overall.source,
        system=overall.system,
        printed=float(printed),
        recomputed=round(float(whole), 4),
        difference=round(float(whole - printed), 4),
        allowed=float(allowed),
        agrees=abs(whole - printed) <= allowed,
        keying=", ".join(sorted(keying - {"named"})),
    )
