"""The MCP connector with real servers that it starts."""

from __future__ import annotations

import gc
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.mcp_running import BOAT, MEMORIES, PIANO, REX, SERVERS, WHO
from tests.described import described
from tests.integrations.needed import need
from tests.optional import missing
from tests.waiting import all_gone, eventually, is_gone

from mnemoscope._store.errors import DataError, SystemLost, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.connectors import child_process
from mnemoscope.connectors.id_mapping import tag_of
from mnemoscope.connectors.mapping import find
from mnemoscope.connectors.mcp.mcp_connector import Mcp
from mnemoscope.connectors.mcp.tool_mapping import load, read, shipped
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.systems.loader import plan
from mnemoscope.types import Hit, Memory, Query, Selector, Trial

if find_spec("mcp") is None:
    missing("the extra mcp is not installed")

TAGS = """
name: tags
remember:
  tool: store_note
  arguments: {content: "${memory.dated_text}", tags: ["mid:${memory.tag}"]}
  rejected: "^Not stored"
recall:
  tool: find_notes
  arguments: {query: "${query.text}", max_results: "${k}"}
  hits: {pattern: "mid:([^,\\\\]]+)"}
forget: {tool: remove_notes, arguments: {tags: "${items}"}, each: "mid:${memory.tag}"}
"""
SUBSTRING = """
name: substring
remember:
  tool: create_entities
  arguments: {entities: "${items}"}
  each: {name: "${memory.id}", kind: memory, observations: ["${memory.text}"]}
  batch: 2
recall:
  tool: search_nodes
  arguments: {query: "${query.text}"}
  hits: {each: entities, id: name, text: "observations[0]"}
  strategy: keywords
  ranked: false
"""
PLAIN = """
name: plain
env: {KEPT_IN: "${scratch}"}
remember: {tool: store, arguments: {key: "${memory.id}", text: "${memory.text}"}}
recall:
  tool: search
  arguments: {query: "${query.text}", limit: "${k}"}
  hits: {id: key, text: text}
forget: {tool: delete, arguments: {key: "${memory.id}"}}
"""
TEXTS = {"tags": TAGS, "substring": SUBSTRING, "plain": PLAIN}


def command(kind: str, place: object = "") -> str:
    return f"{sys.executable} {SERVERS} {kind} {place}".strip()


@pytest.fixture
def mapped(tmp_path: Path) -> Callable[[str], str]:
    """The file of a mapping."""

    def write(kind: str) -> str:
        path = tmp_path / f"{kind}.yaml"
        path.write_text(TEXTS[kind])
        return str(path)

    return write


Mapped = Callable[[str], str]


@pytest.fixture
def opened(mapped: Mapped) -> Iterator[Callable[..., Mcp]]:
    """Open the connector to a server of this kind and store the memories."""
    connectors: list[Mcp] = []

    def open_system(kind: str, address: str = "") -> Mcp:
        # What it leaves in the place of the address is outside of its scratch folder.
        live = bool(address)
        system = Mcp(address or command(kind), mapping=mapped(kind), timeout=30.0, live=live)
        connectors.append(system)
        system.reset("scope")
        system.remember(MEMORIES)
        return system

    yield open_system
    for connector in connectors:
        connector.close()


Opened = Callable[..., Mcp]


# Four shapes of servers


def test_hits_in_a_text_reply_are_traced_by_tags(
    opened: Opened, capfd: pytest.CaptureFixture[str]
) -> None:
    system = opened("tags")
    assert [hit.id for hit in system.recall(WHO, 5)] == [REX.id, "m2", "m3"]
    receipt = system.remember([Memory("again", PIANO.text)])
    assert receipt.rejected == {"again": "Not stored: duplicate of an earlier note"}
    system.forget(Selector((REX, BOAT)))
    rubbish = Query(f"print rubbish {WHO.text}")
    assert system.recall(rubbish, 5) == [Hit("m2")]
    out, err = capfd.readouterr()

    def all_logged() -> bool:  # the server's lines are passed on by a thread
        nonlocal out, err
        more = capfd.readouterr()
        out, err = out + more.out, err + more.err
        return '{"loss": 0.5}' in err

    assert eventually(all_logged)
    assert out == ""
    assert "loading 50%" in err


