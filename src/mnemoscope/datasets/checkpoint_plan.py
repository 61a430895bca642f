"""Checkpoints of a simulated history: ranges, eligible questions, sampling, order.

Pure functions that reproduce Recall Bench's harness: the same seed asks the same questions in the
same order. This module reads no files.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from mnemoscope._store.errors import UsageError
from mnemoscope.types import CATEGORIES, GROUP_CATEGORIES, Checkpoint

T = TypeVar("T")


FULL = 2**53 - 1
"""`full` in the reference: JavaScript's largest safe integer, later than any expiry."""
NO_RANGES = "none"
_ALIASES = {"30d": 30, "90d": 90, "6mo": 180, "1y": 365, "full": FULL}
_UNITS = {"": 1, "d": 1, "m": 30, "mo": 30, "y": 365}
_LENGTH = re.compile(r"([0-9]{1,9})(d|mo|m|y|)")
_SERIES = re.compile(r"([0-9]{1,9})d?-([0-9]{1,9})d?/([0-9]{1,9})d?")
_NAMED = re.compile(r"([^\s:]+):([0-9]{1,16})")


class Range(NamedTuple):
    """A cut-off: all memories up to this day are ingested."""

    label: str
    days: int


def parse_ranges(text: str) -> tuple[Range, ...]:
    """Parse `30d,90d,6mo,1y,full`, `7-1000/7` or `label:days`; sorted by days, labels unique.

    A series `START-END/STEP` always includes its end. `none` gives an empty tuple.
    """
    if text.strip() == NO_RANGES:
        return ()
    found: list[Range] = []
    for part in text.split(","):
        part = part.strip()
        if series := _SERIES.fullmatch(part):
            found += _series(part, *map(int, series.groups()))
        else:
            found.append(_range(part))
    return in_order(found)


def arithmetic(start: int, end: int, step: int) -> tuple[Range, ...]:
    """The range `{start, end, step}` of a profile; includes the end only if a step reaches it."""
    if start < 1 or step < 1 or end < start:
        raise UsageError(f"ranges {start} to {end} by {step}: that series is empty")
    return tuple(Range(f"{days}d", days) for days in range(start, end + 1, step))


