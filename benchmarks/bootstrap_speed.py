"""Resampling speed: ours beside scipy's bootstrap and ranx's randomisation test.

Usage: python benchmarks/bootstrap_speed.py, with one thread for each library
(OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1).

All work on the same differences of 1,982 questions x 40 measures (LoCoMo's size), with 10,000
resamples. scipy.stats.bootstrap cannot draw clusters, so it stands beside our bootstrap twice:
clustered on 10 conversations, and over single questions, which is the
same work as scipy's (percentile intervals of the same means, vectorised; in batches, since all
draws at once would need 6 GB). ranx has no bootstrap; what `ranx.compare` resamples with is the
Fisher randomisation test, called once per measure on the two arms. The same work of ours is the
permutation test with one sign per question. numba has compiled it before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mnemoscope.stats import bootstrap, permutation
from rounds import Cost, in_turns

QUESTIONS, MEASURES, CLUSTERS, DRAWS = 1_982, 40, 10, 10_000


def bootstrap_rows() -> list[tuple[str, Cost]]:
    """Name and CPU seconds (of all threads) of each; the first is ours, clustered."""
    from ranx.statistical_tests.fisher_randomization_test import fisher_randomization_test
    from scipy.stats import bootstrap as scipy_bootstrap

    random = np.random.default_rng(1)
    base = (random.random((QUESTIONS, MEASURES)) < 0.8).astype(float)
    cand = np.where(random.random(base.shape) < 0.1, 1 - base, base)
    deltas = cand - base
    conversations = [str(n * CLUSTERS // QUESTIONS) for n in range(QUESTIONS)]
    singles = [str(n) for n in range(QUESTIONS)]

    def scipys() -> None:
        scipy_bootstrap(
            (deltas,),
            np.mean,
            axis=0,
            vectorized=True,
            n_resamples=DRAWS,
            method="percentile",
            batch=50,
            rng=np.random.default_rng(1),
        )

    def ranxs(permutations: int = DRAWS) -> None:
        for measure in range(MEASURES):
            fisher_randomization_test(
                base[:, measure].copy(), cand[:, measure].copy(), n_permutations=permutations
            )

    ranxs(permutations=1)
    ours = f"ours, {CLUSTERS} clusters"
    works: dict[str, Callable[[], object]] = {
        f"bootstrap: {ours}": lambda: bootstrap(deltas, conversations, seed=1),
        "bootstrap: ours, single questions": lambda: bootstrap(deltas, singles, seed=1),
        "bootstrap: scipy, single questions": scipys,
        f"permutation: {ours}": lambda: permutation(deltas, conversations, seed=1),
        "permutation: ours, single questions": lambda: permutation(deltas, singles, seed=1),
        "permutation: ranx, single questions": ranxs,
    }
    return list(zip(works, in_turns(*works.values()), strict=True))


if __name__ == "__main__":
    rows = bootstrap_rows()
    for name, seconds in rows:
        print(f"{name:<40}{seconds:10.3f} s{seconds / rows[0][1]:10.1f} x")
