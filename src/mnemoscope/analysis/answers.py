"""Compute answers.json: the scores of a run's answers, and the likely causes of failures.

There are two headline figures: over questions that have an answer, and over all questions,
including those that must not be answered. Failed and unjudged questions are left out, and bounds
give the figure if all of them were wrong, and if all were right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import isnan
from typing import Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
from msgspec import convert
from msgspec.structs import replace

from mnemoscope._store.run_directory import Manifest
from mnemoscope.analysis.diagnosis import Diagnosis, diagnose, receipts_of
from mnemoscope.analysis.entitled import corrected, withheld
from mnemoscope.analysis.estimates import (
    Estimate,
    IntervalKind,
    Rate,
    interval_kind,
    interval_of_mean,
    interval_of_unbounded,
    rate,
    rounded,
    rounded_all,
)
from mnemoscope.analysis.question_records import (
    BEST_SCORE,
    QuestionRecord,
    by_category,
    changed,
    in_order,
    value_of,
)
from mnemoscope.stats import spearman
from mnemoscope.stats.agreement import cohens_kappa
from mnemoscope.types import FAILED, Ingestion, Scale, Status

ANSWERS = "answers.json"
_BINARY = ("", "accuracy", "binary")
_UNRECORDED = {
    "f1": Scale("f1"),
    "rouge-l": Scale("rouge_l"),
    "likelihood": Scale("likelihood", None, None),
}
"""Scales of built-in judges whose runs record only the judge's name."""
_UNNAMED = Scale("")
"""For right or wrong, the rubric, a panel, and judges that declare no scale."""


class AnswerCounts(TypedDict):
    """How many questions were asked, answered and judged."""

    asked: int
    answered: int
    truncated: NotRequired[int]
    """Answers that were cut at the limit of tokens, judged as they are."""
    abstained: int
    empty: int
    failed: dict[str, int]
    unanswered: int
    judged: int
    unjudged: int
    coverage: float | None


Headlines = dict[str, Estimate]
"""The two headline figures, `answerable` and `all`."""


class RankCorrelation(TypedDict):
    """Spearman's correlation between the length of answers and their grade."""

    rho: float | None
    n: int
    ci95: list[float] | None


class AnswerLength(Estimate):
    """Words per answer, without abstentions."""

    median: float | None
    against_grade: RankCorrelation


class PairAgreement(TypedDict):
    """Agreement of two judges beyond chance."""

    kappa: float
    n: int
    ci95: list[float]


class JudgePanel(TypedDict):
    """The mean of each judge, the largest difference between them, and how often all agree."""

    judges: dict[str, Estimate]
    span: float
    agreement: Rate
    kappa: NotRequired[dict[str, PairAgreement]]
    """Cohen's kappa of right and wrong, for each pair of judges."""


class Appeals(TypedDict):
    """What the appellate judge changed: the first judge's mean and the final mean."""

    heard: int
    changed: int
    rescued: int
    primary: Estimate
    final: Estimate


class AnswerFigures(TypedDict):
    """The figures of a run's answers."""

    scale: Literal["binary", "mean"]
    metric: str
    counts: AnswerCounts
    answerable: Estimate
    all: Estimate
    by_category: dict[str, Headlines]
    abstention: dict[str, Rate]
    """Over all questions that did not fail, whatever the verdict."""
    length: AnswerLength
    panel: JudgePanel | None
    appeals: Appeals | None
    interval: IntervalKind
    """What the intervals are about; files of older versions, which had others, lack it."""
    corrected: NotRequired[Headlines]
    """The accuracy corrected for the judge's errors in its exam: the headline."""
    composite: NotRequired[Estimate]
    """The rubric's composite score, from 0 to 6."""
    hallucination: NotRequired[Rate]


class RawAnswers(TypedDict):
    """What the verdicts of a judge say that may not give a headline."""

    figures: AnswerFigures
    diagnosis: Diagnosis | None
    corrected: NotRequired[Headlines]
    """The accuracy corrected for the errors of an exam that the judge failed: no headline."""


