"""A log of an agent's tool calls is replayed in its order, and compared without labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import mnemoscope as ms
from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope.cli.app import invoke
from mnemoscope.runner.logged_calls import found_in, read_log
from mnemoscope.types import Hit, Memory, Query

BOAT, PIANO = "Ann bought a red boat in Riga", "Bob sold the old piano to Eve"


def request(id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def reply(id: int, *texts: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"jsonrpc": "2.0", "id": id, "result": {"content": content, **more}}


def entity(name: str, *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": "person", "observations": list(observations)}


MESSAGES = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}},
    request(1, "create_entities", entities=[entity("Ann", BOAT)]),
    reply(1, "[]"),
    request(2, "search_nodes", query="boat"),
    reply(2, json.dumps({"entities": [entity("Ann", BOAT)], "relations": []})),
    request(3, "search_nodes", query="piano"),
    reply(3, '{"entities": []}'),
    request(4, "add_observations", observations=[{"entityName": "Bob", "contents": [PIANO]}]),
    reply(4, "[]"),
    request(5, "search_nodes", query="piano"),
    request(6, "open_nodes", names=["Bob"]),
    reply(5, json.dumps({"entities": [entity("Bob", PIANO)]})),
    request(7, "create_entities", entities=[entity("Eve", "a write that the server refused")]),
    reply(7, "disk full", isError=True),
    request(8, "delete_entities", entityNames=["Ann"]),
    reply(8, "deleted"),
    request(9, "search_nodes", query="boat"),
    reply(9, "{}"),
]


@pytest.fixture
def mcp_log(tmp_path: Path) -> Path:
    """As Claude's desktop app writes it: a time, the direction, the message, and more words."""
    path = tmp_path / "mcp.log"
    lines = [
        f"2026-03-0{1 + number // 9}T10:00:{number:02}.000Z [memory] [info] Message from "
        f"{'client' if 'method' in message else 'server'}: {json.dumps(message)} {{ x: undefined }}"
        for number, message in enumerate(MESSAGES)
    ]
    path.write_text("server started\n" + "\n".join(lines) + "\n")
    return path


