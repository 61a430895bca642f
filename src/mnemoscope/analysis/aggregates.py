"""Compare results by their means alone, from our metrics.json or another project's.

`gate` compares means for continuous integration, without a significance test. Means cannot be
paired by question, so `compare` falls back on the unpaired procedure of pgmnemo's release process,
computed exactly as its tool does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.pairing import NotComparable, recorded_depth
from mnemoscope.stats import cohens_h, effect_label, holm, two_proportion_z, wilson

SEED_METRICS = ("recall@1", "recall@5", "recall@10", "recall@20", "recall@25", "recall@50", "mrr")
"""The metrics that the publisher's tool tries, in its order."""
ALPHA = 0.05
_ROUNDING = 1e-9
"""Tolerance for figures that are recorded with ten digits."""
CAVEAT = (
    "Use these intervals and tests for comparability only: they assume proportions from two "
    "separate samples, but fractional recall and MRR are not proportions, and both runs answered "
    "the same questions. Paired tests need the rankings of both runs."
)


class Aggregates(msgspec.Struct, frozen=True):
    """Means, each with its number of questions."""

    label: str
    means: dict[str, tuple[float, int]]
    data_sha256: str = ""
    coverage: float = 1.0
    """Share of the questions that were measured; 1 where the file does not record it."""


class GateRow(msgspec.Struct, frozen=True):
    """One metric of a run against the baseline."""

    metric: str
    baseline: float
    current: float
    """Failed questions count as wrong on both sides, so that timeouts cannot make a gate pass."""
    drop: float
    allowed: float
    passed: bool


class SeedRow(msgspec.Struct, frozen=True):
    """One metric under the release process's unpaired procedure."""

    metric: str
    base: float
    base_ci95: tuple[float, float]
    cand: float
    cand_ci95: tuple[float, float]
    delta: float
    z: float
    p_raw: float
    p_corrected: float
    h: float
    effect_label: str
    significant: bool


def read_aggregates(path: Path) -> Aggregates:
    """Read a run directory, or a metrics.json in our format or in pgmnemo's."""
    file = path / "metrics.json" if path.is_dir() else path
    try:
        content = msgspec.json.decode(file.read_bytes())
        overall = content["overall"]
        means = {name: _mean(v) for name, v in overall.items()}
        claimed = content.get("credit", {}).get("claimed", {})
        means |= {f"claimed_{name}": _mean(v) for name, v in claimed.items()}
    except FileNotFoundError:
        raise MissingData(f"no such file: {file}") from None
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            "expected overall.METRIC.mean and overall.METRIC.n for every metric "
            f"({type(error).__name__}: {error})",
            file=file,
        ) from None
    if "mrr" not in means and (deepest := [name for name in means if name.startswith("mrr@")]):
        means["mrr"] = means[deepest[-1]]
    label = path.name if path.is_dir() else str(path)
    coverage = content.get("questions", {}).get("coverage", 1.0)
    if "dataset_sha256" in content:
        data = str(content["dataset_sha256"])
    else:
        data = ",".join(content.get("benchmark", {}).get("sha256", ()))
    return Aggregates(label, means, data, float(coverage or 0.0))


def gate(run: RunDirectory, baseline: Path, max_drops: Mapping[str, float]) -> list[GateRow]:
    """Compare each metric named in `max_drops` with the baseline, in that order.

    `baseline` is a run directory, or a metrics.json in our format or in pgmnemo's.
    """
    if not max_drops:
        raise UsageError("name at least one metric and its largest allowed drop")
    refuse_unlike(baseline, run.path)
    before, now = read_aggregates(baseline), read_aggregates(run.path)
    if before.data_sha256 and now.data_sha256 and before.data_sha256 != now.data_sha256:
        raise NotComparable("run and baseline were made from different data (sha256 differs)")
    rows = []
    for metric, allowed in max_drops.items():
        if not allowed >= 0:
            raise UsageError(f"{metric}={allowed}: the allowed drop must be zero or more")
        for where, side in ((baseline, before), (run.path, now)):
            if metric not in side.means:
                known = ", ".join(side.means) or "no metrics"
                raise UsageError(f"{where} has no metric {metric!r}; it has {known}")
        old, new = (side.means[metric][0] * side.coverage for side in (before, now))
        drop = old - new
        rows.append(GateRow(metric, old, new, drop, allowed, drop <= allowed + _ROUNDING))
    return rows


def refuse_unlike(base: Path, cand: Path) -> None:
    """Raise NotComparable if two run directories differ in data, options or depth.

    A metrics.json outside a run directory records none of these, so it is accepted.
    """
    folders = [path.parent if path.name == "metrics.json" else path for path in (base, cand)]
    runs = [RunDirectory(folder) for folder in folders if (folder / "manifest.json").exists()]
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
        found.append("ranking depth")
    if found:
        raise NotComparable(f"{base} and {cand} differ in {'; '.join(found)}")


def seed_comparison(base: Aggregates, cand: Aggregates) -> list[SeedRow]:
    """Compute Wilson intervals, z-tests with an n-weighted pool, Holm and Cohen's h."""
    if base.data_sha256 and cand.data_sha256 and base.data_sha256 != cand.data_sha256:
        raise NotComparable("the two results were made from different data (sha256 differs)")
    shared = [m for m in SEED_METRICS if m in base.means and m in cand.means]
    if not shared:
        raise NotComparable("the two results share none of the metrics " + ", ".join(SEED_METRICS))
    tests = [two_proportion_z(*base.means[m], *cand.means[m], pool="weighted") for m in shared]
    corrected = holm([test.p for test in tests]).tolist()
    rows = []
    for metric, test, p in zip(shared, tests, corrected, strict=True):
        # The publisher's tool takes Wilson of the rounded count mean·n, but z and h of the means.
        (before, n1), (after, n2) = base.means[metric], cand.means[metric]
        h = cohens_h(before, after)
        rows.append(
            SeedRow(
                metric=metric,
                base=before,
                base_ci95=wilson(round(before * n1), n1),
                cand=after,
                cand_ci95=wilson(round(after * n2), n2),
                delta=after - before,
                z=test.z,
                p_raw=test.p,
                p_corrected=p,
                h=h,
                effect_label=effect_label(h),
                significant=p < ALPHA,
            )
        )
    return rows


def _mean(figure: Mapping[str, Any]) -> tuple[float, int]:
    mean, n = float(figure["mean"]), int(figure["n"])
    if not 0 <= mean <= 1 or n < 1:
        raise ValueError(f"mean {mean} of {n} questions")
    return mean, n
