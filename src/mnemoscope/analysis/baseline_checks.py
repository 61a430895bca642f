"""Check the baselines of a run: the oracle must reach the ceiling, random must score at chance.

The checks use the trials, not the recorded figures. Each returns the fault, or an empty string.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import Manifest
from mnemoscope.analysis.checked_run import CheckedRun, blocked_reason, value_at
from mnemoscope.analysis.measure import Depth
from mnemoscope.types import Trial

CEILING_TOLERANCE = 1e-9
CHANCE_ERRORS = 3.0
"""How many standard errors the random baseline may differ from chance: 0.3 % false alarms, where
a 95 % interval would give 5 %."""


def baselines_in_place(case: CheckedRun) -> tuple[bool, str]:
    """Whether the protocol's baselines ran under the same conditions with the expected scores."""
    if not case.ingestions:
        return False, "the rankings were read from a file, so no baselines ran under its conditions"
    names = case.protocol.arms
    if faults := [f"{name}: {fault}" for name in names if (fault := _fault(name, case))]:
        return False, "; ".join(faults)
    spec = str(value_at(case.manifest, "identity.system.spec")).partition(",")[0]
    own = f"; {spec} is itself a baseline, not a memory system" if spec in FAULTS else ""
    return True, f"{', '.join(names)} ran under the same conditions with the expected scores{own}"


def _fault(name: str, case: CheckedRun) -> str:
    """Return what is wrong with a baseline; empty if it is as expected."""
    own = case.run.path.resolve()
    folder = own.parent / name
    if folder != own and not (folder / "manifest.json").exists():
        return f"there is no run at ../{name}"
    baseline = case.baseline(name)
    if fault := _unlike(baseline.manifest, case.manifest, name):
        return fault
    if why := blocked_reason(baseline.run):
        return f"blocked: {why}"
    if edited := baseline.run.edited_files():
        return f"changed since the run: {', '.join(edited)}"
    measured, scorable = baseline.measured, len(baseline.scorable)
    if len(measured) < scorable or not measured:
        return f"only {len(measured):,} of {scorable:,} questions were measured"
    assert case.rules is not None
    fault_of = FAULTS.get(name)
    return fault_of(measured, Depth(baseline.depth), case.rules.primary) if fault_of else ""


def _unlike(baseline: Manifest, own: Manifest, name: str) -> str:
    if baseline.state != "complete":
        return f"not complete (state {baseline.state})"
    if (system := str(value_at(baseline, "identity.system.spec")).partition(",")[0]) != name:
        return f"the run is of another system, {system}"
    wanted = {key: own.identity.get(key) for key in ("benchmark", "depth", "seed")}
    found = {key: baseline.identity.get(key) for key in wanted}
    return "another benchmark: " + "; ".join(apart) if (apart := differences(wanted, found)) else ""


def oracle_fault(trials: Sequence[Trial], depth: Depth, primary: str) -> str:
    """The oracle knows the evidence, so every metric must reach its ceiling."""
    reached = depth.all_values(trials).mean(axis=0)
    best = depth.all_ceilings(trials).mean(axis=0)
    for name, own, ceiling in zip(depth.names, reached, best, strict=True):
        if abs(own - ceiling) > CEILING_TOLERANCE:
            return f"{name} is {own:.4f}, the ceiling is {ceiling:.4f}"
    return ""


def random_fault(trials: Sequence[Trial], depth: Depth, primary: str) -> str:
    """A random ranking must score at chance in the primary metric.

    Each question has an exact expectation and a separate shuffle, so the differences from chance
    are independent with mean zero. This test is sharper than the figure's interval, which also
    includes how conversations differ in size.
    """
    column = depth.names.index(primary)
    apart = depth.all_values(trials)[:, column] - depth.all_chances(trials)[:, column]
    if not np.isfinite(apart).all():
        return "the expected score of a random ranking is unknown"
    error = float(apart.std(ddof=1)) / sqrt(len(apart)) if len(apart) > 1 else 1.0
    if abs(apart.mean()) <= CHANCE_ERRORS * error + CEILING_TOLERANCE:
        return ""
    return (
        f"{primary} is {apart.mean():+.4f} from chance, more than {CHANCE_ERRORS:g} "
        f"standard errors of {error:.4f}"
    )


FAULTS: dict[str, Callable[[Sequence[Trial], Depth, str], str]] = {
    "oracle": oracle_fault,
    "random": random_fault,
}
"""Baselines whose scores are known in advance. bm25 must only have run."""
