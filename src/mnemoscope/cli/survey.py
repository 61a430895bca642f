"""`mnemoscope systems survey`: run every installed system on the same questions, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from cyclopts import Parameter

from mnemoscope._store.jsonl import write_atomically
from mnemoscope.cli.console import err, parse_options, print_json, progress_bar, say, watched
from mnemoscope.cli.console import out as stdout

if TYPE_CHECKING:
    from mnemoscope._store.run_directory import RunDirectory
    from mnemoscope.runner.conformance import Result
    from mnemoscope.runner.run import Settings
    from mnemoscope.systems.loader import Plan


@contextmanager
def checking(planned: Plan) -> Iterator[Callable[[Result], None]]:
    """Show a progress bar while a system is checked."""
    from mnemoscope.runner.conformance import CHECKS

    with progress_bar(f"checking {planned.spec}", len(CHECKS)) as bar:
        yield lambda result: bar.advance(bar.task_ids[0])


def survey(
    benchmark: str = "locomo",
    /,
    *,
    system: Annotated[list[str] | None, Parameter(name=["--system", "-s"])] = None,
    data: Path | None = None,
    scenarios: int = 2,
    questions: int | None = None,
    dates: Literal["on", "off"] = "off",
    embedder: str = "wordllama",
    profile: Literal["controlled", "as-shipped", "both"] = "controlled",
    out: Path = Path("runs/survey"),
    check: Annotated[bool, Parameter(negative="--no-check")] = True,
    timeout: float = 120.0,
    json: bool = False,
    **options: str,
) -> int:
    """Check and run every installed system on the same questions, and print one table.

    Each system runs the conformance kit, then the first scenarios of a benchmark. Systems run one
    after the other and without our caches, so that their times can be compared. All get the same
    texts and the same embedder, unless a row says otherwise. The row of a system that fails says
    why.
    The same command resumes an interrupted survey; finished parts are not repeated.

    For example:

        mnemoscope systems survey --data locomo10.json --granularity turn

        mnemoscope systems survey --system mem0 --system chroma --system "stdio:python adapter.py"

        mnemoscope systems survey longmemeval --variant s --scenarios 20 --no-check

        mnemoscope systems survey --profile both --dates on --embedder minilm --out runs/dated

    Parameters
    ----------
    benchmark
        A dataset's name: `mnemoscope datasets list` shows them with their options.
    system
        The systems. Default: bm25, dense and all installed integrations that do not need a language
        model.
    data
        The dataset's file or folder; else $MNEMOSCOPE_DATA/NAME, else the cache of `fetch`.
    scenarios
        How many of the dataset's scenarios each system runs.
    questions
        Ask only so many of their questions.
    dates
        Whether the text of every memory begins with its day, `[2023-05-08]`; for all systems.
    embedder
        The embedding model of all systems that take one; a system with model=… keeps its own.
    profile
        controlled: the same embedder and no language model; as-shipped: the embedder and the model
        that a product has by default, where they can run here; or both, side by side.
    out
        The folder for the run directories, the conformance reports and the table.
    check
        Run the conformance kit on each system first.
    timeout
        Seconds that a recall may take.
    json
        Print JSON instead of a table.
    options
        The dataset's own options, such as --granularity turn.
    """
    from mnemoscope.analysis.system_groups import SystemGroups, groups_or_reason
    from mnemoscope.api import execute
    from mnemoscope.datasets import open_dataset
    from mnemoscope.datasets.dated_texts import DATED_TEXTS, with_dates
    from mnemoscope.datasets.subset import part_of
    from mnemoscope.reports import render_markdown, render_terminal
    from mnemoscope.reports import survey_table as table
    from mnemoscope.reports.group_tables import notes as group_notes
    from mnemoscope.reports.run_view import dataset_title
    from mnemoscope.runner.run import data_notes
    from mnemoscope.runner.run_setup import read_systems
    from mnemoscope.survey import default_systems, survey_entries, survey_row

    whole = open_dataset(benchmark, data, parse_options(options, survey))
    whole = with_dates(whole, on=dates == "on")
    dataset = part_of(whole, scenarios, questions, 42)
    dataset_notes = data_notes(dataset.files())

    runs: dict[str, RunDirectory] = {}

    def run(planned: Plan, settings: Settings) -> RunDirectory:
        with watched() as progress:
            done = execute(dataset, [planned], out, settings, progress=progress)[0]
        runs[planned.spec.label or str(planned.spec)] = done
        return done

    rows = []
    specs = [spec for spec, _ in read_systems(system or default_systems())]
    for entry in survey_entries(specs, profile, embedder):
        row = survey_row(
            entry,
            out,
            run,
            dataset_notes=dataset_notes,
            checking=checking if check else None,
            timeout=timeout,
        )
        if row.problem:
            say(err, f"{row.name}: {row.problem}", before="[bold red]error:[/] ")
        rows.append(row)
    of_data = {name: v for name, v in dataset.options.items() if name != DATED_TEXTS}
    title = dataset_title(dataset.name, {**of_data, "dates": dates == "on"})
    groups = groups_or_reason(list(runs.values()))
    if isinstance(groups, SystemGroups):
        rows = table.with_groups(rows, groups, {name: run.label for name, run in runs.items()})
    blocks = table.survey(title, rows, dataset_notes, groups)
    write_atomically(out / "survey.md", f"{render_markdown.render(blocks)}\n".encode())
    write_atomically(out / "survey.json", msgspec.json.format(msgspec.json.encode(rows)))
    if json:
        print_json(rows)
    else:
        say(stdout, title)
        stdout.print(render_terminal.render(blocks))
        for note in [*dataset_notes, *table.notes(rows), *group_notes(groups)]:
            say(stdout, note, before="[yellow]![/] ")
        say(stdout, f"the table: {out}/survey.md, the runs: {out}/*/report.md")
    return int(any(row.problem for row in rows))
