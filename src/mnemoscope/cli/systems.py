"""`mnemoscope systems`: list, check, install, remove, probe, dump and survey memory systems."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import MissingExtra, MnemoscopeError, UsageError
from mnemoscope.cli import survey
from mnemoscope.cli.console import err, print_json, say
from mnemoscope.cli.console import out as stdout
from mnemoscope.text.display import one_line

if TYPE_CHECKING:
    from mnemoscope.runner.conformance import Result

app = App(name="systems", help="List, check, install and survey memory systems.")
app.command(survey.survey)

_STATES = {"installed": "green", "outdated": "yellow", "not installed": "dim", "untested": "dim"}
_VERDICTS = {"passed": "green", "failed": "bold red", "advice": "yellow", "not applicable": "dim"}


@app.command(name="list")
def list_systems(*names: str, json: bool = False) -> None:
    """List the systems that have a name: built in, installed, installable, or untested and why.

    For example:

        mnemoscope systems list

        mnemoscope systems list hybrid qdrant

    Parameters
    ----------
    names
        Only these systems, with their options.
    json
        Print JSON instead of a table: all systems with all options.
    """
    from mnemoscope.systems import CONNECTORS, SYSTEMS

    for name in set(names).difference(SYSTEMS.names()):
        SYSTEMS.locate(name)  # raises an error with suggestions
    with_options = json or bool(names)
    rows = [_listed(name, with_options) for name in names or SYSTEMS.names()]
    if json:
        print_json(rows)
        return
    table = Table("system", "state", "what it is", box=box.SIMPLE_HEAD)
    for row in sorted(rows, key=lambda row: row["state"] == "untested"):
        state = Text(row["state"], _STATES.get(row["state"], ""))
        table.add_row(Text(row["name"], "bold cyan"), state, Text(one_line(row["summary"])))
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
    from mnemoscope.systems.loader import options_of

    state, summary, options = "built in", SYSTEMS.summary(name), {}
    if name in ITEMS:
        state = environments.state(name)
        if state == "untested":
            summary = f"{summary}; {ITEMS[name].untested}"
    elif name not in SYSTEMS.builtin:
        state = "plugin"
    if with_options and state != "untested":
        try:
            options = options_of(name)
        except UsageError as error:
            summary = str(error)
    return {"name": name, "state": state, "summary": summary, "options": options}


@app.command
def check(spec: str, /, *, timeout: float = 60.0, json: bool = False) -> int:
    """Check that a system fulfils the contract that a run requires, and say what to correct.

    The exit code is 1 if a required check fails; advice does not count as a failure. The system
    runs in a separate process: its output goes to stderr, and a call that hangs is reported.

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
        seen = one_line(result.seen) + (f"\n→ {one_line(result.fix)}" if result.fix else "")
        verdict = Text(result.verdict, _VERDICTS[result.verdict])
        table.add_row(Text(result.check, "bold cyan"), verdict, Text(seen))
    stdout.print(table)
    counts = Counter(result.verdict for result in results)
    counted = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    if failed:
        say(stdout, f"{spec} does not fulfil the contract: {', '.join(failed)} ({counted})")
    else:
        say(stdout, f"{spec} fulfils the contract ({counted})")


