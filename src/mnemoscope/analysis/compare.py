"""Compare two runs question by question: paired tests, corrected p-values and a verdict.

Proportions are tested with exact McNemar, means with a paired t-test. The interval of a difference
resamples whole clusters of questions. The verdict is better or worse only if the corrected p is
below alpha and the interval excludes zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.checked_run import changed_files
from mnemoscope.analysis.measure import Depth, few_clusters, is_binary
from mnemoscope.analysis.pairing import NotComparable as NotComparable
from mnemoscope.analysis.pairing import (
    PairedAnswers,
    PairedTrials,
    PairedValues,
    pair_answers,
    pair_trials,
    recorded_depth,
)
from mnemoscope.metrics import PRIMARY, headline, metric_of
from mnemoscope.stats import (
    Interval,
    Verdict,
    cohens_h,
    effect_label,
    effective_n,
    holm,
    mcnemar_exact,
    mdd_mcnemar,
    mdd_paired,
    paired_bootstrap,
    paired_t,
    permutation,
    verdict,
    wilcoxon,
)

SEED = 42
OVERALL = "overall"


class Row(msgspec.Struct, frozen=True):
    """One metric over all questions or in one category, base against candidate."""

    scope: str
    metric: str
    n: int
    base: float
    cand: float
    delta: float
    ci95: tuple[float, float]
    test: str
    p_raw: float
    p_corrected: float
    effect: float
    effect_name: str
    """`h` is Cohen's h, for proportions; `d_z` is mean / standard deviation of the differences."""
    effect_label: str
    detectable: float
    """The minimum detectable difference with power 0.8; NaN where no question changed, since the
    variance of the differences is then unknown."""
    verdict: Verdict
    gained: int | None = None
    lost: int | None = None
    p_wilcoxon: float | None = None
    p_permutation: float | None = None
    """From sign flips of whole clusters: it assumes only that clusters are independent."""


class Discordant(msgspec.Struct, frozen=True):
    """A question that one run hit and the other missed."""

    question: str
    category: str
    text: str
    change: Literal["gained", "lost"]


class Comparison(msgspec.Struct, frozen=True):
    """The full result of `mnemoscope compare`."""

    base: str
    cand: str
    benchmark: str
    paired: int
    only_base: int
    only_cand: int
    failed: int
    """Shared questions that failed in at least one of the runs; they are left out."""
    clusters: int
    band: float | None
    rows: list[Row]
    notes: list[str]
    discordant: list[Discordant] = []

    @property
    def regressed(self) -> bool:
        return any(row.verdict == "worse" for row in self.rows)

    def row(self, metric: str, scope: str = OVERALL) -> Row:
        for row in self.rows:
            if (row.metric, row.scope) == (metric, scope):
                return row
        raise UsageError(f"the comparison has no {metric} in {scope}")


def compare(
    base: RunDirectory,
    cand: RunDirectory,
    *,
    metrics: Sequence[str] = (),
    band: float | None = None,
    by_category: bool = True,
    discordant: str = "",
) -> Comparison:
    """Compare two finished runs of one benchmark.

    `metrics` is the family that Holm corrects over (default: the headline metrics). `band` is the
    largest difference that counts as equivalent. `discordant` is a hit metric whose gained and
    lost questions are listed.
    """
    depth = _comparable(base, cand)
    answers = pair_answers(base, cand)
    graded = answers if isinstance(answers, PairedAnswers) else None
    known = [*depth.names, *([graded.metric] if graded else [])]
    names = list(metrics) or headline(depth.names) + known[len(depth.names) :]
    unknown = [name for name in names if name not in known]
    unknown += [name for name in filter(None, [discordant]) if name not in depth.names]
    if unknown:
        raise UsageError(f"these runs have no metric {unknown[0]!r}; they have {', '.join(known)}")
    pairs = pair_trials(base, cand)
    recalled = [name for name in names if name in depth.names]
    tables = [pairs.values(depth, recalled)] if recalled else []
    if graded and graded.metric in names:
        tables.append(graded.values)
    drafts: list[tuple[Row, Interval]] = []
    for table in tables:
        drafts += _rows(OVERALL, table, table.limits)
        for category in sorted(set(table.categories) - {""}) if by_category else ():
            drafts += _rows(category, table.of_category(category), table.limits)
    corrected = holm([row.p_raw for row, _ in drafts]).tolist()
    return Comparison(
        base=base.label,
        cand=cand.label,
        benchmark=str(base.manifest().identity["benchmark"]["name"]),
        paired=len(pairs.trials),
        only_base=pairs.only_base,
        only_cand=pairs.only_cand,
        failed=pairs.failed,
        clusters=pairs.clusters,
        band=band,
        rows=[
            msgspec.structs.replace(
                row, p_corrected=p, verdict=verdict(Interval(*row.ci95), p, interval90, band)
            )
            for (row, interval90), p in zip(drafts, corrected, strict=True)
        ],
        notes=[
            *_notes(pairs, answers),
            *(note for run in (base, cand) for note in _credit_note(run)),
            *(
                f"{run.label}: {name} was changed after the run was finished"
                for run in (base, cand)
                for name in changed_files(run, run.manifest())
            ),
        ],
        discordant=_discordant(base, pairs, depth, discordant) if discordant else [],
    )


def _notes(pairs: PairedTrials, answers: PairedAnswers | str | None) -> list[str]:
    """Say which questions were left out, and warn about few clusters."""
    notes = few_clusters(pairs.clusters)
    if pairs.only_base or pairs.only_cand:
        notes.append(
            f"{pairs.only_base} questions are only in the base, {pairs.only_cand} only in the "
            "candidate; they are left out"
        )
    if pairs.failed:
        notes.append(f"{pairs.failed} questions failed in one of the runs and are left out")
    if isinstance(answers, str):
        notes.append(answers)
    elif answers is not None and answers.left_out:
        about = f"{answers.left_out} questions have no grade in one of the runs"
        notes.append(f"{about}; {answers.metric} leaves them out")
    return notes


