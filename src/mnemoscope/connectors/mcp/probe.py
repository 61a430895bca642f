"""Looking at an unknown server: its name, its tools, and how they may be mapped."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mnemoscope._store.errors import MnemoscopeError, SystemLost
from mnemoscope.connectors.mcp.propose_mapping import Proposal, propose
from mnemoscope.connectors.mcp.session import Tool, ToolError
from mnemoscope.connectors.mcp.tool_mapping_file import read
from mnemoscope.connectors.mcp.transport import place


class Probed(NamedTuple):
    """What a server says of itself, and what we make of it."""

    server: dict[str, str]
    tools: list[Tool]
    proposal: Proposal
    yaml: str


def probe(address: str, *, start: float = 60.0, key: str = "") -> Probed:
    """Connect, list the tools, propose a mapping, and leave. No tool is called."""
    where = place(address, key=key)
    try:
        session = where.open(start)
    except (SystemLost, ToolError, TimeoutError, OSError) as error:
        raise MnemoscopeError(f"{address} cannot be probed: {error}") from None
    session.close()
    name = session.server.get("name", "")
    about = f"{name or 'a server without a name'} {session.server.get('version', '')}".strip()
    proposal = propose(name, session.tools, restarts=where.restarts)
    yaml = proposal.yaml(about)
    if proposal.usable:
        # What is proposed must be what the door takes.
        read(yaml, Path("the proposal"))
    return Probed(session.server, session.tools, proposal, yaml)
