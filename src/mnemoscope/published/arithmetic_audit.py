"""Does a source's overall follow from its own categories? Arithmetic, and nothing else.

That an overall adds up says nothing about whether it was measured well.
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
"""Points by which an overall may miss its categories and still be reproduced."""


class OverallCheck(msgspec.Struct, frozen=True):
    """An overall set beside the one that its categories make, in points (hundredths)."""

    source: str
    system: str
    printed: float
    recomputed: float
    difference: float
    allowed: float
    """What rounding can explain, and never less than 0.02."""
    agrees: bool
    keying: str
    """How the columns are known to be the categories they stand for."""


class Audit(msgspec.Struct, frozen=True):
    """All overalls that can be checked, and why the others cannot."""

    checks: list[OverallCheck]
    unchecked: dict[str, int]
    """Reason to the number of overalls that it keeps from being checked."""

    @property
    def disagreeing(self) -> list[OverallCheck]:
        return [check for check in self.checks if not check.agrees]


def audit(rows: Iterable[Published] | None = None) -> Audit:
    """Recompute every overall whose source gives categories of known size."""
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
    """FIT, or what rounding alone can do: half of the last place in the overall and in its parts.

    Collections drop trailing zeros, so the finest place in the table counts for all of it.
    """
    places = max(-int(Decimal(value).as_tuple().exponent) for value in printed)
    return max(FIT, Decimal(1).scaleb(-max(places, 0)))


def recomputed(values: Mapping[int, str]) -> Decimal:
    """The overall that these values of categories 1–4 make."""
    total = sum((SIZES[key] * Decimal(value) for key, value in values.items()), Decimal(0))
    return total / sum(SIZES[key] for key in values)


def _reason(overall: Published, parts: list[Published]) -> str:
    """Why this overall cannot be checked, or nothing."""
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
