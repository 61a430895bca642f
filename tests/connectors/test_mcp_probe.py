"""`mnemoscope systems probe`: a proposed mapping works, or lists what is missing."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing

from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope.cli.systems import probe as command
from mnemoscope.connectors.mcp.mcp_connector import Mcp
from mnemoscope.connectors.mcp.propose_mapping import (
    ID_IN_PROSE,
    MappingProposal,
    ProbeResult,
    probe,
    propose,
)
from mnemoscope.connectors.mcp.session import Tool
from mnemoscope.connectors.mcp.tool_mapping import read
from mnemoscope.types import Memory, Query, Selector

if find_spec("mcp") is None:
    missing("the extra mcp is not installed")

SERVERS = Path(__file__).parent / "mcp_servers.py"
MEMORIES = [Memory("Conv/1", "Rex is a dog"), Memory("m2", "The piano is old")]


def address(kind: str) -> str:
    return f"{sys.executable} {SERVERS} {kind}"


def recalled(seen: ProbeResult, kind: str, place: Path) -> list[list[str]]:
    """The hits with the proposed mapping, before and after forget, if it is mapped."""
    place.write_text(seen.yaml)
    system = Mcp(address(kind), mapping=str(place))
    system.reset("one")
    system.remember(MEMORIES)
    found = [[hit.id for hit in system.recall(Query("Rex the dog"), 1)]]
    if hasattr(system, "forget"):
        system.forget(Selector((MEMORIES[0],)))
        found.append([hit.id for hit in system.recall(Query("Rex the piano"), 5)])
    system.close()
    return found


def test_for_a_ranked_server_the_proposal_forgets_by_the_id_in_the_reply(
    tmp_path: Path,
) -> None:
    seen = probe(address("ranked"))
    assert seen.server == {"name": "test-ranked", "version": "1.0"}
    assert recalled(seen, "ranked", tmp_path / "m.yaml") == [["Conv/1"], ["m2"]]
    assert seen.proposal.mapping["reset"] == "scope"
    assert seen.proposal.missing == []
    [doubt] = [one for one in seen.proposal.uncertain if "keep_pattern" in one]
    assert doubt.startswith("remember: delete_memory needs the server's own id")
    assert f"#   - {doubt}" in seen.yaml


@pytest.mark.parametrize(
    ("reply", "id"),
    [
        ("Stored note with ID: 17", "17"),
        ("Memory saved (id=a-1_b). It is valid.", "a-1_b"),
        ('{"status": "stored", "id": "own-3"}', "own-3"),
        ("Added memory, UUID `6f9619ff-8b86-d011` in 3 ms", "6f9619ff-8b86-d011"),
        ("The new id is 42", "42"),
        ("I did it", None),
    ],
)
def test_ids_are_found_in_prose(reply: str, id: str | None) -> None:
    assert [match[1] for match in re.finditer(ID_IN_PROSE, reply)] == ([id] if id else [])


def test_what_is_missing_is_a_skeleton_in_the_mapping() -> None:
    given = [tool("ping"), tool("find_notes", query={"type": "string"})]
    proposal = propose("half", given, restarts=False)
    text = proposal.yaml("half")
    assert not proposal.usable
    for line in ("# remember:", "#   tool: TOOL", "#   ping, find_notes", "# reset: forget"):
        assert line in text.splitlines() or any(one.startswith(line) for one in text.splitlines())
    assert "# recall:" not in text.splitlines()
    # Filled in as it says, it is a mapping.
    filled = re.sub(
        r"(?m)^# (remember:|  tool: TOOL|  arguments: \{PAR.*memory.text.*)$", r"\1", text
    )
    filled = filled.replace("TOOL", "ping").replace("PARAMETER", "text") + "reset: scope\n"
    with pytest.raises(DataError, match=r"reset: scope, but remember does not send"):
        read(filled, Path("filled"))


def test_for_a_server_with_text_replies_the_proposal_works(tmp_path: Path) -> None:
    seen = probe(address("tags"))
    assert recalled(seen, "tags", tmp_path / "m.yaml") == [["Conv/1"], ["m2"]]
    assert seen.proposal.missing == []
    [doubt] = seen.proposal.uncertain
    assert doubt.startswith("reset: a restart with a new home")


def test_for_a_server_of_entities_the_proposal_uses_keywords(tmp_path: Path) -> None:
    seen = probe(address("substring"))
    assert recalled(seen, "substring", tmp_path / "m.yaml") == [["Conv/1"], ["m2"]]
    assert seen.proposal.mapping["recall"]["strategy"] == "keywords"
    assert any(
        "kind is required, its purpose is unknown" in line for line in seen.proposal.uncertain
    )


# From the tools' descriptions alone


def tool(name: str, about: str = "", required: str = "", **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required.split()}
    return Tool(name, about, schema, None, None)


TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}


def listed(**fields: Any) -> dict[str, Any]:
    items = {"type": "object", "properties": fields, "required": list(fields)}
    return {"type": "array", "items": items}


SERVER_MEMORY = [
    tool(
        "create_entities",
        "Make new entities",
        "entities",
        entities=listed(name=TEXT, entityType=TEXT, observations=TEXTS),
    ),
    tool("create_relations", relations=listed(**{"from": TEXT, "to": TEXT, "relationType": TEXT})),
    tool("add_observations", observations=listed(entityName=TEXT, contents=TEXTS)),
    tool("delete_entities", required="entityNames", entityNames=TEXTS),
    tool("delete_observations", deletions=listed(entityName=TEXT, observations=TEXTS)),
    tool("delete_relations", relations=listed(**{"from": TEXT, "to": TEXT})),
    tool("read_graph", "Everything there is"),
    tool("search_nodes", "Look for nodes", "query", query=TEXT),
    tool("open_nodes", required="names", names=TEXTS),
]
SOME_TAGS = {"oneOf": [TEXTS, TEXT]}
MEMORY_SERVICE = [
    tool(
        "memory_store",
        "Keep new information",
        "content",
        content=TEXT,
        conversation_id=TEXT,
        metadata={"type": "object", "properties": {"tags": SOME_TAGS, "type": TEXT}},
    ),
    tool("memory_store_session", "Keep a session", "turns", turns=listed(role=TEXT, content=TEXT)),
    tool("memory_search", "Find", query=TEXT, limit={**NUMBER, "maximum": 100}, tags=SOME_TAGS),
    tool("memory_list", "Browse", page=NUMBER),
    tool("memory_delete", "Delete by filters", content_hash=TEXT, tags=SOME_TAGS, before=TEXT),
    tool("memory_cleanup", "Remove duplicates"),
    tool("memory_ingest", "Take in documents", file_path=TEXT, tags=TEXTS),
    tool("mistake_note_add", required="error_pattern", error_pattern=TEXT),
    tool("mistake_note_search", required="query", query=TEXT, limit=NUMBER),
    tool("mistake_note_delete", required="content_hash", content_hash=TEXT),
]


def accepted(proposal: MappingProposal) -> dict[str, Any]:
    read(proposal.yaml("a test"), Path("proposal.yaml"))
    return proposal.mapping


def test_the_reference_servers_tools_are_assigned_to_verbs() -> None:
    drafted = accepted(propose("server-memory", SERVER_MEMORY, restarts=True))
    assert drafted["remember"] == {
        "tool": "create_entities",
        "arguments": {"entities": "${items}"},
        "each": {
            "name": "mid:${memory.tag}",
            "observations": ["${memory.text}"],
            "entityType": "memory",
        },
    }
    assert drafted["recall"]["tool"] == "search_nodes"
    assert drafted["forget"]["tool"] == "delete_entities"
    assert drafted["forget"]["arguments"] == {"entityNames": "${items}"}


def test_among_many_tools_the_simplest_are_chosen_with_their_limits() -> None:
    drafted = accepted(propose("memory", MEMORY_SERVICE, restarts=True))
    assert drafted["remember"]["tool"] == "memory_store"
    assert drafted["remember"]["arguments"]["metadata"] == {"tags": ["mid:${memory.tag}"]}
    assert drafted["recall"]["tool"] == "memory_search"
    assert drafted["recall"]["arguments"]["limit"] == "${min([k, `100`])}"
    assert drafted["forget"] == {
        "tool": "memory_delete",
        "arguments": {"tags": ["mid:${memory.tag}"]},
    }


def test_without_a_parameter_for_ids_the_id_is_appended_to_the_text() -> None:
    tools = [tool("remember", text=TEXT, timestamp=TEXT), tool("recall", query=TEXT, k=NUMBER)]
    proposal = propose("bare", tools, restarts=True)
    assert accepted(proposal)["remember"]["arguments"] == {
        "timestamp": "${memory.at}",
        "text": "${memory.text} (mid:${memory.tag})",
    }
    assert any("the server indexes it" in line for line in proposal.uncertain)


@pytest.mark.parametrize(
    ("tools", "lacking"),
    [
        (
            [tool("weather", place=TEXT)],
            "remember: no tool found for it (searched names: add, create",
        ),
        (
            [tool("add_memory", required="blob", blob={}), tool("search", query=TEXT, k=NUMBER)],
            "remember: which parameter of add_memory is the text? (blob)",
        ),
        (
            [tool("add_memory", text=TEXT), tool("search_memory", vector={"type": "array"})],
            "recall: which parameter of search_memory is the query? (vector)",
        ),
    ],
)
def test_missing_tools_and_parameters_are_listed(tools: list[Tool], lacking: str) -> None:
    proposal = propose("odd", tools, restarts=True)
    assert not proposal.usable
    assert any(line.startswith(lacking) for line in proposal.missing), proposal.missing


def test_a_server_at_a_url_is_reset_by_a_tool_or_by_forget() -> None:
    tools = [
        tool("add_memory", content=TEXT, tags=TEXTS),
        tool("search_memory", query=TEXT, limit=NUMBER),
    ]
    clear = tool("clear_memories", "Empty the store")
    forget = tool("delete_memory", tags=TEXTS)
    assert propose("a", [*tools, clear], restarts=False).mapping["reset"] == {
        "tool": "clear_memories"
    }
    assert propose("b", [*tools, forget], restarts=False).mapping["reset"] == "forget"
    alone = propose("c", tools, restarts=False)
    assert "reset" not in alone.mapping
    assert any(line.startswith("reset: no tool empties the server") for line in alone.missing)


def test_a_hostile_description_cannot_inject_into_the_mapping() -> None:
    odd: dict[str, Any] = {"a": True, "b": {"anyOf": [True, None], "type": ["string", 5]}}
    bad: dict[str, Any] = {
        "${env.HOME}": TEXT,
        "mood\nreset:": {"default": "${env.HOME}", "enum": None},
    }
    tools = [
        tool("add_memory", text=TEXT, tags=TEXTS, **odd, **bad),
        tool("search", query=TEXT, limit={**NUMBER, "maximum": 1234567}),
        Tool("odd", "", {"properties": [], "required": None, "$defs": 3}, None, None),
    ]
    tools[0].parameters["required"] = [*bad, *odd]
    proposal = propose("x", tools, restarts=True)
    drafted = read(proposal.yaml("a server\nenv: {X: y}"), Path("proposal.yaml"))
    assert any("mood" in line for line in proposal.uncertain)
    assert "env.HOME" not in str(drafted)
    assert drafted.env == {}
    assert drafted.reset == "restart"
    assert drafted.recall is not None
    assert drafted.recall.arguments["limit"] == "${min([k, `1234567`])}"


# The command


def test_the_command_prints_json_or_writes_a_mapping_that_is_never_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mapping.yaml"
    assert command(f"mcp:{address('plain')}", out=file, json=True) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in said["tools"]] == ["store", "search", "delete", "clear", "ask"]
    assert said["usable"] is True
    assert read(file.read_text(), file).name == "plain"
    with pytest.raises(UsageError, match="exists"):
        command(address("plain"), out=file)


def test_the_command_shows_tools_and_the_mapping(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(address("plain")) == 0
    shown = capsys.readouterr()
    assert "search" in shown.out
    assert "mid:${memory.tag}" in shown.out
    assert "systems check" in shown.err


def test_a_program_that_is_not_a_server_is_a_readable_error() -> None:
    with pytest.raises(MnemoscopeError, match=r"true cannot be probed: true ended with exit code"):
        probe("true")
