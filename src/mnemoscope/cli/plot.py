"""`mnemoscope plot`: pictures of runs for papers and pages."""

from __future__ import annotations

from pathlib import Path

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, say
from mnemoscope.reports.plot_style import PlotKind, ThemeName, WidthName


def plot(
    *runs: Path,
    kind: PlotKind = "intervals",
    out: Path | None = None,
    metric: str = "",
    reference: str = "",
    theme: ThemeName = "light",
    width: WidthName = "column",
    title: str | None = None,
) -> None:
    """Draw finished runs of one benchmark as PNG, SVG or PDF.

    Kinds: intervals of systems with groups; forest, the differences against a reference; k, recall
    against k; tokens, recall against context tokens; ageing, figures over checkpoints; judge, the
    errors of the judge in its exam; latency.

    For example:

        mnemoscope plot runs/locomo --kind intervals --out intervals.pdf

        mnemoscope plot runs/locomo --kind forest --reference bm25 --out forest.png --theme dark

        mnemoscope plot runs/locomo/bm25 runs/locomo/hybrid --kind forest --out pair.svg

        mnemoscope plot runs/personas --kind ageing --width page --out ageing.svg

    Parameters
    ----------
    runs
        Run directories of one benchmark, or folders of them.
    kind
        What is drawn.
    out
        The file; its ending says the format. Default: KIND.png.
    metric
        The metric to show. Default: recall@10; for k recall, for ageing that of the cohort.
    reference
        The label of the system that a forest plot compares with. Default: bm25, else the first.
    theme
        light or dark.
    width
        column, 3.4 inches, or page, 7 inches.
    title
        Another title; an empty one leaves it out.
    """
    if not runs:
        raise UsageError("give run directories, or a folder of them")
    place = out or Path(f"{kind}.png")
    api.plot(
        list(runs),
        kind,
        metric=metric,
        reference=reference,
        theme=theme,
        width=width,
        title=title,
        out=place,
    )
    say(err, f"wrote {place}")
