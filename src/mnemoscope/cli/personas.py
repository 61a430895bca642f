"""`mnemoscope personas`: simulate lives over many days, and see which there are."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich import box
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope.cli import (
    audit_persona,
    create_persona,
    write_conversations,
    write_days,
    write_questions,
    write_tool_calls,
)
from mnemoscope.cli.console import err, out, print_json, progress_bar, say
from mnemoscope.personas.simulate.story import SHIPPED, Story, read_story, shipped_story

app = App(name="personas", help="Lives to remember, simulated or written by a model.")
app.command(create_persona.create)
app.command(write_days.generate)
app.command(write_conversations.conversations)
app.command(write_tool_calls.tool_calls)
app.command(write_questions.qa)
app.command(audit_persona.audit)


@app.command
def simulate(
    persona: str,
    *,
    out: Annotated[Path, Parameter(name="--out")],
    days: int = 1000,
    seed: int = 42,
    jobs: int = 1,
    force: bool = False,
) -> None:
    """Roll a persona's story out into daily logs, questions and the ledger behind them.

    The same story, days and seed give the same bytes, whatever the number of jobs. For example:

        mnemoscope personas simulate executive-assistant --days 180 --out lives

        mnemoscope personas simulate all --days 1000 --jobs 2 --out lives

    Parameters
    ----------
    persona
        The id of a shipped persona, the path of a story of your own, or all.
    out
        Where the persona's folder is written.
    days
        How long the life is.
    seed
        Another seed, another life.
    jobs
        How many personas are simulated at once.
    force
        Overwrite what is there and differs.
    """
    stories = _stories(persona)
    if jobs < 1:
        raise UsageError(f"--jobs {jobs}: at least one is needed")
    if len({story.persona.id for story in stories}) < len(stories):
        raise UsageError("two of the stories have the same persona id")
    with progress_bar(f"simulating {persona}", len(stories)) as bar:
        if jobs == 1 or len(stories) == 1:
            for story in stories:
                _report(_live(story, days, seed, out, force), bar)
            return
        with ProcessPoolExecutor(min(jobs, len(stories))) as pool:
            work = [pool.submit(_live, story, days, seed, out, force) for story in stories]
            for done in as_completed(work):
                _report(done.result(), bar)


@app.command(name="list")
def list_personas(*, data: Path | None = None, json: bool = False) -> None:
    """List the shipped stories, or the personas in a folder with their days and questions.

    For example:

        mnemoscope personas list

        mnemoscope personas list --data lives

    Parameters
    ----------
    data
        A folder of personas, or the folder of one.
    json
        Print JSON instead of a table.
    """
    table = _shipped_table(json) if data is None else _data_table(data, json)
    if table is not None:
        out.print(table)


def _shipped_table(json: bool) -> Table | None:
    personas = [shipped_story(id).persona for id in SHIPPED]
    if json:
        print_json([{"id": p.id, "role": p.role, "domain": p.domain} for p in personas])
        return None
    table = Table("persona", "domain", "sessions", box=box.SIMPLE_HEAD)
    for persona in personas:
        rooms = ", ".join(room.id for room in persona.sessions)
        table.add_row(Text(persona.id, "bold cyan"), Text(persona.domain), Text(rooms))
    return table


def _data_table(data: Path, json: bool) -> Table | None:
    from mnemoscope.personas.simulate.life_files import shelves

    found = shelves(data)
    if json:
        print_json([shelf._asdict() for shelf in found])
        return None
    table = Table("persona", "arcs", "days", "questions", "ledger", box=box.SIMPLE_HEAD)
    for shelf in found:
        ledger = "yes" if shelf.ledger else "no"
        name = Text(shelf.persona, "bold cyan")
        table.add_row(name, shelf.arcs, f"{shelf.days:,}", f"{shelf.questions:,}", ledger)
    return table


def _stories(persona: str) -> list[Story]:
    if persona == "all":
        return [shipped_story(id) for id in SHIPPED]
    if persona in SHIPPED:
        return [shipped_story(persona)]
    path = Path(persona)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return [read_story(path)]
    return [shipped_story(persona)]


def _live(story: Story, days: int, seed: int, folder: Path, force: bool) -> str:
    """Simulate and write one persona; a line that says what came of it."""
    from mnemoscope.personas.simulate.life_files import write_life
    from mnemoscope.personas.simulate.simulator import simulate as live

    life = live(story, days, seed)
    home = write_life(life, folder, force=force)
    told = f"{home}: {days:,} days, {len(life.questions):,} questions, {len(life.facts):,} facts"
    return told if life.questions else f"{told}; too short a life to ask anything about"


def _report(line: str, bar: Progress) -> None:
    bar.advance(bar.task_ids[0])
    bar.refresh()
    say(err, line)
