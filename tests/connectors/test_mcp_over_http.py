"""The MCP connector to running servers, over streamable HTTP."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.mcp_running import BOAT, MEMORIES, PIANO, REX, WHO, Served, served
from tests.described import described
from tests.optional import missing

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.connectors.mcp import session
from mnemoscope.connectors.mcp.mcp_connector import Mcp
from mnemoscope.connectors.mcp.session import McpSession, ToolError
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.runner.conformance import check_system
from mnemoscope.runner.run import Settings, run
from mnemoscope.systems.loader import plan
from mnemoscope.types import Hit, Memory, Query, Selector

if find_spec("mcp") is None:
    missing("the extra mcp is not installed")

RANKED = """
name: ranked
reset: scope
remember:
  tool: add_memory
  arguments: {text: "${memory.text}", namespace: "${scope}"}
  keep: id
recall:
  tool: search_memories
  arguments: {query: "${query.text}", limit: "${k}", namespace: "${scope}"}
  hits: {each: results, score: score, text: memory}
forget: {tool: delete_memory, arguments: {memory_id: "${kept}"}}
"""
PLAIN = """
name: plain
reset: {tool: clear}
remember: {tool: store, arguments: {key: "${memory.id}", text: "${memory.dated_text}"}}
recall:
  tool: search
  arguments: {query: "${query.text}", limit: "${k}"}
  hits: {id: key, text: text}
