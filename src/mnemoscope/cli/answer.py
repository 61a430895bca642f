"""`mnemoscope answer`: what a run recalled, read once more."""

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
    return show(results, as_json=json)
