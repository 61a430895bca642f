"""`mnemoscope systems`: what can be put under test."""

from __future__ import annotations

import inspect

from cyclopts import App
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope.cli.console import out, print_json, say
from mnemoscope.core.errors import UsageError

app = App(name="systems", help="The memory systems that can be put under test.")


@app.command(name="list")
def list_systems(*, json: bool = False) -> None:
    """List the systems known by name, with their options.

    Examples:

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
            options = _options(SYSTEMS.get(name))
        except UsageError as error:
            summary = str(error)
        rows.append((name, summary, options))
    if json:
        print_json([{"name": n, "summary": s, "options": o} for n, s, o in rows])
        return
    table = Table("system", "what it is", "options (default)", box=box.SIMPLE_HEAD)
    for name, summary, options in rows:
        listed = ", ".join(f"{key}={value}" for key, value in options.items())
        table.add_row(Text(name, "bold cyan"), Text(summary), Text(listed))
    out.print(table)
    say(out, "Your own: --system package.module:Name, or the entry-point group mnemoscope.systems")


def _options(factory: object) -> dict[str, str]:
    if not callable(factory):
        return {}
    parameters = inspect.signature(factory).parameters.values()
    return {
        p.name: "required" if p.default is p.empty else str(p.default)
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
