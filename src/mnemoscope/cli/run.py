"""`mnemoscope run`: run systems on a benchmark and print one table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import CycloptsError, Parameter

from mnemoscope import api
from mnemoscope.cli.console import (
    err,
    out,
    parse_options,
    print_json,
    print_table,
    say,
    watched,
)
from mnemoscope.cli.show_runs import show
from mnemoscope.reports.tables import numeric

if TYPE_CHECKING:
    from mnemoscope.results import RunEstimate


_SEVERAL = Parameter(consume_multiple=True, negative=())


def run(
    benchmark: str,
    /,
    *more: str,
    system: Annotated[list[str] | None, Parameter(name=["--system", "-s"])] = None,
    config: Annotated[api.RunConfig, Parameter(name="*")] = api.RunConfig(),
    no_baselines: bool = False,
    no_heatmap_png: bool = False,
    arms: Annotated[bool, Parameter(negative="--no-arms", show=False)] = True,
    groups_enabled: Annotated[bool | None, Parameter(negative="--no-groups-enabled")] = None,
    ranges: Annotated[list[str] | None, _SEVERAL] = None,
    personas: Annotated[list[str] | None, _SEVERAL] = None,
    estimate: bool = False,
    dry_run: bool = False,
    json: bool = False,
    full: bool = False,
    raw: bool = False,
    heatmap: bool = False,
    **options: str,
) -> int:
    """Run memory systems on a benchmark and print one table of all results.

    The last lines say of each system whether it finds more than bm25.
    Each system gets a run directory below --out. Repeat the command to continue an interrupted run.
    Baselines run beside your systems for comparison: random, bm25 and oracle; with a reader none
    (no memory), bm25 and oracle; on personas none, random and oracle.

    For example:

        mnemoscope run locomo --system bm25 --system hybrid --out runs/locomo

        mnemoscope run locomo --granularity turn --system my_package.memory:MySystem

        mnemoscope run longmemeval --variant s --system hybrid,fusion=rrf,weight=0.6

        mnemoscope run locomo --system hybrid --reader openai:gpt-4o-mini \\
            --judge binary,model=openai:gpt-4o --parallelism 16 --max-cost 2 --out runs/answers

        mnemoscope run locomo --system my_package.memory:MySystem --repeat 5 --out runs/repeats

        mnemoscope run tofu --system bm25 --out runs/tofu

        mnemoscope run personas --data histories --system bm25 --out runs/personas

        mnemoscope run personas --data histories --system my_package:Memory --ranges 7-180/7

        mnemoscope run personas --profile bench.yaml --sample 20

        mnemoscope run personas --data personas --system grpc://localhost:50052 --ranges 30d 90d

        mnemoscope run disclosure --data histories --system scoped --out runs/disclosure

        mnemoscope run locomo longmemeval tofu --system bm25 --data data --out runs/all --fresh

    `mnemoscope personas simulate` makes the data of personas and disclosure.

    Parameters
    ----------
    benchmark
        The name of a dataset. `mnemoscope datasets list` shows them with their options.
    more
        Further datasets: each is run below --out in a folder of its name, and one summary is over
        all. --data is then a folder with a folder for each of them; an option of a dataset is
        passed to those that have it.
    system
        A system: `name`, `name,option=value`, or your own `module:Name`. `LABEL=SPEC` gives it a
        label. Repeatable.
    no_baselines
        Run without baselines.
    no_heatmap_png
        Do not draw heatmap.png.
    arms
        The old name of --baselines.
    groups_enabled
        On personas: also ask the two categories that need several sessions.
    ranges
        On personas: the checkpoints, `30d 90d full` or `30d,90d,full`, or a series `7-1000/7`.
    personas
        On personas: the ids of the personas to run, separated by spaces or commas. Default: all.
    estimate
        Print the tokens and dollars that the run would take. Systems recall; models are not called.
    dry_run
        On personas: run only the first checkpoint of the first persona and keep no files. Finds
        mistakes fast.
    json
        Print the figures as JSON instead of tables.
    full
        Also print the figures by category and the cost, which the files have too.
    raw
        Also print figures of a judge that failed its exam or sat none, as it gave them.
    heatmap
        On personas: print only the heatmaps.
    options
        Options of the dataset, such as --granularity turn. Those of personas are also --sample,
        --cohort, --arcs, --granularity and --repairs.
    """
    # Before the next error: --sytem is a system that was given, with a typing error.
    asked = parse_options(options, run, api.RunConfig, known=_dataset_options(benchmark))
    if not system and benchmark != "personas":  # of personas, a profile may name systems
        raise CycloptsError(msg='Command "run" parameter --system requires an argument.')
    if groups_enabled is not None:
        asked["groups"] = groups_enabled
    for name, given in (("ranges", ranges), ("personas", personas)):
        if given is not None:
            asked[name] = ",".join(given)
    config = replace(config, baselines=arms and not no_baselines, heatmap_png=not no_heatmap_png)
    if heatmap:
        api.require_checkpoints(benchmark, "--heatmap")
    if more:
        if estimate or dry_run or heatmap:
            raise CycloptsError(msg="--estimate, --dry-run and --heatmap are for one dataset.")
        with watched() as progress:
            every = api.run_datasets([benchmark, *more], system or (), config, asked, progress)
        return _show_datasets(every, as_json=json, full=full)
    with watched() as progress:
        if estimate:
            _show_estimate(api.estimate(benchmark, system or (), config, asked, progress))
            return 0
        if dry_run:
            with api.dry_run(benchmark, system or (), config, asked, progress) as results:
                show(results, as_json=json, only_heatmaps=True)
            say(err, "dry run: only the first checkpoint of the first persona; no files were kept")
            return 0
        results = api.run_config(benchmark, system or (), config, asked, progress)
    return show(results, as_json=json, only_heatmaps=heatmap, full=full, raw=raw)


def _dataset_options(name: str) -> list[str]:
    """The options of a dataset; none if there is no dataset of this name."""
    from mnemoscope._store.registry import describe_options
    from mnemoscope.datasets import DATASETS

    return list(describe_options(DATASETS.get(name))) if name in DATASETS else []


def _show_datasets(results: api.DatasetResults, *, as_json: bool, full: bool) -> int:
    """Print the tables of each dataset, then the summary; 1 if a system failed everywhere."""
    from msgspec import to_builtins

    from mnemoscope.reports.dataset_summary import summary_note, summary_table
    from mnemoscope.reports.render_terminal import table

    if as_json:
        print_json([to_builtins(row) for row in results.rows()])
        return int(any(own.failed_everywhere for own in results.values()))
    codes = [show(own, as_json=False, full=full) for own in results.values()]
    out.print(table(summary_table(results.rows())))
    say(out, summary_note())
    say(out, f"summary: {results.path}/datasets.md")
    return max(codes)


def _show_estimate(found: RunEstimate) -> None:
    rows = []
    for phase in found.phases:
        counts = (f"{n:,}" for n in (phase.requests, phase.input_tokens, phase.output_tokens))
        rows.append((phase.system, phase.phase, *counts, f"${phase.cost:.4f}"))
    counted = (numeric(title) for title in ("requests", "input tokens", "output tokens", "cost"))
    print_table(("system", "phase", *counted), rows, title="estimate", frame="dense")
    say(
        out,
        f"about ${found.cost:.2f} in total; no model was called. The estimate includes no retries, "
        "and it counts requests whose replies are cached or recorded already",
    )
    for model, priced in found.unpriced.items():
        text = f"the price of {model} is not known and counts as 0; state it: '{priced}'"
        say(out, text, before="[yellow]note:[/] ")
