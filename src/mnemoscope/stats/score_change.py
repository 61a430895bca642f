"""Split the change of a mean between two times, at which not all of the questions are the same.

`same` questions have the same right answer at both times. They are the standard: what they lose is
lost to interference. Questions that were `replaced` (at the first time those whose answer is no
longer right, at the last time those that ask for what is right now) and `other` questions count by
how much they move the mean away from that of the same questions:

    interference = m₁(same) - m₀(same)
    supersession = p₁(m₁(replaced) - m₁(same)) - p₀(m₀(replaced) - m₀(same))
    composition  = o₁(m₁(other) - m₁(same)) - o₀(m₀(other) - m₀(same))

p and o are the shares of these questions at that time. The sum is m₁ - m₀ exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from mnemoscope.stats.clustered import Interval, cluster_sums, difference

Part = Literal["total", "interference", "supersession", "composition"]
Group = Literal["same", "replaced", "other"]
Key = TypeVar("Key")
PARTS: tuple[Part, ...] = ("interference", "supersession", "composition")
_PART_OF: dict[Group, Part] = {"replaced": "supersession", "other": "composition"}


class WeightedValue(NamedTuple):
    """A value with its group, and its weight in each part of the change."""

    key: object
    group: Group
    is_last: bool
    value: int | None
    """None if it is missing."""
    weights: Mapping[Part, Fraction]


class ScoreSplit(NamedTuple):
    """The change of a mean as a weighted sum of all values."""

    values: tuple[WeightedValue, ...]

    def size(self, group: Group, *, is_last: bool) -> int:
        return sum(one.group == group and one.is_last == is_last for one in self.values)

    def part(self, part: Part) -> Fraction:
        """The exact size of a part; a missing value counts as 0."""
        return sum(
            (one.weights[part] * one.value for one in self.values if one.value is not None),
            Fraction(0),
        )

    def bounds(self, part: Part, best: int) -> tuple[Fraction, Fraction]:
        """The smallest and the largest size of a part, whatever the missing values are."""
        known = self.part(part)
        missing = [one.weights[part] * best for one in self.values if one.value is None]
        low = sum((weight for weight in missing if weight < 0), known)
        high = sum((weight for weight in missing if weight > 0), known)
        return low, high

    def interval(self, part: Part, clusters: Mapping[Any, str], best: int) -> Interval | None:
        """The 95 % interval of a part, over clusters of questions; None if no value counts.

        A question counts by how far its values move the part: by its values minus the means of
        their groups. Their mean over the questions is the part.
        """
        used = [one for one in self.values if one.weights[part] and one.value is not None]
        if not used:
            return None
        means = {
            place: Fraction(sum(own), len(own))
            for place in {(one.group, one.is_last) for one in used}
            if (own := [o.value or 0 for o in used if (o.group, o.is_last) == place])
        }
        moved: dict[object, Fraction] = {}
        for one in used:
            away = (one.value or 0) - means[one.group, one.is_last]
            moved[one.key] = moved.get(one.key, Fraction(0)) + one.weights[part] * away
        size, n = self.part(part), len(moved)
        column = np.array([[float(size + n * own)] for own in moved.values()])
        # The weight of the most important question: one more of them could be gained or lost.
        span = float(best * n * max(abs(one.weights[part]) for one in used))
        found = difference(cluster_sums(column, [clusters[key] for key in moved]), span)
        return found.interval(found.critical())


def split_change(
    first: Mapping[Key, int | None],
    last: Mapping[Key, int | None],
    replaced_first: Set[Key],
    replaced_last: Set[Key],
) -> ScoreSplit | None:
    """Split the change from `first` to `last`; None without questions at one of these times.

    A question of both times counts as the same; without any, only the total is defined.
    `replaced_first` are questions of the first time whose answer is no longer right,
    `replaced_last` those of the last time that ask for what has replaced it.
    """
    if not first or not last:
        return None
    both = first.keys() & last.keys()
    values: list[WeightedValue] = []
    for at, replaced, is_last in ((first, replaced_first, False), (last, replaced_last, True)):
        sign = 1 if is_last else -1
        groups: dict[Key, Group] = {
            key: "same" if key in both else "replaced" if key in replaced else "other" for key in at
        }
        whole = Fraction(sign, len(at))
        nothing: dict[Part, Fraction] = dict.fromkeys(("total", *PARTS), Fraction(0))
        share = {group: list(groups.values()).count(group) * whole for group in _PART_OF}
        weights: dict[Group, dict[Part, Fraction]] = {
            group: {**nothing, "total": whole, part: whole} for group, part in _PART_OF.items()
        }
        if both:
            weights["same"] = {
                "total": whole,
                "interference": Fraction(sign, len(both)),
                **{part: -share[group] / len(both) for group, part in _PART_OF.items()},
            }
        values += [
            WeightedValue(key, group, is_last, at[key], weights[group])
            for key, group in groups.items()
        ]
    return ScoreSplit(tuple(values))