@app.command
def install(*names: str, again: bool = False) -> int:
    """Install memory systems that Mnemoscope integrates, each in a separate environment.

    Every installed file is pinned. Systems that are already installed are not changed.
    Environments are in $MNEMOSCOPE_ENVIRONMENTS, or in a folder of the user's data directory.

    For example:

        mnemoscope systems install qdrant

        mnemoscope systems install mem0 chroma langgraph

        mnemoscope systems install mem0 --again

    Parameters
    ----------
    names
        The systems to install; `mnemoscope systems list` shows them all.
    again
        Build the environment again, even if it exists.
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
    """Remove the environments of installed memory systems.

    For example:

        mnemoscope systems remove qdrant

    Parameters
    ----------
    names
        The systems to remove; `mnemoscope systems list` shows which are installed.
    """
    from mnemoscope.integrations import environments
    from mnemoscope.integrations.catalog import ITEMS

    for name in _known(names):
        lost = [other for other in ITEMS if environments.folder(other) == environments.folder(name)]
        was = "removed" if environments.remove(name) else "was not installed"
        say(stdout, f"{' and '.join(lost)} {was}")


def _lacks(name: str) -> str:
    """Name a missing extra of Mnemoscope that the system needs, as the end of a line."""
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
            "name at least one system: "
            f"{', '.join(name for name in ITEMS if not ITEMS[name].untested)}"
        )
    for name in names:
        if name in ITEMS:
            continue
        SYSTEMS.locate(name)  # raises an error with suggestions
        raise UsageError(f"{name} is part of Mnemoscope and does not need an installation")
    return names


@app.command
def dump(
    server: str,
    /,
    *,
    out: Path,
    tool: str = "",
    each: str = "",
    key: str = "",
    timeout: float = 60.0,
    live: bool = False,
) -> None:
    """Write what an MCP server holds to JSON lines, which `mnemoscope import` reads.

    One tool that lists everything is called. A server that we start gets your home and may not
    write there.

    For example:

        mnemoscope systems dump "npx -y @modelcontextprotocol/server-memory" --out graph.jsonl

        mnemoscope systems dump http://127.0.0.1:8000/mcp --tool list_memories --out mine.jsonl

    Parameters
    ----------
    server
        The command that starts the server, or its URL (streamable HTTP).
    out
        The file to write; only you can read it.
    tool
        The tool that lists all memories. Default: read_graph, or one named like a list.
    each
        Where the reply has the list, as a JMESPath expression. Default: its only list.
    key
        The environment variable with a bearer token, for servers that require one.
    timeout
        Seconds that the server may take to start.
    live
        Let a server that we start write to its own files, if it cannot open them otherwise.
    """
    from mnemoscope._store.jsonl import encode_lines
    from mnemoscope._store.private_files import write_private
    from mnemoscope.connectors.mcp.dump_store import dump_store

    if out.exists():
        raise UsageError(f"{out} exists; remove it or give another name with --out")
    found = dump_store(
        server.removeprefix("mcp:"), tool=tool, each=each, key=key, start=timeout, live=live
    )
    with write_private(out) as file:
        file.write(encode_lines(found.rows))
    say(stdout, f"{out}: {len(found.rows):,} rows of {found.tool}")
    say(stdout, f"next: mnemoscope import {out} --out my-memory")


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
    """List an MCP server's tools and propose a mapping for the MCP connector.

    No tool is called, so nothing is stored or searched. The exit code is 1 if no tool stores
    memories or no tool searches them; the output says what is missing.

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
        The environment variable with a bearer token, for servers that require one.
    timeout
        Seconds that the server may take to start.
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
    table = Table("tool", "parameters, required with *", "description", box=box.SIMPLE_HEAD)
    for tool in seen.tools:
        given = parameters(tool.parameters)
        listed = ", ".join(f"{one.name}{'*' if one.required else ''}" for one in given)
        first = tool.description.strip().split("\n", 1)[0]
        cells = map(one_line, (listed, first))
        table.add_row(Text(one_line(tool.name), "bold cyan"), *map(Text, cells))
    stdout.print(table)
    if out is None:
        say(stdout, seen.yaml, lines=True)
    else:
        say(err, f"the proposed mapping is in {out}")
        for problem in (*proposal.missing, *proposal.uncertain):
            say(err, f"check {problem}")
    if not proposal.usable:
        say(err, "these tools cannot store and search memories; see above for what is missing")
        return 1
    spec = f"mcp:{server.removeprefix('mcp:')},mapping={out or 'mapping.yaml'}"
    spec += f",key={key}" if key else ""
    if server.removeprefix("mcp:").startswith(("http://", "https://")):
        say(
            err,
            "before you check it: a check and a run store test memories in the server, so give "
            "them a server of their own; --read-only asks without storing anything",
        )
    else:
        say(err, "a check starts the server with an empty home: your own memories stay as they are")
    save = "" if out else "save the mapping as mapping.yaml, then "
    say(err, f'next: {save}mnemoscope systems check "{spec}"')
    return 0
