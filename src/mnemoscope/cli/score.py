"""`mnemoscope score`: score a file of rankings without running a system."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mnemoscope import api
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import parse_options, print_json, print_table, say
from mnemoscope.reports.tables import numeric


def score(
    file: Path,
    /,
    *,
    dataset: str,
    out: Path | None = None,
    format: Literal["jsonl", "trec", "pgmnemo"] = "jsonl",
    compat: Literal["pgmnemo"] | None = None,
    depth: int = 0,
    data: Path | None = None,
    json: bool = False,
    full: bool = False,
    **options: str,
) -> None:
    """Score a file of rankings against a dataset's evidence.

    Formats: jsonl has one line for each question, {"question": ID, "ranking": [MEMORY_ID, …],
    "scores": […]}, with scores optional; trec is a TREC run file; pgmnemo is its
    raw_retrievals.jsonl.

    For example:

        mnemoscope score my_rankings.jsonl --dataset locomo

        mnemoscope score results.test --dataset trec --data qrels.test --format trec --out runs/trec

        mnemoscope score raw_retrievals.jsonl --dataset locomo --format pgmnemo \\
            --compat pgmnemo --out runs/theirs

    Parameters
    ----------
    file
        The file of rankings.
    dataset
        The dataset whose questions the rankings are for.
    out
        The run directory to write. Default: the file's name below `runs`.
    format
        The format of the file.
    compat
        Score by the rules of that project, to reproduce its published figures.
    depth
        How many hits were asked for, if the file does not state it. Without it, figures beyond the
        end of a list are given as bounds.
    data
        The dataset's file or folder.
    json
        Print the figures as JSON instead of tables.
    full
        Also print the figures by category and the cost.
    options
        Options of the dataset, such as --granularity turn.
    """
    from mnemoscope.reports import run_tables
    from mnemoscope.reports.closing_sentences import closing_sentences
    from mnemoscope.reports.render_terminal import render
    from mnemoscope.reports.run_view import RunView

    found = api.score(
        file,
        dataset=dataset,
        out=out,
        format=format,
        compat=compat,
        depth=depth,
        data=data,
        **parse_options(options, score),
    )
    if json:
        metrics = found.directory.read_json("metrics.json")
        print_json({**metrics, "rule_changes": found.rule_changes})
        return
    stdout.print(run_tables.summary([RunView.of(found.directory)], full=full))
    if found.rule_changes:
        print_table(
            ("metric", *map(numeric, ("pgmnemo's rules", "sound rules", "difference"))),
            [
                (name, f"{by.compat:.4f}", f"{by.sound:.4f}", f"{by.difference:+.4f}")
                for name, by in found.rule_changes.items()
            ],
            title="Effect of the scoring rules: pgmnemo's rules against sound rules",
        )
        say(stdout, found.sound_rules)
    say(stdout, f"report: {found.path}/report.html")
    stdout.print(render(closing_sentences([found.directory])))
