"""The registry: one published number on each line, each with a source."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.jsonl import numbered_records
from mnemoscope.published.source_links import LinkKind, publisher

GROUPS = (
    "core",
    "consolidation",
    "knowledge_graph",
    "reflective_memory",
    "graphrag_bench",
    "cognee_hotpotqa",
    "rlm",
)
"""The seven groups of baselines of the Nexus harness, in its order."""

RANGES: dict[str, tuple[float, float]] = {
    "fraction": (0.0, 1.0),
    "change": (-1.0, math.inf),
    "x": (0.0, math.inf),
    "s": (0.0, math.inf),
    "tokens": (0.0, math.inf),
}
"""The units of values and their ranges. `change` is relative: 0.17 is 17 % more."""

_PRINTED_AS = {
    "fraction": ("percent", "fraction"),
    "change": ("percent", "fraction"),
    "x": ("x",),
    "s": ("s",),
    "tokens": ("tokens",),
}

_COMMIT = re.compile(r"/blob/[0-9a-f]{40}/")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

Keying = Literal["arithmetic", "same table", "named", "survey", "unknown"]


class Printed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number as printed in our source collection."""

    metric: str
    value: str
    unit: str


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The category of a number that is not over all questions."""

    column: str
    """The source's name. Sources swap names, so only `id` may be compared."""
    keying: Keying
    """How `id` is known.

    `arithmetic`: no other assignment of the source's columns reproduces its overall. `same table`:
    as in a row of that table with `arithmetic`. `named`: sources do not swap this name. `survey`:
    from the survey, not confirmed by arithmetic. `unknown`: there is no id.
    """
    id: int | None = None
    """LoCoMo's official integer."""
    name: str = ""
    """LoCoMo's official name of that integer."""


class Published(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One published number."""

    collection: Literal["survey", "nexus"]
    group: str = ""
    """One of `GROUPS` for numbers of the Nexus harness."""
    system: str
    benchmark: str
    """`unstated` if the collection does not state it."""
    variant: str
    metric: str
    value: float
    unit: str
    as_printed: Printed
    category: Category | None = None
    n: int | None = None
    """The number of questions, if the variant states it."""
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
    link_kind: LinkKind = "none"
    """permalink: a file at a commit that was read and contains the number. doi: of the paper.
    thread: a numbered issue or pull request. none: the collection states neither."""
    link: str = ""
    where: str = ""
    """The place in the source: a table, or the text through which the number was read."""
    read_on: str = ""
    """The day on which the linked text was read; empty if that is not recorded."""

    @property
    def cited(self) -> bool:
        """False if the collection states that it has no citation."""
        return not self.source_basis.startswith("none")

    @property
    def can_be_checked(self) -> bool:
        """Whether a link leads to a text that cannot change: a commit or a DOI."""
        return self.link_kind in ("permalink", "doi")

    @property
    def by_another_vendor(self) -> bool:
        """Whether a competitor of the system's vendor ran it."""
        return self.reported_by == "competitor"

    @property
    def marks(self) -> list[str]:
        """What a reader must know beside the number."""
        found = ["retracted"] if self.retracted else []
        if self.by_another_vendor:
            # In a thread anybody may report, so its repository does not say who ran it.
            by = "" if self.link_kind == "thread" else publisher(self.source)
            found.append(f"run by another vendor{f' ({by})' if by else ''}")
        if not self.cited:
            found.append("no citation")
        elif not self.can_be_checked:
            found.append("thread, can change" if self.link_kind == "thread" else "no permalink")
        if self.link and not self.read_on:
            found.append("day of reading not recorded")
        return found

    @property
    def retracted(self) -> bool:
        """Withdrawn by its publisher."""
        return "retracted" in self.system.lower() or "RETRACTED" in self.notes

    @property
    def table(self) -> tuple[object, ...]:
        """The key that an overall result shares with its categories."""
        models = self.answer_model, self.judge_model
        what = self.system, self.benchmark, self.metric
        return self.collection, self.group, *what, self.source, *models

    @property
    def identity(self) -> tuple[object, ...]:
        """The key of a row; it is unique in the registry."""
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
    """The printed value in the registry's unit: percentages become fractions."""
    value = Decimal(printed.value)
    return float(value / 100 if printed.unit == "percent" else value)


def number(row: Published) -> str:
    """The value as text: a fraction with the printed number of digits, others with their unit."""
    if row.unit == "change":
        return f"{row.value:.1%}"
    if row.unit != "fraction":
        return f"{row.value:,g} {row.unit}".replace(" x", "×")
    _, _, places = row.as_printed.value.partition(".")
    return f"{row.value:.{len(places) + 2 * (row.as_printed.unit == 'percent')}f}"


def load(path: Path | None = None) -> tuple[Published, ...]:
    """Every row of the registry; a wrong row raises an error with its file and line."""
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
    """What is wrong with a row; empty if it is valid."""
    if not row.source.strip():
        return f"{row.system} has no source; a number without one cannot be in the registry"
    if row.unit not in RANGES:
        return f"unknown unit {row.unit!r}: use one of {', '.join(RANGES)}"
    low, high = RANGES[row.unit]
    if not low <= row.value <= high:
        return f"{row.value} is not a valid {row.unit}: it must lie between {low:g} and {high:g}"
    if row.as_printed.unit not in _PRINTED_AS[row.unit]:
        return f"as_printed.unit {row.as_printed.unit!r} does not fit the unit {row.unit}"
    try:
        expected = normalised(row.as_printed)
    except InvalidOperation:
        return f"as_printed.value {row.as_printed.value!r} is not a number"
    if row.value != expected:
        return f"value is {row.value}, but as_printed gives {expected}"
    if row.category and (row.category.id is None) != (row.category.keying == "unknown"):
        return "category: give either an id or the keying `unknown`"
    if (row.link_kind == "none") != (not row.link):
        return "link and link_kind: give both, or neither"
    if row.link_kind == "permalink" and not _COMMIT.search(row.link):
        return f"link {row.link!r} names no commit, so it is not a permalink"
    if row.link_kind == "doi" and not row.link.startswith("https://doi.org/10."):
        return f"link {row.link!r} is not a DOI"
    if row.read_on and not _DAY.fullmatch(row.read_on):
        return f"read_on {row.read_on!r} is not a day such as 2026-11-18"
    if row.collection == "nexus" and row.group not in GROUPS:
        return f"unknown group {row.group!r}: use one of {', '.join(GROUPS)}"
    return ""
