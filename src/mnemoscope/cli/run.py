"""`mnemoscope run`: a benchmark, one or more systems, one table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import CycloptsError, Parameter

from mnemoscope import api
from mnemoscope.cli.console import err, out, parse_options, say, watched
from mnemoscope.cli.show_runs import show

if TYPE_CHECKING:
    from mnemoscope.results import RunEstimate


def run(
    benchmark: str,
    /,
    *,
    system: Annotated[list[str] | None, Parameter(name=["--system", "-s"])] = None,
    config: Annotated[api.RunConfig, Parameter(name="*")] = api.RunConfig(),
    no_baselines: bool = False,
    no_heatmap_png: bool = False,
    arms: Annotated[bool, Parameter(negative="--no-arms", show=False)] = True,
    groups_enabled: Annotated[bool | None, Parameter(negative="--no-groups-enabled")] = None,
    estimate: bool = False,
    dry_run: bool = False,
    json: bool = False,
    heatmap: bool = False,
    **options: str,
) -> int:
    """Run memory systems on a benchmark and print one table of them all.

    Each system gets a run directory below --out. The same command continues an interrupted run.
    Baselines run beside your systems, so that the numbers can be read: random, bm25 and oracle;
    where a reader answers, none (no memory), bm25 and oracle; on personas none, random and oracle.

    For example:

        mnemoscope run locomo --system bm25 --system hybrid --out runs/locomo

        mnemoscope run locomo --granularity turn --system my_package.memory:MySystem

        mnemoscope run longmemeval --variant s --system hybrid,fusion=rrf,weight=0.6

        mnemoscope run locomo --system hybrid --reader openai:gpt-4o-mini
        --judge binary,model=openai:gpt-4o --parallelism 16 --max-cost 2 --out runs/answers

        mnemoscope run tofu --system bm25 --out runs/tofu

        mnemoscope run personas --data lives --system bm25 --system hybrid --out runs/lives

        mnemoscope run personas --data lives --system my_package:Memory --ranges 7-180/7 --sample 50

        mnemoscope run personas --profile bench.yaml --sample 20

    `mnemoscope personas simulate` makes the lives.

    Parameters
    ----------
    benchmark
        A dataset's name: `mnemoscope datasets list` shows them with their options.
    system
        A system's spec, `name` or `name,option=value`, or your own `module:Name`; `LABEL=SPEC`
        gives it a shorter name. Repeatable.
    no_baselines
        Run your systems alone.
    no_heatmap_png
        Do not draw heatmap.png.
    arms
        The old name of --baselines.
    groups_enabled
        On personas: ask the two categories that need several sessions, too.
    estimate
        Recall for real, ask no model, and say how many tokens and dollars it would take.
    dry_run
        On personas: the first checkpoint of the first one only, nothing kept: catches mistakes
        fast.
    json
        Print the figures as JSON instead of tables.
    heatmap
        On personas: print the heatmaps and nothing else.
    options
        The dataset's own options, such as --granularity turn; of personas --personas, --ranges,
        --sample, --arcs and --granularity.
    """
    if not system and benchmark != "personas":  # whose profile may name some
        raise CycloptsError(msg='Command "run" parameter --system requires an argument.')
    asked = parse_options(options, run, api.RunConfig)
    if groups_enabled is not None:
        asked["groups"] = groups_enabled
    config = replace(config, baselines=arms and not no_baselines, heatmap_png=not no_heatmap_png)
    if heatmap:
        api.require_checkpoints(benchmark, "--heatmap")
    with watched() as progress:
        if estimate:
            _show_estimate(api.estimate(benchmark, system or (), config, asked, progress))
            return 0
        if dry_run:
            with api.dry_run(benchmark, system or (), config, asked, progress) as results:
                show(results, as_json=json, only_heatmaps=True)
            say(err, "a dry run: the first checkpoint of the first persona, nothing was kept")
            return 0
        results = api.run_config(benchmark, system or (), config, asked, progress)
    return show(results, as_json=json, only_heatmaps=heatmap)


def _show_estimate(found: RunEstimate) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title="estimate", title_justify="left", title_style="bold")
    for name in ("system", "phase", "requests", "input tokens", "output tokens", "cost"):
        table.add_column(name, justify="left" if name in ("system", "phase") else "right")
    for phase in found.phases:
        counted = (f"{n:,}" for n in (phase.requests, phase.input_tokens, phase.output_tokens))
        table.add_row(phase.system, phase.phase, *counted, f"${phase.cost:.4f}")
    out.print(table)
    say(
        out,
        f"about ${found.cost:.2f} in all; no model was asked. Neither retries nor what is in the "
        "cache or already recorded is taken into account",
    )
    for model, priced in found.unpriced.items():
        said = f"what {model} costs is not known and counts as 0; say it: '{priced}'"
        say(out, said, before="[yellow]note:[/] ")
