"""An MCP server with the tools of a knowledge graph, which keeps it in a file.

`python storing_server.py PLACE`: the file is memory.jsonl in the current folder (`cwd`), in the
home (`home`), in the XDG data folder (`xdg`), where MEMORY_FILE_PATH says or else beside this
script (`env`), or at the absolute path in config.json beside this script (`config`). It needs only
Python. Each call of a tool is a line on stderr.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAMES = {"type": "array", "items": {"type": "string"}}
TEXT = {"type": "string"}
ENTITY = {
    "type": "object",
    "properties": {"name": TEXT, "entityType": TEXT, "observations": NAMES},
    "required": ["name", "entityType", "observations"],
}
TOOLS: dict[str, dict[str, Any]] = {
    "create_entities": {"entities": {"type": "array", "items": ENTITY}},
    "search_nodes": {"query": TEXT},
    "delete_entities": {"entityNames": NAMES},
    "read_graph": {},
}


def place(kind: str) -> Path:
    if kind == "cwd":
        return Path("memory.jsonl")
    if kind == "home":
        return Path.home() / "memory.jsonl"
    if kind == "xdg":
        return Path(os.environ["XDG_DATA_HOME"]) / "memory.jsonl"
    if kind == "env":
        return Path(os.environ.get("MEMORY_FILE_PATH") or HERE / "memory.jsonl")
    return Path(json.loads((HERE / "config.json").read_text())["store"])


def graph(store: Path) -> list[dict[str, Any]]:
    lines = store.read_text().splitlines() if store.exists() else []
    return [json.loads(line) for line in lines]


def call(store: Path, tool: str, given: dict[str, Any]) -> Any:
    entities = graph(store)
    if tool == "create_entities":
        new = [{"type": "entity", **one} for one in given["entities"]]
        with store.open("a") as file:
            file.writelines(json.dumps(one) + "\n" for one in new)
        return new
    if tool == "delete_entities":
        left = [one for one in entities if one["name"] not in given["entityNames"]]
        store.write_text("".join(json.dumps(one) + "\n" for one in left))
        return "deleted"
    word = given.get("query", "").lower()
    found = [one for one in entities if word in json.dumps(one).lower()]
    return {"entities": found, "relations": []}


def reply(store: Path, method: str, given: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        about = {"name": "storing", "version": "1"}
        version = given["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        schemas = {
            name: {"type": "object", "properties": fields, "required": list(fields)}
            for name, fields in TOOLS.items()
        }
        return {"tools": [{"name": name, "inputSchema": one} for name, one in schemas.items()]}
    sys.stderr.write(f"called {given['name']} {os.getpid()}\n")
    sys.stderr.flush()
    try:
        result = call(store, given["name"], given["arguments"])
    except OSError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    return {"content": [{"type": "text", "text": json.dumps(result)}]}


def main() -> None:
    store = place(sys.argv[1])
    for line in sys.stdin:
        order = json.loads(line)
        if "id" in order:
            result = reply(store, order["method"], order.get("params", {}))
            answer = {"jsonrpc": "2.0", "id": order["id"], "result": result}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
