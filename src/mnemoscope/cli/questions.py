"""`mnemoscope questions`: analyse the questions of runs, draft questions, review the drafts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, out, print_json, print_table, say, write_markdown
from mnemoscope.reports.tables import Cells, numeric

if TYPE_CHECKING:
    from mnemoscope.drafting.draft_questions import DraftedQuestions
    from mnemoscope.drafting.review_session import ReviewItem, ReviewSession

app = App(name="questions")
_KEYS = "[a]ccept, [e]dit, [r]eject, [s]kip, [q]uit"


@app.default
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
    """List what no system finds, what all find, what separates them; draft and review questions.

    Also possible missing labels. Difficulty is the share of systems that find a question.
    Discrimination is the correlation of finding it with finding the others; it needs eight
    independent systems. Variants of one system count once.

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


@app.command
def draft(
    folder: Path,
    /,
    *,
    per_stratum: int = 20,
    seed: int = 42,
    model: str = "",
    stratum: list[str] | None = None,
    json: bool = False,
) -> None:
    """Draft questions about the memories of a folder, offline, and keep those that obey the rules.

    Strata: exact, paraphrase, multihop, update, absent. Questions that a person wrote or reviewed
    stay; other drafts are replaced. Then `mnemoscope run strata --data FOLDER` works.

    For example:

        mnemoscope questions draft my-memories

        mnemoscope questions draft my-memories --per-stratum 50 --model smollm2

    Parameters
    ----------
    folder
        A folder with corpus.jsonl, such as `mnemoscope import` writes.
    per_stratum
        How many questions each stratum shall have.
    seed
        Another seed drafts other questions.
    model
        A model that words the questions; the memories are sent to it. `mnemoscope models list`
        shows how to write one, local ones included. Without it, templates do.
    stratum
        Draft this stratum only. Repeatable.
    json
        Print JSON instead of a table.
    """
    made = api.draft_questions(
        folder, per_stratum=per_stratum, seed=seed, model=model, strata=stratum
    )
    if json:
        print_json(made)
        return
    _print_drafted(made)


def _print_drafted(made: DraftedQuestions) -> None:
    rows: list[Cells] = []
    for stratum, drafted in made.drafted.items():
        dropped = made.dropped[stratum]
        why = "; ".join(f"{n:,} {rule}" for rule, n in dropped.items())
        kept = made.kept.get(stratum, 0)
        rows.append([stratum, f"{drafted:,}", f"{kept:,}", f"{sum(dropped.values()):,}", why])
    counted = map(numeric, ("drafted", "kept", "dropped"))
    print_table(("stratum", *counted, "dropped because they"), rows)
    for stratum, count in made.short.items():
        say(
            err,
            f"{stratum}: only {count:,} of {made.wanted:,} questions could be drafted",
            before="[yellow]note:[/] ",
        )
    say(out, f"next: mnemoscope questions review {made.folder}")
    say(out, f"then: mnemoscope run strata --data {made.folder} --system bm25 --system hybrid")


@app.command
def review(folder: Path, /) -> None:
    """Accept, edit or reject drafted questions, one by one; stop and continue at any time.

    Each decision is saved at once. An edited question must obey the rules of its stratum. A
    rejected one is removed and not drafted again.

    For example:

        mnemoscope questions review my-memories

    Parameters
    ----------
    folder
        The folder with the drafted questions.
    """
    if not sys.stdin.isatty():
        raise UsageError("review asks a person: run it in a terminal, not in a pipe or a script")
    session = api.review_questions(folder)
    waiting = session.waiting()
    try:
        for number, item in enumerate(waiting, 1):
            out.print()
            say(out, f"{number} of {len(waiting)} · {item.question.stratum} · {item.question.id}")
            _show(item)
            if not _decided(session, item):
                break
    except (KeyboardInterrupt, EOFError):
        say(err, "\nall decisions are saved; repeat the command to continue", lines=True)
        raise KeyboardInterrupt from None
    left = len(session.waiting())
    say(out, f"{session.confirmed:,} of {session.total:,} questions confirmed, {left:,} to review")


def _show(item: ReviewItem) -> None:
    say(out, item.question.text, before="[bold cyan]question:[/] ")
    if item.question.answer:
        say(out, item.question.answer, before="[green]answer:[/]   ")
    for memory in item.superseded:
        when = f"{memory.at:%d %b %Y} " if memory.at else ""
        say(out, f"{when}{memory.text}", before="[dim]earlier:[/]  ")
    for memory in item.gold:
        when = f"{memory.at:%d %b %Y} " if memory.at else ""
        say(out, f"{when}{memory.text}", before="[green]memory:[/]   ")
    if not item.gold:
        say(out, "no memory may answer it", before="[green]memory:[/]   ")
    for one in item.broken:
        say(
            out,
            f"questions of {one.stratum} that {one.rule}: {one.detail}",
            before="[red]breaks:[/]   ",
        )


def _decided(session: ReviewSession, item: ReviewItem) -> bool:
    """Ask for one decision; False to stop."""
    while True:
        key = out.input(f"{_KEYS.replace('[', chr(92) + '[')}: ").strip().lower()[:1]
        if key == "a" and item.broken:
            say(err, "it breaks a rule of its stratum: edit or reject it")
        elif key == "a":
            session.accept(item.question)
            return True
        elif key == "r":
            session.reject(item.question)
            return True
        elif key == "e" and _edited(session, item):
            return True
        elif key in ("s", "q"):
            return key == "s"


def _edited(session: ReviewSession, item: ReviewItem) -> bool:
    text = _line_to_edit(item.question.text)
    if not text.strip():
        return False
    broken = session.edit(item.question, text)
    for one in broken:
        say(err, f"not saved: this one would {one.rule}: {one.detail}")
    return not broken


def _line_to_edit(text: str) -> str:
    """Let the person change the text in place, where the terminal can do that."""
    try:
        import readline
    except ImportError:  # Windows
        return out.input("new text: ")
    readline.set_startup_hook(lambda: readline.insert_text(text))
    try:
        return input("new text: ")
    finally:
        readline.set_startup_hook()
