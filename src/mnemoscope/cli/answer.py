"""`mnemoscope answer`: answer from the saved hits of a run with another reader."""

from __future__ import annotations

from pathlib import Path

from mnemoscope import api
from mnemoscope.cli.console import watched
from mnemoscope.cli.show_runs import show


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
    full: bool = False,
    raw: bool = False,
) -> int:
    """Answer from the saved hits of a run with another reader; the system is not called.

    For example:

        mnemoscope answer runs/locomo/hybrid --reader openai:gpt-4o-mini --max-cost 1

    Parameters
    ----------
    run
        A run directory, or a folder of several.
    reader
        The reader, as in `mnemoscope run`.
    judge
        The judge, as in `mnemoscope run`. Repeat it for a panel.
    appellate_judge
        A second judge for answers that the first judge fails.
    out
        The folder for the new run directories. Default: beside the old ones, named after the
        reader.
    data
        The dataset's file or folder, if it is not where `mnemoscope run` looks for it.
    parallelism
        Questions in flight at once in each process.
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
        results = api.answer(
            run,
            reader=reader,
            judge=judge,
            appellate_judge=appellate_judge,
            out=out,
            data=data,
            parallelism=parallelism,
            workers=workers,
            max_cost=max_cost,
            progress=progress,
        )
    return show(results, as_json=json, full=full, raw=raw)
