"""`mnemoscope plan`: what a comparison will be able to find, before its candidate runs."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, print_json, say, write_markdown

WIDTH = 80


def plan(
    benchmark: str,
    /,
    *,
    base: Path,
    cand: Path | None = None,
    detect: float = 0.01,
    primary: str = "",
    secondary: str | None = None,
    band: float | None = None,
    looks: int = 1,
    seed: int | None = None,
    changed: float | None = None,
    freeze: Path | None = None,
    markdown: Path | None = None,
    json: bool = False,
) -> None:
    """Say what a comparison can find before you pay for the candidate's run, and fix its rules.

    The rule of `compare` is simulated with the variances of an earlier pair of runs: the power at
    this number of questions and conversations, the smallest difference that is found, and how many
    conversations would be needed. --freeze writes what decides to a file for `compare --plan`.

    For example:

        mnemoscope plan locomo --base runs/locomo/bm25 --cand runs/locomo/hybrid --detect 0.01

        mnemoscope plan locomo --base runs/locomo/bm25 --changed 0.1 --detect 0.02

        mnemoscope plan locomo --base runs/locomo/bm25 --freeze plan.yaml --primary recall@10
        --secondary hit@10,ndcg@10 --band 0.01

    Parameters
    ----------
    benchmark
        The benchmark's name; the runs must be on it.
    base
        The run that the candidate will be compared with.
    cand
        Another run, as unlike the base as the candidate will be: the variances are those of the
        differences between both. Without it they are assumed, and the output says how.
    detect
        The difference that matters, such as 0.01.
    primary
        The metric that decides. Default: that of the runs' protocol, else recall@10.
    secondary
        The metrics that follow, separated by commas; '' for none. Default: those of the protocol,
        else the headline metrics.
    band
        The largest difference that does not matter, for the verdict `equivalent`.
    looks
        How many candidates may be compared under the plan; alpha is 0.05 divided by it.
    seed
        The seed of the candidate's run. Default: that of the base.
    changed
        Without --cand: the share of questions that change from hit to miss or back.
    freeze
        Write what decides to this new file, for `compare --plan FILE`.
    markdown
        Also write the plan as Markdown to this file.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.reports import render_terminal
    from mnemoscope.reports.plan_tables import plan_blocks

    if seed is not None and freeze is None:
        raise UsageError("--seed is for --freeze: it fixes the seed of the candidate's run")
    found = api.plan(
        benchmark,
        base=base,
        cand=cand,
        detect=detect,
        primary=primary,
        secondaries=None if secondary is None else [one.strip() for one in secondary.split(",")],
        band=band,
        looks=looks,
        seed=seed,
        changed=changed,
        freeze=freeze,
    )
    blocks = plan_blocks(found.plan)
    if markdown is not None:
        write_markdown(markdown, blocks)
    if json:
        print_json({"plan": found.plan, "frozen": found.frozen})
        return
    Console(width=max(out.width, WIDTH)).print(render_terminal.render(blocks))
    if freeze is not None and found.frozen is not None:
        say(out, f"frozen: {freeze}, sha256 {found.frozen.sha256}")
        say(out, f"after the candidate's run: mnemoscope compare {base} CANDIDATE --plan {freeze}")
