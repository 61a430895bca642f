"""Score answers that were given elsewhere: read them, judge them again, compare the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope.api.arguments import Where, optional_path, several
from mnemoscope.api.new_runs import exams_of_judges
from mnemoscope.api.page_texts import page_texts
from mnemoscope.api.run_progress import Progress, reporting
from mnemoscope.results import ImportedRun
from mnemoscope.types import Scalar

if TYPE_CHECKING:
    from mnemoscope.runner.foreign_fields import AnswerFormat


def score_answers(
    file: Where,
    *,
    dataset: str,
    judge: str | Sequence[str] | None = None,
    appellate_judge: str | None = None,
    out: Where | None = None,
    format: AnswerFormat | None = None,
    fields: Mapping[str, str] | None = None,
    at: str = "",
    data: Where | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    progress: Progress = None,
    **options: Scalar,
) -> ImportedRun:
    """Judge the answers in a file again, and compare the file's own verdicts with ours.

    Formats: `jsonl`, `mem0`, `longmemeval`, `recall-bench`; by default by the content. `fields`
    maps question, answer, verdict, text, group and error to the fields of a generic file; dots lead
    into objects. `at` is the checkpoint of Recall Bench's results. The run directory is `out`, by
    default the file's name below `runs`. No system is called, and no verification passes: the
    answers came from outside.
    """
    from mnemoscope.datasets import open_dataset
    from mnemoscope.reports.run_report import write_report
    from mnemoscope.runner import answer_setup as answers
    from mnemoscope.runner.foreign_answers import read_answers
    from mnemoscope.runner.score_answers import asked_dataset
    from mnemoscope.runner.score_answers import score_answers as score_file

    path = Path(file)
    if path.is_dir():
        raise UsageError(f"{path} is a folder: give the file of answers")
    if not path.is_file():
        raise MissingData(f"no such file: {path}")
    read = read_answers(path, format, fields, at)
    whole = open_dataset(dataset, optional_path(data), dict(options))
    asked = asked_dataset(whole, read)
    judges = several(judge)
    if not judges and read.asked_at:
        raise UsageError(
            "give --judge: f1, rouge-l and exact need no model, rubric,model=MODEL gives the marks "
            "of Recall Bench"
        )
    pipeline = answers.pipeline_for(
        dataset if not read.asked_at else "",
        reader=answers.SYSTEM,
        judges=judges,
        appellate=appellate_judge,
        parallelism=parallelism,
    )
    answers.check_models(answers.models_of(*judges, appellate_judge), max_cost)
    folder = optional_path(out) or Path("runs") / path.name.partition(".")[0]
    with reporting(progress, asked, 1) as (advance, questions):
        directory = score_file(
            asked,
            path,
            read,
            folder,
            pipeline,
            workers=workers,
            max_cost=max_cost,
            exams=exams_of_judges(pipeline, whole),
            progress=advance,
            questions=questions,
        )
    write_report(directory, texts=page_texts(asked, [directory]))
    return ImportedRun(directory.path)