def in_order(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Sort by days. Of two ranges with the same label, keep the shorter."""
    by_label: dict[str, Range] = {}
    for one in sorted(ranges, key=lambda one: one.days):
        by_label.setdefault(one.label, one)
    return tuple(by_label.values())


def _range(text: str) -> Range:
    if text in _ALIASES:
        return Range(text, _ALIASES[text])
    label, days = text, 0
    if length := _LENGTH.fullmatch(text):
        days = int(length[1]) * _UNITS[length[2]]
        label = text if length[2] else f"{days}d"
    elif named := _NAMED.fullmatch(text):
        label, days = named[1], int(named[2])
    if days < 1:
        raise UsageError(
            f"cannot read the range {text!r}: write 30d, 6mo, 1y, full, a number of days, "
            "a series such as 7-1000/7, or a label with its days such as spring:90"
        )
    return Range(label, days)


def _series(text: str, start: int, end: int, step: int) -> list[Range]:
    try:
        found = list(arithmetic(start, end, step))
    except UsageError:
        raise UsageError(
            f"cannot read the range {text!r}: a series is START-END/STEP in days, such as 7-1000/7"
        ) from None
    if found[-1].days != end:
        found.append(Range(f"{end}d", end))
    return found


def mulberry32(seed: int) -> Callable[[], float]:
    """A small random generator in 32-bit arithmetic; numbers in [0, 1)."""
    state = seed & _MASK

    def draw() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & _MASK
        t = (state ^ (state >> 15)) * (state | 1) & _MASK
        t = (t + (t ^ (t >> 7)) * (t | 61) & _MASK) ^ t
        return (t ^ (t >> 14)) / 2**32

    return draw


_MASK = 2**32 - 1


def shuffled(items: Iterable[T], seed: int) -> list[T]:
    """Fisher–Yates from the end, with a new generator per call; seed 0 keeps the order."""
    order = list(items)
    if seed == 0:
        return order
    draw = mulberry32(seed)
    for last in range(len(order) - 1, 0, -1):
        other = math.floor(draw() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


def is_eligible(relevant_days: Sequence[int], irrelevant_after: int | None, days: int) -> bool:
    """Whether all relevant days are in the past, and the question has not expired.

    The requested range counts, not the last day of the data: `full` drops every question that
    expires.
    """
    first, last = eligible_days(relevant_days, irrelevant_after)
    return first <= days <= last


def eligible_days(relevant_days: Sequence[int], irrelevant_after: int | None) -> tuple[int, float]:
    """The first and the last range at which a question is eligible."""
    last = math.inf if irrelevant_after is None else irrelevant_after
    return max(relevant_days, default=0), last


def sample_by_category(
    items: Sequence[T], category: Callable[[T], str], size: int, seed: int
) -> list[T]:
    """Draw `size` items in proportion to the categories: Hare quota, largest remainder.

    Ties between remainders go to the larger category, then to the one seen first.
    """
    if size >= len(items):
        return list(items)
    buckets: dict[str, list[T]] = {}
    for item in items:
        buckets.setdefault(category(item), []).append(item)
    # The reference divides first. Another order rounds differently and changes ties.
    quotas = {name: len(bucket) / len(items) * size for name, bucket in buckets.items()}
    sizes = {name: math.floor(quota) for name, quota in quotas.items()}
    by_claim = sorted(buckets, key=lambda name: (sizes[name] - quotas[name], -len(buckets[name])))
    for name in by_claim[: size - sum(sizes.values())]:
        sizes[name] = min(sizes[name] + 1, len(buckets[name]))
    return [item for name in buckets for item in shuffled(buckets[name], seed)[: sizes[name]]]


class PlannedQuestion(NamedTuple):
    """The part of a question that the plan depends on."""

    id: str
    category: str
    relevant_days: tuple[int, ...]
    irrelevant_after: int | None = None


def plan_checkpoints(
    days: Sequence[int],
    questions: Sequence[PlannedQuestion],
    ranges: Sequence[Range],
    *,
    sample: int = 0,
    cohort: int = 0,
    seed: int = 42,
    groups: bool = False,
    epoch: date | None = None,
) -> tuple[Checkpoint, ...]:
    """Plan one checkpoint per range. `days` gives the day of each memory, in order.

    A checkpoint asks all of its new questions, which no earlier checkpoint could ask, and at most
    `sample` of the others (0 for all). Without `groups`, group categories are only counted.
    `cohort` questions are asked at every checkpoint from some one to the last; those that are not
    in the sample come after it, so that the sample and its order stay Recall Bench's.
    """
    known: set[str] = set()
    plan: list[Checkpoint] = []
    # Found once: there may be a hundred checkpoints.
    spans = [(one, *eligible_days(one.relevant_days, one.irrelevant_after)) for one in questions]
    for label, cutoff in in_order(ranges):
        eligible = [question for question, first, last in spans if first <= cutoff <= last]
        allowed = [one for one in eligible if groups or one.category not in GROUP_CATEGORIES]
        new = [one for one in allowed if one.id not in known]
        historical = [one for one in allowed if one.id in known]
        known.update(one.id for one in allowed)
        again = historical
        if sample:
            again = sample_by_category(historical, lambda one: one.category, sample, seed)
        last = min(cutoff, days[-1]) if days else 0
        counts = Counter(one.category for one in eligible)
        plan.append(
            Checkpoint(
                label,
                cutoff,
                memories=bisect_right(days, cutoff),
                questions=tuple(one.id for one in shuffled([*new, *again], seed)),
                now=None if epoch is None else evening(epoch, last),
                ingested_days=last,
                eligible={**dict.fromkeys(CATEGORIES, 0), **counts},
                new=len(new),
                historical=len(historical),
            )
        )
    if cohort:
        allowed_spans = [
            span for span in spans if groups or span[0].category not in GROUP_CATEGORIES
        ]
        return _with_cohort(plan, allowed_spans, cohort, seed)
    return tuple(plan)


def _with_cohort(
    plan: Sequence[Checkpoint],
    spans: Sequence[tuple[PlannedQuestion, int, float]],
    size: int,
    seed: int,
) -> tuple[Checkpoint, ...]:
    """Ask a fixed set of questions at every checkpoint from a start on, by category.

    They may be asked from the start to the end. The start is the first checkpoint that has `size`
    of them, or half of the most that there are.
    """
    end = plan[-1].days if plan else 0
    lasting = [
        [one for one, first, last in spans if first <= point.days and end <= last]
        for point in plan[:-1]
    ]
    most = max(map(len, lasting), default=0)
    if not most:
        return tuple(plan)
    start = next(i for i, own in enumerate(lasting) if len(own) >= min(size, math.ceil(most / 2)))
    drawn = sample_by_category(lasting[start], lambda one: one.category, size, seed)
    ids = tuple(one.id for one in drawn)
    return tuple(
        point
        if place < start
        else replace(point, questions=tuple(dict.fromkeys((*point.questions, *ids))), cohort=ids)
        for place, point in enumerate(plan)
    )


def morning(epoch: date, day: int) -> datetime:
    """The first moment of a day of the history, in UTC; day 1 is the epoch."""
    return datetime.combine(epoch + timedelta(days=day - 1), time(), UTC)


def evening(epoch: date, day: int) -> datetime:
    """The last second of a day: the day is ingested, and questions are asked."""
    return morning(epoch, day) + timedelta(hours=23, minutes=59, seconds=59)
