"""`mnemoscope systems`: list, check, install, remove, probe and survey memory systems."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import MissingExtra, MnemoscopeError, UsageError
from mnemoscope._store.registry import describe_options
from mnemoscope.cli import survey
from mnemoscope.cli.console import err, print_json, say
from mnemoscope.cli.console import out as stdout

if TYPE_CHECKING:
    from mnemoscope.runner.conformance import Result

app = App(name="systems", help="The memory systems that can be put under test.")
app.command(survey.survey)

_STATES = {"installed": "green", "outdated": "yellow", "not installed": "dim", "untested": "dim"}
_VERDICTS = {"passed": "green", "failed": "bold red", "advice": "yellow", "not applicable": "dim"}


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
    stdout.print(table)
    if names:
        return
    say(stdout, "Options, the default first: mnemoscope systems list NAME")
    say(stdout, "Not installed: mnemoscope systems install NAME")
    say(
        stdout,
        "Your own: --system package.module:Name, or the entry-point group mnemoscope.systems",
    )
    for connector in CONNECTORS.names():
        say(stdout, CONNECTORS.summary(connector))


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
    from mnemoscope.runner.conformance import check_system
    from mnemoscope.systems.loader import plan

    if timeout <= 0:
        raise UsageError(f"--timeout {timeout:g}: give the seconds that a call may take, above 0")
    planned = plan(Spec.parse(spec))
    with survey.checking(planned) as done:
        results = check_system(planned, timeout=timeout, done=done)
    failed = [result.check for result in results if result.verdict == "failed"]
    if json:
        print_json({"system": spec, "conforms": not failed, "checks": results})
    else:
        _print_results(spec, results, failed)
    return 1 if failed else 0


def _print_results(spec: str, results: list[Result], failed: list[str]) -> None:
    table = Table("check", "verdict", "what was seen", box=box.SIMPLE_HEAD)
    for result in results:
        seen = f"{result.seen}\n→ {result.fix}" if result.fix else result.seen
        verdict = Text(result.verdict, _VERDICTS[result.verdict])
        table.add_row(Text(result.check, "bold cyan"), verdict, Text(seen))
    stdout.print(table)
    counts = Counter(result.verdict for result in results)
    counted = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    if failed:
        say(stdout, f"{spec} does not keep the contract: {', '.join(failed)} ({counted})")
    else:
        say(stdout, f"{spec} keeps the contract ({counted})")


@app.command
def install(*names: str, again: bool = False) -> int:
    """Install memory systems from the shelf, each in an environment of its own.

    What is installed is pinned, file by file. Systems that are there already are left as they are.
    Environments lie in $MNEMOSCOPE_ENVIRONMENTS, or in a folder among the user's data.

    For example:

        mnemoscope systems install qdrant

        mnemoscope systems install mem0 chroma langgraph

        mnemoscope systems install mem0 --again

    Parameters
    ----------
    names
        Which; `mnemoscope systems list` shows them all.
    again
        Make the environment anew, even if it is there.
    """
    from mnemoscope.integrations import environments

    failed = []
    for name in _known(names):
        if environments.state(name) == "installed" and not again:
            say(stdout, f"{name} is installed: {environments.folder(name)}{_lacks(name)}")
            continue
        try:
            place = environments.install(name, lambda text: say(err, text))
        except MnemoscopeError as error:
            failed.append(name)
            say(err, str(error), before="[bold red]error:[/] ")
        else:
            say(stdout, f"{name} is installed: {place}{_lacks(name)}")
            say(stdout, f"try: mnemoscope systems check {name}")
    return 1 if failed else 0


@app.command
def remove(*names: str) -> None:
    """Remove the environments of memory systems from the shelf.

    For example:

        mnemoscope systems remove qdrant

    Parameters
    ----------
    names
        Which; `mnemoscope systems list` shows what is installed.
    """
    from mnemoscope.integrations import environments
    from mnemoscope.integrations.catalog import ITEMS

    for name in _known(names):
        lost = [other for other in ITEMS if environments.folder(other) == environments.folder(name)]
        was = "removed" if environments.remove(name) else "was not installed"
        say(stdout, f"{' and '.join(lost)} {was}")


def _lacks(name: str) -> str:
    """What Mnemoscope itself needs to drive the system and has not got, to be hung on a line."""
    from mnemoscope.connectors.mcp.session import require_mcp
    from mnemoscope.integrations.catalog import ITEMS

    if ITEMS[name].mapping:
        try:
            require_mcp()
        except MissingExtra as error:
            return f"; but {error}"
    return ""


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    from mnemoscope.integrations.catalog import ITEMS
    from mnemoscope.systems import SYSTEMS

    if not names:
        raise UsageError(
            f"say which: {', '.join(name for name in ITEMS if not ITEMS[name].untested)}"
        )
    for name in names:
        if name in ITEMS:
            continue
        SYSTEMS.get(name)  # its error knows the names
        raise UsageError(f"{name} needs no installation: it comes with Mnemoscope")
    return names


@app.command
def probe(
    server: str,
    /,
    *,
    out: Path | None = None,
    key: str = "",
    timeout: float = 60.0,
    json: bool = False,
) -> int:
    """List an MCP server's tools and propose how the MCP door could use them.

    Nothing is stored or searched: no tool is called. Exits with 1 where the tools do not make a
    memory, and says what is missing.

    For example:

        mnemoscope systems probe "npx -y @modelcontextprotocol/server-memory"

        mnemoscope systems probe http://127.0.0.1:8000/mcp --out mapping.yaml

    Parameters
    ----------
    server
        The command that starts the server, or its URL (streamable HTTP).
    out
        Write the proposed mapping into this file.
    key
        The environment variable that holds a bearer token, for servers that want one.
    timeout
        Seconds until the server must have said hello.
    json
        Print JSON instead of a table and YAML.
    """
    from mnemoscope.connectors.mcp.propose_mapping import probe as probe_server
    from mnemoscope.connectors.mcp.tool_schemas import parameters

    if out is not None and out.exists():
        raise UsageError(f"{out} exists; remove it or give another name with --out")
    seen = probe_server(server.removeprefix("mcp:"), start=timeout, key=key)
    proposal = seen.proposal
    if out is not None:
        out.write_text(seen.yaml, encoding="utf-8")
    if json:
        print_json(
            {
                "server": seen.server,
                "tools": [tool._asdict() for tool in seen.tools],
                "mapping": proposal.mapping,
                "usable": proposal.usable,
                "uncertain": proposal.uncertain,
                "missing": proposal.missing,
            }
        )
        return 0 if proposal.usable else 1
    table = Table("tool", "parameters, required with *", "what it says", box=box.SIMPLE_HEAD)
    for tool in seen.tools:
        given = parameters(tool.parameters)
        listed = ", ".join(f"{one.name}{'*' if one.required else ''}" for one in given)
        first = tool.description.strip().split("\n", 1)[0]
        table.add_row(Text(tool.name, "bold cyan"), Text(listed), Text(first))
    stdout.print(table)
    if out is None:
        say(stdout, seen.yaml)
    else:
        say(err, f"the proposed mapping is in {out}")
        for doubt in (*proposal.missing, *proposal.uncertain):
            say(err, f"look at {doubt}")
    if not proposal.usable:
        say(err, "no memory can be made of these tools; what is missing is said above")
        return 1
    spec = f"mcp:{server.removeprefix('mcp:')},mapping={out or 'mapping.yaml'}"
    spec += f",key={key}" if key else ""
    say(
        err,
        "before you check it: a check and a run tell the server things of ours, so let it keep "
        "them in a place of their own (in the mapping: env with ${scratch}), never in your memory",
    )
    save = "" if out else "save the mapping as mapping.yaml, then "
    say(err, f'next: {save}mnemoscope systems check "{spec}"')
    return 0
