"""Are the baselines where they belong: the oracle at the ceiling, the random one at chance?

Judged from the trials, not from recorded figures. Each function says what is wrong, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.checked_run import CheckedRun, blocked_reason, changed_files, value_at
from mnemoscope.analysis.measure import Depth
from mnemoscope.types import Trial

CEILING_TOLERANCE = 1e-9
CHANCE_ERRORS = 3.0
"""Standard errors that the random baseline may lie from chance: 0.3 % false alarms; a plain 95 %
interval would raise one in twenty."""


def baselines_in_place(case: CheckedRun) -> tuple[bool, str]:
    """Whether the protocol's baselines ran beside the run, under its conditions, as they should."""
    if not case.ingestions:
        return False, "rankings made elsewhere have no arms that ran under the same conditions"
    said = {name: _fault(name, case) for name in case.protocol.arms}
    if faults := [f"{name}: {fault}" for name, fault in said.items() if fault]:
        return False, "; ".join(faults)
    spec = str(value_at(case.manifest, "identity.system.spec")).partition(",")[0]
    own = f"; {spec} is itself a sanity arm, no memory system" if spec in FAULTS else ""
    return True, f"{', '.join(said)} ran beside it and are where they belong{own}"


def _fault(name: str, case: CheckedRun) -> str:
    """What is wrong with a baseline; empty if nothing is."""
    own = case.run.path.resolve()
    folder = own.parent / name
    if folder != own and not (folder / "manifest.json").exists():
        return f"no run at ../{name}"
    run = RunDirectory(folder)
    baseline = case if folder == own else CheckedRun(run, run.manifest(), case.chosen, case.rules)
    if fault := _unlike(baseline.manifest, case.manifest, name):
        return fault
    if why := blocked_reason(run):
        return f"blocked: {why}"
    if changed := changed_files(run, baseline.manifest):
        return f"changed since the run: {', '.join(changed)}"
    fair, scorable = baseline.fair, len(baseline.scorable)
    if len(fair) < scorable or not fair:
        return f"only {len(fair):,} of {scorable:,} questions were fairly put"
    assert case.rules is not None
    fault_of = FAULTS.get(name)
    return fault_of(fair, Depth(baseline.depth), case.rules.primary) if fault_of else ""


def _unlike(baseline: Manifest, own: Manifest, name: str) -> str:
    if baseline.state != "complete":
        return f"not complete (state {baseline.state})"
    if (system := str(value_at(baseline, "identity.system.spec")).partition(",")[0]) != name:
        return f"was made with {system}"
    wanted = {key: own.identity.get(key) for key in ("benchmark", "depth", "seed")}
    found = {key: baseline.identity.get(key) for key in wanted}
    return "another benchmark: " + "; ".join(apart) if (apart := differences(wanted, found)) else ""


def oracle_fault(trials: Sequence[Trial], depth: Depth, primary: str) -> str:
    """The oracle knows the evidence: every metric must reach the best that any ranking could."""
    reached = np.array([depth.values(trial) for trial in trials]).mean(axis=0)
    best = np.array([depth.ceilings(trial) for trial in trials]).mean(axis=0)
    for name, own, ceiling in zip(depth.names, reached, best, strict=True):
        if abs(own - ceiling) > CEILING_TOLERANCE:
            return f"{name} is {own:.4f}, though {ceiling:.4f} can be reached"
    return ""


def random_fault(trials: Sequence[Trial], depth: Depth, primary: str) -> str:
    """A shuffle must score what chance says, in the primary metric.

    Each question has its own exact expectation and its own shuffle, so the differences to chance
    are independent with mean zero. That is much sharper than the figure's interval, which also
    holds how conversations differ in size.
    """
    column = depth.names.index(primary)
    apart = np.array([depth.values(t)[column] - depth.chances(t)[column] for t in trials])
    if not np.isfinite(apart).all():
        return "chance is not known"
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
"""Baselines of which it is known where they belong; of bm25 only that it ran is asked."""
