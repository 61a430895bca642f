"""Figures from what is recorded: judge or answer a run again, score a file of rankings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from msgspec import structs

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.run_directory import RunDirectory, find_runs
from mnemoscope._store.spec import Spec
from mnemoscope.api.arguments import RunLike, Where, benchmark_of, optional_path, run_path, several
from mnemoscope.api.new_runs import declared_repeats, exams_of_judges, summarised
from mnemoscope.api.page_texts import page_texts
from mnemoscope.api.run_progress import Progress, reporting
from mnemoscope.results import (
    Results,
    RuleChange,
    ScoredRun,
)
from mnemoscope.types import Scalar

if TYPE_CHECKING:
    from mnemoscope.analysis.question_details import DatasetTexts
    from mnemoscope.runner.pipeline import Pipeline
    from mnemoscope.runner.rerun import Phase


def judge(
    run: RunLike,
    *,
    judge: str | Sequence[str],
    appellate_judge: str | None = None,
    judge_memory_window: int | None = None,
    out: Where | None = None,
    data: Where | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    progress: Progress = None,
) -> Results:
    """Judge the saved answers of a run, or of all runs in a folder, with other judges."""
    from mnemoscope.runner import answer_setup as answers
    from mnemoscope.runner.pipeline import plan_judge, plan_panel
    from mnemoscope.runner.rerun import recorded_pipeline

    judges, runs = several(judge), find_runs(run_path(run))
    for old in runs:
        answers.check_judges(_rules_of(old), judges, appellate_judge)
    answers.check_models(answers.models_of(*judges, appellate_judge), max_cost)

    def pipeline_of(old: RunDirectory) -> Pipeline:
        recorded = recorded_pipeline(old.manifest())
        by = _rules_of(old)
        return structs.replace(
            recorded,
            judge=plan_panel([Spec.parse(one) for one in judges], by),
            appellate=plan_judge(Spec.parse(appellate_judge), by) if appellate_judge else None,
            window=recorded.window if judge_memory_window is None else judge_memory_window,
            parallelism=parallelism,
        )

    place = optional_path(out) or _beside(runs[0], judges)
    work = [(old, pipeline_of(old)) for old in runs]
    return _redo(work, "judge", place, optional_path(data), workers, max_cost, progress)


def answer(
    run: RunLike,
    *,
    reader: str,
    judge: str | Sequence[str] | None = None,
    appellate_judge: str | None = None,
    out: Where | None = None,
    data: Where | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    progress: Progress = None,
) -> Results:
    """Answer from the saved hits of a run with another reader; the system is not called."""
    from mnemoscope.runner import answer_setup as answers

    judges = several(judge)
    if reader.split(",")[0] in (answers.SYSTEM, answers.NONE):
        raise UsageError("the system is not called when saved hits are read: name another reader")
    work = []
    for old in find_runs(run_path(run)):
        identity = old.manifest().identity
        pipeline = answers.pipeline_for(
            benchmark_of(old),
            reader=reader,
            judges=judges,
            appellate=appellate_judge,
            lifecycle=identity.get("lifecycle", "auto"),
            window=identity.get("judge_memory_window", 0),
            compat=identity.get("compat", ""),
            parallelism=parallelism,
        )
        work.append((old, pipeline))
    answers.check_models(answers.models_of(reader, *judges, appellate_judge), max_cost)
    place = optional_path(out) or _beside(work[0][0], [reader])
    return _redo(work, "answer", place, optional_path(data), workers, max_cost, progress)


def _redo(
    work: Sequence[tuple[RunDirectory, Pipeline]],
    phase: Phase,
    out: Path,
    data: Path | None,
    workers: int,
    max_cost: float | None,
    progress: Progress,
) -> Results:
    from mnemoscope.analysis.foreign_verdicts import IMPORTED
    from mnemoscope.reports.run_report import write_report
    from mnemoscope.runner.answer_setup import reopened
    from mnemoscope.runner.rerun import redo
    from mnemoscope.runner.run import paid
    from mnemoscope.runner.score_answers import write_imported

    done: list[RunDirectory] = []
    texts: list[DatasetTexts] = []
    for old, pipeline in work:
        dataset = reopened(old.manifest(), data)
        left = None if max_cost is None else max_cost - sum(paid(new.path) for new in done)
        with reporting(progress, dataset, 1) as (advance, asked):
            new = redo(
                old,
                dataset,
                out,
                pipeline,
                phase,
                workers=workers,
                max_cost=left,
                exams=exams_of_judges(pipeline, dataset),
                progress=advance,
                questions=asked,
            )
        if phase == "judge" and (old.path / IMPORTED).exists():
            write_imported(new, old.read_json(IMPORTED))
        texts.append(page_texts(dataset, [new]))
        write_report(new, texts=texts[-1])
        done.append(new)
    if sets := declared_repeats(done, out):
        for new, own in zip(done, texts, strict=True):
            write_report(new, repeats=sets, texts=own)
    return summarised(done, out)


def score(
    file: Where,
    *,
    dataset: str,
    out: Where | None = None,
    format: Literal["jsonl", "trec", "pgmnemo"] = "jsonl",
    compat: Literal["pgmnemo"] | None = None,
    depth: int = 0,
    data: Where | None = None,
    **options: Scalar,
) -> ScoredRun:
    """Score a file of rankings against a dataset's evidence; no system is called.

    The run directory is `out`, by default the file's name below `runs`. `depth` is how many hits
    were asked for, if the file does not state it: a shorter list is then complete.
    """
    from mnemoscope.datasets import dataset_info, open_dataset
    from mnemoscope.reports.run_report import write_report
    from mnemoscope.runner.score_rankings import rule_changes
    from mnemoscope.runner.score_rankings import score as score_file

    rankings = Path(file)
    if not rankings.is_file():
        raise MissingData(f"no such file: {rankings}")

    published = dataset_info(dataset).published_rules.get("pgmnemo")

    def scored(rules: Literal["pgmnemo"] | None, folder: Path) -> RunDirectory:
        fixed = published.options if rules and published else {}
        opened = open_dataset(dataset, optional_path(data), {**options, **fixed})
        directory = score_file(opened, rankings, folder, format=format, compat=rules, depth=depth)
        write_report(directory, texts=page_texts(opened, [directory]))
        return directory

    result = ScoredRun(scored(compat, optional_path(out) or Path("runs") / rankings.stem).path)
    if format == "pgmnemo":
        with TemporaryDirectory() as scratch:
            other = scored(None if compat else "pgmnemo", Path(scratch) / "other")
            pair = [one.read_json("metrics.json") for one in (result.directory, other)]
        theirs, sound = pair if compat else reversed(pair)
        result.rule_changes = {
            name: RuleChange(**change) for name, change in rule_changes(theirs, sound).items()
        }
        result.sound_rules = published.sound if published else ""
    return result


def _rules_of(run: RunDirectory) -> str:
    """The dataset whose rules for judges apply; none for answers that were asked elsewhere.

    Those of a persona have no checkpoints here, so that judges with one number can judge them.
    """
    from mnemoscope.datasets.asked_only import ASKED

    asked_elsewhere = ASKED in run.manifest().identity["benchmark"]["options"]
    return "" if asked_elsewhere else benchmark_of(run)


def _beside(run: RunDirectory, parts: Sequence[str]) -> Path:
    folder = run.path.resolve().parent
    return folder.parent / "-".join([folder.name, *(Spec.parse(part).slug for part in parts)])
