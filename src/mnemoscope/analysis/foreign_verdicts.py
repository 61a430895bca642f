"""Answers that were given elsewhere: their figures, and how far their verdicts agree with ours."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import NotRequired, TypedDict

from msgspec import Struct

from mnemoscope.analysis.estimates import Rate, rate, rounded, rounded_all
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.stats.agreement import cohens_kappa

IMPORTED = "imported.json"
"""The file of a run that says where its answers came from."""
_SEED = 42
_SAME = 5e-5
"""Printed figures have four decimals or more."""


class TheirFigure(Struct, frozen=True):
    """A figure of the file: as printed, and recomputed from its verdicts by its own rule."""

    name: str
    rule: str
    recomputed: float
    n: int
    printed: float | None = None
    """None if the file prints none."""

    @property
    def is_reproduced(self) -> bool | None:
        """Whether both are the same; None if the file prints none."""
        if self.printed is None:
            return None
        return abs(self.printed - self.recomputed) <= _SAME


def mean_figure(
    name: str, rule: str, marks: Sequence[float], printed: float | None = None
) -> TheirFigure:
    return TheirFigure(name, rule, rounded(sum(marks) / len(marks)), len(marks), printed)


class TheirFigureContent(TypedDict):
    """A figure of the file: as printed, and recomputed from its verdicts by its own rule."""

    name: str
    rule: str
    printed: float | None
    recomputed: float
    n: int
    reproduced: bool | None
    """None if the file prints no figure."""


class ImportCounts(TypedDict):
    """What became of the answers in the file, and of the questions of the dataset."""

    in_file: int
    matched: int
    """Questions of the dataset that got an answer of the file."""
    by_id: int
    by_text: int
    """Matched by the question's text, because the file has no id of ours."""
    other_text: int
    """Matched by id, although the question's text is another one."""
    unknown: int
    """Answers to questions that the dataset does not have."""
    repeated: int
    """Further answers to a question with the same text; the first counts."""
    conflicting: int
    """Further answers to a question with another text; the first counts."""
    missing: int
    """Questions of the dataset without an answer; they are errors, not wrong."""
    elsewhere: int
    """Answers at other checkpoints of the file, which this run does not score."""
    verdicts: int
    """Matched answers with a verdict of theirs."""
    examples: dict[str, list[str]]
    """The first places of each kind that is not simply matched."""


class AgreementTable(TypedDict):
    """Their verdicts against ours on the same answers."""

    n: int
    both_right: int
    only_theirs: int
    """Right by their verdict and wrong by ours."""
    only_ours: int
    both_wrong: int
    agreement: Rate
    kappa: float | None
    kappa_ci95: list[float] | None


class ImportedAnswers(TypedDict):
    """The content of imported.json: where the answers of a run came from."""

    file: str
    sha256: str
    format: str
    about: dict[str, str]
    notes: list[str]
    counts: ImportCounts
    figures: list[TheirFigureContent]
    theirs_here: float | None
    """The share that is right by their verdicts, over the answers that both judged."""
    ours_here: float | None
    """The same answers by our verdicts, right from the passing mark on."""
    agreement: AgreementTable | None
    """None without verdicts of theirs, or without a judge of ours."""
    unanimous: AgreementTable | None
    """The same over answers on which all of several verdicts of theirs agree."""
    verdicts: dict[str, dict[str, float]]
    """Question id to their verdicts."""
    right: dict[str, bool]
    """Question id to whether the answer is right by the file's own rule."""
    asked_at: NotRequired[str]


def figure_content(figure: TheirFigure) -> TheirFigureContent:
    return {
        "name": figure.name,
        "rule": figure.rule,
        "printed": figure.printed,
        "recomputed": figure.recomputed,
        "n": figure.n,
        "reproduced": figure.is_reproduced,
    }


def with_agreement(content: ImportedAnswers, records: Sequence[QuestionRecord]) -> ImportedAnswers:
    """The content with the agreement between their verdicts and those of these records."""
    right, verdicts = content["right"], content["verdicts"]
    both = [
        (record, right[record.question.id], not final.fails)
        for record in records
        if record.question.id in right and (final := record.final) is not None
    ]
    unanimous = [
        one
        for one in both
        if len(votes := list(verdicts.get(one[0].question.id, {}).values())) > 1
        and len({vote >= 0.5 for vote in votes}) == 1
    ]
    several = any(len(own) > 1 for own in verdicts.values())
    return {
        **content,
        "theirs_here": _share([theirs for _, theirs, _ in both]),
        "ours_here": _share([ours for _, _, ours in both]),
        "agreement": _agreement(both) if both else None,
        "unanimous": _agreement(unanimous) if several and unanimous else None,
    }


def _share(marks: Sequence[bool]) -> float | None:
    return rounded(sum(marks) / len(marks)) if marks else None


def _agreement(both: Sequence[tuple[QuestionRecord, bool, bool]]) -> AgreementTable:
    theirs, ours = [one for _, one, _ in both], [one for _, _, one in both]
    pairs = list(zip(theirs, ours, strict=True))
    found = cohens_kappa(theirs, ours, seed=_SEED)
    return {
        "n": len(both),
        "both_right": pairs.count((True, True)),
        "only_theirs": pairs.count((True, False)),
        "only_ours": pairs.count((False, True)),
        "both_wrong": pairs.count((False, False)),
        "agreement": rate([a == b for a, b in pairs], [record.cluster for record, _, _ in both]),
        "kappa": None if isnan(found.kappa) else rounded(found.kappa),
        "kappa_ci95": None if isnan(found.low) else rounded_all((found.low, found.high)),
    }
