"""Answers as JSON lines: a generic form with a mapping of fields, and LongMemEval's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import decode_lines
from mnemoscope.analysis.foreign_verdicts import TheirFigure, mean_figure
from mnemoscope.runner.foreign_fields import (
    AnswerFile,
    GivenAnswer,
    decoded,
    field_of,
    list_of,
    majority,
    object_of,
    text_of,
    verdict_of,
)

FIELDS: dict[str, tuple[str, ...]] = {
    "question": ("question_id", "qid", "id", "question"),
    "answer": ("answer", "hypothesis", "response", "prediction", "generated_answer"),
    "verdict": ("verdict", "label", "correct", "is_correct", "llm_score"),
    "text": ("question_text", "query"),
    "group": ("conversation", "conversation_id", "scenario", "sample_id"),
    "error": ("error",),
}
"""Our names of a line's fields, and the names that are tried if the user maps none."""
_ABSTENTION = "_abs"


def read_lines(path: Path, content: bytes, fields: Mapping[str, str]) -> AnswerFile:
    """Generic JSON lines: an id or text of the question, the answer, and optionally a verdict."""
    if unknown := [name for name in fields if name not in FIELDS]:
        raise UsageError(f"--fields: {unknown[0]!r} is not one of {', '.join(FIELDS)}")
    answers = []
    for number, line in _objects(path, content):
        place = f"line {number}"
        found = {name: _value(line, name, fields, path, place) for name in FIELDS}
        question = text_of(found["question"], "question", path, place) or ""
        text = text_of(found["text"], "text", path, place) or ""
        if not question and not text:
            raise DataError(
                f"{place}: no question id: expected one of {', '.join(FIELDS['question'])}, or "
                "name the field with --fields question=NAME",
                file=path,
            )
        if "answer" not in fields and not any(name in line for name in FIELDS["answer"]):
            raise DataError(
                f"{place}: no answer: expected one of {', '.join(FIELDS['answer'])}, or name the "
                "field with --fields answer=NAME",
                file=path,
            )
        verdicts = _verdicts(found["verdict"], path, place)
        answers.append(
            GivenAnswer(
                place=place,
                question=question,
                text=text,
                group=text_of(found["group"], "group", path, place) or "",
                answer=text_of(found["answer"], "answer", path, place),
                error=text_of(found["error"], "error", path, place) or "",
                verdicts=verdicts,
                is_right=majority(verdicts),
            )
        )
    marks = [_mean(one.verdicts) for one in answers if one.verdicts]
    figures = [mean_figure("accuracy", "mean of the verdicts in the file", marks)] if marks else []
    return AnswerFile("jsonl", answers, figures)


def _objects(path: Path, content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = content.removeprefix(b"\xef\xbb\xbf").splitlines()
    for number, value in decode_lines(lines, msgspec.json.Decoder(), path):
        if not isinstance(value, dict):
            raise DataError("expected an object", file=path, line=number)
        yield number, value


def _value(
    line: Mapping[str, Any], name: str, fields: Mapping[str, str], path: Path, place: str
) -> Any:
    """The value of one of our fields: at the dotted path that the user names, or by its name."""
    if name not in fields:
        return next((line[own] for own in FIELDS[name] if own in line), None)
    value: Any = line
    for part in fields[name].split("."):
        if not isinstance(value, dict) or part not in value:
            if name in ("verdict", "error", "group", "text"):
                return None
            raise DataError(f"{place}: the field {fields[name]} is missing", file=path)
        value = value[part]
    return value


def _verdicts(value: Any, path: Path, place: str) -> dict[str, float]:
    """One verdict, a list of them, or an object with one for each judge."""
    if isinstance(value, list):
        value = {f"judge {number}": one for number, one in enumerate(value, 1)}
    if not isinstance(value, dict):
        value = {"judge": value}
    read = {str(by): verdict_of(one, "verdict", path, place) for by, one in value.items()}
    return {by: mark for by, mark in read.items() if mark is not None}


def _mean(verdicts: Mapping[str, float]) -> float:
    return sum(verdicts.values()) / len(verdicts)


def read_longmemeval(path: Path, content: bytes) -> AnswerFile:
    """A hypothesis file, or the evaluation log that adds `autoeval_label` to each line."""
    answers: list[GivenAnswer] = []
    judges: dict[str, None] = {}
    for place, line in _hypotheses(path, content):
        question = text_of(field_of(line, "question_id", path, place), "question_id", path, place)
        verdicts: dict[str, float] = {}
        if (label := line.get("autoeval_label")) is not None:
            label = object_of(label, "autoeval_label", path, place)
            model = str(label.get("model") or "judge")
            judges[model] = None
            mark = verdict_of(
                field_of(label, "label", path, place), "autoeval_label.label", path, place
            )
            verdicts = {} if mark is None else {model: mark}
        answers.append(
            GivenAnswer(
                place=place,
                question=question or "",
                answer=text_of(
                    field_of(line, "hypothesis", path, place), "hypothesis", path, place
                ),
                verdicts=verdicts,
                is_right=majority(verdicts),
            )
        )
    about = {"judge_model": ", ".join(judges)} if judges else {}
    return AnswerFile("longmemeval", answers, list(_official(answers)), about)


def _hypotheses(path: Path, content: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lines of the file; the official script reads a JSON array, too."""
    if content.lstrip()[:1] == b"[":
        for number, one in enumerate(list_of(decoded(path, content), "the file", path, "$")):
            yield f"[{number}]", object_of(one, "the entry", path, f"[{number}]")
    else:
        for number, line in _objects(path, content):
            yield f"line {number}", line


def _official(answers: list[GivenAnswer]) -> Iterator[TheirFigure]:
    """What the official script prints of a log; the log itself contains no figure."""
    judged = [one for one in answers if one.verdicts]
    if not judged:
        return
    marks = [_mean(one.verdicts) for one in judged]
    yield mean_figure("accuracy", "share of yes over all lines of the log", marks)
    unanswerable = [_mean(one.verdicts) for one in judged if one.question.endswith(_ABSTENTION)]
    if unanswerable:
        rule = "share of yes over the questions whose id ends with _abs"
        yield mean_figure("abstention accuracy", rule, unanswerable)
