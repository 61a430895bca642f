"""`mnemoscope judge`: judge the saved answers of a run with other judges."""

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
    full: bool = False,
    raw: bool = False,
) -> int:
    """Judge the saved answers of a run with other judges; system and reader are not called.

    For example:

        mnemoscope judge runs/answers/hybrid --judge binary,model=openai:gpt-4o

        mnemoscope judge runs/answers --judge f1 --out runs/answers-f1

    Parameters
    ----------
    run
        A run directory with answers, or a folder of several.
    judge
        The judge, as in `mnemoscope run`. Repeat it for a panel.
    appellate_judge
        A second judge for answers that the first judge fails.
    judge_memory_window
        Show the judge the memories of this many days around the evidence. Default: as in the run.
    out
        The folder for the new run directories. Default: beside the old ones, named after the judge.
    data
        The dataset's file or folder, if it is not where `mnemoscope run` looks for it.
    parallelism
        Answers judged at once in each process.
    workers
        The number of processes; 0 means one per core.
    max_cost
        The most that models may cost in US dollars, including what was paid before.
    json
        Print the figures as JSON instead of tables.
    full
        Also print the figures by category and the cost.
    raw
        Also print figures of a judge that failed its exam or sat none, as it gave them.
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
    return show(results, as_json=json, full=full, raw=raw)
