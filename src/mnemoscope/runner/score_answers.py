"""Judges answers that were given elsewhere: a run without a system, from a file of answers.

The answers are written as the spools of an interrupted run. The runner then continues as after an
interruption: it judges them, in several processes, within a budget, and can be killed and resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.journal_chain import seal_spool
from mnemoscope._store.jsonl import encode_json, printable, write_records
from mnemoscope._store.run_directory import JournalLine, RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.analysis.foreign_verdicts import (
    IMPORTED,
    ImportedAnswers,
    figure_content,
    with_agreement,
)
from mnemoscope.analysis.question_records import records_of
from mnemoscope.datasets.asked_only import asked_only
from mnemoscope.datasets.base import Dataset
from mnemoscope.isolation.levels import WITHIN_REACH
from mnemoscope.runner.foreign_fields import AnswerFile, GivenAnswer
from mnemoscope.runner.match_answers import Matched, QuestionIndex, match_answers
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.private_runs import check_private, is_private
from mnemoscope.runner.question_progress import QuestionProgress
from mnemoscope.runner.run import Progress, Settings, run
from mnemoscope.runner.work_unit import spool_of
from mnemoscope.systems.loader import Plan
from mnemoscope.text.abstention import says_nothing
from mnemoscope.types import Answer, Ingestion, Isolation, Query, Question, Scenario, Status

NOT_IN_FILE = "the file has no answer for this question"
_NULL = "the file records no answer for this question"


def asked_dataset(whole: Dataset, file: AnswerFile) -> Dataset:
    """The dataset; for a file with checkpoints, only the questions asked at one of them."""
    if not file.asked_at:
        return whole
    index = _index(whole)
    ids = (index.by_name(answer.question) for answer in file.answers)
    return asked_only(whole, " ".join(dict.fromkeys(filter(None, ids))), file.asked_at)


def score_answers(
    dataset: Dataset,
    path: Path,
    file: AnswerFile,
    out: Path,
    pipeline: Pipeline,
    *,
    workers: int = 0,
    max_cost: float | None = None,
    exams: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    progress: Progress = lambda units: None,
    questions: QuestionProgress | None = None,
) -> RunDirectory:
    """A finished run directory `out`, made from the answers in a file."""
    index = _index(dataset)
    matched = match_answers(file, index, dataset.name, path.name)
    digest = sha256_file(path)
    directory = RunDirectory(out)
    pipeline = msgspec.structs.replace(pipeline, system_answers=True, reader=None)
    if is_private(dataset):  # before the answers are written
        check_private(dataset, out, pipeline)
    if not directory.manifest_path.exists():
        _write_spools(directory, dataset, matched)
    label = out.name
    spec = Spec("answers-from-file", label=label)
    about = {
        "answers_file": printable(path.name),
        "answers_sha256": digest,
        "answers_format": file.format,
        **({"asked_at": file.asked_at} if file.asked_at else {}),
    }
    run(
        dataset,
        [Plan(spec, _NoSystem, about, answers=True)],
        out.parent,
        Settings(workers=workers),
        progress,
        pipeline=pipeline,
        max_cost=max_cost,
        exams=exams,
        derived_from=digest,
        kept_isolation=Isolation(
            "file", WITHIN_REACH, why=f"the answers were read from {printable(path.name)}"
        ),
        questions=questions,
    )
    content: ImportedAnswers = {
        "file": printable(path.name),
        "sha256": digest,
        "format": file.format,
        "about": file.about,
        "notes": file.notes,
        "counts": matched.counts(file, len(index.by_id)),
        "figures": [figure_content(one) for one in file.figures],
        "theirs_here": None,
        "ours_here": None,
        "agreement": None,
        "unanimous": None,
        "verdicts": {id: one.verdicts for id, one in matched.answers.items() if one.verdicts},
        "right": {
            id: one.is_right for id, one in matched.answers.items() if one.is_right is not None
        },
    }
    if file.asked_at:
        content["asked_at"] = file.asked_at
    write_imported(directory, content)
    return directory


def write_imported(run: RunDirectory, content: ImportedAnswers) -> None:
    """Write imported.json with the agreement between their verdicts and those of this run."""
    run.write_files({IMPORTED: encode_json(with_agreement(content, records_of(run)))})


def _index(dataset: Dataset) -> QuestionIndex:
    index = QuestionIndex(
        (scenario.id, question)
        for scenario in dataset.scenarios()
        for question in scenario.questions
    )
    if not index.by_id:
        raise UsageError(f"{dataset.name} contains no questions")
    return index


def _write_spools(directory: RunDirectory, dataset: Dataset, matched: Matched) -> None:
    for order, scenario in enumerate(dataset.scenarios()):
        if any(point.label for point in scenario.checkpoints):
            raise UsageError(
                f"the questions of {dataset.name} are asked at several checkpoints, and the file "
                "does not say at which; results of Recall Bench do (--format recall-bench)"
            )
        spool = spool_of(directory.path / "units", order)
        write_records(spool.trials, _lines(scenario, matched))
        write_records(spool.timings, [])
        for file in spool:
            seal_spool(file)


def _lines(scenario: Scenario, matched: Matched) -> list[JournalLine]:
    """No memory was ingested here, and each question has the answer of the file."""
    lines: list[JournalLine] = [Ingestion(scenario.id, 0)]
    for question in scenario.questions:
        lines.append(_answer(scenario.id, question, matched.answers.get(question.id)))
    return lines


def _answer(scenario: str, question: Question, given: GivenAnswer | None) -> Answer:
    error = ""
    if given is None:
        error = NOT_IN_FILE
    elif given.error:
        error = f"the file records an error: {given.error}"
    elif given.answer is None:
        error = _NULL
    if error or given is None or given.answer is None:
        return Answer(scenario, question.id, "error", error=printable(error))
    text = printable(given.answer)
    status: Status = "answered" if text.strip() else "empty"
    if status == "answered" and says_nothing(text, question.text):
        status = "abstained"
    return Answer(scenario, question.id, status, text)


class _NoSystem:
    """Stands for the system that gave the answers elsewhere."""

    def answer(self, query: Query) -> str:
        raise AssertionError("the answers are in the file")
