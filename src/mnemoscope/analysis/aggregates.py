"""Results of which only the aggregates exist: other projects' metrics.json, or ours.

Without per-question values nothing can be paired; what is left is the unpaired procedure of
pgmnemo's release process, exactly as its tool computes it, for comparability.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.analysis.compare import NotComparable
from mnemoscope.stats import cohens_h, effect_label, holm, two_proportion_z, wilson

SEED_METRICS = ("recall@1", "recall@5", "recall@10", "recall@20", "recall@25", "recall@50", "mrr")
"""The metrics that the publisher's tool tries, in its order."""
ALPHA = 0.05
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
    """From a run directory, or a metrics.json of ours or of pgmnemo's shape."""
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


def _mean(figure: dict[str, Any]) -> tuple[float, int]:
    mean, n = float(figure["mean"]), int(figure["n"])
    if not 0 <= mean <= 1 or n < 1:
        raise ValueError(f"mean {mean} of {n} questions")
    return mean, n


def _data_hash(content: dict[str, Any]) -> str:
    """The sha256 of the data that the figures are of, where the file says it."""
    if "dataset_sha256" in content:
        return str(content["dataset_sha256"])
    return ",".join(content.get("benchmark", {}).get("sha256", ()))
