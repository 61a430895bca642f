"""`mnemoscope systems survey`: every installed system on the same questions, in one table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.spec import Spec
from mnemoscope.cli.console import err, parse_options, print_json, progress_bar, say, watched
from mnemoscope.cli.console import out as stdout

if TYPE_CHECKING:
    from mnemoscope.datasets.base import Dataset
    from mnemoscope.reports.survey_table import SurveyRow
    from mnemoscope.runner.conformance import Result
    from mnemoscope.systems.loader import Plan

_BESIDE = ("bm25", "dense")
"""What the others are read against, if nobody says which."""


class _Checked(msgspec.Struct, frozen=True):
    """A conformance report on disk, and of what exactly it speaks."""

    fingerprint: str
    checks: list[Any]


def survey(
    benchmark: str = "locomo",
    /,
    *,
    system: Annotated[list[str] | None, Parameter(name=["--system", "-s"])] = None,
    data: Path | None = None,
    scenarios: int = 2,
    questions: int | None = None,
    out: Path = Path("runs/survey"),
    check: Annotated[bool, Parameter(negative="--no-check")] = True,
    timeout: float = 120.0,
    json: bool = False,
    **options: str,
) -> int:
    """Check and run every installed system on the same questions, and print one table of them.

    Each system is led through the conformance kit, then through the first scenarios of a benchmark,
    one after the other, so that their times can be compared. A system that fails is a row that says
    why. The same command goes on where it was interrupted; what is done is not done again.

    For example:

        mnemoscope systems survey --data locomo10.json --granularity turn

        mnemoscope systems survey --system mem0 --system chroma --system "stdio:python adapter.py"

        mnemoscope systems survey longmemeval --variant s --scenarios 20 --no-check

    Parameters
    ----------
    benchmark
        A dataset's name: `mnemoscope datasets list` shows them with their options.
    system
        Which; without it bm25, dense and everything that is installed from the shelf and needs no
        language model.
    data
        The dataset's file or folder; else $MNEMOSCOPE_DATA/NAME, else the cache of `fetch`.
    scenarios
        How many of the dataset's scenarios each system lives through.
    questions
        Ask only so many of their questions.
    out
        Where the run directories, the conformance reports and the table go.
    check
        Lead each system through the conformance kit first.
    timeout
        Seconds that a recall may take.
    json
        Print JSON instead of a table.
    options
        The dataset's own options, such as --granularity turn.
    """
    from mnemoscope.datasets import open_dataset
    from mnemoscope.datasets.subset import part_of
    from mnemoscope.reports import render_markdown, render_terminal
    from mnemoscope.reports import survey_table as table
    from mnemoscope.reports.run_view import dataset_title
    from mnemoscope.runner.run import data_notes
    from mnemoscope.runner.run_setup import read_systems

    whole = open_dataset(benchmark, data, parse_options(options, survey))
    dataset = part_of(whole, scenarios, questions, 42)
    of_the_data = data_notes(dataset.files())
    rows = [
        _surveyed(spec, dataset, out, of_the_data, check=check, timeout=timeout)
        for spec, _ in read_systems(system or [*_BESIDE, *_installed()])
    ]
    title = dataset_title(dataset.name, dataset.options)
    blocks = table.survey(title, rows, of_the_data)
    out.mkdir(parents=True, exist_ok=True)
    (out / "survey.md").write_text(render_markdown.render(blocks) + "\n")
    (out / "survey.json").write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
    if json:
        print_json(rows)
    else:
        say(stdout, title)
        stdout.print(render_terminal.render(blocks))
        for note in [*of_the_data, *table.notes(rows)]:
            say(stdout, note, before="[yellow]![/] ")
        say(stdout, f"the table: {out}/survey.md, the runs: {out}/*/report.md")
    return int(any(row.problem for row in rows))


def _installed() -> list[str]:
    from mnemoscope.integrations import environments
    from mnemoscope.integrations.catalog import ITEMS

    return [
        name
        for name, item in ITEMS.items()
        if environments.state(name) == "installed"
        and item.model != "required"
        and (not item.variable or item.variable in os.environ)
    ]


def _surveyed(
    spec: Spec,
    dataset: Dataset,
    folder: Path,
    of_the_data: Sequence[str],
    *,
    check: bool,
    timeout: float,
) -> SurveyRow:
    from mnemoscope.api import execute
    from mnemoscope.reports.run_view import RunView
    from mnemoscope.reports.survey_table import SurveyRow, measured
    from mnemoscope.runner.run import Settings
    from mnemoscope.runner.scheduler import Limits
    from mnemoscope.systems.loader import plan

    row = SurveyRow(system=spec.label or str(spec), door=_door(spec))
    try:
        planned = plan(spec)
        if check:
            failed = [c.check for c in _checked(planned, folder, timeout) if c.verdict == "failed"]
            row = msgspec.structs.replace(row, conforms=not failed, failed=failed)
        # One process: what is measured is the system, not how it shares the machine.
        settings = Settings(limits=Limits(recall=timeout), workers=1)
        with watched() as progress:
            [run] = execute(dataset, [planned], folder, settings, progress=progress)
        return msgspec.structs.replace(row, **measured(RunView.of(run), of_the_data))
    except MnemoscopeError as error:
        say(err, f"{spec}: {error}", before="[bold red]error:[/] ")
        return msgspec.structs.replace(row, problem=str(error))


def _checked(planned: Plan, folder: Path, timeout: float) -> Sequence[Result]:
    """The conformance report, made now unless there is one of this very system."""
    from mnemoscope.runner.conformance import CHECKS, Result, check_system
    from mnemoscope.runner.scheduler import describe

    place = folder / "conformance" / f"{planned.spec.slug}.json"
    [described] = describe([planned])
    known_by = fingerprint(described.identity)
    try:
        before = msgspec.json.decode(place.read_bytes(), type=_Checked)
        results = msgspec.convert(before.checks, list[Result])
        if before.fingerprint == known_by and [r.check for r in results] == list(CHECKS):
            return results
    except (OSError, msgspec.MsgspecError):
        pass
    with progress_bar(f"checking {planned.spec}", len(CHECKS)) as bar:
        results = check_system(
            planned, timeout=timeout, done=lambda result: bar.advance(bar.task_ids[0])
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    report = _Checked(known_by, msgspec.to_builtins(results))
    place.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    return results


def _door(spec: Spec) -> str:
    from mnemoscope.integrations.catalog import ITEMS
    from mnemoscope.systems import CONNECTORS

    door = spec.name.partition(":")[0]
    if door in CONNECTORS.builtin:
        return door
    if spec.name in ITEMS:
        return "mcp" if ITEMS[spec.name].mapping else "stdio"
    return "python"
