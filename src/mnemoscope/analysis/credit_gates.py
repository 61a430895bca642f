"""Gates on the credit of a run: how many memories a hit names, and figures that cannot be true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.checked_run import CheckedRun
from mnemoscope.analysis.credit import credited, is_plain, sources_per_hit
from mnemoscope.analysis.measure import Depth
from mnemoscope.types import Trial

MOST_SOURCES_MEDIAN = 10
"""Half of the hits may name so many memories."""
MOST_OF_POOL = 0.5
"""One hit may name so much of its pool, if that is more than `MOST_SOURCES_MEDIAN` memories."""
LEAST_TOKENS = 0.1
"""Evidence must come back in this share of its own tokens. The carrying test needs at least a
third of a memory's words by weight, so honest texts stay well above it."""
_ROUNDING = 1e-9


def sources_in_bounds(case: CheckedRun) -> tuple[bool, str]:
    """Whether hits name a plausible number of memories."""
    counts = sources_per_hit(case.trials)
    if counts is None:
        return True, "nothing was returned"
    median = f"{counts['median']:g} {'memory' if counts['median'] == 1 else 'memories'}"
    about = f"a hit names {median} in the median and at most {counts['max']:,}"
    share = counts["max_share"] or 0.0
    if counts["median"] > MOST_SOURCES_MEDIAN:
        return False, f"{about}; a median up to {MOST_SOURCES_MEDIAN} is allowed"
    if share > MOST_OF_POOL and counts["max"] > MOST_SOURCES_MEDIAN:
        return False, f"{about}, {share:.0%} of its pool; up to {MOST_OF_POOL:.0%} is allowed"
    return True, about


def below_ceiling(case: CheckedRun) -> tuple[bool, str]:
    """Whether no figure is above its ceiling, and evidence did not come back for too few tokens."""
    trials, depth = case.measured, Depth(case.depth)
    if not trials:
        return True, "nothing was measured"
    values = depth.all_values(trials).mean(axis=0)
    best = depth.all_ceilings(trials).mean(axis=0)
    for name, own, ceiling in zip(depth.names, values, best, strict=True):
        if own > ceiling + _ROUNDING:
            return False, f"{name} is {own:.4f}, above its ceiling of {ceiling:.4f}"
    costs = _oracle_costs(case)
    spent, needed = _tokens(trials, costs)
    if needed and spent < LEAST_TOKENS * needed:
        return False, (
            f"evidence of {needed:,} tokens came back in {spent:,} tokens ({spent / needed:.1%}); "
            f"at least {LEAST_TOKENS:.0%} is needed"
        )
    tokens = f"; evidence came back in {spent / needed:.0%} of its tokens" if needed else ""
    return True, f"no figure is above its ceiling{tokens}"


def _tokens(trials: Sequence[Trial], costs: dict[tuple[str, str], int]) -> tuple[int, int]:
    """The tokens of the hits that carry evidence, and those of the evidence they carry."""
    spent = needed = 0
    for trial in trials:
        missing, plain = set(trial.evidence), is_plain(trial)
        for id, tokens in zip(trial.ranking, trial.tokens, strict=False):
            if plain and id not in missing:  # nearly all hits of nearly all runs
                continue
            fresh = missing.intersection(credited(trial, id))
            missing -= fresh
            if own := sum(costs.get((trial.scenario, one), 0) for one in fresh):
                spent, needed = spent + tokens, needed + own
    return spent, needed


def _oracle_costs(case: CheckedRun) -> dict[tuple[str, str], int]:
    """The tokens of each evidence memory, from the run of the oracle in the same folder."""
    return dict(_costs(case))


def _costs(case: CheckedRun) -> Iterator[tuple[tuple[str, str], int]]:
    run = RunDirectory(case.run.path.resolve().parent / "oracle")
    if not (run.path / "manifest.json").exists():
        return
    with suppress(MnemoscopeError):  # a run that cannot be read tells nothing
        if run.manifest().identity.get("benchmark") != case.manifest.identity.get("benchmark"):
            return
        for trial in case.baseline("oracle").trials:
            for id, tokens in zip(trial.ranking, trial.tokens, strict=False):
                if id in trial.evidence:
                    yield (trial.scenario, id), tokens
