"""`mnemoscope show`: one question of a run, or the questions that it missed."""

from __future__ import annotations

from pathlib import Path

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, print_json


def show(
    run: Path,
    question: str = "",
    /,
    *,
    failed: bool = False,
    category: str = "",
    limit: int = 20,
    k: int = 10,
    checkpoint: str = "",
    data: Path | None = None,
    full: bool = False,
    json: bool = False,
) -> None:
    """Show one question of a finished run, or list the questions that it missed.

    A question is shown with its evidence, the hits with rank and score (right, wrong, carried or
    only claimed), the answer and each verdict.

    For example:

        mnemoscope show runs/locomo/bm25 conv-26/q12

        mnemoscope show runs/locomo/bm25 --failed --category multi-hop

        mnemoscope show runs/locomo/bm25 conv-26/q2 --data locomo10.json --full

        mnemoscope show runs/personas/hybrid ada-q003 --checkpoint 90d

    Parameters
    ----------
    run
        A run directory.
    question
        The id of a question, or a part that only its id has.
    failed
        List the questions that were missed: recalling or answering failed, the answer was judged
        wrong, or, without a verdict, no evidence is among the first --k hits.
    category
        With --failed, only this category, by its key or its name.
    limit
        With --failed, how many questions the list shows; --json has all.
    k
        With --failed, how many hits count.
    checkpoint
        The checkpoint, if the run asks the question at several. Default: the last one.
    data
        The dataset's file or folder, for the texts of memories; else $MNEMOSCOPE_DATA/NAME, else
        the cache of `fetch`, else what the run's report.html has of them.
    full
        Show long texts whole.
    json
        Print JSON instead.
    """
    from mnemoscope.reports.render_terminal import render
    from mnemoscope.reports.shown_question import missed_blocks, question_blocks

    if failed and question:
        raise UsageError("give either a question or --failed")
    if not failed and not question:
        raise UsageError("give the id of a question, or --failed to list the missed ones")
    if not failed and category:
        raise UsageError("--category belongs to --failed")
    if failed:
        if limit < 1:
            raise UsageError(f"--limit {limit}: must be at least 1")
        missed = api.show_failed(run, category=category, k=k)
        if json:
            print_json([row._asdict() for row in missed.rows])
            return
        blocks = missed_blocks(
            missed.rows,
            repr(missed),
            missed.category_names,
            withheld=missed.withheld,
            limit=limit,
        )
        out.print(render(blocks))
        return
    found = api.show(run, question, checkpoint=checkpoint, data=data)
    if json:
        print_json(found.details)
        return
    shown = question_blocks(
        found.details,
        found.system,
        found.category_names,
        has_texts=found.has_texts,
        full=full,
    )
    out.print(render(shown))
