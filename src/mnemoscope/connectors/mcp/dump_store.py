"""List what an MCP server holds, through its tools, without changing it.

The rows are JSON lines that `mnemoscope import` reads: those of a knowledge graph as the reference
server stores them, and those of other servers with an id and a text each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mnemoscope._store.errors import MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.lenient_json import decoded
from mnemoscope.connectors.mapping import find
from mnemoscope.connectors.mcp.session import McpSession, Tool, ToolError, ToolReply
from mnemoscope.connectors.mcp.tool_schemas import LIMIT, parameters
from mnemoscope.connectors.mcp.transport import locate

_GRAPH = "read_graph"
_LISTING = frozenset({"list", "all", "export", "dump"})
_CHANGES = frozenset(
    "add clear create delete drop erase forget insert purge put remove reset save set store update "
    "upsert wipe write".split()
)
_ENTITY = ("entities", "relations")
_MOST = 1_000_000


class StoreDump(NamedTuple):
    """The rows of a store, and the tool that listed them."""

    tool: str
    rows: list[dict[str, Any]]


def dump_store(
    address: str,
    *,
    tool: str = "",
    each: str = "",
    key: str = "",
    start: float = 60.0,
    timeout: float = 120.0,
    live: bool = False,
) -> StoreDump:
    """List the memories of a server; it gets the user's home and may not write there.

    `tool` is the tool that lists them, by default `read_graph` or one named like a list; `each` is
    where its reply has the list. One call is made, and only of a tool that does not change
    anything by its name and hints. With `live` the server may write to its own files.
    """
    server = locate(address, key=key, live=live, read_only=not live)
    try:
        session = server.open(start)
    except (SystemLost, ToolError, TimeoutError, OSError) as error:
        raise MnemoscopeError(f"{address} cannot be opened: {error}") from None
    try:
        chosen = _chosen(session.tools, tool)
        rows = [*_rows(_called(session, chosen, timeout), each)]
    finally:
        session.close()
    if not rows:
        raise MnemoscopeError(f"{chosen.name} of {address} lists no memories")
    return StoreDump(chosen.name, rows)


def _chosen(tools: Sequence[Tool], name: str) -> Tool:
    listed = ", ".join(tool.name for tool in tools) or "none"
    usual = [tool for tool in tools if _lists(tool)]
    if name:
        usual = [tool for tool in tools if tool.name == name]
    if not usual:
        raise UsageError(f"no tool lists all memories; name one with --tool: {listed}")
    chosen = min(usual, key=lambda tool: (tool.name != _GRAPH, len(tool.name)))
    if _words(chosen) & _CHANGES or chosen.read_only is False or chosen.destructive:
        raise UsageError(f"{chosen.name} may change the store, so it is not called")
    required = [one.name for one in parameters(chosen.parameters) if one.required]
    if required:
        raise UsageError(f"{chosen.name} cannot list everything: it needs {', '.join(required)}")
    return chosen


def _lists(tool: Tool) -> bool:
    return tool.name == _GRAPH or bool(_words(tool) & _LISTING and not _words(tool) & _CHANGES)


def _words(tool: Tool) -> set[str]:
    return set(tool.name.lower().replace("-", "_").replace(".", "_").split("_"))


def _called(session: McpSession, tool: Tool, timeout: float) -> ToolReply:
    limits = [one for one in parameters(tool.parameters) if one.name in LIMIT]
    most = {one.name: one.schema.get("maximum", _MOST) for one in limits[:1]}
    try:
        return session.call(tool.name, most, timeout)
    except (ToolError, TimeoutError) as error:
        raise MnemoscopeError(f"{tool.name} failed: {error}") from None


def _rows(reply: ToolReply, each: str) -> Iterator[dict[str, Any]]:
    content = reply.structured
    if content is None:
        try:
            content = decoded(reply.text.encode())
        except (ValueError, UnicodeEncodeError):
            raise MnemoscopeError(
                f"the listing is prose, not JSON, so its memories cannot be told apart: "
                f"{reply.text[:200]!r}; import the server's file or database instead"
            ) from None
    if isinstance(content, dict) and set(content) == {"result"}:
        content = content["result"]
    if isinstance(content, dict) and not each and "entities" in content:
        for kind, name in zip(("entity", "relation"), _ENTITY, strict=True):
            for row in content.get(name) or ():
                yield {"type": kind, **row}
        return
    found = find(content, each) if each else _only_list(content)
    if not isinstance(found, list):
        raise UsageError("the reply has no list, or several; say where it is with --each")
    for row in found:
        yield row if isinstance(row, dict) else {"text": str(row)}


def _only_list(content: Any) -> Any:
    if isinstance(content, dict):
        lists = [value for value in content.values() if isinstance(value, list)]
        return lists[0] if len(lists) == 1 else None
    return content