class Everything:
    """Returns all that it has, and notes what it had at each query."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, datetime | None, list[str]]] = []

    def reset(self, scope: str) -> None:
        self._held: dict[str, Memory] = {}

    def remember(self, memories: Sequence[Memory]) -> None:
        self._held |= {memory.id: memory for memory in memories}

    def forget(self, selector: Any) -> None:
        for id in selector.ids:
            del self._held[id]

    def recall(self, query: Query, k: int) -> list[Hit]:
        texts = [memory.text for memory in self._held.values()]
        self.seen.append((query.text, query.now, texts))
        return [Hit(id) for id in self._held][:k]


def test_writes_are_visible_to_later_queries_only_with_the_clock_of_the_log(mcp_log: Path) -> None:
    here = Everything()
    ms.replay(mcp_log, systems={"here": here})
    ann, bob = f"Ann: {BOAT}", f"Bob: {PIANO}"
    asked = [(text, held) for text, _, held in here.seen]
    assert asked == [
        ("boat", [ann]),
        ("piano", [ann]),
        ("piano", [ann, bob]),
        ("boat", [bob]),  # Ann was deleted, and the refused write never came
    ]
    assert here.seen[0][1] == datetime(2026, 3, 1, 10, 0, 3, tzinfo=UTC)


def test_recalls_are_compared_with_the_logged_replies(mcp_log: Path) -> None:
    found = ms.replay(mcp_log, systems=[Everything, "none"])
    assert found.reference == "the log"
    everything, none = found.systems
    assert [one.is_changed for one in everything.recalls] == [False, True, True, True]
    assert [len(one.newly_found) for one in everything.recalls] == [0, 1, 1, 1]
    assert [one.no_longer_found for one in everything.recalls] == [[]] * 4
    assert [one.overlap for one in everything.recalls] == [1.0, 0.0, 0.5, 0.0]
    assert [len(one.no_longer_found) for one in none.recalls] == [1, 0, 1, 0]
    assert none.mean_overlap == 0.5
    assert found.skipped == {"open_nodes": 1}
    assert "Agreement is not recall" in found.caveat


def test_without_replies_the_first_system_is_the_reference(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    calls = [
        {"what": "save_memory", "when": 1767225600, "args": {"body": BOAT}},
        {"what": "save_memory", "when": 1767225601, "args": {"body": PIANO}},
        {"what": "search", "args": {"body": "the red boat"}},
        {"what": "ping"},
    ]
    log.write_text("".join(json.dumps(one) + "\n" for one in calls))
    fields = {"op": "what", "at": "when", "text": "args.body", "query": "args.body"}
    found = ms.replay(log, systems=["bm25", "none", "recency"], fields=fields, k=1)
    assert found.reference == "bm25"
    bm25, none, recency = found.systems
    assert [one.found for one in bm25.recalls] == [["line-1"]]
    assert none.changed[0].no_longer_found == ["line-1"]
    assert recency.changed[0].newly_found == ["line-2"]
    with pytest.raises(UsageError, match="name two systems"):
        ms.replay(log, systems=["bm25"], fields=fields)
    with pytest.raises(UsageError, match="no replies"):
        ms.replay(log, systems=["bm25", "none"], fields=fields, against="log")


def test_hits_of_a_line_are_ids_or_texts_and_a_rewritten_id_gets_a_number(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    rows = [
        {"op": "remember", "id": "a", "text": BOAT, "at": "2026-01-01T00:00:00Z"},
        {"op": "remember", "id": "a", "text": PIANO},
        {"op": "recall", "query": "boat", "hits": ["a", {"text": PIANO}, "unknown"]},
        {"op": "forget", "id": "a"},
    ]
    log.write_text("".join(json.dumps(one) + "\n" for one in rows))
    calls = read_log(log).calls
    held = {one.id: one for call in calls[:2] for one in call.memories}
    assert list(held) == ["a", "a.2"]
    assert found_in(calls[2], held) == ["a", "a.2"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "no call in it searches a memory"),
        ("{", "line 1: is not valid JSON"),
        ('{"op": "recall"}', "line 1: a recall without a query"),
        ('{"op": "remember", "text": 7}', "line 1: a write without a text"),
        ('{"op": "recall", "query": ' + "[" * 100_000, "not valid JSON"),
    ],
)
def test_a_log_that_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, line: str, complaint: str
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(line)
    with pytest.raises(DataError, match=complaint):
        read_log(path)


class Failing:
    def reset(self, scope: str) -> None: ...

    def remember(self, memories: Sequence[Memory]) -> None:
        raise ValueError("no room")

    def recall(self, query: Query, k: int) -> list[Hit]:
        return []


def test_a_system_that_fails_does_not_stop_the_others_unless_it_is_the_reference(
    mcp_log: Path,
) -> None:
    found = ms.replay(mcp_log, systems=[Failing, "none"])
    assert "no room" in found.systems[0].error
    assert len(found.systems[1].recalls) == 4
    with pytest.raises(MnemoscopeError, match=r"is the reference and failed: .*no room"):
        ms.replay(mcp_log, systems=[Failing, "none"], against="first")


def test_keys_in_a_log_reach_neither_systems_nor_the_saved_file(
    mcp_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdef0123456789")
    token = "ghp_" + "a1B2c3D4e5F6" * 3  # in halves: no scanner of this project may find it
    text = mcp_log.read_text().replace(BOAT, f"{BOAT} sk-abcdef0123456789 {token}")
    mcp_log.write_text(text.replace('"boat"', '"boat sk-abcdef0123456789"'))
    saved = tmp_path / "replay.json"
    words = ["replay", str(mcp_log), "-s", "bm25", "-s", "none", "--save", str(saved)]
    assert invoke(words) == 0
    assert b"sk-abcdef" not in saved.read_bytes()
    assert token.encode() not in saved.read_bytes()
    assert "Ann" in saved.read_text()


def test_the_command_prints_changes_and_says_that_agreement_is_not_recall(
    mcp_log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["replay", str(mcp_log), "-s", "bm25", "-s", "none"]) == 0
    shown = capsys.readouterr().out
    assert "recalls beside those of the log" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["none", "4", "2", "2", "0.50", "0", "2", "0"] in rows
    assert f"- line-3: Ann: {BOAT}" in shown
    assert "not replayed: open_nodes (1)" in shown
    assert "Agreement is not recall" in shown
    assert invoke(["replay", str(mcp_log), "-s", "bm25", "--field", "text"]) == 2
    assert invoke(["replay", str(mcp_log), "-s", "bm25", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reference"] == "the log"


def test_secrets_of_a_log_reach_neither_a_system_nor_an_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_" + "1a2B" * 9
    rows = [
        {"op": "remember", "id": "m1", "text": f"Ann's token for the boat is {token}"},
        {"op": "remember", "id": "m2", "text": PIANO},
        {"op": "remember", "id": f"key-{token}", "text": "Ben has another boat"},
        {"op": "recall", "query": f"whose boat token is {token}", "hits": ["m2", token]},
    ]
    log, save = tmp_path / "calls.jsonl", tmp_path / "out.json"
    log.write_text("\n".join(map(json.dumps, rows)))
    assert invoke(["replay", str(log), "--system", "bm25", "--save", str(save)]) == 0
    said = capsys.readouterr()
    assert "[secret: GitHub token]" in save.read_text()
    assert token not in save.read_text() + said.out + said.err
    assert save.stat().st_mode & 0o077 == 0
