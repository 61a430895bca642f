"""Compare two runs: paired by question, tested, corrected, and given a verdict.

Both runs answered the same questions, so every test is paired: exact McNemar for hits, a paired t
for means; the interval of a difference resamples whole clusters of questions. A difference is
called better or worse only if its corrected p is below alpha and its interval excludes zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.answer_pairs import AnswerPairs, pair_answers
from mnemoscope.analysis.gates import changed_files
from mnemoscope.analysis.measure import Depth, few_clusters
from mnemoscope.metrics import headline, metric_of
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
from mnemoscope.types import FAILED, Trial

SEED = 42
OVERALL = "overall"


class NotComparable(MnemoscopeError):
    """Two results that answer different questions."""


class Row(msgspec.Struct, frozen=True):
    """One metric in one scope, base against candidate."""

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
    """Cohen's h for proportions, d_z (mean over standard deviation of the deltas) for means."""
    effect_label: str
    detectable: float
    """The smallest difference that this many questions could have shown, with power 0.8; NaN
    where no question changed, and nothing is known of how much they would."""
    verdict: Verdict
    gained: int | None = None
    lost: int | None = None
    p_wilcoxon: float | None = None
    p_permutation: float | None = None
    """Sign flips of whole clusters: what remains if only clusters are independent."""


class Discordant(msgspec.Struct, frozen=True):
    """A question that one run hit and the other missed."""

    question: str
    category: str
    text: str
    change: Literal["gained", "lost"]


class Comparison(msgspec.Struct, frozen=True):
    """Everything `mnemoscope compare` knows."""

    base: str
    cand: str
    benchmark: str
    paired: int
    only_base: int
    only_cand: int
    failed: int
    """Questions of both that at least one run did not fairly put; left out."""
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

    `metrics` is the family that Holm corrects over (default: the headline metrics); `band` names
    the difference that does not matter; `discordant` a hit metric whose changes are listed.
    """
    depth = _comparable(base, cand)
    answers = pair_answers(base, cand)
    graded = answers if isinstance(answers, AnswerPairs) else None
    known = [*depth.names, *([graded.metric] if graded else [])]
    names = list(metrics) or headline(depth.names) + known[len(depth.names) :]
    unknown = [name for name in names if name not in known]
    unknown += [name for name in filter(None, [discordant]) if name not in depth.names]
    if unknown:
        raise UsageError(f"no metric {unknown[0]!r} in these runs; they have {', '.join(known)}")
    pairs = _Pairs(base, cand)
    recalled = [name for name in names if name in depth.names]
    tables = [(_PairTable.of_trials(pairs.trials, depth, recalled), recalled)] if recalled else []
    if graded and graded.metric in names:
        tables.append((_PairTable.of_answers(graded), [graded.metric]))
    drafts = [
        draft for table, own in tables for draft in table.all_drafts(own, by_category=by_category)
    ]
    corrected = holm([draft.row.p_raw for draft in drafts])
    rows = [_decided(draft, p, band) for draft, p in zip(drafts, corrected.tolist(), strict=True)]
    return Comparison(
        base=base.label,
        cand=cand.label,
        benchmark=str(base.manifest().identity["benchmark"]["name"]),
        paired=len(pairs.trials),
        only_base=pairs.only_base,
        only_cand=pairs.only_cand,
        failed=pairs.failed,
        clusters=len(pairs.clusters),
        band=band,
        rows=rows,
        notes=[*pairs.notes(), *_told(answers), *_edits(base), *_edits(cand)],
        discordant=_discordant(base, pairs, depth, discordant) if discordant else [],
    )


def _told(answers: AnswerPairs | str | None) -> list[str]:
    if isinstance(answers, str):
        return [answers]
    if answers is None or not answers.left_out:
        return []
    about = f"{answers.left_out} questions have no grade in one of the runs"
    return [f"{about}; {answers.metric} leaves them out"]


def _edits(run: RunDirectory) -> list[str]:
    """Files that are not as the finished run left them."""
    changed = changed_files(run, run.manifest())
    return [f"{run.label}: {name} was changed after the run was finished" for name in changed]


def recorded_depth(run: RunDirectory) -> Depth:
    """How deep the run's rankings go, as its own metrics say."""
    metrics = run.read_json("metrics.json")
    return Depth(metrics["depth"], metrics.get("recorded_depth", 0))


