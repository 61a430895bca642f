"""`mnemoscope personas`: simulate persona histories over many days, and list them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope.cli import (
    audit_persona,
    create_persona,
    list_repairs,
    write_conversations,
    write_days,
    write_questions,
    write_tool_calls,
)
from mnemoscope.cli.console import err, out, print_json, progress_bar, say
from mnemoscope.personas.simulate.story import SHIPPED, find_story, shipped_story
from mnemoscope.text.display import one_line

app = App(name="personas", help="Persona histories, simulated or written by a model.")
app.command(create_persona.create)
app.command(write_days.generate)
app.command(write_conversations.conversations)
app.command(write_tool_calls.tool_calls)
app.command(write_questions.qa)
app.command(audit_persona.audit)
app.command(list_repairs.repairs)


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
    """Simulate a persona's history: daily logs, questions and the ledger of facts.

    The same story, days and seed give the same bytes for any number of jobs. For example:

        mnemoscope personas simulate executive-assistant --days 180 --out personas

        mnemoscope personas simulate all --days 1000 --jobs 2 --out personas

    Parameters
    ----------
    persona
        The id of a shipped persona, the path of your own story, or all.
    out
        The folder that the persona's folder is written into.
    days
        The length of the history.
    seed
        The random seed; another seed gives another history.
    jobs
        Personas that are simulated at once.
    force
        Overwrite existing files that differ.
    """
    from mnemoscope.personas.simulate.simulator import simulate_personas

    ids = SHIPPED if persona == "all" else [persona]
    stories = [find_story(id) for id in ids]
    made = simulate_personas(stories, out, days=days, seed=seed, jobs=jobs, force=force)
    with progress_bar(f"simulating {persona}", len(stories)) as bar:
        for folder, _, questions, facts in made:
            bar.advance(bar.task_ids[0])
            bar.refresh()
            line = f"{folder}: {days:,} days, {questions:,} questions, {facts:,} facts"
            say(err, line if questions else f"{line}; the history is too short for questions")


@app.command(name="list")
def list_personas(*, data: Path | None = None, json: bool = False) -> None:
    """List the shipped stories, or the personas in a folder with their days and questions.

    For example:

        mnemoscope personas list

        mnemoscope personas list --data personas

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
        sessions = ", ".join(session.id for session in persona.sessions)
        table.add_row(Text(persona.id, "bold cyan"), Text(persona.domain), Text(sessions))
    return table


def _data_table(data: Path, json: bool) -> Table | None:
    from mnemoscope.personas.simulate.history_files import list_histories

    found = list_histories(data)
    if json:
        print_json([one._asdict() for one in found])
        return None
    table = Table("persona", "arcs", "days", "questions", "ledger", box=box.SIMPLE_HEAD)
    for one in found:
        ledger = "yes" if one.ledger else "no"
        name = Text(one_line(one.persona), "bold cyan")
        table.add_row(name, Text(one_line(one.arcs)), f"{one.days:,}", f"{one.questions:,}", ledger)
    return table
