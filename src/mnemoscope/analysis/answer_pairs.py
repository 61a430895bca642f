"""Answers of two runs to the same questions, side by side, where the same judge judged both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.fingerprint import differences
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.answers import ANSWERS
from mnemoscope.analysis.question_records import value_of
from mnemoscope.types import FAILED, Answer, Verdict


@dataclass(frozen=True)
class AnswerPairs:
    """Grades of the questions that have an answer and were judged in both runs."""

    metric: str
    base: NDArray[np.float64]
    cand: NDArray[np.float64]
    categories: list[str]
    clusters: list[str]
    left_out: int
    """Questions that failed or were not judged in at least one of the runs."""


def pair_answers(base: RunDirectory, cand: RunDirectory) -> AnswerPairs | str | None:
    """The pairs; why there are none though both runs have answers; None where they have not."""
    if not all((run.path / ANSWERS).exists() for run in (base, cand)):
        return None
    if any(run.manifest().checkpoints for run in (base, cand)):
        return None
    if differences(_judged_by(base), _judged_by(cand)):
        return "the answers were judged differently and are not compared; `mnemoscope judge` can"
    metrics = [str(run.read_json(ANSWERS)["figures"]["metric"]) for run in (base, cand)]
    asked = {line["id"]: line for line in base.questions() if line["expects"] == "answer"}
    before, after = _grades(base), _grades(cand)
    shared = [id for id in asked if id in before and id in after]
    if metrics[0] != metrics[1] or not shared:
        return "no answer was judged in both runs"
    clusters = {trial.question: trial.cluster for trial in base.trials()}
    return AnswerPairs(
        metrics[0],
        np.array([before[id] for id in shared]),
        np.array([after[id] for id in shared]),
        [asked[id]["category"] for id in shared],
        [clusters.get(id) or asked[id]["scenario"] for id in shared],
        len(asked) - len(shared),
    )


def _judged_by(run: RunDirectory) -> dict[str, object]:
    identity = run.manifest().identity
    return {role: identity.get(role) for role in ("judge", "appellate_judge")}


def _grades(run: RunDirectory) -> dict[str, float]:
    failed: set[str] = set()
    found: dict[str, float] = {}
    for line in run.journal():
        if isinstance(line, Answer) and line.status in FAILED:
            failed.add(line.question)
        elif isinstance(line, Verdict) and (final := line.final) is not None:
            found[line.question] = value_of(final)
    return {id: value for id, value in found.items() if id not in failed}
