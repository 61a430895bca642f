"""What a ranked list of memories is worth, question by question: pure functions over ids.

Scores never enter: rank is authoritative. Every measure lies in [0, 1] and is 0 for an empty
ranking. No numpy, since at this size plain Python is faster than any library (libraries.md, B1).

| name          | value                                                | elsewhere                |
|---------------|------------------------------------------------------|--------------------------|
| `hit@k`       | 1 if any evidence is in the top k                    | success@k, recall_any@k  |
| `recall@k`    | fraction of the evidence in the top k                | recall_k of trec_eval    |
| `all@k`       | 1 if all evidence is in the top k                    | recall_all@k             |
| `precision@k` | relevant positions in the top k, divided by k always | P_k                      |
| `ndcg@k`      | linear gain, discount log2(rank + 1), ideal over the | ndcg_cut_k               |
|               | whole evidence                                       |                          |
| `mrr@c`       | 1 / rank of the first evidence if within c, else 0   | recip_rank               |
| `map`         | mean over all evidence of the precision at the       | map                      |
|               | position that brings it, over the whole ranking      |                          |

Evidence that the pool does not hold still counts in every denominator.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, compress, count
from math import log2
from typing import NamedTuple, TypeVar

T = TypeVar("T", bound=Hashable)

KINDS = ("hit", "recall", "all", "precision", "ndcg")
"""The measures that exist at every k."""
NOTHING = (0.0,) * len(KINDS)


class Find(NamedTuple):
    """A position that brought evidence not seen before."""

    rank: int
    evidence: frozenset[str]


@lru_cache
def metric_names(ks: tuple[int, ...], cuts: tuple[int, ...]) -> tuple[str, ...]:
    """The names of all measures, in the order in which every function here returns them."""
    for name, depths in (("ks", ks), ("cuts", cuts)):
        if any(depth < 1 for depth in depths) or len(set(depths)) < len(depths):
            raise ValueError(f"{name} must be distinct positive numbers, got {depths}")
    at_k = [f"{kind}@{k}" for k in ks for kind in KINDS]
    return (*at_k, *(f"mrr@{cut}" for cut in cuts), "map")


@lru_cache
def ideal_gains(depth: int) -> tuple[float, ...]:
    """The gain of the best ranking of n equally relevant memories, for n from 0 to depth."""
    return graded_ideal_gains([1] * depth, depth)


def graded_ideal_gains(grades: Iterable[int], depth: int) -> tuple[float, ...]:
    """The gain of the n best graded memories in the best order, for n from 0 up to depth."""
    best = sorted(grades, reverse=True)
    if best and best[-1] <= 0:
        raise ValueError("a grade of evidence must be positive; drop the id from the evidence")
    discounted = (grade / log2(rank + 1) for rank, grade in enumerate(best[:depth], 1))
    return tuple(accumulate(discounted, initial=0.0))


def dedupe(ranking: Iterable[T]) -> list[T]:
    """The ranking without repetitions: the first occurrence stays and the ranks close up."""
    return list(dict.fromkeys(ranking))


def relevant_positions(ranking: Sequence[str], evidence: Collection[str]) -> list[int]:
    """The ranks, from 1, that evidence has in the ranking once repetitions are removed."""
    wanted = frozenset(evidence)
    # Half of the cost of a ranking is here: leave misses early, and copy only what repeats.
    if wanted.isdisjoint(ranking):
        return []
    unique = ranking if len(set(ranking)) == len(ranking) else dict.fromkeys(ranking)
    return list(compress(count(1), map(wanted.__contains__, unique)))


def merged_positions(hits: Iterable[Collection[str]], evidence: Collection[str]) -> list[Find]:
    """The positions, of hits that stem from several memories each, that bring new evidence.

    A hit whose sources were all seen before keeps its rank: two texts made from the same
    memories both take a place before the reader. Remove repeated hits by their own id first.
    """
    missing = set(evidence)
    finds = []
    for rank, sources in enumerate(hits, 1):
        if fresh := missing.intersection(sources):
            missing -= fresh
            finds.append(Find(rank, frozenset(fresh)))
    return finds


def score(
    ranking: Sequence[str],
    evidence: Collection[str],
    *,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    grades: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """All measures of one ranking in which every hit is one memory.

    Without a grade an evidence id counts 1; grades of other ids are ignored.
    """
    wanted = _wanted(evidence)
    positions = relevant_positions(ranking, wanted)
    once = [1] * len(positions)
    if not grades:
        return _tally(positions, once, once, ideal_gains(max(ks, default=0)), len(wanted), ks, cuts)
    gains = [grades.get(id_, 1) for id_ in dedupe(ranking) if id_ in wanted]
    ideal = graded_ideal_gains((grades.get(id_, 1) for id_ in wanted), max(ks, default=0))
    return _tally(positions, once, gains, ideal, len(wanted), ks, cuts)


def score_merged(
    hits: Sequence[Collection[str]],
    evidence: Collection[str],
    *,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    grades: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """All measures of one ranking whose hits may stem from several memories each.

    A position is relevant when it brings new evidence; recall and `all` count every id that it
    brings, and its gain is the sum of their grades.
    """
    wanted = _wanted(evidence)
    finds = merged_positions(hits, wanted)
    grade = {id_: grades.get(id_, 1) if grades else 1 for id_ in wanted}
    return _tally(
        [find.rank for find in finds],
        [len(find.evidence) for find in finds],
        [sum(grade[id_] for id_ in find.evidence) for find in finds],
        graded_ideal_gains(grade.values(), max(ks, default=0)),
        len(wanted),
        ks,
        cuts,
    )


def _wanted(evidence: Collection[str]) -> frozenset[str]:
    if not evidence:
        raise ValueError("a question without evidence cannot be scored: leave it out")
    return frozenset(evidence)


def _tally(
    positions: Sequence[int],
    fresh: Sequence[int],
    gains: Sequence[int],
    ideal: Sequence[float],
    total: int,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
) -> dict[str, float]:
    """The measures, from the relevant positions, what each brings anew, and its gain."""
    names = metric_names(ks, cuts)
    if not positions:
        return dict.fromkeys(names, 0.0)
    gained, covered, precisions = [0.0], [0], 0.0
    for nth, (rank, new, gain) in enumerate(zip(positions, fresh, gains, strict=True), 1):
        gained.append(gained[-1] + gain / log2(rank + 1))
        covered.append(covered[-1] + new)
        precisions += new * nth / rank
    values: list[float] = []
    for k in ks:
        n = bisect_right(positions, k)
        if not n:
            values += NOTHING
            continue
        found = covered[n]
        # The ideal gives each evidence a position of its own. A merged hit brings several at one
        # rank and can beat that ideal, which would read as better than perfect: clip it at 1.
        share = gained[n] / ideal[min(total, k)]
        values += (
            1.0,
            found / total,
            1.0 if found == total else 0.0,
            n / k,
            share if share < 1 else 1.0,
        )
    values += [1 / positions[0] if positions[0] <= cut else 0.0 for cut in cuts]
    values.append(precisions / total)
    return dict(zip(names, values, strict=True))