def _credit_note(run: RunDirectory) -> list[str]:
    """Say what the hits of a run claim, if its texts do not carry all of it."""
    metrics = run.read_json("metrics.json")
    credit = metrics.get("credit")
    if not credit or not credit["questions"]:
        return []
    name = PRIMARY if PRIMARY in credit["claimed"] else next(iter(credit["claimed"]))
    claimed, carried = credit["claimed"][name]["mean"], metrics["overall"][name]["mean"]
    rate = credit["recall_per_1000_tokens"]["carried"] or 0.0
    return [
        f"{run.label}: {name} claimed {claimed:.4f}, carried {carried:.4f} (compared here), "
        f"recall per 1,000 tokens {rate:.3f}"
    ]


def _comparable(base: RunDirectory, cand: RunDirectory) -> Depth:
    """Return the shared depth; raise NotComparable if data, options or depth differ."""
    first, second = base.manifest(), cand.manifest()
    for run, manifest in ((base, first), (cand, second)):
        if manifest.state != "complete":
            raise NotComparable(f"{run.path} is not complete (state {manifest.state})")
    found = differences(first.identity["benchmark"], second.identity["benchmark"], "benchmark.")
    depths = recorded_depth(base), recorded_depth(cand)
    if depths[0] != depths[1]:
        shown = (
            f"{depth.returned}" + (f" (first ranks to {depth.recorded})" if depth.recorded else "")
            for depth in depths
        )
        found.append(f"ranking depth: {' → '.join(shown)}")
    if found:
        raise NotComparable(f"{base.label} and {cand.label} differ in {'; '.join(found)}")
    return depths[0]


def _rows(
    scope: str, pairs: PairedValues, limits: tuple[float, float]
) -> list[tuple[Row, Interval]]:
    """Return each metric's row before correction, with the 90 % interval for equivalence."""
    base, cand, clusters = pairs.base, pairs.cand, pairs.clusters
    wide, narrow = (
        paired_bootstrap(base, cand, clusters, seed=SEED, confidence=confidence, limits=limits)
        for confidence in (0.95, 0.9)
    )
    flipped = permutation(cand - base, clusters, seed=SEED)
    rows = []
    for i, name in enumerate(pairs.metrics):
        interval = (float(wide.low[i]), float(wide.high[i]))
        row = _row(scope, name, base[:, i], cand[:, i], clusters, interval, float(flipped[i]))
        interval90 = Interval(float(narrow.low[i]), float(narrow.high[i]))
        if (base[:, i] == cand[:, i]).all():
            # If no question changed, the bootstrap interval has no width: use the rule of three.
            interval90 = Interval(-3 / len(base), 3 / len(base))
        rows.append((row, interval90))
    return rows


def _row(
    scope: str,
    name: str,
    base: NDArray[np.float64],
    cand: NDArray[np.float64],
    clusters: Sequence[str],
    interval: tuple[float, float],
    p_permutation: float,
) -> Row:
    deltas = cand - base
    n, size = len(deltas), effective_n(deltas, clusters)
    before, after = float(base.mean()), float(cand.mean())
    gained: int | None = None
    lost: int | None = None
    p_wilcoxon: float | None = None
    # Means over orders lie between 0 and 1; McNemar's test is for hits and misses.
    counted = _is_proportion(name) and is_binary(base) and is_binary(cand)
    if name == "accuracy" or counted:
        gained, lost = int((deltas > 0).sum()), int((deltas < 0).sum())
        p_raw = mcnemar_exact(gained, lost)
        effect = cohens_h(before, after)
        detectable = mdd_mcnemar((gained + lost) / n, size) if gained + lost else nan
    else:
        spread = float(deltas.std(ddof=1)) if n > 1 else 0.0
        p_raw, p_wilcoxon = paired_t(deltas).p, wilcoxon(deltas).p
        effect = float(deltas.mean()) / spread if spread else 0.0
        detectable = mdd_paired(spread, size) if spread else nan
    return Row(
        scope=scope,
        metric=name,
        n=n,
        base=before,
        cand=after,
        delta=float(deltas.mean()),
        ci95=interval,
        test="paired t" if gained is None else "exact McNemar",
        p_raw=p_raw,
        p_corrected=p_raw,
        effect=effect,
        effect_name="d_z" if gained is None else "h",
        effect_label=effect_label(effect),
        detectable=detectable,
        verdict="cannot tell",
        gained=gained,
        lost=lost,
        p_wilcoxon=p_wilcoxon,
        p_permutation=p_permutation,
    )


def _is_proportion(name: str) -> bool:
    metric = metric_of(name)
    return metric is not None and metric.interval == "proportion"


def _discordant(
    base: RunDirectory, pairs: PairedTrials, depth: Depth, metric: str
) -> list[Discordant]:
    if not _is_proportion(metric):
        raise UsageError(
            f"{metric} is not a hit metric: gained and lost questions exist for hit@k and all@k"
        )
    column = depth.names.index(metric)
    texts = {line["id"]: line["question"] for line in base.questions()}
    found = []
    for before, after in pairs.trials:
        if change := depth.values(after)[column] - depth.values(before)[column]:
            text = texts.get(before.question, "")
            kind: Literal["gained", "lost"] = "gained" if change > 0 else "lost"
            found.append(Discordant(before.question, before.category, text, kind))
    return found
