"""The kinds of sources: how each is read, and which one a source is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.suggest import did_you_mean
from mnemoscope.importers import agent_stores, mapped_rows, sqlite_source
from mnemoscope.importers.chat_exports import CONVERSATIONS, read_chatgpt, read_claude
from mnemoscope.importers.json_source import opened
from mnemoscope.importers.note_folders import read_notes
from mnemoscope.importers.slack import DAY, read_slack
from mnemoscope.importers.source_record import ImportSource, Yielded
from mnemoscope.importers.whatsapp import is_whatsapp, read_whatsapp

_PEEK = 1 << 16


def _read_mem0(source: ImportSource) -> Yielded:
    source.path = _inner(source.path, "history.db")
    is_store = _beginning(source.path).startswith(sqlite_source.MAGIC)
    return (sqlite_source.read_mem0_history if is_store else agent_stores.read_mem0_json)(source)


def _read_letta(source: ImportSource) -> Yielded:
    source.path = _inner(source.path, "sqlite.db")
    is_store = _beginning(source.path).startswith(sqlite_source.MAGIC)
    return (sqlite_source.read_letta_store if is_store else agent_stores.read_letta_file)(source)


KINDS: dict[str, tuple[Callable[[ImportSource], Yielded], str]] = {
    "notes": (read_notes, "a folder of Markdown or text, such as an Obsidian vault"),
    "chatgpt": (read_chatgpt, "conversations.json of ChatGPT, plain or in its zip file"),
    "claude": (read_claude, "conversations.json of Claude, plain or in its zip file"),
    "slack": (read_slack, "an export of Slack, a folder or zip file"),
    "whatsapp": (read_whatsapp, "a chat that WhatsApp exported, .txt or .zip"),
    "sqlite": (sqlite_source.read_sqlite, "any SQLite table"),
    "csv": (mapped_rows.read_csv, "CSV or TSV with a header"),
    "jsonl": (mapped_rows.read_json_rows, "JSON lines, or a JSON array of objects"),
    "mem0": (_read_mem0, "history.db of mem0, or its memories as JSON"),
    "claude-memory": (sqlite_source.read_claude_memory, "the SQLite store of claude-memory"),
    "letta": (_read_letta, "Letta's SQLite store, or an agent file (.af)"),
    "mcp-graph": (
        agent_stores.read_knowledge_graph,
        "memory.jsonl of MCP's knowledge-graph memory server",
    ),
}
"""The name of a kind to its reader and what it is."""


def reader_of(kind: str) -> Callable[[ImportSource], Yielded]:
    if kind not in KINDS:
        near, known = did_you_mean(kind, KINDS), ", ".join(KINDS)
        raise UsageError(f"{kind!r} is not a kind of source; {near}kinds: {known}")
    return KINDS[kind][0]


def detect(path: Path) -> str:
    """The kind of a source, from its files and their beginnings."""
    if not path.exists():
        raise MissingData(f"{path} does not exist")
    with opened(path) as export:
        names = [file.name.rsplit("/", 1)[-1] for file in export.files()] if path.is_dir() else []
        is_zip = export.is_zip
        if path.is_dir() or is_zip:
            if conversations := export.named(CONVERSATIONS):
                return _of_json(next(export.blocks(conversations[0]), b""), path)
            if export.named(DAY) and export.named(r"(?:channels|users|org_users|dms|groups)\.json"):
                return "slack"
            texts = export.named(r".*\.txt")
            if len(texts) == 1 and is_whatsapp(
                next(export.blocks(texts[0]), b"")[:_PEEK].decode("utf-8-sig", "replace")
            ):
                return "whatsapp"
            if "history.db" in names and not is_zip:
                return "mem0"
            if is_zip:
                raise DataError("is a zip file of no known export; unpack it first", file=path)
            return "notes"
    return _of_file(path)


def _of_file(path: Path) -> str:
    start = _beginning(path)
    if start.startswith(sqlite_source.MAGIC):
        with sqlite_source.opened_store(path) as store:
            return sqlite_source.store_kind(store)
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return "csv"
    if suffix in (".jsonl", ".ndjson"):
        first = _first_object(start)
        return "mcp-graph" if first.get("type") in ("entity", "relation") else "jsonl"
    if suffix in (".json", ".af"):
        return _of_json(start, path)
    if suffix == ".txt" and is_whatsapp(start.decode("utf-8-sig", "replace")):
        return "whatsapp"
    if b"\0" not in start:
        return "notes"
    kinds = ", ".join(KINDS)
    raise DataError(f"is not a source of a known kind; name one with --kind: {kinds}", file=path)


def _of_json(start: bytes, path: Path) -> str:
    """The product that wrote JSON that begins like this."""
    text = start.decode("utf-8-sig", "replace").lstrip()
    if text.startswith("["):
        for field, kind in (('"mapping"', "chatgpt"), ('"chat_messages"', "claude")):
            if field in text:
                return kind
        return "mem0" if '"memory"' in text else "jsonl"
    if '"results"' in text and '"memory"' in text:
        return "mem0"
    if '"entities"' in text and '"relations"' in text:
        return "mcp-graph"
    if any(field in text for field in ('"core_memory"', '"blocks"', '"agents"')):
        return "letta"
    raise DataError("is JSON of no known product; name one with --kind", file=path)


def _first_object(start: bytes) -> dict[str, Any]:
    try:
        found = json.loads(start.decode("utf-8-sig", "replace").lstrip().split("\n", 1)[0])
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_PEEK)


def _inner(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path
