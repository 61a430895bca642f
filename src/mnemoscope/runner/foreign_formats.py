"""Answers in the JSON documents of others: mem0-style evaluations and Recall Bench's results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.analysis.foreign_verdicts import TheirFigure, mean_figure
from mnemoscope.runner.foreign_fields import (
    AnswerFile,
    GivenAnswer,
    decoded,
    field_of,
    list_of,
    majority,
    number_of,
    object_of,
    text_of,
    verdict_of,
)
from mnemoscope.types import Score

_BEST = 6
_GIVEN = ("generated_answer", "response", "hypothesis", "prediction")
"""How mem0-style files name the answer; `answer` is their name of the reference."""
_ABOUT = ("answer_model", "judge_model", "answer_prompt", "num_runs")
_RUN_ABOUT = ("synthesisModel", "embeddingModel", "judgeModel", "appellateJudgeModel")


def read_mem0(path: Path, content: bytes) -> AnswerFile:
    """An evaluation: conversations with a list of answers each, and one or several verdicts.

    Either everything stands below `detailed_results`, with `llm_judgments` of several runs of the
    judge, or the file is that object itself, with one `llm_score` an answer.
    """
    whole = object_of(decoded(path, content), "the file", path, "$")
    detailed = "detailed_results" in whole
    conversations = object_of(
        whole["detailed_results"] if detailed else whole, "detailed_results", path, "$"
    )
    head = "detailed_results." if detailed else ""
    answers = []
    for name, own in conversations.items():
        for number, one in enumerate(list_of(own, head + name, path, "$")):
            place = f"{head}{name}[{number}]"
            answers.append(
                _mem0_answer(object_of(one, "the entry", path, place), name, path, place)
            )
    metadata = whole.get("metadata") if detailed else None
    metadata = object_of(metadata, "metadata", path, "$") if metadata is not None else {}
    about = {key: str(metadata[key]) for key in _ABOUT if metadata.get(key) is not None}
    found = AnswerFile("mem0", answers, list(_mem0_figures(whole, metadata, answers, path)), about)
    _note_own_counts(found, whole if detailed else {}, path)
    return found


def _mem0_answer(one: Mapping[str, Any], group: str, path: Path, place: str) -> GivenAnswer:
    name = next((name for name in _GIVEN if name in one), None)
    if name is None:
        raise DataError(f"{place}: no answer: expected one of {', '.join(_GIVEN)}", file=path)
    verdicts: dict[str, float] = {}
    if (several := one.get("llm_judgments")) is not None:
        for by, value in object_of(several, "llm_judgments", path, place).items():
            if (mark := verdict_of(value, f"llm_judgments.{by}", path, place)) is not None:
                verdicts[by] = mark
    elif (mark := verdict_of(one.get("llm_score"), "llm_score", path, place)) is not None:
        verdicts["llm_score"] = mark
    question = text_of(one.get("question_id"), "question_id", path, place) or ""
    text = text_of(one.get("question"), "question", path, place) or ""
    if not question and not text:
        raise DataError(f"{place}: the fields question_id and question are missing", file=path)
    return GivenAnswer(
        place=place,
        question=question,
        text=text,
        group=group,
        answer=text_of(one[name], name, path, place),
        verdicts=verdicts,
        is_right=majority(verdicts),
    )


def _mem0_figures(
    whole: Mapping[str, Any],
    metadata: Mapping[str, Any],
    answers: Sequence[GivenAnswer],
    path: Path,
) -> Iterator[TheirFigure]:
    judged = [one for one in answers if one.verdicts]
    if not judged:
        return

    def printed(content: Mapping[str, Any], name: str) -> float | None:
        return number_of(content.get(name), name, path, "$")

    means = [sum(one.verdicts.values()) / len(one.verdicts) for one in judged]
    several = max(len(one.verdicts) for one in judged) > 1
    rule = "mean over the runs of the judge" if several else "mean of llm_score"
    headline = printed(whole, "accuracy") if "detailed_results" in whole else None
    if headline is None:
        headline = printed(metadata, "mean_accuracy")
    yield mean_figure("accuracy", rule, means, headline)
    if several:
        votes = [float(bool(one.is_right)) for one in judged]
        vote = printed(metadata, "majority_vote_accuracy")
        yield mean_figure("majority vote", "right by more than half of the runs", votes, vote)
    runs = metadata.get("run_scores")
    names = list(dict.fromkeys(by for one in judged for by in one.verdicts)) if several else []
    for number, by in enumerate(names):
        own = [one.verdicts[by] for one in judged if by in one.verdicts]
        score = runs[number] if isinstance(runs, list) and number < len(runs) else None
        as_printed = number_of(score, f"metadata.run_scores[{number}]", path, "$")
        yield mean_figure(by.replace("_", " "), "this run of the judge alone", own, as_printed)


def _note_own_counts(found: AnswerFile, whole: Mapping[str, Any], path: Path) -> None:
    """Say where the file's own counts do not fit its own answers."""
    stated = number_of(whole.get("total_questions"), "total_questions", path, "$")
    if stated is not None and stated != len(found.answers):
        found.notes.append(
            f"the file states {stated:,.0f} questions and has {len(found.answers):,} answers"
        )
    correct = number_of(whole.get("correct"), "correct", path, "$")
    printed = found.figures[0].printed if found.figures else None
    if correct is not None and stated and printed is not None:
        share = correct / stated
        if abs(share - printed) > 0.5 / stated:
            found.notes.append(
                f"the file states {correct:,.0f} correct of {stated:,.0f}, which is {share:.4f}, "
                f"and beside it an accuracy of {printed:.4f}"
            )


