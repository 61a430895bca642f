"""`mnemoscope run`: a benchmark, one or more systems, one table."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import parse_options, print_json, progress_bar, say
from mnemoscope.core.dataset import Dataset
from mnemoscope.core.errors import UsageError
from mnemoscope.core.rundir import RunDirectory
from mnemoscope.core.spec import Spec


def run(
    benchmark: str,
    *,
    system: Annotated[list[str], Parameter(name=["--system", "-s"])],
    out: Path = Path("runs"),
    data: Path | None = None,
    arms: bool = True,
    depth: int = 50,
    timeout: float = 120.0,
    remember_timeout: float = 3600.0,
    workers: int = 0,
    json: bool = False,
    **options: str,
) -> None:
    """Run memory systems on a benchmark and print one table of them all.

    Each system gets a run directory below --out. The same command continues an interrupted run.
    Random, bm25 and oracle run beside your systems, so that the numbers can be read.

    Examples:

        mnemoscope run locomo --system bm25 --system hybrid --out runs/locomo

        mnemoscope run locomo --granularity turn --system my_package.memory:MySystem

        mnemoscope run longmemeval --variant s --system hybrid,fusion=rrf,weight=0.6

    Parameters
    ----------
    benchmark
        A dataset's name: `mnemoscope datasets list` shows them with their options.
    system
        A system's spec, `name` or `name,option=value`, or your own `module:Name`. Repeatable.
    out
        Where the run directories go.
    data
        The dataset's file or folder; else $MNEMOSCOPE_DATA/NAME, else the cache of `fetch`.
    arms
        Run the sanity arms random, bm25 and oracle beside the systems.
    depth
        How many hits a system is asked for.
    timeout
        Seconds a recall may take before it counts as timed out.
    remember_timeout
        Seconds that taking in one scenario may take.
    workers
        Processes; 0 for one per core. Results do not depend on it.
    json
        Print the figures as JSON instead of tables.
    options
        The dataset's own options, such as --granularity turn.
    """
    from mnemoscope.datasets import open_dataset
    from mnemoscope.systems import ARMS

    if depth < 1:
        raise UsageError(f"--depth {depth}: ask for at least one hit")
    dataset = open_dataset(benchmark, data, parse_options(options))
    specs = [Spec.parse(text) for text in system]
    given = {str(spec) for spec in specs}
    beside = [Spec(name) for name in ARMS if name not in given] if arms else []
    runs = execute(
        dataset,
        specs + beside,
        out,
        depth=depth,
        timeout=timeout,
        remember_timeout=remember_timeout,
        workers=workers,
    )
    show(runs, out, arms=[spec.slug for spec in beside], as_json=json)


def execute(
    dataset: Dataset,
    specs: list[Spec],
    folder: Path,
    *,
    depth: int = 50,
    timeout: float = 120.0,
    remember_timeout: float = 3600.0,
    workers: int = 0,
) -> list[RunDirectory]:
    """Run with a progress bar."""
    from mnemoscope.engine.crew import Limits
    from mnemoscope.engine.run import Settings
    from mnemoscope.engine.run import run as run_engine
    from mnemoscope.reports.markdown import write_report
    from mnemoscope.systems.python import plan

    with redirect_stdout(sys.stderr):  # what a system says while it is built is no result
        plans = [plan(spec) for spec in specs]
    settings = Settings(depth, Limits(timeout, remember_timeout), workers)
    total = dataset.expected_scenarios
    with progress_bar(dataset.name, total and total * len(plans)) as bar:
        task = bar.task_ids[0]

        def advance(units: float) -> None:
            bar.update(task, completed=units, refresh=True)

        runs = run_engine(dataset, plans, folder, settings, advance)
    for directory in runs:
        write_report(directory)
    return runs


def show(runs: list[RunDirectory], folder: Path, *, arms: list[str], as_json: bool) -> None:
    """Print the table, and leave summary.md and summary.json beside the runs."""
    from mnemoscope.core.jsonl import write_atomically
    from mnemoscope.reports import markdown, terminal
    from mnemoscope.reports.view import RunView

    views = [RunView.of(directory) for directory in runs]
    content = {view.label: {**view.metrics, "timing": view.timing} for view in views}
    write_atomically(folder / "summary.md", markdown.summary(views).encode())
    RunDirectory(folder).write_json("summary.json", content)
    if as_json:
        print_json(content)
        return
    stdout.print(terminal.summary(views, arms))
    say(stdout, f"reports: {folder}/*/report.md, summary: {folder}/summary.md")
