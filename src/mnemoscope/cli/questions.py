"""`mnemoscope questions`: what no system finds, what all find, and what separates them."""

from __future__ import annotations

from pathlib import Path

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, print_json, write_markdown


def questions(
    *runs: Path,
    metric: str = "hit@10",
    category: str = "",
    limit: int = 10,
    top: int = 1,
    agree: int | None = None,
    data: Path | None = None,
    csv: Path | None = None,
    markdown: Path | None = None,
    json: bool = False,
) -> None:
    """List what no system finds, what all find, what separates them, and possible missing labels.

    Difficulty is the share of systems that find a question. Discrimination is the correlation of
    finding it with finding the others; it needs eight independent systems. Variants of one system
    count once.

    For example:

        mnemoscope questions runs/locomo

        mnemoscope questions runs/locomo/bm25 runs/locomo/dense --category 3 --limit 20

        mnemoscope questions runs/locomo --data locomo10.json --csv questions.csv

    Parameters
    ----------
    runs
        Run directories of one benchmark, or folders of them.
    metric
        The hit metric that says whether a question is found, such as hit@10 or all@5.
    category
        Only questions of this category.
    limit
        How many questions each list shows; --json and --csv have all.
    top
        Candidates for missing labels are among the first so many hits.
    agree
        How many independent systems must have a candidate there. Default: two thirds.
    data
        The dataset's file or folder, for the texts of evidence and candidates; else
        $MNEMOSCOPE_DATA/NAME, else the cache of `fetch`.
    csv
        Also write one row for each question to this file.
    markdown
        Also write the lists as Markdown to this file.
    json
        Print JSON instead of tables.
    """
    from mnemoscope.reports import render_terminal
    from mnemoscope.reports.question_tables import question_blocks

    if not runs:
        raise UsageError("give run directories, or a folder of them")
    if limit < 0 or top < 1:
        raise UsageError("--limit must be at least 0, --top at least 1")
    found = api.questions(
        list(runs), metric=metric, category=category, top=top, agree=agree, data=data
    )
    blocks = question_blocks(found.analysis, found.category_names, found.memories, limit)
    if csv is not None:
        try:
            found.to_csv(csv)
        except OSError as error:
            raise UsageError(f"--csv {csv}: {error.strerror}") from error
    if markdown is not None:
        write_markdown(markdown, blocks)
    if json:
        print_json(found.analysis)
    else:
        out.print(render_terminal.render(blocks))
