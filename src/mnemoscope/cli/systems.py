"""`mnemoscope systems`: what can be put under test."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from cyclopts import App
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import describe_options
from mnemoscope.cli import install, probe, survey
from mnemoscope.cli.console import out, print_json, progress_bar, say

if TYPE_CHECKING:
    from mnemoscope.runner.conformance import Result

app = App(name="systems", help="The memory systems that can be put under test.")
app.command(install.install)
app.command(install.remove)
app.command(survey.survey)
app.command(probe.probe)

_STATES = {"installed": "green", "outdated": "yellow", "not installed": "dim", "untested": "dim"}


@app.command(name="list")
def list_systems(*names: str, json: bool = False) -> None:
    """List the systems known by name: built in, installed, installable, or untested and why.

    For example:

        mnemoscope systems list

        mnemoscope systems list hybrid qdrant

    Parameters
    ----------
    names
        These only, with their options.
    json
        Print JSON instead of a table: all systems with all options.
    """
    from mnemoscope.systems import CONNECTORS, SYSTEMS

    for name in set(names).difference(SYSTEMS.names()):
        SYSTEMS.get(name)  # says what it could have meant
    with_options = json or bool(names)
    rows = [_listed(name, with_options) for name in names or SYSTEMS.names()]
    if json:
        print_json(rows)
        return
    table = Table("system", "state", "what it is", box=box.SIMPLE_HEAD)
    for row in sorted(rows, key=lambda row: row["state"] == "untested"):
        state = Text(row["state"], _STATES.get(row["state"], ""))
        table.add_row(Text(row["name"], "bold cyan"), state, Text(row["summary"]))
        for option, values in row["options"].items():
            table.add_row("", "", Text(f"{option}={values}", "dim"))
    out.print(table)
    if names:
        return
    say(out, "Options, the default first: mnemoscope systems list NAME")
    say(out, "Not installed: mnemoscope systems install NAME")
    say(out, "Your own: --system package.module:Name, or the entry-point group mnemoscope.systems")
    for door in CONNECTORS.names():
        say(out, CONNECTORS.summary(door))


def _listed(name: str, with_options: bool) -> dict[str, Any]:
    from mnemoscope.integrations import environments
    from mnemoscope.integrations.catalog import ITEMS
    from mnemoscope.systems import SYSTEMS

    state, summary, options = "built in", SYSTEMS.summary(name), {}
    if name in ITEMS:
        state = environments.state(name)
        if state == "untested":
            summary = f"{summary}; {ITEMS[name].untested}"
    elif name not in SYSTEMS.builtin:
        state = "plugin"
    if with_options and state != "untested":
        try:
            options = describe_options(SYSTEMS.get(name))
        except UsageError as error:
            summary = str(error)
    return {"name": name, "state": state, "summary": summary, "options": options}


@app.command
def check(spec: str, /, *, timeout: float = 60.0, json: bool = False) -> int:
    """Check that a system keeps the contract that figures rest on, and say what to mend.

    Fails (exit code 1) when a required check fails; advice does not fail. The system runs in a
    process of its own: what it prints goes to stderr, and a call that hangs is a finding.

    For example:

        mnemoscope systems check bm25

        mnemoscope systems check my_memory:Mine --timeout 10

        mnemoscope systems check hybrid,fusion=rrf --json

    Parameters
    ----------
    spec
        The system with its options, or your own as package.module:Name.
    timeout
        Seconds that any one call of the system may take.
    json
        Print JSON instead of a table.
    """
    from mnemoscope._store.spec import Spec
    from mnemoscope.runner.conformance import CHECKS, check_system
    from mnemoscope.systems.loader import plan

    if timeout <= 0:
        raise UsageError(f"--timeout {timeout:g}: give the seconds that a call may take, above 0")
    with progress_bar(f"checking {spec}", len(CHECKS)) as bar:
        results = check_system(
            plan(Spec.parse(spec)),
            timeout=timeout,
            done=lambda result: bar.advance(bar.task_ids[0]),
        )
    failed = [result.check for result in results if result.verdict == "failed"]
    if json:
        print_json({"system": spec, "conforms": not failed, "checks": results})
    else:
        _print_results(spec, results, failed)
    return 1 if failed else 0


_COLOURS = {"passed": "green", "failed": "bold red", "advice": "yellow", "not applicable": "dim"}


def _print_results(spec: str, results: list[Result], failed: list[str]) -> None:
    table = Table("check", "verdict", "what was seen", box=box.SIMPLE_HEAD)
    for result in results:
        seen = f"{result.seen}\n→ {result.fix}" if result.fix else result.seen
        verdict = Text(result.verdict, _COLOURS[result.verdict])
        table.add_row(Text(result.check, "bold cyan"), verdict, Text(seen))
    out.print(table)
    counts = Counter(result.verdict for result in results)
    counted = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    if failed:
        say(out, f"{spec} does not keep the contract: {', '.join(failed)} ({counted})")
    else:
        say(out, f"{spec} keeps the contract ({counted})")
