"""A regression gate: has any figure fallen further below a baseline than it may?

A plain comparison of figures for continuous integration, with no test of significance; `compare`
is the one that says whether a difference is more than noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.aggregates import read_aggregates
from mnemoscope.analysis.compare import NotComparable, recorded_depth

_ROUNDING = 1e-9
"""Figures are recorded with ten digits."""


class GateRow(msgspec.Struct, frozen=True):
    """One metric against its baseline."""

    metric: str
    baseline: float
    current: float
    """Failed questions count as wrong on both sides: a gate must not pass because half the recalls
    timed out."""
    drop: float
    allowed: float
    passed: bool


def gate(run: RunDirectory, baseline: Path, max_drops: Mapping[str, float]) -> list[GateRow]:
    """One row for each metric named in `max_drops`, in that order.

    `baseline` is a run directory, or a metrics.json of ours or of pgmnemo's shape.
    """
    if not max_drops:
        raise UsageError("name at least one metric and how far it may drop")
    refuse_unlike(baseline, run.path)
    before, now = read_aggregates(baseline), read_aggregates(run.path)
    if before.data_sha256 and now.data_sha256 and before.data_sha256 != now.data_sha256:
        raise NotComparable("run and baseline were made from different data (sha256 differs)")
    rows = []
    for metric, allowed in max_drops.items():
        if not allowed >= 0:
            raise UsageError(f"{metric}={allowed}: a drop that is allowed is zero or more")
        old = _mean(before.means, metric, str(baseline)) * before.coverage
        new = _mean(now.means, metric, str(run.path)) * now.coverage
        drop = old - new
        rows.append(GateRow(metric, old, new, drop, allowed, drop <= allowed + _ROUNDING))
    return rows


def refuse_unlike(base: Path, cand: Path) -> None:
    """Raise NotComparable for two run directories of different data, options or depth.

    Aggregates alone do not say what they are of; what cannot be compared passes here.
    """
    runs = [run for path in (base, cand) if (run := _run_of(path)) is not None]
    for run in runs:
        if (state := run.manifest().state) != "complete":
            raise NotComparable(f"{run.path} is not complete (state {state})")
    if len(runs) < 2:
        return
    first, second = runs
    found = differences(
        first.manifest().identity["benchmark"], second.manifest().identity["benchmark"]
    )
    if recorded_depth(first) != recorded_depth(second):
        found.append("the depth of the rankings")
    if found:
        raise NotComparable(f"{base} and {cand} differ in {'; '.join(found)}")


def _run_of(path: Path) -> RunDirectory | None:
    """The run directory at `path`, or around its metrics.json."""
    folder = path.parent if path.name == "metrics.json" else path
    return RunDirectory(folder) if (folder / "manifest.json").exists() else None


def _mean(means: Mapping[str, tuple[float, int]], metric: str, where: str) -> float:
    if metric not in means:
        raise UsageError(f"no metric {metric!r} in {where}; it has {', '.join(means) or 'none'}")
    return means[metric][0]
