"""`mnemoscope judge` and `mnemoscope answer`: saved answers judged, saved hits read once more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory, find_runs
from mnemoscope._store.spec import Spec
from mnemoscope.cli import answering
from mnemoscope.cli.run import show, watched
from mnemoscope.cli.run_personas import everything_failed
from mnemoscope.cli.run_personas import show as show_lives

if TYPE_CHECKING:
    from mnemoscope.runner.pipeline import Pipeline
    from mnemoscope.runner.rerun import Phase


def judge(
    run: Path,
    /,
    *,
    judge: list[str],
    appellate_judge: str | None = None,
    judge_memory_window: int | None = None,
    out: Path | None = None,
    data: Path | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    json: bool = False,
) -> int:
    """Judge the saved answers of a run again, without asking the system or the reader anything.

    For example:

        mnemoscope judge runs/answers/hybrid --judge binary,model=openai:gpt-4o

        mnemoscope judge runs/answers --judge f1 --out runs/answers-f1

    Parameters
    ----------
    run
        A run directory with answers, or a folder of several.
    judge
        Who scores: as in `mnemoscope run`. Repeated: a panel.
    appellate_judge
        A second judge, heard only where the first one fails an answer.
    judge_memory_window
        Days around the evidence that the judge is shown; as in the run where not said.
    out
        Where the new run directories go; beside the old ones, named after the judge, by default.
    data
        The dataset's file or folder, where it is not where `mnemoscope run` would find it.
    parallelism
        Answers in flight at once in each process.
    workers
        Processes; 0 for one per core.
    max_cost
        What models may cost in US dollars, whatever was paid before included.
    json
        Print the figures as JSON instead of tables.
    """
    from mnemoscope.runner.pipeline import plan_judge, plan_panel
    from mnemoscope.runner.rerun import recorded_pipeline

    def pipeline_of(old: RunDirectory) -> Pipeline:
        manifest = old.manifest()
        benchmark = str(manifest.identity["benchmark"]["name"])
        recorded = recorded_pipeline(manifest)
        return msgspec.structs.replace(
            recorded,
            judge=plan_panel([Spec.parse(one) for one in judge], benchmark),
            appellate=appellate_judge and plan_judge(Spec.parse(appellate_judge), benchmark),
            window=recorded.window if judge_memory_window is None else judge_memory_window,
            parallelism=parallelism,
        )

    runs = find_runs(run)
    for old in runs:
        answering.check_judges(
            str(old.manifest().identity["benchmark"]["name"]), judge, appellate_judge
        )
    answering.check_models(answering.models_of(*judge, appellate_judge), max_cost)
    place = out or _beside(runs[0], judge)
    procedures = [pipeline_of(old) for old in runs]
    return _redo(runs, procedures, "judge", place, data, workers, max_cost, as_json=json)


def answer(
    run: Path,
    /,
    *,
    reader: str,
    judge: list[str] | None = None,
    appellate_judge: str | None = None,
    out: Path | None = None,
    data: Path | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    json: bool = False,
) -> int:
    """Let another reader answer from what a run recalled, without asking the system anything.

    For example:

        mnemoscope answer runs/locomo/hybrid --reader openai:gpt-4o-mini --max-cost 1

    Parameters
    ----------
    run
        A run directory, or a folder of several.
    reader
        Who answers: as in `mnemoscope run`.
    judge
        Who scores the answers. Repeated: a panel.
    appellate_judge
        A second judge, heard only where the first one fails an answer.
    out
        Where the new run directories go; beside the old ones, named after the reader, by default.
    data
        The dataset's file or folder, where it is not where `mnemoscope run` would find it.
    parallelism
        Questions in flight at once in each process.
    workers
        Processes; 0 for one per core.
    max_cost
        What models may cost in US dollars, whatever was paid before included.
    json
        Print the figures as JSON instead of tables.
    """
    if reader.split(",")[0] in (answering.SYSTEM, answering.NOBODY):
        raise UsageError("saved hits are read without asking the system: name a reader")
    runs = find_runs(run)
    procedures = [
        answering.pipeline_for(
            str(old.manifest().identity["benchmark"]["name"]),
            reader=reader,
            judges=judge or (),
            appellate=appellate_judge,
            lifecycle=old.manifest().identity.get("lifecycle", "auto"),
            window=old.manifest().identity.get("judge_memory_window", 0),
            compat=old.manifest().identity.get("compat", ""),
            parallelism=parallelism,
        )
        for old in runs
    ]
    answering.check_models(answering.models_of(reader, *(judge or ()), appellate_judge), max_cost)
    place = out or _beside(runs[0], [reader])
    return _redo(runs, procedures, "answer", place, data, workers, max_cost, as_json=json)


def _redo(
    runs: list[RunDirectory],
    procedures: list[Pipeline],
    phase: Phase,
    out: Path,
    data: Path | None,
    workers: int,
    max_cost: float | None,
    *,
    as_json: bool,
) -> int:
    from mnemoscope.reports.run_report import write_report
    from mnemoscope.runner.rerun import redo
    from mnemoscope.runner.run import paid

    done: list[RunDirectory] = []
    for old, pipeline in zip(runs, procedures, strict=True):
        dataset = answering.reopened(old.manifest(), data)
        left = None if max_cost is None else max_cost - sum(paid(new.path) for new in done)
        with watched(dataset, 1) as advance:
            new = redo(
                old,
                dataset,
                out,
                pipeline,
                phase,
                workers=workers,
                max_cost=left,
                exams=answering.exams_of(pipeline),
                progress=advance,
            )
        write_report(new)
        done.append(new)
    if (done[0].path / "longitudinal.json").exists():
        show_lives(done, as_json=as_json, only_heatmaps=False)
        return int(any(everything_failed(new) for new in done))
    return show(done, out, as_json=as_json)


def _beside(run: RunDirectory, parts: list[str]) -> Path:
    folder = run.path.resolve().parent
    return folder.parent / "-".join([folder.name, *(Spec.parse(part).slug for part in parts)])
