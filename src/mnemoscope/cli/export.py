"""`mnemoscope export`: figures, questions, rankings and comparisons for other tools."""

from __future__ import annotations

import sys
from pathlib import Path

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, say
from mnemoscope.exports.export_formats import ExportContent, ExportFormat
from mnemoscope.text.display import visible


def export(
    *runs: Path,
    format: ExportFormat,
    what: ExportContent | None = None,
    metrics: str = "",
    standalone: bool = False,
    out: Path | None = None,
) -> None:
    """Write finished runs in the format of another tool, with their status and their caveats.

    Formats: csv, json, jsonl and parquet hold all rows; latex and markdown hold a table; trec, ranx
    and ir-measures hold rankings with judgments; mteb is the shape of MTEB's results. Caveats that
    a format cannot hold are printed to stderr.
    Exit codes: 0 written, 1 or 2 not possible, 3 not comparable, 4 a run was edited.

    For example:

        mnemoscope export runs/locomo --format latex --standalone --out table.tex

        mnemoscope export runs/locomo --format csv --what questions --out questions.csv

        mnemoscope export runs/locomo/bm25 runs/locomo/hybrid --format markdown --what comparison

        mnemoscope export runs/locomo --format trec --out trec

        mnemoscope export runs/locomo --format latex --metrics recall@10,ndcg@10

    Parameters
    ----------
    runs
        Run directories of one benchmark, or folders of them.
    format
        The format of the files.
    what
        figures, questions, rankings or comparison. Default: figures; for trec, ranx and ir-measures
        rankings. A comparison of two runs has all metrics, of more runs all pairs by one metric.
    metrics
        Only these metrics, separated by commas.
    standalone
        Write a LaTeX document that pdflatex compiles, instead of a table to \\input.
    out
        The file to write, or the folder if there are several files. Default: one text is printed.
    """
    if not runs:
        raise UsageError("give run directories, or a folder of them")
    made = api.export(
        list(runs),
        format,
        what=what,
        metrics=[name.strip() for name in metrics.split(",") if name.strip()],
        standalone=standalone,
        out=out,
    )
    if out is None:
        # Texts of datasets may contain control characters, which act on a terminal.
        sys.stdout.write(visible(made.text) if sys.stdout.isatty() else made.text)
    for path in made.written:
        say(err, f"wrote {path}")
    for caveat in made.caveats:
        say(err, caveat, before="[yellow]note:[/] ")