class AnswerSheet(TypedDict):
    """The content of answers.json."""

    judge: str
    figures: AnswerFigures
    errors: dict[str, int]
    diagnosis: Diagnosis | None
    withheld: NotRequired[str]
    """Why there is no headline; the figures as the judge gave them are in `raw`."""
    raw: NotRequired[RawAnswers]


class _Point(NamedTuple):
    """One value, and the question that it belongs to."""

    record: QuestionRecord
    value: float


def answer_sheet(
    manifest: Manifest,
    records: Sequence[QuestionRecord],
    ingestions: Iterable[Ingestion],
) -> AnswerSheet:
    """Compute the figures at the last checkpoint, and the diagnosis over all checkpoints.

    A scale without limits has no failures, so it gets no diagnosis.
    """
    last = manifest.checkpoints[-1] if manifest.checkpoints else ""
    scale = scale_of(manifest)
    at_the_end = [record for record in records if record.checkpoint == last]
    shown = as_read(manifest, records)
    errors = (line.error for one in records for line in (one.answer, one.verdict) if line)
    sheet: AnswerSheet = {
        "judge": (manifest.identity.get("judge") or {"spec": ""})["spec"],
        "figures": answer_figures(at_the_end, scale=scale),
        "errors": dict(Counter(filter(None, errors)).most_common(3)),
        "diagnosis": diagnose(shown, receipts_of(ingestions)) if scale.bounded else None,
    }
    for category in manifest.withheld:
        for part in (sheet["figures"], sheet["diagnosis"]):
            if part is not None:
                part["by_category"].pop(category, None)
    if sheet["figures"]["metric"] != "accuracy":
        return entitled_sheet(sheet, manifest)
    if found := _corrected_parts(at_the_end, manifest):
        sheet["figures"]["corrected"] = found
    allowed = entitled_sheet(sheet, manifest)
    if "raw" in allowed and (found := _corrected_parts(at_the_end, manifest, though_failed=True)):
        allowed["raw"]["corrected"] = found
    return allowed


def _corrected_parts(
    records: Sequence[QuestionRecord], manifest: Manifest, *, though_failed: bool = False
) -> Headlines:
    """The corrected accuracy of questions with an answer and of all, where it is known."""
    answerable = [one for one in records if one.question.expects == "answer"]
    estimates = {
        part: corrected(own, manifest, though_failed=though_failed)
        for part, own in (("answerable", answerable), ("all", records))
    }
    return {part: one for part, one in estimates.items() if one is not None}


def entitled_sheet(sheet: AnswerSheet, manifest: Manifest) -> AnswerSheet:
    """The sheet as it may be shown: without figures of a judge that passed no exam.

    Files of older versions are treated alike. Runs with checkpoints keep theirs, with a caveat.
    """
    why = withheld(manifest)
    if not why or manifest.checkpoints or "withheld" in sheet:
        return sheet
    figures, diagnosis = sheet["figures"], sheet["diagnosis"]
    return {
        **sheet,
        "figures": _masked(figures, why),
        "diagnosis": None,
        "withheld": why,
        "raw": {"figures": figures, "diagnosis": diagnosis},
    }


def headline_of(figures: AnswerFigures, part: Literal["answerable", "all"]) -> Estimate:
    """The figure to show first: corrected for the judge's errors where that is known."""
    return figures.get("corrected", {}).get(part) or figures[part]


def raw_sheet(sheet: AnswerSheet) -> AnswerSheet:
    """The sheet with the figures as the judge gave them."""
    raw = sheet.get("raw")
    if raw is None:
        return sheet
    return {**sheet, "figures": raw["figures"], "diagnosis": raw["diagnosis"]}


def corrected_though_failed(sheet: AnswerSheet) -> str:
    """The accuracy that a failed exam would correct to, with its interval; empty if unknown."""
    found = sheet["raw"].get("corrected", {}).get("answerable") if "raw" in sheet else None
    if found is None or found["mean"] is None or found["ci95"] is None:
        return ""
    low, high = found["ci95"]
    return f"{found['mean']:.3f} [{low:.3f}, {high:.3f}]"


