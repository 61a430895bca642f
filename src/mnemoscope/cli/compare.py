"""`mnemoscope compare`: compare two results and test whether one is worse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, print_json

REGRESSION = 1
WIDTH = 100


def compare(
    base: Path,
    cand: Path,
    /,
    *,
    metrics: str = "",
    band: float | None = None,
    tests: Literal["paired", "seed"] | None = None,
    discordant: str = "",
    by_category: Annotated[bool, Parameter(negative="--no-by-category")] = True,
    markdown: Path | None = None,
    json: bool = False,
) -> int:
    """Compare two results of one benchmark, with a verdict for each metric.

    Exit codes: 0 no regression, 1 significant regression, 2 wrong usage, 3 not comparable.

    For example:

        mnemoscope compare runs/locomo/bm25 runs/locomo/hybrid

        mnemoscope compare runs/old/mine runs/new/mine --band 0.01 --discordant hit@10

        mnemoscope compare old/metrics.json new/metrics.json --tests seed

    Parameters
    ----------
    base
        The run directory to compare with, or its metrics.json if only aggregates exist.
    cand
        The candidate: the run directory, or the metrics.json, that may be better or worse.
    metrics
        The metrics to compare, separated by commas. The correction for multiple tests covers
        exactly these.
    band
        The largest difference that does not matter, such as 0.01. Without it no verdict is
        `equivalent`.
    tests
        paired: by question, from both journals. seed: pgmnemo's unpaired tests, from means.
        Default: paired, or seed if one side has only aggregates.
    discordant
        List the questions gained and lost in this metric, such as hit@10, with their texts.
    by_category
        Also compare each category. The correction then covers those tests, too.
    markdown
        Also write the comparison as Markdown to this file.
    json
        Print JSON instead of tables.
    """
    from mnemoscope.analysis.aggregates import CAVEAT
    from mnemoscope.reports import comparison_tables, render_markdown, render_terminal

    found = api.compare(
        base,
        cand,
        metrics=[name.strip() for name in metrics.split(",") if name.strip()],
        band=band,
        tests=tests,
        discordant=discordant,
        by_category=by_category,
    )
    blocks = (
        comparison_tables.comparison(found.paired, found.category_names)
        if found.paired
        else comparison_tables.seed_comparison(found.base, found.cand, found.seed)
    )
    if markdown is not None:
        try:
            markdown.write_text(f"{render_markdown.render(blocks)}\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--markdown {markdown}: {error.strerror}") from error
    if json and found.paired:
        print_json(found.paired)
    elif json:
        content = {"base": found.base, "cand": found.cand, "rows": found.seed, "notes": [CAVEAT]}
        print_json(content)
    else:
        # A build server reports a narrow terminal, which would cut off figures.
        Console(width=max(out.width, WIDTH)).print(render_terminal.render(blocks))
    return REGRESSION if found.regressed else 0
