"""The plots of runs: what each kind shows, taken from the figures of the runs' files."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.estimates import few_clusters
from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.metrics import BUDGETS, PRIMARY, metric_of
from mnemoscope.reports.ageing_tables import shown_ageing
from mnemoscope.reports.curve_plots import (
    AxisText,
    Curve,
    CurvePoint,
    LatencyCurve,
    curves_picture,
    latency_picture,
)
from mnemoscope.reports.dot_plots import (
    SystemMark,
    intervals_picture,
    judge_picture,
)
from mnemoscope.reports.plot_style import Look, Picture
from mnemoscope.reports.run_view import Figures, RunView, answer_metric, figure_of, headline

_BAND = "Bands: 95 % intervals of the systems."
SHARED_LETTERS = "Systems that share a letter cannot be told apart; bold: the best group."
AGEING = {
    "cohort": "mean composite of the same questions, 0 to 6",
    "composite": "mean composite, 0 to 6",
    "recall_quality": "mean recall quality, 0 to 5",
    "hallucination": "hallucination rate",
    "hit@10": "hit@10",
}
_FEW_TICKS = 8
_UNJUDGED = "no answer was judged"
_TOPS = {"cohort": 6.0, "composite": 6.0, "recall_quality": 5.0}


def shown_metric(views: Sequence[RunView], asked: str) -> str:
    """The metric that was asked for, else the primary one, else the first of the headline.

    It is one of the rankings, or the one by which answers were graded.
    """
    if asked:
        if any(figure_of(view, asked) is None for view in views):
            known = ", ".join(filter(None, (*views[0].metrics["overall"], answer_metric(views))))
            raise UsageError(f"not all runs have the metric {asked!r}; the first has {known}")
        return asked
    names = [*headline(views), *filter(None, [answer_metric(views)])]
    if not names:
        raise UsageError("the runs have no figures of rankings or answers in common")
    return PRIMARY if PRIMARY in names else names[0]


def system_marks(
    views: Sequence[RunView], metric: str, groups: SystemGroups | None, category: str = ""
) -> list[SystemMark]:
    """The value of each system, over all questions or in one category."""
    marks = []
    for place, view in enumerate(views):
        figure: Figures | None = figure_of(view, metric)
        if category:
            figure = view.metrics["by_category"].get(category, {}).get(metric)
        own = groups.of(view.label) if groups and groups.metric == metric and not category else None
        low, high = (figure["ci95"] if figure else None) or (None, None)
        marks.append(
            SystemMark(
                *(view.label, figure["mean"] if figure else None, low, high),
                letters=own.letters if own else "",
                is_baseline=view.is_baseline,
                is_best=bool(own and own.is_best),
                style=place,
            )
        )
    return marks


def chance_of(views: Sequence[RunView], metric: str) -> float | None:
    """What a random ranking scores, by the run with most questions."""
    fullest = max(views, key=lambda view: view.metrics["questions"]["measured"])
    figure = fullest.metrics["overall"].get(metric)
    return figure["chance"] if figure else None


def title_of(views: Sequence[RunView], what: str) -> str:
    return f"{views[0].manifest.identity['benchmark']['name']}: {what}"


def about_sample(views: Sequence[RunView]) -> str:
    """How many questions and conversations the figures are about."""
    questions = max((v.metrics["questions"] for v in views), key=lambda own: own["measured"])
    clusters = questions.get("clusters", 0)
    where = f" in {clusters:,} conversations" if clusters > 1 else ""
    few = "; ".join(few_clusters(clusters))
    return f"{questions['measured']:,} questions{where}" + (f" ({few})" if few else "")


def intervals_plot(
    views: Sequence[RunView],
    groups: SystemGroups | None,
    metric: str,
    look: Look,
    notes: Sequence[str],
) -> Picture:
    """The systems by one metric, best first, baselines last."""
    marks = sorted(
        system_marks(views, metric, groups),
        key=lambda mark: (mark.is_baseline, -(mark.mean or 0.0)),
    )
    legend = f"95 % intervals; {about_sample(views)}."
    if groups and groups.metric == metric:
        legend += f" {SHARED_LETTERS}"
    return intervals_picture(
        marks,
        metric,
        look,
        title=title_of(views, metric),
        chance=chance_of(views, metric),
        notes=[legend, *notes],
    )


def recall_at_k_plot(
    views: Sequence[RunView], metric: str, look: Look, notes: Sequence[str]
) -> Picture:
    """A metric such as recall at every k that was measured, with what a random ranking scores."""
    kind = (metric or "recall").partition("@")[0]
    if getattr(metric_of(f"{kind}@1"), "at", "") != "k":
        raise UsageError(
            f"{metric}: this plot needs a metric at every k, such as recall, hit or ndcg"
        )
    curves, chance = [], dict[int, float]()
    for view in views:
        points = []
        for name, figure in view.metrics["overall"].items():
            own, _, k = name.partition("@")
            if own == kind:
                points.append(CurvePoint(int(k), figure["mean"], *figure["ci95"]))
                if figure["chance"] is not None:
                    chance.setdefault(int(k), figure["chance"])
        for name, bounds in view.metrics.get("beyond_end", {}).items():
            own, _, k = name.partition("@")
            if own == kind:
                points.append(CurvePoint(int(k), None, *bounds["bounds"]))
        if points:
            curves.append(Curve(view.label, sorted(points), view.is_baseline))
    if not curves:
        raise UsageError(f"the runs have no figures of {kind}@k")
    ks = sorted({point.x for curve in curves for point in curve.points})
    ticks = [k for k in ks if k != 25 or 20 not in ks]
    expected = [CurvePoint(k, value, None, None) for k, value in sorted(chance.items())]
    return curves_picture(
        curves,
        AxisText("k, the number of hits", f"{kind}@k", ticks, is_log=True),
        look,
        title=title_of(views, f"{kind} against k"),
        notes=[f"{_BAND} {about_sample(views)}.", *notes],
        chance=Curve("chance", expected) if expected else None,
    )


def recall_by_tokens_plot(views: Sequence[RunView], look: Look, notes: Sequence[str]) -> Picture:
    """Recall within equal budgets of context tokens."""
    curves, bounded = [], False
    for view in views:
        found = view.metrics["context"].get("recall_by_tokens", {})
        points = []
        for budget, own in found.items():
            low, high = own["ci95"] or own.get("bounds") or (None, None)
            points.append(CurvePoint(float(budget), own["mean"], low, high))
            bounded = bounded or own["mean"] is None
        if points:
            curves.append(Curve(view.label, points, view.is_baseline))
    if not curves:
        raise UsageError("the runs have no figures by tokens: the texts of the hits are not known")
    notes = [f"{_BAND} {about_sample(views)}.", *notes]
    if bounded:
        notes.insert(1, "Dotted ends: bounds, where lists end before the budget is used.")
    return curves_picture(
        curves,
        AxisText("context tokens (estimated)", "recall", BUDGETS, is_log=True),
        look,
        title=title_of(views, "recall within a budget of tokens"),
        notes=notes,
    )


def ageing_plot(views: Sequence[RunView], metric: str, look: Look, notes: Sequence[str]) -> Picture:
    """A figure of each checkpoint against the days of history that were ingested by then.

    By default it is that of the cohort, which is asked at every checkpoint.
    """
    aged = [view for view in views if view.longitudinal]
    if not aged:
        raise UsageError("ageing needs runs with checkpoints, such as those of personas")
    followed = any(_cohort_points(view) for view in aged)
    judged = "cohort" if followed else "composite"
    name = metric or (judged if any(view.judged for view in aged) else "hit@10")
    if name not in AGEING:
        raise UsageError(f"ageing shows {', '.join(AGEING)}, not {metric}")
    curves = []
    for view in aged:
        assert view.longitudinal is not None
        points = _cohort_points(view) if name == "cohort" else []
        for one in view.longitudinal["checkpoints"] if name != "cohort" else ():
            figure: Figures = one["retrieval"] if name == "hit@10" else one
            own = figure["overall" if name == "composite" else name]
            value = own["rate"] if "rate" in own else own["mean"]
            low, high = own["ci95"] or (None, None)
            points.append(CurvePoint(one["ingested_days"], value, low, high))
        if any(point.y is not None for point in points):
            curves.append(Curve(view.label, points, view.is_baseline))
    if not curves:
        why = "no question was judged at every checkpoint" if name == "cohort" else _UNJUDGED
        raise UsageError(f"no checkpoint of these runs has a {name}: {why}")
    days = sorted({point.x for curve in curves for point in curve.points})
    ticks = days if len(days) <= _FEW_TICKS else ()
    return curves_picture(
        curves,
        AxisText("days of history", AGEING[name], ticks, top=_TOPS.get(name, 1.0)),
        look,
        title=title_of(views, f"{AGEING[name].partition(',')[0]} as the history grows"),
        notes=[_BAND, *notes],
    )


def _cohort_points(view: RunView) -> list[CurvePoint]:
    aged = shown_ageing(view.longitudinal, "composite")
    cohort = aged.figures["cohort"] if aged else None
    return [
        CurvePoint(point["ingested_days"], point["score"]["mean"], *interval)
        for point in (cohort["points"] if cohort else ())
        if (interval := point["score"]["ci95"])
    ]


def judge_plot(views: Sequence[RunView], look: Look, notes: Sequence[str]) -> Picture:
    """The exams of the judges, as the runs recorded them."""
    exams = {spec: exam for view in views for spec, exam in view.exams.items() if exam}
    if not exams:
        judges = list(dict.fromkeys(spec for view in views for spec in view.exams))
        if not judges:
            raise UsageError("the runs have no judge, so there is no exam to plot")
        raise UsageError(
            f"no exam is recorded for {', '.join(judges)}; run `mnemoscope judges exam SPEC` "
            "before the run"
        )
    said = [
        f"{spec} {'passed' if exam['passed'] else 'failed'} its exam."
        for spec, exam in exams.items()
    ]
    probes = max(exam["unjudged"]["of"] for exam in exams.values())
    legend = (
        f"{probes} answers of known quality; 95 % intervals (Wilson); dashes: the limits to pass."
    )
    return judge_picture(
        exams, look, title="Errors of the judge in its exam", notes=[legend, *said, *notes]
    )


def latency_plot(views: Sequence[RunView], look: Look, notes: Sequence[str]) -> Picture:
    """How long recalls took."""
    curves = []
    for view in views:
        # The views were read from checked runs.
        timings = RunDirectory(view.path, checked=False).timings()
        times = [line.recall_ms for line in timings if line.recall_ms is not None]
        summary = view.timing["recall_ms"]
        if times and summary:
            p50, p95, p99 = (summary[name] for name in ("p50", "p95", "p99"))
            curves.append(LatencyCurve(view.label, times, p50, p95, p99, view.is_baseline))
    if not curves:
        raise UsageError("the runs have no times of recalls, such as runs made from rankings")
    legend = "Marks: the 50th, 95th and 99th percentile. Times depend on the machine."
    return latency_picture(
        curves, look, title=title_of(views, "time of a recall"), notes=[legend, *notes]
    )
