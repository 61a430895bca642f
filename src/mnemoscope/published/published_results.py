"""The registry: one published number a line, none without a source."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.jsonl import numbered_records

GROUPS = (
    "core",
    "consolidation",
    "knowledge_graph",
    "reflective_memory",
    "graphrag_bench",
    "cognee_hotpotqa",
    "rlm",
)
"""The seven categories of baselines of the Nexus harness, in its order."""

RANGES: dict[str, tuple[float, float]] = {
    "fraction": (0.0, 1.0),
    "change": (-1.0, math.inf),
    "x": (0.0, math.inf),
    "s": (0.0, math.inf),
    "tokens": (0.0, math.inf),
}
"""The units a value may have, with what they can hold. `change` is relative: 0.17 is 17 % more."""

_PRINTED_AS = {
    "fraction": ("percent", "fraction"),
    "change": ("percent", "fraction"),
    "x": ("x",),
    "s": ("s",),
    "tokens": ("tokens",),
}

Keying = Literal["arithmetic", "same table", "named", "survey", "unknown"]


class Printed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number as it stood in the collection that we took it from."""

    metric: str
    value: str
    unit: str


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which kind of question a number is about, where it is not about all."""

    column: str
    """The source's own name of it. Names are swapped between sources; only `id` may be compared."""
    keying: Keying
    """How `id` is known.

    `arithmetic`: no other assignment of the source's columns reproduces its overall. `same table`:
    as in a row of that table where arithmetic decides. `named`: nobody swaps this one. `survey`:
    the collector's word, which arithmetic does not confirm. `unknown`: there is no id.
    """
    id: int | None = None
    """LoCoMo's official integer."""
    name: str = ""
    """LoCoMo's official name of that integer."""


class Published(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One number that somebody published."""

    collection: Literal["survey", "nexus"]
    group: str = ""
    """One of `GROUPS` for what came with the Nexus harness."""
    system: str
    benchmark: str
    """`unstated` where the collection does not say."""
    variant: str
    metric: str
    value: float
    unit: str
    as_printed: Printed
    category: Category | None = None
    n: int | None = None
    """Questions, where the variant says how many."""
    answer_model: str | None = None
    """None: not stated. `none`: nothing was generated."""
    judge_model: str | None = None
    source: str
    source_basis: str
    """How the source is known: stated, inferred, or `none in file`."""
    year: int | None = None
    reported_by: str
    """self, vendor, competitor, third-party, quoted, this report, unstated."""
    notes: str = ""

    @property
    def cited(self) -> bool:
        """False where the collection itself says that it has no citation."""
        return not self.source_basis.startswith("none")

    @property
    def retracted(self) -> bool:
        """Withdrawn by whoever published it."""
        return "retracted" in self.system.lower() or "RETRACTED" in self.notes

    @property
    def table(self) -> tuple[object, ...]:
        """What the numbers in one line of a source's table share: the overall and its parts."""
        models = self.answer_model, self.judge_model
        what = self.system, self.benchmark, self.metric
        return self.collection, self.group, *what, self.source, *models

    @property
    def identity(self) -> tuple[object, ...]:
        """What may stand in the registry only once."""
        return (
            self.collection,
            self.group,
            self.system,
            self.benchmark,
            self.variant,
            self.metric,
            self.as_printed.metric,
            (self.category.id, self.category.column) if self.category else None,
            self.answer_model,
            self.judge_model,
            self.source,
        )


def normalised(printed: Printed) -> float:
    """The printed value in the registry's unit: percent become fractions, the rest stays."""
    value = Decimal(printed.value)
    return float(value / 100 if printed.unit == "percent" else value)


def number(row: Published) -> str:
    """For people: fractions with as many places as were printed; the rest with its unit."""
    if row.unit == "change":
        return f"{row.value:.1%}"
    if row.unit != "fraction":
        return f"{row.value:,g} {row.unit}".replace(" x", "×")
    _, _, places = row.as_printed.value.partition(".")
    return f"{row.value:.{len(places) + 2 * (row.as_printed.unit == 'percent')}f}"


def load(path: Path | None = None) -> tuple[Published, ...]:
    """Every row of the registry; a wrong one is an error with its file and line."""
    return _load(path or Path(str(files("mnemoscope.published") / "results.jsonl")))


@cache
def _load(path: Path) -> tuple[Published, ...]:
    rows: dict[tuple[object, ...], int] = {}
    found = []
    for line, row in numbered_records(path, Published):
        if problem := _problem(row):
            raise DataError(problem, file=path, line=line)
        if earlier := rows.get(row.identity):
            raise DataError(f"the same result as in line {earlier}", file=path, line=line)
        rows[row.identity] = line
        found.append(row)
    return tuple(found)


def _problem(row: Published) -> str:
    """What is wrong with a row, or nothing."""
    if not row.source.strip():
        return f"{row.system} has no source; a number without one cannot be in the registry"
    if row.unit not in RANGES:
        return f"the unit {row.unit!r} is none of {', '.join(RANGES)}"
    low, high = RANGES[row.unit]
    if not low <= row.value <= high:
        return f"{row.value} is no {row.unit}: it must lie between {low:g} and {high:g}"
    if row.as_printed.unit not in _PRINTED_AS[row.unit]:
        return f"what was printed as {row.as_printed.unit!r} is no {row.unit}"
    try:
        expected = normalised(row.as_printed)
    except InvalidOperation:
        return f"as_printed says {row.as_printed.value!r}, which is no number"
    if row.value != expected:
        return f"value is {row.value}, but as_printed makes {expected}"
    if row.category and (row.category.id is None) != (row.category.keying == "unknown"):
        return "a category has an id, or its keying is unknown: never both, never neither"
    if row.collection == "nexus" and row.group not in GROUPS:
        return f"the group {row.group!r} is none of {', '.join(GROUPS)}"
    return ""
