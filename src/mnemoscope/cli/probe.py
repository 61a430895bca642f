"""`mnemoscope systems probe`: an MCP server's tools, and a first mapping of them."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope.cli import console


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
    from mnemoscope.connectors.mcp.propose_mapping import probe as look
    from mnemoscope.connectors.mcp.tool_schemas import parameters

    if out is not None and out.exists():
        raise UsageError(f"{out} exists; remove it or give another name with --out")
    seen = look(server.removeprefix("mcp:"), start=timeout, key=key)
    proposal = seen.proposal
    if out is not None:
        out.write_text(seen.yaml, encoding="utf-8")
    if json:
        console.print_json(
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
    console.out.print(table)
    if out is None:
        console.say(console.out, seen.yaml)
    else:
        console.say(console.err, f"the proposed mapping is in {out}")
        for doubt in (*proposal.missing, *proposal.uncertain):
            console.say(console.err, f"look at {doubt}")
    if not proposal.usable:
        console.say(
            console.err, "no memory can be made of these tools; what is missing is said above"
        )
        return 1
    spec = f"mcp:{server.removeprefix('mcp:')},mapping={out or 'mapping.yaml'}"
    spec += f",key={key}" if key else ""
    console.say(
        console.err,
        "before you check it: a check and a run tell the server things of ours, so let it keep "
        "them in a place of their own (in the mapping: env with ${scratch}), never in your memory",
    )
    save = "" if out else "save the mapping as mapping.yaml, then "
    console.say(console.err, f'next: {save}mnemoscope systems check "{spec}"')
    return 0
