"""What a run's answers are worth: rows in, plain data out.

Two headline figures stand beside each other and are never mixed: questions that have an answer, and
all questions, those included that must not be answered. What failed or was not judged is no zero:
it is left out, and bounds say what the figure would be had all of it been wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import atanh, inf, isfinite, sqrt, tanh
from typing import Any, NamedTuple

import numpy as np

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import JournalLine
from mnemoscope.analysis.measure import DRAWS, SEED
from mnemoscope.stats import bootstrap, wilson
from mnemoscope.types import (
    FAILED,
    Answer,
    Grade,
    Ingestion,
    Question,
    Scale,
    Score,
    Status,
    Trial,
    Verdict,
)

BEST_SCORE = 6
_BINARY = ("", "accuracy", "binary")
_UNNAMED = Scale("")
_Z95 = 1.959963984540054
_EXACT = 1e-9
_DIGITS = 10


class Answered(NamedTuple):
    """One question put to one system, with all that came of it."""

    question: Question
    trial: Trial | None = None
    answer: Answer | None = None
    verdict: Verdict | None = None

    @property
    def scenario(self) -> str:
        return next((line.scenario for line in self[1:] if line is not None), "")

    @property
    def checkpoint(self) -> str:
        return next((line.checkpoint for line in self[1:] if line is not None), "")

    @property
    def status(self) -> Status | None:
        """How answering ended, whatever a judge says; none where nobody was to answer yet."""
        if self.answer is not None:
            return self.answer.status
        if self.trial is not None and self.trial.status in FAILED:
            return self.trial.status
        return "answered" if self.verdict is not None else None

    @property
    def final(self) -> Score | Grade | None:
        """What the answer got; none where it failed or was not judged."""
        if self.verdict is None or self.status in FAILED:
            return None
        return self.verdict.final

    @property
    def primary(self) -> Score | Grade | None:
        """What the first judge said, where an appeal was heard."""
        if self.verdict is None or self.final is None:
            return None
        graded = self.verdict.score is None
        return self.verdict.primary_grade if graded else self.verdict.primary


class _Point(NamedTuple):
    """One number, and what it is not independent of."""

    row: Answered
    value: float


def assemble(lines: Iterable[JournalLine], questions: Mapping[str, Question]) -> list[Answered]:
    """The journal's lines put together, a row for each question at each checkpoint.

    In the order in which they were first recorded.
    """
    parts: dict[tuple[str, str, str], dict[str, Any]] = {}
    for line in lines:
        if isinstance(line, Ingestion):
            continue
        if line.question not in questions:
            raise UsageError(
                f"the journal has question {line.question}, which the benchmark has not: "
                "it was made from other data"
            )
        own = parts.setdefault((line.scenario, line.checkpoint, line.question), {})
        own[type(line).__name__.lower()] = line
    return [Answered(questions[key[2]], **own) for key, own in parts.items()]


def ordered(rows: Iterable[Answered]) -> list[Answered]:
    """Rows in an order that does not depend on who was asked first."""
    return sorted(rows, key=lambda row: (row.scenario, row.checkpoint, row.question.id))


def value_of(mark: Score | Grade) -> float:
    """A grade as it is, a score of the rubric as its share of the best."""
    return mark.composite / BEST_SCORE if isinstance(mark, Score) else float(mark.value)


def answer_figures(
    rows: Iterable[Answered], *, seed: int = SEED, scale: Scale = _UNNAMED
) -> dict[str, Any]:
    """Everything there is to say of a run's answers.

    `scale` says what the judge measures (`f1`, `rouge_l`, `likelihood`); a measure so named is a
    mean even where all its values happen to be 0 or 1. Without a name, or as `accuracy`, grades
    that are all 0 or 1 are an accuracy.
    """
    rows = ordered(rows)
    judged = [_Point(row, value_of(row.final)) for row in rows if row.final is not None]
    gauge = _Gauge.of(judged, seed, scale)
    answerable = [row for row in rows if row.question.expects == "answer"]
    categories = sorted({row.question.category for row in rows} - {""})
    return {
        "scale": "binary" if gauge.binary else "mean",
        "metric": gauge.metric,
        "counts": _counts(rows),
        "answerable": gauge.headline(answerable),
        "all": gauge.headline(rows),
        "by_category": {
            category: {
                "answerable": gauge.headline(
                    [row for row in answerable if row.question.category == category]
                ),
                "all": gauge.headline([row for row in rows if row.question.category == category]),
            }
            for category in categories
        },
        "abstention": abstention(rows),
        "length": _length(rows, gauge),
        "panel": _panel(rows, gauge),
        "appeals": _appeals(rows, gauge),
        **(_rubric(rows, gauge) if gauge.metric == "composite" else {}),
    }


def abstention(rows: Iterable[Answered]) -> dict[str, Any]:
    """Three rates over what was answered, whatever a judge made of it."""
    put = [row for row in rows if row.status is not None and row.status not in FAILED]
    unanswerable = [row.status for row in put if row.question.expects == "abstain"]
    answerable = [row.status for row in put if row.question.expects == "answer"]
    return {
        "correct_abstain": rate(unanswerable.count("abstained"), len(unanswerable)),
        "confabulated": rate(unanswerable.count("answered"), len(unanswerable)),
        "false_abstain": rate(answerable.count("abstained"), len(answerable)),
    }


def rate(count: int, n: int) -> dict[str, Any]:
    """A proportion with what it is of and its Wilson interval; of nothing, none."""
    if not n:
        return {"rate": None, "count": 0, "n": 0, "ci95": None}
    return {
        "rate": _rounded(count / n),
        "count": count,
        "n": n,
        "ci95": [_rounded(end) for end in wilson(count, n)],
    }


class _Gauge(NamedTuple):
    """How the numbers of this run are to be averaged."""

    metric: str
    binary: bool
    limits: tuple[float, float] | None
    """Between what values lie, if that is known."""
    seed: int

    @classmethod
    def of(cls, judged: Sequence[_Point], seed: int, scale: Scale) -> _Gauge:
        values = {point.value for point in judged}
        if any(isinstance(point.row.final, Score) for point in judged):
            return cls("composite", False, (0.0, 1.0), seed)
        unnamed = scale.name in _BINARY
        binary = unnamed and values <= {0.0, 1.0}
        metric = ("accuracy" if binary else "grade") if unnamed else scale.name
        bounded = scale.bounded and all(map(scale.holds, values))
        limits = (float(scale.low or 0), float(scale.high or 0)) if bounded else None
        return cls(metric, binary, limits, seed)

    def headline(self, rows: Sequence[Answered]) -> dict[str, Any]:
        points = [_Point(row, value_of(row.final)) for row in rows if row.final is not None]
        return self.figure(points, len(rows) - len(points))

    def figure(self, points: Sequence[_Point], missing: int = 0) -> dict[str, Any]:
        """The mean with its interval, and with bounds where values are missing."""
        lacking = {"missing": missing} if missing else {}
        if not points:
            return {"mean": None, "n": 0, "ci95": None, **lacking}
        values = [point.value for point in points]
        total, n = float(np.sum(values)), len(values)
        mean = total / n
        told: dict[str, Any] = {"mean": _rounded(mean), "n": n, "ci95": self._interval(points)}
        told |= lacking
        if missing and self.limits:
            worst = (total + missing * self.limits[0]) / (n + missing)
            told["bounds"] = sorted([_rounded(worst), _rounded(mean)])
        return told

    def _interval(self, points: Sequence[_Point]) -> list[float] | None:
        values = np.array([point.value for point in points])
        mean = float(values.mean())
        questions = [f"{point.row.scenario}/{point.row.question.id}" for point in points]
        # A judge of a panel may have a finer scale than the panel's verdict.
        binary = self.binary and bool(np.isin(values, (0, 1)).all())
        least, most = self.limits or (-inf, inf)
        bounded = self.limits is not None and bool(((values >= least) & (values <= most)).all())
        if not binary:
            clusters = [point.row.question.cluster or point.row.scenario for point in points]
            units = clusters if len(set(clusters)) > 1 else questions
            limits = (least, most) if bounded else (-inf, inf)
            sampled = bootstrap(values[:, None], units, seed=self.seed, draws=DRAWS, limits=limits)
            low, high = float(sampled.low[0]), float(sampled.high[0])
            if low < high and isfinite(high - low):
                return [_rounded(low), _rounded(high)]
            if not bounded:
                return None
        # Values that are all alike cannot say how much others would differ; nothing between two
        # limits spreads wider than the limits do, and for these Wilson knows. A question that was
        # asked at several checkpoints is one question.
        n = len(set(questions))
        span = most - least
        low, high = (least + span * end for end in wilson(round((mean - least) / span * n), n))
        return [_rounded(min(low, mean)), _rounded(max(high, mean))]


def _counts(rows: Sequence[Answered]) -> dict[str, Any]:
    statuses = Counter(row.status for row in rows)
    judged = sum(row.final is not None for row in rows)
    failed = {status: statuses[status] for status in sorted(FAILED) if statuses[status]}
    fair = sum(statuses[status] for status in ("answered", "abstained", "empty"))
    return {
        "asked": len(rows),
        "answered": statuses["answered"],
        "abstained": statuses["abstained"],
        "empty": statuses["empty"],
        "failed": failed,
        "unanswered": len(rows) - fair - sum(failed.values()),
        "judged": judged,
        "unjudged": fair - judged,
        "coverage": _rounded(judged / len(rows)) if rows else None,
    }


def _rubric(rows: Sequence[Answered], gauge: _Gauge) -> dict[str, Any]:
    """What the rubric has besides: composites from 0 to 6, and who invents."""
    figure = gauge.headline(rows)
    for key in ("mean", "ci95", "bounds"):
        if figure.get(key) is not None:
            figure[key] = _times(figure[key], BEST_SCORE)
    scores = [row.final for row in rows if isinstance(row.final, Score)]
    invented = sum(score.hallucination == 0 for score in scores)
    hallucination = rate(invented, len(scores))
    if (missing := len(rows) - len(scores)) and scores:
        ends = (invented / len(rows), (invented + missing) / len(rows))
        hallucination |= {"missing": missing, "bounds": [_rounded(end) for end in ends]}
    return {"composite": figure, "hallucination": hallucination}


def _length(rows: Sequence[Answered], gauge: _Gauge) -> dict[str, Any]:
    """Words of what was answered, abstentions left out, and how they go with the grade."""
    told = [
        _Point(row, float(len(row.answer.text.split())))
        for row in rows
        if row.answer is not None and row.answer.status == "answered"
    ]
    graded = [(words, value_of(row.final)) for row, words in told if row.final is not None]
    words = gauge._replace(binary=False, limits=None)
    return {
        **words.figure(told),
        "median": float(np.median([point.value for point in told])) if told else None,
        "against_grade": spearman([one for one, _ in graded], [grade for _, grade in graded]),
    }


def spearman(x: Sequence[float], y: Sequence[float]) -> dict[str, Any]:
    """Rank correlation, ties at their mean rank.

    The interval is Bonett and Wright's (Psychometrika 65, 2000): Fisher's z with the error
    sqrt((1 + r²/2) / (n - 3)). Questions are taken as independent.
    """
    n = len(x)
    if n < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return {"rho": None, "n": n, "ci95": None}
    r = float(np.corrcoef(_ranks(x), _ranks(y))[0, 1])
    r = min(max(r, -1.0), 1.0)
    if n < 4 or abs(r) > 1 - _EXACT:
        return {"rho": _rounded(r), "n": n, "ci95": None}
    reach = _Z95 * sqrt((1 + r * r / 2) / (n - 3))
    ends = [tanh(atanh(r) - reach), tanh(atanh(r) + reach)]
    return {"rho": _rounded(r), "n": n, "ci95": [_rounded(end) for end in ends]}


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    first: dict[float, int] = {}
    for place, value in enumerate(order, 1):
        first.setdefault(value, place)
    counts = Counter(order)
    return [first[value] + (counts[value] - 1) / 2 for value in values]


def _panel(rows: Sequence[Answered], gauge: _Gauge) -> dict[str, Any] | None:
    """Each judge's own mean, how far they lie apart, how often all say the same."""
    voted = [(row, row.final) for row in rows if row.final is not None and row.final.votes]
    if not voted:
        return None
    own: dict[str, list[_Point]] = {}
    for row, final in voted:
        for judge, vote in final.votes.items():
            own.setdefault(judge, []).append(_Point(row, vote))
    judges = {judge: gauge.figure(points) for judge, points in sorted(own.items())}
    means = [figure["mean"] for figure in judges.values()]
    # One vote agrees with nobody.
    several = [final.votes.values() for _, final in voted if len(final.votes) > 1]
    return {
        "judges": judges,
        "span": _rounded(max(means) - min(means)),
        "agreement": rate(sum(len(set(votes)) == 1 for votes in several), len(several)),
    }


def _appeals(rows: Sequence[Answered], gauge: _Gauge) -> dict[str, Any] | None:
    """What the second judge changed: the first one's mean beside the final one, of all judged."""
    heard = [(row.primary, row.final) for row in rows if row.primary and row.final]
    if not heard:
        return None
    first = [(row, row.primary or row.final) for row in rows]
    return {
        "heard": len(heard),
        "changed": sum(changed(before, after) for before, after in heard),
        "rescued": sum(before.fails and not after.fails for before, after in heard),
        "primary": gauge.figure([_Point(row, value_of(said)) for row, said in first if said]),
        "final": gauge.figure([_Point(row, value_of(row.final)) for row in rows if row.final]),
    }


def changed(before: Score | Grade, after: Score | Grade) -> bool:
    """Whether two judges gave different marks, whatever they said to them."""
    return _marks(before) != _marks(after)


def _marks(mark: Score | Grade) -> tuple[float, ...]:
    if isinstance(mark, Score):
        return mark.correctness, mark.completeness, mark.hallucination
    return (mark.value,)


def _times(value: Any, factor: int) -> Any:
    if isinstance(value, list):
        return [_times(one, factor) for one in value]
    return _rounded(value * factor)


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