def test_a_server_that_searches_substrings_needs_the_keywords_strategy(
    mapped: Mapped, opened: Opened
) -> None:
    system = opened("substring")
    found = system.recall(Query("Does Ann have a dog, or a boat?"), 5)
    assert found == [
        Hit(REX.id, 2.0, REX.text),
        Hit("m2", 1.0, PIANO.text),
        Hit("m3", 1.0, BOAT.text),
    ]
    assert system.recall(Query("is it?"), 5) == []
    about = system.identity()
    assert about["strategy"] == "keywords"
    assert "results are unranked" in about["notes"]
    assert not hasattr(system, "forget")
    system._strategy = "whole"
    assert system.recall(Query("Does Ann have a dog, or a boat?"), 5) == []
    assert [hit.id for hit in system.recall(Query("the DOG of"), 5)] == [REX.id]
    whole = Mcp(command("substring"), mapping=mapped("substring"), strategy="whole")
    assert whole._strategy == "whole"


def test_a_server_that_we_start_is_restarted_for_each_scope_with_empty_storage(
    opened: Opened,
) -> None:
    system = opened("plain")
    assert [hit.id for hit in system.recall(WHO, 5)] == [REX.id, "m2", "m3"]
    system.reset("scope")
    assert system.recall(WHO, 5) == []


# In a run


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data") / "locomo10.json"
    return write_locomo(place, conversations=3, sessions=4, questions=4)


def trials(data: Path, out: Path, system: str, **settings: Any) -> list[Trial]:
    [done] = run(Locomo(data), [plan(Spec.parse(system))], out, Settings(depth=5, **settings))
    return list(done.trials())


def test_two_workers_give_the_same_results_as_one(
    locomo: Path, tmp_path: Path, mapped: Mapped
) -> None:
    place = tmp_path / "pids"
    place.mkdir()
    spec = f"mcp:{command('plain', place)},mapping={mapped('plain')},live=on"
    one, two = (trials(locomo, tmp_path / str(n), spec, workers=n) for n in (1, 2))
    assert len(one) == 12
    assert {trial.status for trial in one} == {"answered"}
    assert not any(trial.unknown for trial in one)
    assert two == one
    assert eventually(lambda: all_gone(place))


def test_the_identity_is_the_same_at_every_start(mapped: Mapped) -> None:
    spec = Spec.parse(f"mcp:{command('plain')},mapping={mapped('plain')}")
    first, second = described(spec).identity, described(spec).identity
    assert first == second
    assert first["server"] == {"name": "plain", "version": "0.1"}
    assert first["mapping"]["recall"]["tool"] == "search"
    assert str(SERVERS) in first["files_sha256"]


# Failures

DEATHS = {
    "die now": r"search: python mcp_servers.py plain ended with exit code 7; "
    r"its last lines on stderr: the index is \| not what it was",
    "be killed": r"search: python mcp_servers.py plain died of SIGKILL",
}


@pytest.mark.parametrize("trouble", DEATHS)
def test_a_server_that_dies_is_lost_and_only_a_reset_starts_another(
    trouble: str, opened: Opened
) -> None:
    system = opened("plain")
    for _ in range(2):
        with pytest.raises(SystemLost, match=DEATHS[trouble]):
            system.recall(Query(trouble), 5)
    system.reset("scope")
    assert system.recall(WHO, 5) == []
    with pytest.raises(SystemLost, match=r"store: .* exit code 9"):
        system.remember([Memory("m", "die storing")])


def test_a_call_that_takes_too_long_is_a_timeout_and_the_server_is_ended(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "_EXIT_SECONDS", 0.1)
    place = tmp_path / "pids"
    place.mkdir()
    system = opened("plain", command("plain", place))
    system._timeout = 0.5  # the start of a process may take longer
    with pytest.raises(TimeoutError, match=r"search gave no reply within 0.5 s"):
        system.recall(Query("be slow"), 5)
    assert eventually(lambda: all_gone(place))
    with pytest.raises(SystemLost, match="it ended in an earlier call: search gave no reply"):
        system.recall(WHO, 5)
    system._timeout = 30.0
    system.reset("scope")
    assert system.recall(WHO, 5) == []


# Processes and files after the end


@pytest.fixture
def _own_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_closed_or_dropped_connector_leaves_nothing_running(
    opened: Opened, mapped: Mapped, tmp_path: Path, _own_tmp: Path
) -> None:
    place = tmp_path / "pids"
    place.mkdir()
    system = opened("plain", command("plain", place))
    [scratch] = scratch_folders(_own_tmp)
    [server] = [
        int(file.name) for file in place.iterdir() if f"TMPDIR={scratch}/tmp" in env(file.name)
    ]
    assert not is_gone(server)
    system.close()
    assert scratch_folders(_own_tmp) == []
    assert eventually(lambda: all_gone(place))
    let_go = Mcp(command("plain", place), mapping=mapped("plain"), live=True)
    let_go.reset("scope")
    assert not all_gone(place)
    del let_go
    gc.collect()
    assert eventually(lambda: all_gone(place) and not scratch_folders(_own_tmp))