def _comparable(base: RunDirectory, cand: RunDirectory) -> Depth:
    """The shared depth; refuses different datasets, scopes or metrics instead of guessing."""
    first, second = base.manifest(), cand.manifest()
    for run, manifest in ((base, first), (cand, second)):
        if manifest.state != "complete":
            raise NotComparable(f"{run.path} is not complete (state {manifest.state})")
    found = differences(first.identity["benchmark"], second.identity["benchmark"], "benchmark.")
    depths = recorded_depth(base), recorded_depth(cand)
    if depths[0] != depths[1]:
        found.append(f"depth of the rankings: {_depths(depths[0])} → {_depths(depths[1])}")
    if found:
        raise NotComparable(f"{base.label} and {cand.label} differ in {'; '.join(found)}")
    return depths[0]


def _depths(depth: Depth) -> str:
    beyond = f" (first ranks to {depth.recorded})" if depth.recorded else ""
    return f"{depth.returned}{beyond}"


class _Pairs:
    """Trials of the same question, side by side."""

    def __init__(self, base: RunDirectory, cand: RunDirectory) -> None:
        before = {t.question: t for t in base.trials() if t.evidence}
        after = {t.question: t for t in cand.trials() if t.evidence}
        shared = [question for question in before if question in after]
        if not shared:
            raise NotComparable("the two runs share no question")
        self.only_base = len(before) - len(shared)
        self.only_cand = len(after) - len(shared)
        fair = [
            question
            for question in shared
            if before[question].status not in FAILED and after[question].status not in FAILED
        ]
        self.failed = len(shared) - len(fair)
        if not fair:
            raise NotComparable("no question was fairly put in both runs")
        self.trials = [(before[question], after[question]) for question in fair]
        self.clusters = {before.cluster for before, _ in self.trials}

    def notes(self) -> list[str]:
        said = few_clusters(len(self.clusters))
        if self.only_base or self.only_cand:
            said.append(
                f"{self.only_base} questions are only in the base, {self.only_cand} only in the "
                "candidate; they are left out"
            )
        if self.failed:
            said.append(f"{self.failed} questions failed in one of the runs and are left out")
        return said


class _PairTable:
    """Values of all pairs: questions down, metrics across, once for each run."""

    def __init__(
        self,
        base: NDArray[np.float64],
        cand: NDArray[np.float64],
        categories: list[str],
        clusters: list[str],
    ) -> None:
        self.base = base
        self.cand = cand
        self.categories = np.array(categories)
        self.clusters = clusters
        bounded = all(((values >= 0) & (values <= 1)).all() for values in (base, cand))
        self._limits = (-1.0, 1.0) if bounded else (-inf, inf)

    @classmethod
    def of_trials(
        cls, pairs: Sequence[tuple[Trial, Trial]], depth: Depth, names: Sequence[str]
    ) -> _PairTable:
        columns = [depth.names.index(name) for name in names]
        return cls(
            np.array([depth.values(before) for before, _ in pairs])[:, columns],
            np.array([depth.values(after) for _, after in pairs])[:, columns],
            [before.category for before, _ in pairs],
            [before.cluster for before, _ in pairs],
        )

    @classmethod
    def of_answers(cls, pairs: AnswerPairs) -> _PairTable:
        return cls(pairs.base[:, None], pairs.cand[:, None], pairs.categories, pairs.clusters)

    def all_drafts(self, names: Sequence[str], *, by_category: bool) -> list[_Draft]:
        scopes = [(OVERALL, np.ones(len(self.base), dtype=bool))]
        if by_category:
            found = sorted(set(self.categories.tolist()))
            scopes += [(one, self.categories == one) for one in found if one]
        return [draft for scope, chosen in scopes for draft in self.drafts(scope, names, chosen)]

    def drafts(self, scope: str, names: Sequence[str], chosen: NDArray[np.bool_]) -> list[_Draft]:
        base, cand = self.base[chosen], self.cand[chosen]
        clusters = [c for c, keep in zip(self.clusters, chosen, strict=True) if keep]
        wide, narrow = (
            paired_bootstrap(
                base, cand, clusters, seed=SEED, confidence=confidence, limits=self._limits
            )
            for confidence in (0.95, 0.9)
        )
        flipped = permutation(cand - base, clusters, seed=SEED)
        return [
            _Draft(
                _row(
                    scope,
                    name,
                    base[:, i],
                    cand[:, i],
                    clusters,
                    (float(wide.low[i]), float(wide.high[i])),
                    float(flipped[i]),
                ),
                _interval90(cand[:, i] - base[:, i], narrow.low[i], narrow.high[i]),
            )
            for i, name in enumerate(names)
        ]


