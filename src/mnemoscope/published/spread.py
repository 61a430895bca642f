"""The spread of the published numbers of one system."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from mnemoscope.published.cohorts import cohort_of
from mnemoscope.published.published_results import Published

_TWO_WORDS = ("basic memory", "viking memory", "perseus vault", "naive rag", "full text")
_ALSO_KNOWN_AS = {
    "everos": "evermemos",
    "evercore": "evermemos",
    "mem0-g": "mem0-graph",
    "full text": "full-context",
    "backboard.io": "backboard",
}


class Spread(msgspec.Struct, frozen=True):
    """The lowest and highest published result of one system, set of questions and metric."""

    system: str
    questions: str
    metric: str
    lowest: Published
    highest: Published
    results: int
    cohorts: int

    @property
    def width(self) -> float:
        return self.highest.value - self.lowest.value


def family(system: str) -> str:
    """The system's name without version, settings and the person who ran it."""
    name = _head(system).lower()
    return _ALSO_KNOWN_AS.get(name, name)


def _head(system: str) -> str:
    if ": " in system:  # a probe; its name states the input of the judge
        return system
    words = re.split(r"[(,/]", system)[0].split()
    return " ".join(words[: 2 if " ".join(words[:2]).lower() in _TWO_WORDS else 1])


def spread(rows: Iterable[Published]) -> list[Spread]:
    """Every system with different results over all questions, the widest spread first.

    Retracted results are left out. Results with different models and judges are included: a spread
    shows these differences.
    """
    groups: dict[tuple[object, ...], list[Published]] = defaultdict(list)
    for row in rows:
        if row.category is None and not row.retracted:
            cohort = cohort_of(row)
            groups[family(row.system), cohort.variant, cohort.metric, cohort.benchmark].append(row)
    found = [_spread(group) for group in groups.values() if len(group) > 1]
    return sorted((one for one in found if one.width), key=lambda one: (-one.width, one.system))


def _spread(rows: list[Published]) -> Spread:
    cohort = cohort_of(rows[0])
    names = [_head(row.system) for row in rows]
    return Spread(
        system=max(names, key=names.count),
        questions=cohort.variant.says,
        metric=cohort.metric.says,
        lowest=min(rows, key=lambda row: row.value),
        highest=max(rows, key=lambda row: row.value),
        results=len(rows),
        cohorts=len({cohort_of(row) for row in rows}),
    )