forget: {tool: delete, arguments: {key: "${memory.id}"}}
answer: {tool: ask, arguments: {question: "${query.text}"}, reply: json, text: reply}
"""
FORGETTING = PLAIN.replace("{tool: clear}", "forget")
BY_TEXT = PLAIN.replace("{id: key, text: text}", "{text: text, by_text: true}")

Opened = Callable[..., Mcp]


@pytest.fixture(scope="module")
def ranked() -> Iterator[Served]:
    with served("ranked") as server:
        yield server


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    """A server with one space for all clients."""
    with served("plain") as server:
        yield server


@pytest.fixture
def mapped(tmp_path: Path) -> Callable[[str], Path]:
    """The file of a mapping."""

    def write(mapping: str) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(mapping)
        return path

    return write


Mapped = Callable[[str], Path]


@pytest.fixture
def opened(mapped: Mapped) -> Iterator[Opened]:
    """Open the connector and store the memories."""
    connectors: list[Mcp] = []

    def open_system(mapping: str, server: Served, **options: str) -> Mcp:
        system = Mcp(server.url, str(mapped(mapping)), live=True, **options)  # type: ignore[arg-type]
        connectors.append(system)
        system.reset("scope")
        system.remember(MEMORIES)
        return system

    yield open_system
    for connector in connectors:
        connector.close()


def ids(system: Mcp, query: Query = WHO, k: int = 5) -> list[str]:
    return [hit.id for hit in system.recall(query, k)]


# A server that isolates scopes, made with the SDK


def test_hits_are_traced_by_the_servers_ids(ranked: Served, opened: Opened) -> None:
    system = opened(RANKED, ranked)
    assert system.recall(WHO, 2) == [Hit(REX.id, 6.0, REX.text), Hit("m2", 1.0, PIANO.text)]
    assert system.recall(WHO, 0) == system.recall(WHO, -1) == []
    system.forget(Selector((REX, Memory("never told", "x"))))
    assert ids(system) == ["m2", "m3"]
    twin = opened(RANKED, ranked)
    assert ids(twin) == [REX.id, "m2", "m3"]
    twin.reset("scope")
    assert ids(twin) == []


def test_a_tool_error_rejects_one_memory_or_fails_one_question(
    ranked: Served, opened: Opened
) -> None:
    system = opened(RANKED, ranked)
    receipt = system.remember([Memory("bad", "refuse me"), Memory("good", "about boats")])
    assert list(receipt.rejected) == ["bad"]
    assert re.fullmatch("add_memory: .*: not this one", receipt.rejected["bad"])
    with pytest.raises(ToolError, match=r"^search_memories: .*: no idea$"):
        system.recall(Query("refuse"), 5)
    assert system.recall(Query("boats"), 1) == [Hit("good", 1.0, "about boats")]


def test_a_good_server_fulfils_the_contract(ranked: Served, mapped: Mapped) -> None:
    spec = Spec.parse(f"mcp:{ranked.url},mapping={mapped(RANKED)}")
    names = ("read-back", "ids", "isolation", "fresh", "side by side", "forget", "k", "unicode")
    results = check_system(plan(spec), names=names)
    assert [(result.check, result.verdict, result.seen) for result in results] == [
        (name, "passed", result.seen) for name, result in zip(names, results, strict=True)
    ]


# A server that has one space


def test_a_tool_that_empties_the_server_makes_a_fresh_space(shared: Served, opened: Opened) -> None:
    system = opened(PLAIN, shared)
    assert ids(system) == [REX.id, "m2", "m3"]
    system.forget(Selector((PIANO,)))
    assert ids(system) == [REX.id, "m3"]
    system.reset("another")
    assert ids(system) == []
    assert "one worker" in " ".join(system.identity()["notes"])


def test_a_reset_by_forget_deletes_all_sent_memories_and_so_does_close(
    shared: Served, opened: Opened, mapped: Mapped
) -> None:
    emptied = opened(PLAIN, shared)
    emptied.reset("none")
    emptied.close()
    system = opened(FORGETTING, shared)
    receipt = system.remember([Memory("bad", "refuse me"), Memory("last", "the last one")])
    assert list(receipt.rejected) == ["bad"]
    assert ids(system) == [REX.id, "m2", "last", "m3"]
    system.reset("another")
    assert ids(system) == []
    system.remember([BOAT])
    system.close()
    reader = Mcp(shared.url, str(mapped(FORGETTING)), live=True)
    assert ids(reader) == []
    reader.close()


def test_hits_without_ids_are_traced_by_their_text(shared: Served, opened: Opened) -> None:
    system = opened(BY_TEXT, shared)
    assert [hit.id for hit in system.recall(WHO, 2)] == [REX.id, PIANO.id]
    assert "hits are traced to memories by their text" in system.identity()["notes"]


def test_a_server_can_answer_by_itself(shared: Served, opened: Opened) -> None:
    system = opened(PLAIN, shared)
    assert system.answer(Query("how many?")) == "3 things: how many?"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("reply: json, text: nowhere", r"ask: there is no text at 'nowhere': .*3 things"),
        ("reply: structured", "the reply has no structured content: .*3 things"),
    ],
)
def test_an_answer_of_another_shape_is_an_error(
    answer: str, complaint: str, shared: Served, opened: Opened
) -> None:
    system = opened(PLAIN.replace("reply: json, text: reply", answer), shared)
    with pytest.raises(BadReply, match=complaint):
        system.answer(WHO)


def test_only_one_process_at_a_time_may_use_a_shared_server(
    shared: Served, opened: Opened, mapped: Mapped, locomo: Locomo, tmp_path: Path
) -> None:
    first = opened(PLAIN, shared)
    with pytest.raises(MnemoscopeError, match=r"holds one memory at a time.*--workers 1"):
        opened(PLAIN, shared)
    first.close()
    spec = f"mcp:{shared.url},mapping={mapped(PLAIN)},live=on"
    with pytest.raises(MnemoscopeError, match="holds one memory at a time"):
        measured(locomo, tmp_path, spec, workers=2)
    done = measured(locomo, tmp_path, spec)
    assert {trial.status for trial in done.trials()} == {"answered"}
    assert not any(trial.unknown for trial in done.trials())


# A server that is restarted


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Locomo:
    place = tmp_path_factory.mktemp("data") / "locomo10.json"
    return Locomo(write_locomo(place, conversations=3, sessions=4, questions=4))


def measured(data: Locomo, out: Path, system: str, workers: int = 1) -> RunDirectory:
    [done] = run(data, [plan(Spec.parse(system))], out, Settings(depth=5, workers=workers))
    return done


@pytest.fixture(scope="module")
def undisturbed(
    shared: Served, locomo: Locomo, tmp_path_factory: pytest.TempPathFactory
) -> RunDirectory:
    place = tmp_path_factory.mktemp("undisturbed")
    (place / "plain.yaml").write_text(PLAIN)
    return measured(
        locomo, place / "out", f"mcp:{shared.url},mapping={place / 'plain.yaml'},live=on"
    )


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_that_restarts_in_a_run_does_not_change_the_journal(
    when: str, undisturbed: RunDirectory, mapped: Mapped, locomo: Locomo, tmp_path: Path
) -> None:
    mark = tmp_path / "has-died"
    with (
        served("plain", PLAIN_FATE=f"conv-1/q2 {when} {mark}") as crashing,
        crashing.started_again_when_it_dies(),
    ):
        disturbed = measured(
            locomo, tmp_path, f"mcp:{crashing.url},mapping={mapped(PLAIN)},live=on"
        )
    assert mark.exists()
    assert disturbed.trials_path.read_bytes() == undisturbed.trials_path.read_bytes()
    assert disturbed.read_json("timing.json")["counters"]["restarts"] == 1
    assert "restarts" not in undisturbed.read_json("timing.json")["counters"]


def test_a_server_that_died_is_lost_until_it_runs_again(mapped: Mapped, opened: Opened) -> None:
    with served("plain") as server:
        system = opened(PLAIN, server)
        with pytest.raises(SystemLost, match="the connection was lost"):
            system.recall(Query("die now"), 5)
        server.process.wait()
        server.start()
        with pytest.raises(SystemLost, match="it ended in an earlier call"):
            system.recall(WHO, 5)
        system.reset("scope")
        assert ids(system) == []
        server.end()
        server.start()
        with pytest.raises(SystemLost, match="Session terminated"):
            system.remember([REX])
        server.end()
        system.close()
        impatient = Mcp(server.url, str(mapped(PLAIN)), patience=0.2, live=True)
        with pytest.raises(MnemoscopeError, match=r"is down .*: start it, then repeat the command"):
            impatient.reset("scope")
        impatient.close()


class Stuck:
    """A transport whose thread hangs where no deadline of the event loop can end it."""

    gone = ""

    def __init__(self, released: threading.Event) -> None:
        self._released = released

    def streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        self._released.wait()
        raise ConnectionError("released")


def test_a_session_whose_thread_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_CLOSE_SECONDS", 0.05)
    released = threading.Event()
    with pytest.raises(TimeoutError, match=r"not initialize within 0\.05 s"):
        McpSession(Stuck(released), 0.05, ())
    released.set()


# Keys


def test_a_key_is_sent_and_never_repeated(
    mapped: Mapped, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD_TO_OPEN", "sesame-sesame")
    with served("plain", PLAIN_KEY="sesame-sesame") as server:
        assert ids(opened(PLAIN, server, key="WORD_TO_OPEN")) == [REX.id, "m2", "m3"]
        spec = f"mcp:{server.url},mapping={mapped(PLAIN)},live=on"
        with pytest.raises(UsageError, match=r"refuses the session.*name the environment variable"):
            described(spec)
        opening = described(f"{spec},key=WORD_TO_OPEN")
        assert "sesame" not in str(opening.identity)
        monkeypatch.delenv("WORD_TO_OPEN")
        with pytest.raises(UsageError, match="takes the name of the environment variable"):
            described(f"{spec},key=WORD_TO_OPEN")


def test_environment_values_are_sent_and_never_repeated_in_errors(
    shared: Served, mapped: Mapped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD_TO_OPEN", "refuse sesame")
    before, forget, rest = PLAIN.partition('delete, arguments: {key: "')
    told = before + forget + "${env.WORD_TO_OPEN}" + rest
    system = Mcp(shared.url, str(mapped(told)), live=True)
    system.reset("scope")
    with pytest.raises(ToolError, match=r"^delete: there is no …m2$"):
        system.forget(Selector((PIANO,)))
    assert "sesame" not in str(system.identity())
    system.close()
    monkeypatch.delenv("WORD_TO_OPEN")
    with pytest.raises(
        UsageError, match="uses the environment variable WORD_TO_OPEN, which is not set"
    ):
        Mcp(shared.url, str(mapped(told)), live=True)


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("http://me:mine@127.0.0.1:9/mcp", "and addresses are recorded"),
        ("http://127.0.0.1:9/mcp?api_key=mine", "and addresses are recorded"),
        ("http://:9/mcp", "is not the address of an MCP server"),
        ("http://127.0.0.1:99999/mcp", "is not the address of an MCP server"),
    ],
)
def test_an_invalid_address_or_one_with_a_secret_is_refused(
    address: str, complaint: str, mapped: Mapped
) -> None:
    with pytest.raises(UsageError, match=complaint):
        Mcp(address, str(mapped(PLAIN)))
