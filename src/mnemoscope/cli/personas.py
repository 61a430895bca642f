"""`mnemoscope personas`: simulate persona histories over many days, and list them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
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
from mnemoscope.personas.simulate.story import SHIPPED, shipped_story
from mnemoscope.text.display import one_line

DENSITY = 1000

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
    edition: int = 1,
    density: int = DENSITY,
    jobs: int = 1,
    force: bool = False,
) -> None:
    """Simulate a persona's history: daily logs, questions and the ledger of facts.

    The same options give the same bytes for any number of jobs. For example:

        mnemoscope personas simulate executive-assistant --days 180 --out personas

        mnemoscope personas simulate all --edition 2 --density 3000 --jobs 2 --out personas

        mnemoscope personas simulate mnemoscope-lives-1 --out lives

    Parameters
    ----------
    persona
        The id of a shipped persona, the path of your own story, all, or the name of a frozen set,
        which has its own days, seed, edition and density and is checked against its hashes.
    out
        The folder that the persona's folder is written into.
    days
        The length of the history.
    seed
        The random seed; another seed gives another history.
    edition
        1 for short notes, 2 for days of scenes with conversations, causes and preferences.
    density
        The words of a working day, 200 to 6000; only for edition 2.
    jobs
        Personas that are simulated at once.
    force
        Overwrite existing files that differ.
    """
    from mnemoscope.personas.simulate.frozen_sets import SETS
    from mnemoscope.personas.simulate.simulator import simulate_personas

    if frozen := SETS.get(persona):
        if (days, seed, edition, density) != (1000, 42, 1, DENSITY):
            raise UsageError(f"{persona} has its own days, seed, edition and density: omit them")
        made = frozen.write(out, jobs=jobs, force=force)
    else:
        made = simulate_personas(
            SHIPPED if persona == "all" else [persona],
            out,
            days=days,
            seed=seed,
            edition=edition,
            density=density,
            jobs=jobs,
            force=force,
        )
    count = len(SHIPPED) if frozen or persona == "all" else 1
    with progress_bar(f"simulating {persona}", count) as bar:
        for folder, days, questions, facts in made:
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
