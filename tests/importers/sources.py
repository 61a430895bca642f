"""Small sources of every kind, in the formats that their products document."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from mnemoscope.api import import_memories
from mnemoscope.importers.import_memories import Imported

Row = dict[str, Any]


def imported(source: Path, out: Path, **options: Any) -> tuple[Imported, list[Row]]:
    """The result of an import, and the lines of its corpus."""
    done = import_memories(source, out, **options)
    return done, corpus(out)


def corpus(out: Path) -> list[Row]:
    return [json.loads(line) for line in (out / "corpus.jsonl").read_text("utf-8").splitlines()]


def files(folder: Path, contents: Mapping[str, str]) -> Path:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder


def zipped(path: Path, contents: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def database(path: Path, *statements: str, rows: Mapping[str, list[tuple[Any, ...]]] = {}) -> Path:
    with closing(sqlite3.connect(path)) as store:
        for statement in statements:
            store.execute(statement)
        for table, values in rows.items():
            marks = ", ".join("?" * len(values[0]))
            store.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        store.commit()
    return path


def chatgpt_message(
    id: str,
    parent: str | None,
    role: str,
    text: str,
    time: float | None = 1714550400.5,
    **more: Any,
) -> Row:
    message: Row = {
        "id": id,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": time,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "recipient": "all",
        "metadata": {},
    }
    return {"id": id, "parent": parent, "children": [], "message": message | more}


def chatgpt_conversations() -> list[Row]:
    """A system prompt, a question, an answer, an edited question, and a call of a tool."""
    nodes = [
        {"id": "root", "parent": None, "children": ["s"], "message": None},
        chatgpt_message("s", "root", "system", ""),
        chatgpt_message("u1", "s", "user", "where did I park the red bicycle"),
        chatgpt_message("a1", "u1", "assistant", "you said: behind the bakery", 1714550460.0),
        chatgpt_message("u1b", "s", "user", "where did I park"),
        chatgpt_message("t", "a1", "assistant", "search()", recipient="browser"),
        chatgpt_message("u2", "t", "user", "thanks, it was there", None),
    ]
    return [
        {
            "title": "Bicycle",
            "create_time": 1714550000.0,
            "update_time": 1714551000.0,
            "mapping": {node["id"]: node for node in nodes},
            "current_node": "u2",
            "conversation_id": "c-1",
            "id": "c-1",
        }
    ]


def claude_conversations() -> list[Row]:
    def message(uuid: str, sender: str, text: str, **more: Any) -> Row:
        return {
            "uuid": uuid,
            "text": text,
            "content": [{"type": "text", "text": text}],
            "sender": sender,
            "created_at": "2024-05-01T08:00:00.123456Z",
            "updated_at": "2024-05-01T08:00:00.123456Z",
            "attachments": [],
            "files": [],
            **more,
        }

    attached = {"file_name": "list.txt", "extracted_content": "milk and lamp oil"}
    used = [{"type": "tool_use", "name": "search"}, {"type": "text", "text": "found the shop"}]
    return [
        {
            "uuid": "5c0f",
            "name": "Shopping",
            "created_at": "2024-05-01T08:00:00Z",
            "account": {"uuid": "acc"},
            "chat_messages": [
                message("m1", "human", "keep this list", attachments=[attached]),
                message("m2", "assistant", "", content=used),
                message("m3", "human", ""),
            ],
        }
    ]


def slack_files() -> dict[str, str]:
    users = [{"id": "U1", "name": "ann", "real_name": "Ann Bell"}, {"id": "U2", "name": "bo"}]
    day = [
        {
            "type": "message",
            "user": "U1",
            "text": "<@U2> the key is at &lt;desk&gt;",
            "ts": "1714550400.000100",
        },
        {
            "type": "message",
            "subtype": "channel_join",
            "user": "U2",
            "text": "joined",
            "ts": "1714550401.0",
        },
        {
            "type": "message",
            "user": "U2",
            "text": "see <https://x.org|the plan>",
            "ts": "1714550402.0",
            "thread_ts": "1714550400.000100",
        },
        {
            "type": "message",
            "subtype": "tombstone",
            "text": "This message was deleted.",
            "ts": "1714550403.0",
        },
    ]
    return {
        "channels.json": json.dumps([{"id": "C1", "name": "office"}]),
        "users.json": json.dumps(users),
        "office/2024-05-01.json": json.dumps(day),
    }


CLAUDE_MEMORY = (
    "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL,"
    " category TEXT DEFAULT 'facts', tags TEXT DEFAULT '', expanded_keywords TEXT DEFAULT '',"
    " importance REAL DEFAULT 0.5, is_sensitive INTEGER DEFAULT 0, created_at TEXT NOT NULL,"
    " updated_at TEXT NOT NULL, deleted_at TEXT)"
)


def claude_memory(path: Path) -> Path:
    at = "2024-05-01T08:00:00+00:00"
    rows = [
        (1, "we chose tea", "decisions", "a,b", "beverage hot", 0.85, 0, at, at, None),
        (2, "my diary", "facts", "", "", 0.5, 1, at, at, None),
        (5, "the old plan", "facts", "", "", 0.5, 0, at, at, "2024-06-01T00:00:00+00:00"),
        (7, "the lamp is broken", "facts", None, None, 0.5, 0, "2024-04-01 10:00:00", at, None),
        (9, "", "facts", "", "", 0.5, 0, at, at, None),
    ]
    return database(
        path,
        CLAUDE_MEMORY,
        "CREATE VIRTUAL TABLE memories_fts USING fts5(content, category, tags, expanded_keywords,"
        " content='memories', content_rowid='id')",
        rows={"memories": rows},
    )