def _interval90(deltas: NDArray[np.float64], low: float, high: float) -> Interval:
    """The bootstrap's; where no question changed it has no width, and the rule of three speaks."""
    if deltas.any():
        return Interval(float(low), float(high))
    return Interval(-3 / len(deltas), 3 / len(deltas))


class _Draft(NamedTuple):
    """A row before the correction, and the interval that equivalence is judged by."""

    row: Row
    interval90: Interval


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
    n = len(deltas)
    size = effective_n(deltas, clusters)
    if name == "accuracy" or _is_proportion(name):
        gained, lost = int((deltas > 0).sum()), int((deltas < 0).sum())
        test, p_raw = "exact McNemar", mcnemar_exact(gained, lost)
        effect = cohens_h(float(base.mean()), float(cand.mean()))
        about: dict[str, Any] = {"gained": gained, "lost": lost, "effect_name": "h"}
        detectable = mdd_mcnemar((gained + lost) / n, size) if gained + lost else nan
    else:
        spread = float(deltas.std(ddof=1)) if n > 1 else 0.0
        test, p_raw = "paired t", paired_t(deltas).p
        effect = float(deltas.mean()) / spread if spread else 0.0
        about = {"effect_name": "d_z", "p_wilcoxon": wilcoxon(deltas).p}
        detectable = mdd_paired(spread, size) if spread else nan
    return Row(
        scope=scope,
        metric=name,
        n=n,
        base=float(base.mean()),
        cand=float(cand.mean()),
        delta=float(deltas.mean()),
        ci95=interval,
        test=test,
        p_raw=p_raw,
        p_corrected=p_raw,
        effect=effect,
        effect_label=effect_label(effect),
        detectable=detectable,
        verdict="cannot tell",
        p_permutation=p_permutation,
        **about,
    )


def _decided(draft: _Draft, p_corrected: float, band: float | None) -> Row:
    said = verdict(Interval(*draft.row.ci95), p_corrected, draft.interval90, band)
    return msgspec.structs.replace(draft.row, p_corrected=p_corrected, verdict=said)


def _is_proportion(name: str) -> bool:
    metric = metric_of(name)
    return metric is not None and metric.interval == "proportion"


def _discordant(base: RunDirectory, pairs: _Pairs, depth: Depth, metric: str) -> list[Discordant]:
    if not _is_proportion(metric):
        raise UsageError(f"{metric} is no hit metric: gained and lost need hit@k or all@k")
    column = depth.names.index(metric)
    texts = {line["id"]: line["question"] for line in base.questions()}
    found = []
    for before, after in pairs.trials:
        change = depth.values(after)[column] - depth.values(before)[column]
        if change:
            text = texts.get(before.question, "")
            kind: Literal["gained", "lost"] = "gained" if change > 0 else "lost"
            found.append(Discordant(before.question, before.category, text, kind))
    return found