def _masked(figures: AnswerFigures, why: str) -> AnswerFigures:
    def mask(figure: Estimate) -> Estimate:
        missing = {"missing": figure["missing"]} if "missing" in figure else {}
        return {"mean": None, "n": figure["n"], "ci95": None, "withheld": why, **missing}  # type: ignore[typeddict-item]

    length, panel = figures["length"], figures["panel"]
    nothing: RankCorrelation = {"rho": None, "n": length["against_grade"]["n"], "ci95": None}
    found: AnswerFigures = {
        **figures,
        "answerable": mask(figures["answerable"]),
        "all": mask(figures["all"]),
        "by_category": {
            category: {part: mask(one) for part, one in own.items()}
            for category, own in figures["by_category"].items()
        },
        "length": {**length, "against_grade": nothing},
        "panel": panel
        and {
            **panel,
            "judges": {judge: mask(own) for judge, own in panel["judges"].items()},
        },
        "appeals": None,
    }
    for part in ("corrected", "composite", "hallucination"):
        found.pop(part, None)  # type: ignore[misc]
    return found


def scale_of(manifest: Manifest) -> Scale:
    """Return the scale of the run's judge; right or wrong, the rubric and panels have no name."""
    judge = manifest.identity.get("judge") or {"spec": ""}
    if "panel" in judge:
        return _UNNAMED
    if "scale" in judge:
        return convert(judge["scale"], Scale)
    return _UNRECORDED.get(judge["spec"].partition(",")[0], _UNNAMED)


def as_read(manifest: Manifest, records: Sequence[QuestionRecord]) -> list[QuestionRecord]:
    """Return the records with the memories that the reader was shown.

    A full-context reader is shown all memories, so it has all the evidence. If they did not all
    fit, it is unknown which were shown, and the record gets no trial.
    """
    reader = manifest.identity.get("reader")
    if not isinstance(reader, dict) or not reader["spec"].startswith("full-context"):
        return list(records)
    found = []
    for record in records:
        trial, shown = record.trial, record.answer.shown if record.answer else None
        if trial is not None and shown is not None:
            everything = replace(trial, ranking=trial.evidence, sources={}, carried={})
            record = record._replace(trial=None if shown < trial.pool else everything)
        found.append(record)
    return found


def answer_figures(records: Iterable[QuestionRecord], *, scale: Scale = _UNNAMED) -> AnswerFigures:
    """Compute all figures of a run's answers.

    A named `scale` (`f1`, `rouge_l`, `likelihood`) is averaged as a mean, even if all its values
    are 0 or 1. On a scale without a name, or named `accuracy`, grades that are all 0 or 1 are an
    accuracy.
    """
    records = in_order(records)
    averaging = _Averaging.of(records, scale)
    headlines = averaging.headlines(records)
    figures: AnswerFigures = {
        "scale": "binary" if averaging.binary else "mean",
        "metric": averaging.metric,
        "counts": _counts(records),
        "answerable": headlines["answerable"],
        "all": headlines["all"],
        "by_category": {
            category: averaging.headlines(own) for category, own in by_category(records).items()
        },
        "abstention": _abstention(records),
        "length": _length(records, averaging),
        "panel": _panel(records, averaging),
        "appeals": _appeals(records, averaging),
        "interval": interval_kind(len({one.cluster for one in records if one.value is not None})),
    }
    if averaging.metric == "composite":
        figures["composite"] = _composite(averaging.headline(records))
        figures["hallucination"] = _hallucination(records)
    return figures