def read_recall_bench(path: Path, content: bytes, at: str = "") -> AnswerFile:
    """`result.json` of Recall Bench: the answers at one checkpoint, the last if none is named."""
    whole = object_of(decoded(path, content), "the file", path, "$")
    points: list[tuple[str, str, dict[str, Any]]] = []
    for number, persona in enumerate(list_of(whole.get("personas"), "personas", path, "$")):
        place = f"personas[{number}]"
        whose = object_of(persona, "the entry", path, place)
        ranges = list_of(field_of(whose, "rangeResults", path, place), "rangeResults", path, place)
        for index, one in enumerate(ranges):
            where = f"{place}.rangeResults[{index}]"
            point = object_of(one, "the entry", path, where)
            span = object_of(field_of(point, "range", path, where), "range", path, where)
            points.append((str(span.get("label")), where, point))
    labels = list(dict.fromkeys(label for label, _, _ in points))
    if not labels:
        raise DataError("contains no answers", file=path)
    chosen = at or labels[-1]
    if chosen not in labels:
        raise UsageError(f"--at {at}: {path.name} has {', '.join(labels)}")
    found = AnswerFile("recall-bench", [], asked_at=chosen)
    for label, where, point in points:
        results = list_of(
            field_of(point, "questionResults", path, where), "questionResults", path, where
        )
        own = [
            _recall_bench_answer(one, path, f"{where}.questionResults[{number}]")
            for number, one in enumerate(results)
        ]
        if label == chosen:
            found.answers += own
        else:
            found.elsewhere += len(own)
        found.figures += _recall_bench_figures(label, point, own, path, where)
    # The headline is the figure of the checkpoint that is scored.
    found.figures.sort(key=lambda figure: not figure.name.endswith(f"at {chosen}"))
    metadata = object_of(whole.get("metadata") or {}, "metadata", path, "$")
    found.about = {key: str(metadata[key]) for key in _RUN_ABOUT if metadata.get(key)}
    if whole.get("adapterName"):
        found.about["adapterName"] = str(whole["adapterName"])
    return found


def _recall_bench_answer(value: Any, path: Path, place: str) -> GivenAnswer:
    one = object_of(value, "the entry", path, place)
    pair = object_of(field_of(one, "qa", path, place), "qa", path, place)
    score, verdicts, is_right = one.get("score"), {}, None
    if score is not None:
        try:
            marks = msgspec.convert(score, Score)
        except msgspec.ValidationError as error:
            raise DataError(f"{place}: score: {error}", file=path) from None
        verdicts, is_right = {"judge": marks.composite / _BEST}, not marks.fails
        if not 0 <= marks.composite <= _BEST:
            raise DataError(f"{place}: score: its marks add up to {marks.composite}", file=path)
    return GivenAnswer(
        place=place,
        question=text_of(field_of(pair, "id", path, place), "qa.id", path, place) or "",
        text=text_of(pair.get("question"), "qa.question", path, place) or "",
        answer=text_of(field_of(one, "systemAnswer", path, place), "systemAnswer", path, place),
        verdicts=verdicts,
        is_right=is_right,
    )


def _recall_bench_figures(
    label: str, point: Mapping[str, Any], own: Sequence[GivenAnswer], path: Path, place: str
) -> Iterator[TheirFigure]:
    marks = [mark * _BEST for one in own for mark in one.verdicts.values()]
    if marks:
        printed = number_of(point.get("overallScore"), "overallScore", path, place)
        rule = "mean of the marks, 0 to 6"
        yield mean_figure(f"composite at {label}", rule, marks, printed)
