"""`mnemoscope judge`: the saved answers of a run, judged once more."""

from __future__ import annotations

from pathlib import Path

from mnemoscope import api
from mnemoscope.cli.console import watched
from mnemoscope.cli.show_runs import show


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
    with watched() as progress:
        results = api.judge(
            run,
            judge=judge,
            appellate_judge=appellate_judge,
            judge_memory_window=judge_memory_window,
            out=out,
            data=data,
            parallelism=parallelism,
            workers=workers,
            max_cost=max_cost,
            progress=progress,
        )
    return show(results, as_json=json)