class _Averaging(NamedTuple):
    """How the values of this run are averaged."""

    metric: str
    binary: bool
    limits: tuple[float, float] | None
    """The lowest and highest possible value, if known."""

    @classmethod
    def of(cls, records: Sequence[QuestionRecord], scale: Scale) -> _Averaging:
        values = {value for record in records if (value := record.value) is not None}
        if any(record.score is not None for record in records):
            return cls("composite", False, (0.0, 1.0))
        unnamed = scale.name in _BINARY
        binary = unnamed and values <= {0.0, 1.0}
        metric = ("accuracy" if binary else "grade") if unnamed else scale.name
        bounded = scale.bounded and all(map(scale.holds, values))
        limits = (float(scale.low or 0), float(scale.high or 0)) if bounded else None
        return cls(metric, binary, limits)

    def headlines(self, records: Sequence[QuestionRecord]) -> Headlines:
        answerable = [record for record in records if record.question.expects == "answer"]
        return {"answerable": self.headline(answerable), "all": self.headline(records)}

    def headline(self, records: Sequence[QuestionRecord]) -> Estimate:
        points = [_Point(one, value) for one in records if (value := one.value) is not None]
        return self.estimate(points, len(records) - len(points))

    def estimate(self, points: Sequence[_Point], missing: int = 0) -> Estimate:
        """Return the mean with its interval, and with bounds where values are missing."""
        if not points:
            nothing: Estimate = {"mean": None, "n": 0, "ci95": None}
            return {**nothing, "missing": missing} if missing else nothing
        values = [point.value for point in points]
        total, n = float(np.sum(values)), len(values)
        found: Estimate = {
            "mean": rounded(total / n),
            "n": n,
            "ci95": self._interval(points),
        }
        if missing:
            found["missing"] = missing
        if missing and self.limits:
            ends = [(total + missing * end) / (n + missing) for end in self.limits]
            found["bounds"] = rounded_all(ends)
        return found

    def _interval(self, points: Sequence[_Point]) -> list[float] | None:
        values = np.array([point.value for point in points])
        clusters = [point.record.cluster for point in points]
        limits = self.limits
        # A panel judge may have another scale than the panel's verdict.
        if limits and ((values >= limits[0]) & (values <= limits[1])).all():
            questions = [f"{one.record.scenario}/{one.record.question.id}" for one in points]
            return interval_of_mean(values, clusters, limits=limits, questions=questions)
        return interval_of_unbounded(values, clusters)


def _counts(records: Sequence[QuestionRecord]) -> AnswerCounts:
    statuses = Counter(record.status for record in records)
    judged = sum(record.final is not None for record in records)
    failed = {str(status): statuses[status] for status in sorted(FAILED) if statuses[status]}
    given: tuple[Status, ...] = ("answered", "truncated", "abstained", "empty")
    replied = sum(statuses[status] for status in given)
    truncated = {"truncated": statuses["truncated"]} if statuses["truncated"] else {}
    return {
        "asked": len(records),
        "answered": statuses["answered"],
        **truncated,  # type: ignore[typeddict-item]
        "abstained": statuses["abstained"],
        "empty": statuses["empty"],
        "failed": failed,
        "unanswered": len(records) - replied - sum(failed.values()),
        "judged": judged,
        "unjudged": replied - judged,
        "coverage": rounded(judged / len(records)) if records else None,
    }


def _abstention(records: Sequence[QuestionRecord]) -> dict[str, Rate]:
    replied = [one for one in records if one.status is not None and one.status not in FAILED]
    unanswerable = [one for one in replied if one.question.expects == "abstain"]
    answerable = [one for one in replied if one.question.expects == "answer"]

    def share(asked: Sequence[QuestionRecord], *those: Status) -> Rate:
        return rate([one.status in those for one in asked], [one.cluster for one in asked])

    return {
        "correct_abstain": share(unanswerable, "abstained"),
        "confabulated": share(unanswerable, "answered", "truncated"),
        "false_abstain": share(answerable, "abstained"),
    }


def _composite(share: Estimate) -> Estimate:
    """Convert a share of the best composite to a composite from 0 to 6."""
    found = share.copy()
    if share["mean"] is not None:
        found["mean"] = rounded(share["mean"] * BEST_SCORE)
    if share["ci95"] is not None:
        found["ci95"] = [rounded(end * BEST_SCORE) for end in share["ci95"]]
    if "bounds" in share:
        found["bounds"] = [rounded(end * BEST_SCORE) for end in share["bounds"]]
    return found


