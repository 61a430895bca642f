"""`mnemoscope systems`: what can be put under test."""

from __future__ import annotations

from cyclopts import App
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope.cli.console import out, print_json, say
from mnemoscope.core.errors import UsageError
from mnemoscope.core.registry import describe_options

app = App(name="systems", help="The memory systems that can be put under test.")


@app.command(name="list")
def list_systems(*, json: bool = False) -> None:
    """List the systems known by name, with their options.

    For example:

        mnemoscope systems list

    Parameters
    ----------
    json
        Print JSON instead of a table.
    """
    from mnemoscope.systems import SYSTEMS

    rows = []
    for name in SYSTEMS.names():
        summary, options = SYSTEMS.summary(name), {}
        try:
            options = describe_options(SYSTEMS.get(name))
        except UsageError as error:
            summary = str(error)
        rows.append((name, summary, options))
    if json:
        print_json([{"name": n, "summary": s, "options": o} for n, s, o in rows])
        return
    table = Table("system", "what it is", "options, default first", box=box.SIMPLE_HEAD)
    for name, summary, options in rows:
        listed = ", ".join(f"{key}={value}" for key, value in options.items())
        table.add_row(Text(name, "bold cyan"), Text(summary), Text(listed))
    out.print(table)
    say(out, "Your own: --system package.module:Name, or the entry-point group mnemoscope.systems")