def scratch_folders(temporary: Path) -> list[Path]:
    return [path for path in temporary.glob("mnemoscope-*/*") if path.is_dir()]


def env(pid: str) -> list[str]:
    """The environment of a server process; empty for its child `sleep`."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    given = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return given if words[0] != "sleep" else []


def test_a_process_that_is_killed_leaves_nothing(mapped: Mapped, tmp_path: Path) -> None:
    place, folder = tmp_path / "pids", tmp_path / "tmp"
    place.mkdir()
    folder.mkdir()
    script = (
        "import sys, time; from mnemoscope.connectors.mcp.mcp_connector import Mcp\n"
        f"connector = Mcp({command('plain', place)!r}, mapping={mapped('plain')!r}, live=True)\n"
        "connector.reset('scope'); print('open', flush=True); time.sleep(600)"
    )
    ours = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert ours.stdout is not None
    assert ours.stdout.readline() == b"open\n"
    assert scratch_folders(folder)
    ours.send_signal(signal.SIGKILL)
    ours.wait()
    ours.stdout.close()
    assert eventually(lambda: all_gone(place) and not scratch_folders(folder))


def test_a_forked_process_neither_uses_nor_ends_the_server_of_its_parent(opened: Opened) -> None:
    system = opened("plain")
    forked = os.fork()
    if forked == 0:
        try:
            system.recall(WHO, 5)
        except SystemLost:
            system.reset("scope")
            fresh = system.recall(WHO, 5) == []
            system.close()
            os._exit(0 if fresh else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert system.recall(WHO, 1) == [Hit(REX.id, None, REX.text)]


# Invalid specs and mappings


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("", r"mapping=FILE or one of mcp-memory-service, .* systems probe \"cat\" --out"),
        (
            ",mapping=nowhere.yaml",
            r"mapping=nowhere.yaml cannot be read .* shipped mappings: mcp-memory",
        ),
        (",mapping=mcp-memory-service", r"embeddings=MODEL@http://host:port/v1"),
        (",mapping=server-memory,strategy=loud", r"strategy=loud is unknown"),
        (",mapping=server-memory,timeout=0", r"seconds above 0"),
        (",mapping=server-memory", r"ToolError: the server refuses the session"),
    ],
)
def test_invalid_specs_are_refused_with_the_reason(options: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        described(f"mcp:cat{options}")


def test_a_late_server_costs_one_question_and_the_conversation_is_ingested_again(
    locomo: Path, tmp_path: Path, mapped: Mapped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "_EXIT_SECONDS", 0.1)
    monkeypatch.setenv("SLOW_WITH", "conv-1/q1 conv-1/q2")
    spec = f"mcp:{command('plain')},mapping={mapped('plain')},timeout=1"
    done = trials(locomo, tmp_path / "out", spec, workers=1, limits=Limits(restarts=0))
    late = {trial.question: trial.status for trial in done if trial.status != "answered"}
    assert late == {"conv-1/q1": "timeout", "conv-1/q2": "timeout"}


def test_a_silent_server_is_an_error_after_start_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "_EXIT_SECONDS", 0.1)
    with pytest.raises(UsageError, match=r"the MCP server did not initialize within 0.3 s"):
        described("mcp:tail -f /dev/null,mapping=server-memory,start=0.3")


ENDS = {
    "import os; os.close(1); time.sleep(60)": r"closed its stdout$",
    "print('x' * (65 << 20), end='', flush=True); time.sleep(60)": r"wrote a message of more",
    "print('the last', end=''); sys.exit('no model')": (
        r"exit code 1; its last lines on stderr: no model$"
    ),
}


@pytest.mark.parametrize("script", ENDS)
def test_a_server_that_exits_at_start_is_lost_with_the_reason(
    script: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(child_process, "_EXIT_SECONDS", 0.2 if "sleep" in script else 3.0)
    words = shlex.join([sys.executable, "-c", f"import sys, time; {script}"])
    system = Mcp(words, mapping="server-memory")
    with pytest.raises(SystemLost, match=ENDS[script]):
        system.reset("scope")
    system.close()
    assert ("] the last\n" in capfd.readouterr().err) == ("the last" in script)


def test_a_server_without_the_mapped_tools_is_refused_with_a_list_of_its_tools() -> None:
    with pytest.raises(
        UsageError, match=r"create_entities, .* its tools are store, search, delete, clear, ask"
    ):
        described(f"mcp:{command('plain')},mapping=server-memory")


def test_a_server_at_a_url_cannot_be_restarted() -> None:
    with pytest.raises(UsageError, match="is a running server, which we cannot restart"):
        described("mcp:http://127.0.0.1:9/mcp,mapping=server-memory")


HOSTILE = {
    "colour: red": r"unknown field `colour`",
    "recall: {tool: search}": r"use \$\{query.text\}",
    "recall: {tool: search, arguments: {q: '${query.text'}, hits: {eech: x}}": r"\$.recall.hits",
    "recall: {tool: search, arguments: {q: '${memory.text}'}}": r"recall.arguments: .* uses memory",
    "recall: {tool: search, arguments: {q: '${query.}'}}": r"'query.' cannot be read",
    "recall: {tool: search, arguments: {q: '${query.text}'}, hits: {pattern: 'm('}}": (
        r"not a regular expression"
    ),
    "recall: {tool: search, arguments: {q: '${query.text}'}, hits: {pattern: m}}": r"needs a group",
    "recall: {tool: search, arguments: {q: '${query.text}'}, hits: {by_text: true}}": r"hits.text",
    "recall: {tool: search, arguments: {q: '${items[?memory.x].query}'}}": r"uses items",
    "remember: {tool: store, arguments: {text: '${scope}'}}": r"remember does not send what",
    "remember: {tool: store, each: '${memory.id}'}": r"use \$\{items\}",
    "reset: forget": r"map forget",
    "reset: scope": r"remember does not send \$\{scope\}",
    "forget: {tool: delete, arguments: {id: '${kept}'}}": r"needs remember.keep",
    "forget: {tool: delete}": r"forget does not send what",
    "reset: sometimes": r"\$.reset",
    "env: {X: '${memory.id}'}": r"env: .* uses memory; known here are embeddings, env",
    "forget: {tool: delete, batch: 0}": r"forget.batch is 0",
    "remember: 1": r"\$.remember",
    "answer: [": r"line 5",
}


@pytest.mark.parametrize("line", HOSTILE)
def test_a_mapping_that_cannot_work_is_refused_with_file_and_field(line: str) -> None:
    good = ["name: x", "remember: {tool: store, arguments: {text: '${memory.text}'}}"]
    good.append("recall: {tool: search, arguments: {q: '${query.text}'}}")
    field = line.partition(":")[0]
    text = "\n".join([*(part for part in good if not part.startswith(field)), line])
    with pytest.raises(DataError, match=HOSTILE[line]) as refused:
        read(text, Path("mine.yaml"))
    assert "mine.yaml" in str(refused.value)


def test_the_shipped_mappings_can_be_read() -> None:
    assert shipped() == ["mcp-memory-service", "pgmnemo-mcp", "server-memory"]
    assert [load(name).name for name in shipped()] == shipped()


def test_a_hit_of_the_reference_server_has_every_observation_of_its_entity() -> None:
    recall = load("server-memory").recall
    assert recall is not None
    text = recall.hits.text
    assert find({"observations": ["Rex is a dog", "Rex bites"]}, text) == "Rex is a dog\nRex bites"
    assert find({"name": "Rex"}, text) == ""


def test_a_tag_survives_lowercasing_and_splitting_and_is_unique() -> None:
    ids = ["Conv-1/D1:3", "conv-1/d1:3", "a,b c", "é", "%41", "A"]
    assert all(
        tag_of(id) == tag_of(id).lower() and not set(", \"'") & set(tag_of(id)) for id in ids
    )
    assert len({tag_of(id) for id in ids}) == len(ids)


# The reference server, where it is installed


def test_the_reference_server_recalls_by_keywords_and_forgets() -> None:
    need("server-memory")
    system: Any = plan(Spec.parse("server-memory")).build()
    system.reset("one")
    system.remember(MEMORIES)
    assert system.recall(WHO, 1) == [Hit(REX.id, 3.0, REX.text)]
    system.forget(Selector((REX,)))
    assert [hit.id for hit in system.recall(WHO, 5)] == ["m2"]
    system.reset("two")
    assert system.recall(WHO, 5) == []
    system.close()
