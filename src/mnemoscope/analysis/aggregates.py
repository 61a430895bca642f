"""Results of which only the means are read: other projects' metrics.json, or ours.

`gate` compares means for continuous integration, without a test of significance. Without values of
each question nothing can be paired; what is left for `compare` is the unpaired procedure of
pgmnemo's release process, exactly as its tool computes it, for comparability.
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
"""Figures are recorded with ten digits."""
CAVEAT = (
    "Fractional recall and MRR are no proportions, and both runs answered the same questions: "
    "these intervals and tests are given for comparability only. Paired tests need both runs' "
    "rankings."
)


class Aggregates(msgspec.Struct, frozen=True):
    """Means and how many questions they are over."""

    label: str
    means: dict[str, tuple[float, int]]
    data_sha256: str = ""
    coverage: float = 1.0
    """Share of the questions that the means are over; others' files do not say."""


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
    """Of a run directory, or of a metrics.json of ours or of pgmnemo's shape."""
    file = path / "metrics.json" if path.is_dir() else path
    try:
        content = msgspec.json.decode(file.read_bytes())
        overall = content["overall"]
        means = {name: _mean(v) for name, v in overall.items()}
    except FileNotFoundError:
        raise MissingData(f"no such file: {file}") from None
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"no metrics with overall.METRIC.mean and .n ({type(error).__name__}: {error})",
            file=file,
        ) from None
    if "mrr" not in means and (deepest := [name for name in means if name.startswith("mrr@")]):
        means["mrr"] = means[deepest[-1]]
    label = path.name if path.is_dir() else str(path)
    coverage = content.get("questions", {}).get("coverage", 1.0)
    return Aggregates(label, means, _data_hash(content), float(coverage or 0.0))


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
        for where, side in ((baseline, before), (run.path, now)):
            if metric not in side.means:
                has = ", ".join(side.means) or "none"
                raise UsageError(f"no metric {metric!r} in {where}; it has {has}")
        old, new = (side.means[metric][0] * side.coverage for side in (before, now))
        drop = old - new
        rows.append(GateRow(metric, old, new, drop, allowed, drop <= allowed + _ROUNDING))
    return rows


def refuse_unlike(base: Path, cand: Path) -> None:
    """Raise NotComparable for two run directories of different data, options or depth.

    Aggregates alone do not say what they are of; what cannot be compared passes here.
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
        found.append("the depth of the rankings")
    if found:
        raise NotComparable(f"{base} and {cand} differ in {'; '.join(found)}")


def seed_comparison(base: Aggregates, cand: Aggregates) -> list[SeedRow]:
    """Wilson, the pooled z-test with n-weighted pool, Holm and Cohen's h."""
    if base.data_sha256 and cand.data_sha256 and base.data_sha256 != cand.data_sha256:
        raise NotComparable("the two results were made from different data (sha256 differs)")
    shared = [m for m in SEED_METRICS if m in base.means and m in cand.means]
    if not shared:
        raise NotComparable("the two results share none of the metrics " + ", ".join(SEED_METRICS))
    rows = [_seed_row(metric, base.means[metric], cand.means[metric]) for metric in shared]
    corrected = holm([row.p_raw for row in rows]).tolist()
    return [
        msgspec.structs.replace(row, p_corrected=p, significant=p < ALPHA)
        for row, p in zip(rows, corrected, strict=True)
    ]


def _seed_row(metric: str, base: tuple[float, int], cand: tuple[float, int]) -> SeedRow:
    (before, n1), (after, n2) = base, cand
    # As the publisher's tool: Wilson of the rounded count mean·n, z and h of the means as they are.
    test = two_proportion_z(before, n1, after, n2, pool="weighted")
    h = cohens_h(before, after)
    return SeedRow(
        metric=metric,
        base=before,
        base_ci95=wilson(round(before * n1), n1),
        cand=after,
        cand_ci95=wilson(round(after * n2), n2),
        delta=after - before,
        z=test.z,
        p_raw=test.p,
        p_corrected=test.p,
        h=h,
        effect_label=effect_label(h),
        significant=False,
    )


def _mean(figure: Mapping[str, Any]) -> tuple[float, int]:
    mean, n = float(figure["mean"]), int(figure["n"])
    if not 0 <= mean <= 1 or n < 1:
        raise ValueError(f"mean {mean} of {n} questions")
    return mean, n


def _data_hash(content: Mapping[str, Any]) -> str:
    """The sha256 of the data that the figures are of, where the file says it."""
    if "dataset_sha256" in content:
        return str(content["dataset_sha256"])
    return ",".join(content.get("benchmark", {}).get("sha256", ()))
