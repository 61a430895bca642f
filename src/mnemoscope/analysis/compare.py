"""Compare two runs question by question with the one decision engine (`stats/clustered.py`).

The pooled mean of the question-wise differences has one interval, from clusters of questions, and
this interval gives the verdict; p is the same formula read backwards. The family is declared before
the runs, by a plan or by their protocol: one primary metric, then secondary metrics with
simultaneous intervals. Categories are exploration, and so is a metric that was chosen afterwards:
they have intervals but no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Literal

import msgspec
import numpy as np

from mnemoscope._store.errors import UsageError
from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.comparison import (
    OVERALL,
    ClusterDelta,
    Comparison,
    Declared,
    Discordant,
    Guarded,
    Role,
    Row,
)
from mnemoscope.analysis.disclosure_pairs import is_right_metric, pair_texts
from mnemoscope.analysis.measure import Depth, is_binary, withheld_note
from mnemoscope.analysis.pairing import NotComparable as NotComparable
from mnemoscope.analysis.pairing import (
    PairedAnswers,
    PairedTrials,
    PairedValues,
    distinct_labels,
    known_metrics,
    pair_answers,
    pair_trials,
    recorded_depth,
)
from mnemoscope.analysis.repeats import repeat_caveat
from mnemoscope.metrics import PRIMARY, headline, metric_of
from mnemoscope.protocols import load_protocol
from mnemoscope.stats import cohens_h, effect_label, permutation
from mnemoscope.stats.clustered import (
    FEW_CLUSTERS,
    ClusterSums,
    Difference,
    Interval,
    beyond_these,
    cluster_sums,
    difference,
)
from mnemoscope.stats.families import Family, bonferroni, max_t
from mnemoscope.stats.power import detectable
from mnemoscope.stats.verdicts import Verdict, verdict_of

SEED = 42
SHOWN_CLUSTERS = 20
"""Up to this many clusters, the difference in each is part of the comparison."""
_FLIPPED_CLUSTERS = 6
"""With fewer clusters, flipping their signs cannot give a p below 0.05."""
_MANY_CLUSTERS = 50
_DEFAULT = "default"


def compare(
    base: RunDirectory,
    cand: RunDirectory,
    *,
    metrics: Sequence[str] = (),
    band: float | None = None,
    by_category: bool = True,
    discordant: str = "",
    declared: Declared | None = None,
) -> Comparison:
    """Compare two finished runs of one benchmark.

    `declared` names the primary and secondary metrics (default: those of the runs' protocol, else
    recall@10 and the headline metrics; of disclosure runs, `right` and these). `metrics` selects
    which rows are returned beside the primary one; those that were not declared have no verdict.
    `band` is the largest difference that counts as equivalent. `discordant` is a hit metric whose
    gained and lost questions are listed.
    """
    depth = shared_depth(base, cand)
    texts = pair_texts(base, cand)
    answers = texts or pair_answers(base, cand)
    graded = answers if isinstance(answers, PairedAnswers) else None
    pairs = _ranked_pairs(base, cand, answers)
    of_rankings = known_metrics(depth, pairs) if pairs.trials else []
    known = [*of_rankings, *([graded.metric] if graded else [])]
    unknown = [name for name in metrics if name not in known]
    unknown += [name for name in filter(None, [discordant]) if name not in of_rankings]
    if unknown:
        cut = ": some lists end before that depth" if unknown[0] in depth.names else ""
        raise UsageError(
            f"these runs have no metric {unknown[0]!r}{cut}; they have {', '.join(known)}"
        )
    notes: list[str] = []
    given = declared or declaration_of(base, cand, of_rankings, texts, notes)
    if graded and not of_rankings and given.source == _DEFAULT:
        given = Declared(graded.metric, [], _DEFAULT)
    family = _available(given, known, [graded.metric] if graded and not declared else [], notes)
    names = list(dict.fromkeys([*family, *metrics]))
    everything = values_of(names, pairs, depth, graded)
    roles = dict.fromkeys(names, "chosen after looking") | _roles(given, family)
    overall = rows_of(OVERALL, everything, roles, given, band)
    chosen = [name for name in names if not metrics or name in (*metrics, given.primary)]
    rows = [row for row in overall if row.metric in chosen]
    kept_back = base.manifest().withheld | cand.manifest().withheld
    known_categories = sorted(set(everything.categories) - {"", *kept_back})
    notes += map(withheld_note, kept_back.values())
    for category in known_categories if by_category else ():
        part = everything.of_category(category)
        rows += rows_of(category, part, dict.fromkeys(chosen, "category"), given, None)
    labels = distinct_labels((base, cand))
    return Comparison(
        base=labels[0],
        cand=labels[1],
        benchmark=str(base.manifest().identity["benchmark"]["name"]),
        paired=len(pairs.trials) or len(everything.questions),
        only_base=pairs.only_base,
        only_cand=pairs.only_cand,
        failed=pairs.failed,
        clusters=pairs.clusters or len(set(everything.clusters)),
        band=band,
        declared=given,
        rows=rows,
        guarded=guarded_rows(everything, family, given.alpha) if not given.refused else [],
        by_cluster=_by_cluster(everything, given.primary if given.primary in names else names[0]),
        notes=[
            *(f"{run.label} is {note}" for run in (base, cand) if (note := _repeat_note(run))),
            *notes,
            *_notes(pairs, answers),
            *(note for run in (base, cand) for note in _credit_note(run)),
        ],
        discordant=_discordant(base, pairs, depth, discordant) if discordant else [],
    )


def _ranked_pairs(
    base: RunDirectory, cand: RunDirectory, answers: PairedAnswers | str | None
) -> PairedTrials:
    """The paired rankings; none if neither run has one, as with answers from outside."""
    if answers is None or any(any(run.trials()) for run in (base, cand)):
        return pair_trials(base, cand)
    if isinstance(answers, str):
        raise NotComparable(answers)
    return PairedTrials([], 0, 0, 0)


def declaration_of(
    base: RunDirectory,
    cand: RunDirectory,
    of_rankings: Sequence[str],
    texts: PairedAnswers | None,
    notes: list[str],
) -> Declared:
    """What the protocol of both runs declares, else the default: recall@10 and the headline.

    Of disclosure runs, whose `texts` are paired, the default is the share of right ones.
    """
    protocols = [run.manifest().protocol for run in (base, cand)]
    benchmark = str(base.manifest().identity["benchmark"]["name"])
    id = protocols[0].get("id", "")
    if id and protocols[0] == protocols[1]:
        try:
            chosen = load_protocol(id)
            if chosen.sha256 != protocols[0].get("sha256"):
                raise UsageError(f"{id} is another file than that of the runs")
            rules = chosen.benchmark(benchmark)
            others = [name for name in rules.metrics if name != rules.primary]
            return Declared(rules.primary, others, f"protocol {id}")
        except UsageError as error:
            notes.append(
                f"the default metrics decide, because the protocol cannot be read: {error}"
            )
    shown = headline(of_rankings)
    if texts:
        return Declared(texts.metric, shown, _DEFAULT)
    primary = PRIMARY if PRIMARY in of_rankings else next(iter([*shown, *of_rankings]), PRIMARY)
    return Declared(primary, [name for name in shown if name != primary], _DEFAULT)


def _available(
    declared: Declared, known: Sequence[str], answers: Sequence[str], notes: list[str]
) -> list[str]:
    """The declared metrics that these runs have, primary first; notes say which are missing."""
    wanted = [declared.primary, *declared.secondaries, *answers]
    missing = [name for name in dict.fromkeys(wanted) if name not in known]
    if missing:
        notes.append(f"declared, but not known for these runs: {', '.join(missing)}")
    if declared.primary in missing:
        notes.append(f"without {declared.primary}, the primary metric, nothing can be confirmed")
    found = [name for name in dict.fromkeys(wanted) if name in known]
    if not found:
        raise NotComparable(f"these runs have none of the declared metrics: {', '.join(wanted)}")
    return found


def _roles(declared: Declared, family: Sequence[str]) -> dict[str, Role]:
    if declared.refused:
        return {}
    return {name: "primary" if name == declared.primary else "secondary" for name in family}


def values_of(
    names: Sequence[str], pairs: PairedTrials, depth: Depth, graded: PairedAnswers | None
) -> PairedValues:
    """The values of these metrics, of the rankings and of the answers."""
    recalled = [name for name in names if name in depth.names]
    tables = [pairs.values(depth, recalled)] if recalled else []
    if graded and graded.metric in names:
        tables.append(graded.values)
    return joined(tables, names)


def joined(tables: Sequence[PairedValues], names: Sequence[str]) -> PairedValues:
    """One table of all metrics; NaN where a question has no value of one."""
    if len(tables) == 1:
        return tables[0].of_metrics(names)
    questions = list(dict.fromkeys(q for table in tables for q in table.questions))
    place = {question: row for row, question in enumerate(questions)}
    base, cand = (np.full((len(questions), len(names)), nan) for _ in range(2))
    categories, clusters = [""] * len(questions), [""] * len(questions)
    for table in tables:
        rows = [place[question] for question in table.questions]
        columns = [names.index(name) for name in table.metrics]
        base[np.ix_(rows, columns)] = table.base
        cand[np.ix_(rows, columns)] = table.cand
        for row, category, cluster in zip(rows, table.categories, table.clusters, strict=True):
            categories[row], clusters[row] = category, cluster
    return PairedValues(list(names), questions, base, cand, categories, clusters)


def secondary_family(table: ClusterSums, alpha: float) -> Family:
    """One critical value for several metrics; Bonferroni where too few clusters have one."""
    groups, columns = table.sizes.shape
    present = (table.sizes > 0).sum(axis=0)
    uneven = bool((present < groups).any())
    if groups >= FEW_CLUSTERS and (
        bool((present < FEW_CLUSTERS).any()) or (uneven and groups > _MANY_CLUSTERS)
    ):
        return bonferroni(columns, alpha)
    return max_t(table, alpha=alpha)


def rows_of(
    scope: str,
    pairs: PairedValues,
    roles: Mapping[str, str],
    declared: Declared,
    band: float | None,
) -> list[Row]:
    """Return the rows of one scope, in the order of `roles`."""
    deltas = pairs.cand - pairs.base
    sums = cluster_sums(deltas, pairs.clusters)
    flipped = permutation(deltas, pairs.clusters, seed=SEED)
    secondaries = [name for name, role in roles.items() if role == "secondary"]
    places = [pairs.metrics.index(name) for name in secondaries]
    family = (
        secondary_family(ClusterSums(*(part[:, places] for part in sums)), declared.alpha)
        if places
        else None
    )
    rows: list[Row] = []
    opened = False
    for name, role in roles.items():
        place = pairs.metrics.index(name)
        if not sums.sizes[:, place].any():
            continue
        column = sums.column(place)
        found = difference(column, pairs.span(place))
        if role == "secondary" and family is not None:
            critical, p = family.critical(found), family.p(found)
        else:
            critical, p = found.critical(declared.alpha), found.p
        interval = found.interval(critical)
        decides = role in ("primary", "secondary")
        verdict = verdict_of(interval, band) if decides else None
        if role == "primary":
            opened = verdict in ("better", "worse")
        flips = float(flipped[place]) if found.clusters >= _FLIPPED_CLUSTERS else None
        confirmed = opened if role == "secondary" else None
        rows.append(
            _row(scope, name, role, pairs, found, column, critical, p, verdict, confirmed, flips)
        )
    return rows


def _row(
    scope: str,
    name: str,
    role: str,
    pairs: PairedValues,
    found: Difference,
    column: ClusterSums,
    critical: float,
    p: float,
    verdict: Verdict | None,
    confirmed: bool | None,
    flips: float | None,
) -> Row:
    place = pairs.metrics.index(name)
    present = ~np.isnan(pairs.base[:, place])
    base, cand = pairs.base[present, place], pairs.cand[present, place]
    deltas = cand - base
    before, after = float(base.mean()), float(cand.mean())
    gained: int | None = None
    lost: int | None = None
    # Means over orders lie between 0 and 1; gained and lost are counted for hits and misses.
    counted = _is_proportion(name) and is_binary(base) and is_binary(cand)
    if name == "accuracy" or is_right_metric(name) or counted:
        gained, lost = int((deltas > 0).sum()), int((deltas < 0).sum())
        effect = cohens_h(before, after)
    else:
        spread = float(deltas.std(ddof=1)) if len(deltas) > 1 else 0.0
        effect = float(deltas.mean()) / spread if spread > 1e-12 else 0.0
    changed = bool((np.abs(deltas) > 1e-12).any())
    limits = detectable(found, critical) if changed else None
    if limits is not None and limits.delta > found.span:  # no difference can be so large
        limits = None
    beyond = beyond_these(column, found.span)
    return Row(
        scope=scope,
        metric=name,
        role=msgspec.convert(role, Role),
        n=found.n,
        clusters=found.clusters,
        base=before,
        cand=after,
        delta=found.delta,
        se=found.se,
        ci95=_pair(found.interval(critical)),
        critical=critical,
        p=p,
        verdict=verdict,
        confirmed=confirmed,
        effect=effect,
        effect_name="d_z" if gained is None else "h",
        effect_label=effect_label(effect),
        detectable=limits.delta if limits else None,
        detectable_range=(limits.low, limits.high) if limits else None,
        these_only=found.these_only,
        beyond_these=_pair(beyond) if beyond else None,
        effective_clusters=found.effective_clusters,
        largest_share=max(found.sizes) / found.n,
        span=found.span,
        gained=gained,
        lost=lost,
        p_sign_flips=flips,
    )


def guarded_rows(pairs: PairedValues, family: Sequence[str], alpha: float) -> list[Guarded]:
    """Intervals of all declared metrics that hold at once, and each metric's own."""
    places = [pairs.metrics.index(name) for name in family]
    sums = cluster_sums(pairs.cand - pairs.base, pairs.clusters)
    together = secondary_family(ClusterSums(*(part[:, places] for part in sums)), alpha)
    guarded = []
    for name, place in zip(family, places, strict=True):
        found = difference(sums.column(place), pairs.span(place))
        own = found.interval(found.critical(alpha))
        guarded.append(Guarded(name, found.delta, _pair(together.interval(found)), _pair(own)))
    return guarded


def _pair(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def _by_cluster(pairs: PairedValues, metric: str) -> list[ClusterDelta]:
    names = list(dict.fromkeys(pairs.clusters))
    if len(names) > SHOWN_CLUSTERS:
        return []
    place = pairs.metrics.index(metric)
    sums = cluster_sums((pairs.cand - pairs.base)[:, place : place + 1], pairs.clusters)
    return [
        ClusterDelta(name, round(float(size)), float(total / size))
        for name, size, total in zip(names, sums.sizes[:, 0], sums.sums[:, 0], strict=True)
        if size
    ]


def _notes(pairs: PairedTrials, answers: PairedAnswers | str | None) -> list[str]:
    """Say which questions were left out."""
    notes = []
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


def _repeat_note(run: RunDirectory) -> str:
    return repeat_caveat(run.manifest(), run.label)


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


def shared_depth(base: RunDirectory, cand: RunDirectory) -> Depth:
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
