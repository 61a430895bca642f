"""What the hits of a trial are credited with, and how many places of the ranking they take.

A hit that names n memories takes n places. Two credits stand beside each other: `claimed`, what the
hits name, and `carried`, what their texts say of it. The figures of a run are those of `carried`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from mnemoscope.analysis.estimates import Estimate, intervals_of_means, rounded
from mnemoscope.metrics import PRIMARY, HitPlaces, dedupe, headline
from mnemoscope.types import Trial

Credit = Literal["carried", "claimed"]


class SourcesPerHit(TypedDict):
    """How many memories the hits name, or cover if they name none."""

    median: float
    max: int
    max_share: float | None
    """The largest share of its pool that one hit names; None where no pool is known."""


class CreditFigures(TypedDict):
    """What the hits claim beside what they carry, for systems whose hits differ from memories."""

    claimed: dict[str, Estimate]
    """The headline metrics if every hit is credited with all that it names."""
    questions: int
    """Measured questions in which a claim was not carried, or evidence came back unnamed."""
    recall_per_1000_tokens: dict[str, float | None]
    """recall@10 (or at the deepest k) for each 1,000 context tokens, carried and claimed."""
    sources_per_hit: SourcesPerHit | None


def is_plain(trial: Trial) -> bool:
    """Whether every hit is one memory, credited by its id."""
    return not trial.sources and not trial.carried


def credited(trial: Trial, id: str, credit: Credit = "carried") -> tuple[str, ...]:
    """Return the memories that a hit is credited with."""
    if credit == "carried" and id in trial.carried:
        return trial.carried[id]
    return trial.sources.get(id, (id,))


def places_of(trial: Trial, id: str, credit: Credit = "carried") -> int:
    """Return how many places of the ranking a hit takes."""
    if id in trial.places:
        return trial.places[id]
    if id in trial.sources:
        # Without a pool, memories are parts of larger units, which `sources` lists as well.
        return len(set(trial.sources[id])) if trial.pool else 1
    return max(1, len(trial.carried.get(id, ()))) if credit == "carried" else 1


def hit_places(trial: Trial, ranking: Sequence[str], credit: Credit = "carried") -> list[HitPlaces]:
    """Return the hits in order, with repetitions removed; sources in a stated order one by one."""
    found: list[HitPlaces] = []
    for id in dedupe(ranking):
        own = credited(trial, id, credit)
        if id in trial.ordered:
            found += (
                HitPlaces((source,) if source in own else (), 1)
                for source in dict.fromkeys(trial.sources[id])
            )
        else:
            found.append(HitPlaces(own, places_of(trial, id, credit)))
    return found


def takes_places(trial: Trial) -> bool:
    """Whether a hit takes several places, or is credited by its text."""
    if not trial.sources:  # most trials
        return bool(trial.carried)
    return bool(trial.carried) or any(places_of(trial, id) > 1 for id in trial.sources)


def tokens_of_places(trial: Trial, k: int) -> float:
    """Return the context tokens of the first k places; a hit that lies partly in them counts so."""
    if not takes_places(trial):
        return sum(trial.tokens[:k])
    spent, left = 0.0, k
    for id, tokens in zip(trial.ranking, trial.tokens, strict=True):
        if left <= 0:
            break
        places = places_of(trial, id)
        spent += tokens * min(1.0, left / places)
        left -= places
    return spent


def sources_per_hit(trials: Sequence[Trial]) -> SourcesPerHit | None:
    """Count the memories of each returned hit; None if nothing was returned."""
    counts: Counter[tuple[int, int]] = Counter()
    for trial in trials:
        if is_plain(trial) and not trial.places:
            counts[1, trial.pool] += len(trial.ranking)
        else:
            counts.update((places_of(trial, id), trial.pool) for id in trial.ranking)
    counts += Counter()  # drop pools without hits
    if not counts:
        return None
    shares = [places / pool for places, pool in counts if pool]
    hits: Counter[int] = Counter()
    for (places, _), n in counts.items():
        hits[places] += n
    ends = list(accumulate(hits[places] for places in sorted(hits)))
    middle = [sorted(hits)[bisect_right(ends, at)] for at in ((ends[-1] - 1) // 2, ends[-1] // 2)]
    return {
        "median": sum(middle) / 2,
        "max": max(hits),
        "max_share": max(shares) if shares else None,
    }


def credit_figures(
    trials: Sequence[Trial],
    names: Sequence[str],
    carried: NDArray[np.float64],
    claimed: NDArray[np.float64],
) -> CreditFigures:
    """Compute what the hits claim, beside what they carry: one row a trial, one column a name."""
    figures: dict[str, Estimate] = {}
    per_token: dict[str, float | None] = {"carried": None, "claimed": None}
    if trials:
        shown = headline(names)
        own = claimed[:, [names.index(name) for name in shown]]
        clusters = [trial.cluster for trial in trials]
        intervals = intervals_of_means(own, clusters)
        figures = {
            name: {"mean": rounded(mean), "n": len(own), "ci95": interval}
            for name, mean, interval in zip(shown, own.mean(axis=0), intervals, strict=True)
        }
        recalls = [name for name in names if name.startswith("recall@")]
        name = PRIMARY if PRIMARY in recalls else recalls[-1]
        k, column = int(name.partition("@")[2]), names.index(name)
        known = all(len(trial.tokens) == len(trial.ranking) for trial in trials)
        tokens = float(np.mean([tokens_of_places(trial, k) for trial in trials])) if known else 0.0
        for kind, values in (("carried", carried), ("claimed", claimed)):
            if tokens:
                per_token[kind] = rounded(1000 * float(values[:, column].mean()) / tokens)
    return {
        "claimed": figures,
        "questions": int((claimed != carried).any(axis=1).sum()),
        "recall_per_1000_tokens": per_token,
        "sources_per_hit": sources_per_hit(trials),
    }
