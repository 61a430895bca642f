"""Compare two runs of Recall Bench that were made elsewhere, question by question.

Answers are paired by question and checkpoint. Recall Bench asks a question again at later
checkpoints, and its answers there are not independent: the pairs of a question are averaged, and
each question counts once. Questions of one week share their evidence, so the clusters are weeks of
the history. The decision engine is that of `compare`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from mnemoscope.analysis.compare import guarded_rows, rows_of
from mnemoscope.analysis.comparison import OVERALL, Comparison, Declared, Role, Row
from mnemoscope.analysis.pairing import NotComparable, PairedValues
from mnemoscope.analysis.question_records import BEST_SCORE, QuestionRecord
from mnemoscope.analysis.recall_bench_runs import RecallBenchRun

COMPOSITE, GROUNDED = "composite", "grounded"
"""The sum of the marks, 0 to 6, and the share of answers without a hallucination."""
_ROLES: dict[str, Role] = {COMPOSITE: "primary", GROUNDED: "secondary"}
_SAME_JUDGE = ("judge_model", "appellate_judge_model", "judge_memory_window", "groups_enabled")
_Key = tuple[str, str, str]


class WeekRow(Row, frozen=True):
    """A row whose clusters are weeks of a history."""

    @property
    def units(self) -> tuple[str, str]:
        return "question", "week"


def compare_recall_bench(
    base: RecallBenchRun,
    cand: RecallBenchRun,
    *,
    band: float | None = None,
    by_category: bool = True,
) -> Comparison:
    """Compare the marks of two files, paired by question and checkpoint."""
    for run in (base, cand):
        if not run.records:
            raise NotComparable(
                f"{run.path} has aggregates only, so its answers cannot be paired; give the "
                "result.json or the questions.jsonl of the run. `mnemoscope report` shows the file"
            )
    _refuse_other_judge(base, cand)
    before, after = _by_key(base.records), _by_key(cand.records)
    shared = [key for key in before if key in after]
    asked = [key for key in shared if before[key].question == after[key].question]
    if not asked:
        raise NotComparable(
            f"{base.path} and {cand.path} share no question at the same checkpoint"
            + (": the questions of the same ids differ" if shared else "")
        )
    same = [key for key in asked if before[key].score and after[key].score]
    if not same:
        raise NotComparable(
            f"{base.path} and {cand.path} share no judged answer: each failed in one of them"
        )
    questions: dict[tuple[str, str], list[_Key]] = {}
    for key in same:
        questions.setdefault(key[:2], []).append(key)
    firsts = [before[keys[0]] for keys in questions.values()]
    values = PairedValues(
        list(_ROLES),
        [record.question.id for record in firsts],
        np.array([_mean_marks(before, keys) for keys in questions.values()]),
        np.array([_mean_marks(after, keys) for keys in questions.values()]),
        [record.question.category for record in firsts],
        [record.cluster for record in firsts],
        {COMPOSITE: float(BEST_SCORE), GROUNDED: 1.0},
    )
    declared = Declared(COMPOSITE, [GROUNDED], "Recall Bench's score")
    rows = rows_of(OVERALL, values, dict(_ROLES), declared, band)
    for category in sorted(set(values.categories)) if by_category else ():
        part = values.of_category(category)
        rows += rows_of(category, part, dict.fromkeys(_ROLES, "category"), declared, None)
    names = _names(base, cand)
    return Comparison(
        base=names[0],
        cand=names[1],
        benchmark="Recall Bench",
        paired=len(questions),
        only_base=len(before) - len(shared),
        only_cand=len(after) - len(shared),
        failed=len({key[:2] for key in asked} - questions.keys()),
        clusters=len(set(values.clusters)),
        band=band,
        declared=declared,
        rows=[WeekRow(**msgspec.structs.asdict(row)) for row in rows],
        guarded=guarded_rows(values, list(_ROLES), declared.alpha),
        by_cluster=[],
        notes=_notes(base, cand, before, after, asked),
    )


def _refuse_other_judge(base: RecallBenchRun, cand: RecallBenchRun) -> None:
    first, second = base.settings, cand.settings
    found = [
        f"{name.replace('_', ' ')}: {getattr(first, name)} → {getattr(second, name)}"
        for name in _SAME_JUDGE
        if getattr(first, name) != getattr(second, name)
    ]
    if found:
        raise NotComparable(
            f"{base.path} and {cand.path} were judged differently ({'; '.join(found)}), so their "
            "marks are not comparable"
        )


def _by_key(records: Sequence[QuestionRecord]) -> dict[_Key, QuestionRecord]:
    return {(record.scenario, record.question.id, record.checkpoint): record for record in records}


def _mean_marks(records: dict[_Key, QuestionRecord], keys: Sequence[_Key]) -> tuple[float, float]:
    """The composite, and the share without a hallucination, over the answers to one question."""
    scores = [score for key in keys if (score := records[key].score) is not None]
    composite = sum(score.composite for score in scores) / len(scores)
    return composite, sum(score.hallucination > 0 for score in scores) / len(scores)


def _names(base: RecallBenchRun, cand: RecallBenchRun) -> tuple[str, str]:
    labels = base.label, cand.label
    return labels if labels[0] != labels[1] else (str(base.path), str(cand.path))


def _notes(
    base: RecallBenchRun,
    cand: RecallBenchRun,
    before: dict[_Key, QuestionRecord],
    after: dict[_Key, QuestionRecord],
    asked: Sequence[_Key],
) -> list[str]:
    same = [key for key in asked if before[key].score and after[key].score]
    questions = {key[:2] for key in same}
    points = {key[2] for key in same}
    notes = [
        f"{len(same):,} pairs of answers at {len(points)} checkpoints; the pairs of one question "
        f"are averaged, so each of the {len(questions):,} questions counts once",
        f"the marks are those of the files (judge {base.settings.judge_model or 'not named'}); "
        "whether that judge can be trusted is not checked here",
    ]
    shared = [key for key in before if key in after]
    if len(asked) > len(same):
        notes.append(_failure_note(before, after, asked))
    if other := len(shared) - len(asked):
        notes.append(f"{other:,} pairs are left out: the question or its reference was edited")
    alone = len(before) - len(shared), len(after) - len(shared)
    if any(alone):
        notes.append(
            f"{alone[0]:,} answers are only in the base, {alone[1]:,} only in the candidate: each "
            "run draws its own sample; they are left out"
        )
    for run in (base, cand):
        if wrong := [one for one in run.reproduced() if not one.is_same]:
            notes.append(
                f"{run.label}: {len(wrong)} printed figures are NOT what its marks give; the marks "
                "are compared"
            )
    return notes


def _failure_note(
    before: dict[_Key, QuestionRecord], after: dict[_Key, QuestionRecord], asked: Sequence[_Key]
) -> str:
    """A system that fails on what it does not know must not look better for it."""
    lost = [sum(run[key].score is None for key in asked) for run in (before, after)]
    either = sum(before[key].score is None or after[key].score is None for key in asked)
    deltas: dict[tuple[str, str], list[int]] = {}
    for key in asked:
        first, last = (one.composite if (one := run[key].score) else 0 for run in (before, after))
        deltas.setdefault(key[:2], []).append(last - first)
    whole = sum(sum(own) / len(own) for own in deltas.values()) / len(deltas)
    return (
        f"{either:,} pairs are left out because an answer failed or was not judged, {lost[0]:,} in "
        f"the base and {lost[1]:,} in the candidate; counted as zeros, they make the difference in "
        f"{COMPOSITE} {whole:+.4f}"
    )
