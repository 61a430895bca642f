"""Accuracy from labels by hand: a random sample of a run's answers, and what its labels say.

The labels correct the verdicts of any judge (prediction-powered inference), also of one that
failed its exam, because they show its errors on the run's own answers.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.question_records import QuestionRecord, records_of
from mnemoscope.stats.corrected import Corrected, prediction_powered

_LEAST = 30
"""With fewer labels the interval is too short."""


class LabelLine(msgspec.Struct):
    """One line of a file of labels; the texts are for the person who labels."""

    question: str
    correct: bool | None = None
    text: str = ""
    reference: str = ""
    answer: str = ""


class LabelledAccuracy(NamedTuple):
    """The accuracy over questions with an answer, and how many labels it comes from."""

    accuracy: float
    low: float
    high: float
    n: int
    labels: int


def label_sample(run: Path, n: int = 100) -> list[dict[str, Any]]:
    """A random sample of the judged answers, to be labelled with `correct`; verdicts are not shown.

    The order depends on the run alone, so nobody chooses what is labelled.
    """
    if n < _LEAST:
        raise UsageError(f"{n} labels are too few: at least {_LEAST} are needed")
    found = _in_order(RunDirectory(run))
    return [
        {
            "question": one.question.id,
            "correct": None,
            "text": one.question.text,
            "reference": one.question.reference,
            "answer": one.answer.text if one.answer else "",
        }
        for one in found[:n]
    ]


def correct_by_labels(run: Path, labels: Path) -> LabelledAccuracy:
    """The accuracy from all verdicts of a run and the labels of its sample."""
    place, known = labels, dict[str, bool]()
    try:
        lines = place.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read: {error}", file=place) from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                one = msgspec.json.decode(line, type=LabelLine)
            except (msgspec.DecodeError, RecursionError) as error:
                raise DataError(str(error), file=place, line=number) from None
            if one.correct is None:
                raise DataError(f"{one.question} has no label", file=place, line=number)
            known[one.question] = one.correct
    records = _in_order(RunDirectory(run))
    if len(known) < _LEAST:
        raise DataError(f"{len(known)} labels are too few: at least {_LEAST} needed", file=place)
    if known.keys() != {one.question.id for one in records[: len(known)]}:
        raise DataError(
            "the labels are not those of the run's random sample (`mnemoscope judges sample`)",
            file=place,
        )
    found: Corrected | None = prediction_powered(
        [float(one.final is not None and not one.final.fails) for one in records],
        [known.get(one.question.id) for one in records],
        [one.cluster for one in records],
    )
    assert found is not None
    return LabelledAccuracy(found.accuracy, found.low, found.high, found.n, len(known))


def _in_order(run: RunDirectory) -> list[QuestionRecord]:
    """The judged answers to questions with an answer, in an order drawn from the run's identity."""
    manifest = run.manifest()
    if manifest.checkpoints:
        raise UsageError("labels are for runs without checkpoints")
    found = [
        one for one in records_of(run) if one.question.expects == "answer" and one.final is not None
    ]
    if not found:
        raise UsageError(f"{run.path} has no judged answers")
    found.sort(key=lambda one: (one.scenario, one.question.id))
    Random(f"labels/{manifest.fingerprint}").shuffle(found)
    return found