def _hallucination(records: Sequence[QuestionRecord]) -> Rate:
    scored = [(one, score) for one in records if (score := one.score) is not None]
    found = rate([score.hallucination == 0 for _, score in scored], [r.cluster for r, _ in scored])
    if (missing := len(records) - len(scored)) and scored:
        count = found["count"]
        ends = (count / len(records), (count + missing) / len(records))
        found["missing"], found["bounds"] = missing, rounded_all(ends)
    return found


def _length(records: Sequence[QuestionRecord], averaging: _Averaging) -> AnswerLength:
    points = [
        _Point(record, float(len(record.answer.text.split())))
        for record in records
        if record.answer is not None and record.answer.status in ("answered", "truncated")
    ]
    graded = [(n, grade) for one, n in points if (grade := one.value) is not None]
    found = spearman([words for words, _ in graded], [grade for _, grade in graded])
    words = averaging._replace(binary=False, limits=None).estimate(points)
    if words["ci95"]:  # of few answers of very different lengths it would begin below zero
        words["ci95"] = [max(0.0, words["ci95"][0]), *words["ci95"][1:]]
    return {
        **words,
        "median": float(np.median([point.value for point in points])) if points else None,
        "against_grade": {
            "rho": None if isnan(found.r) else rounded(found.r),
            "n": found.n,
            "ci95": rounded_all(found.ci95) if found.ci95 else None,
        },
    }


def _panel(records: Sequence[QuestionRecord], averaging: _Averaging) -> JudgePanel | None:
    voted = [(one, final) for one in records if (final := one.final) is not None and final.votes]
    if not voted:
        return None
    own: dict[str, list[_Point]] = {}
    for record, final in voted:
        for judge, vote in final.votes.items():
            own.setdefault(judge, []).append(_Point(record, vote))
    judges = {judge: averaging.estimate(points) for judge, points in sorted(own.items())}
    means = [figure["mean"] or 0.0 for figure in judges.values()]
    # A single vote cannot agree or disagree.
    several = [(one, final.votes.values()) for one, final in voted if len(final.votes) > 1]
    return {
        "judges": judges,
        "span": rounded(max(means) - min(means)),
        "agreement": rate(
            [len(set(votes)) == 1 for _, votes in several], [one.cluster for one, _ in several]
        ),
        "kappa": _kappas([final.votes for _, final in voted]),
    }


def _kappas(votes: Sequence[Mapping[str, float]]) -> dict[str, PairAgreement]:
    found: dict[str, PairAgreement] = {}
    judges = sorted({judge for own in votes for judge in own})
    for one, other in combinations(judges, 2):
        both = [(own[one] >= 0.5, own[other] >= 0.5) for own in votes if {one, other} <= own.keys()]
        if both:
            kappa = cohens_kappa([a for a, _ in both], [b for _, b in both], seed=42, draws=2000)
            found[f"{one} | {other}"] = {
                "kappa": rounded(kappa.kappa),
                "n": kappa.n,
                "ci95": rounded_all((kappa.low, kappa.high)),
            }
    return found


def _appeals(records: Sequence[QuestionRecord], averaging: _Averaging) -> Appeals | None:
    judged = [(one, one.primary, final) for one in records if (final := one.final) is not None]
    appealed = [(primary, final) for _, primary, final in judged if primary is not None]
    if not appealed:
        return None
    first = [_Point(one, value_of(primary or final)) for one, primary, final in judged]
    return {
        "heard": len(appealed),
        "changed": sum(changed(before, after) for before, after in appealed),
        "rescued": sum(before.fails and not after.fails for before, after in appealed),
        "primary": averaging.estimate(first),
        "final": averaging.estimate([_Point(one, value_of(final)) for one, _, final in judged]),
    }
