"""`mnemoscope compare`: two results, and whether one is worse."""

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
        The run directory to compare with; or a metrics.json, if only aggregates exist.
    cand
        The run directory, or the metrics.json, that may be better or worse.
    metrics
        Which metrics, separated by commas; the correction for many tests covers exactly these.
    band
        The difference that does not matter, such as 0.01; without it nothing is `equivalent`.
    tests
        paired: by question, from both journals. seed: pgmnemo's unpaired procedure, from means.
        Without it paired, or seed where one side has only aggregates.
    discordant
        List the questions gained and lost in this metric, such as hit@10, with their texts.
    by_category
        Also compare category by category; the correction then covers those tests too.
    markdown
        Also write the comparison as Markdown into this file.
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
        # At full width, also in the log of a build server: figures must not be cut off.
        Console(width=max(out.width, WIDTH)).print(render_terminal.render(blocks))
    return REGRESSION if found.regressed else 0
