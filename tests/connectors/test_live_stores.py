"""Systems that we start leave the user's own memories alone, unless the user says otherwise."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.connectors.raw_http import RawServer, Said
from tests.integrations.needed import need
from tests.optional import missing
from tests.temporary_files import temporary_files_on_disk as temporary_files_on_disk
from tests.temporary_files import tmp_path_factory as tmp_path_factory

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.cli.app import invoke
from mnemoscope.connectors import scratch_home
from mnemoscope.connectors.child_process import Child
from mnemoscope.connectors.http import Http
from mnemoscope.connectors.mcp.dump_store import dump_store
from mnemoscope.connectors.mcp.mcp_connector import Mcp
from mnemoscope.connectors.scratch_home import child_places, is_store
from mnemoscope.connectors.stdio import Stdio
from mnemoscope.integrations import environments
from mnemoscope.isolation.lock import best_mechanism
from mnemoscope.isolation.scratch import make_scratch
from mnemoscope.runner.conformance import check_system
from mnemoscope.systems.loader import plan
from mnemoscope.types import Memory, Query, Selector

if find_spec("mcp") is None:
    missing("the extra mcp is not installed")

SERVER = Path(__file__).with_name("storing_server.py")
OWN = '{"type": "entity", "name": "me", "entityType": "person", "observations": ["I like Riga"]}\n'
MAPPING = """
name: graph
remember:
  tool: create_entities
  arguments: {entities: "${items}"}
  each: {name: "${memory.id}", entityType: memory, observations: ["${memory.text}"]}
recall:
  tool: search_nodes
  arguments: {query: "${query.text}"}
  hits: {each: entities, id: name, text: "observations[0]"}
  strategy: keywords
  ranked: false
forget: {tool: delete_entities, arguments: {entityNames: "${items}"}, each: "${memory.id}"}
"""
MEMORY = Memory("m1", "Ann has a boat in Riga")


class User(NamedTuple):
    """A user with a store of knowledge at every place where a server may look for one."""

    folder: Path
    mapping: Path
    data: Path

    def command(self, place: str) -> str:
        return f"{sys.executable} {self.folder / 'server' / 'storing_server.py'} {place}"

    def files(self) -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }


@pytest.fixture
def user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_locomo: Callable[..., Path]
) -> User:
    folder = tmp_path / "user"
    for name in ("home/data", "project", "elsewhere", "server"):
        (folder / name).mkdir(parents=True)
    for name in ("home", "home/data", "project", "elsewhere", "server"):
        (folder / name / "memory.jsonl").write_text(OWN)
    shutil.copy(SERVER, folder / "server")
    store = str(folder / "elsewhere" / "memory.jsonl")
    (folder / "server" / "config.json").write_text(json.dumps({"store": store}))
    mapping, data = tmp_path / "graph.yaml", tmp_path / "locomo10.json"
    mapping.write_text(MAPPING)
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "home" / "data"))
    monkeypatch.setenv("MEMORY_FILE_PATH", str(folder / "home" / "memory.jsonl"))
    monkeypatch.setenv("MNEMOSCOPE_USER_DATA", str(tmp_path / "ledger"))
    monkeypatch.chdir(folder / "project")
    return User(folder, mapping, write_locomo(data, conversations=1, sessions=3, questions=4))


def run_once(user: User, system: str, **options: Any) -> api.Results:
    """A run of one conversation with the system alone."""
    out = user.data.parent / "runs"
    return api.run(
        "locomo",
        systems=[f"mine={system}"],
        data=user.data,
        out=out,
        scenarios=1,
        workers=1,
        baselines=False,
        **options,
    )


CHECKS = ("read-back", "isolation", "forget")


@pytest.mark.parametrize("place", ["cwd", "home", "xdg", "env", "config"])
def test_check_and_run_leave_the_own_store_as_it_is(
    user: User, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "config" and best_mechanism() is None:
        missing("no Landlock, bubblewrap or sandbox-exec")
    if place == "env":  # its default place is beside its code
        monkeypatch.delenv("MEMORY_FILE_PATH")
    before = user.files()
    spec = f"mcp:{user.command(place)},mapping={user.mapping}"
    results = {one.check: one for one in check_system(plan(Spec.parse(spec)), names=CHECKS)}
    assert user.files() == before
    # A store at a fixed path cannot be moved: it is refused, and the reason is said.
    verdict = "failed" if place == "config" else "passed"
    assert results["read-back"].verdict == verdict
    if place == "config":
        assert "live=on" in results["read-back"].seen + results["read-back"].fix
    done = run_once(user, spec)
    assert user.files() == before
    assert done.failed_everywhere == (place == "config")


def test_the_store_that_a_variable_of_the_user_names_is_neither_read_nor_written(
    user: User,
) -> None:
    before = user.files()
    system = Mcp(user.command("env"), mapping=str(user.mapping))
    system.reset("s")
    system.remember([MEMORY])
    assert [hit.id for hit in system.recall(Query("Riga"), 5)] == ["m1"]
    system.close()
    assert user.files() == before


def test_a_live_store_is_written_only_by_an_explicit_word(
    user: User, caplog: pytest.LogCaptureFixture
) -> None:
    before = user.files()
    spec = Spec.parse(f"mcp:{user.command('home')},mapping={user.mapping},live=on")
    system = plan(spec).build()
    assert "test memories are written to the system's own store" in caplog.text
    system.reset("s")
    system.remember([MEMORY])
    assert {hit.id for hit in system.recall(Query("Riga"), 5)} == {"me", "m1"}
    assert any("user's own store" in note for note in system.identity()["notes"])
    system.close()
    assert user.files() != before


@pytest.mark.parametrize("mapping", ["shipped", "own"])
@pytest.mark.parametrize("place", ["default", "variable"])
def test_the_reference_server_leaves_its_own_store_as_it_is(
    user: User, place: str, mapping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("server-memory")
    modules = environments.folder("server-memory") / "node_modules"
    own = user.folder / "server-memory"
    shutil.copytree(modules / "@modelcontextprotocol" / "server-memory", own, symlinks=True)
    (user.data.parent / "node_modules").symlink_to(modules)
    if place == "default":
        monkeypatch.delenv("MEMORY_FILE_PATH")
        (own / "dist" / "memory.jsonl").write_text(OWN)
    before = user.files()
    chosen = "server-memory" if mapping == "shipped" else user.mapping
    spec = f"mcp:node {own / 'dist' / 'index.js'},mapping={chosen}"
    results = check_system(plan(Spec.parse(spec)), names=("read-back",))
    assert [one.verdict for one in results] == ["passed"]
    assert run_once(user, spec).failed_everywhere is False
    assert user.files() == before


# Reading only


def calls(err: str) -> list[str]:
    lines = [line.partition("called ")[2] for line in err.splitlines() if "called " in line]
    return [line.split()[0] for line in lines]


def test_a_read_only_run_sends_questions_and_nothing_else(
    user: User, capfd: pytest.CaptureFixture[str]
) -> None:
    store = user.folder / "home" / "memory.jsonl"
    texts = [t["text"] for t in json.loads(user.data.read_text())[0]["conversation"]["session_1"]]
    entity = {"type": "entity", "name": "x", "entityType": "turn", "observations": texts}
    store.write_text(json.dumps(entity) + "\n")
    before = user.files()
    spec = f"mcp:{user.command('env')},mapping={user.mapping}"
    capfd.readouterr()
    done = run_once(user, spec, read_only=True)
    assert set(calls(capfd.readouterr().err)) == {"search_nodes"}
    assert user.files() == before
    assert done.failed_everywhere is False
    manifest = json.loads((done.runs[0].path / "manifest.json").read_text())
    assert "read-only" in json.dumps(manifest["identity"])
    # The memories are recognised by their texts, as always.
    hits = [json.loads(line) for line in (done.runs[0].path / "trials.jsonl").open()]
    assert any(one.get("carried") for one in hits)


def test_closing_a_read_only_connector_deletes_nothing_although_a_reset_would(
    user: User, tmp_path: Path
) -> None:
    forgetting = tmp_path / "forgetting.yaml"
    forgetting.write_text(MAPPING + "reset: forget\n")
    store = user.folder / "home" / "memory.jsonl"
    system = Mcp(user.command("env"), mapping=str(forgetting), read_only=True)
    system.reset("s")
    system.remember([Memory("me", "I like Riga")])
    assert [hit.id for hit in system.recall(Query("Riga"), 5)] == ["me"]
    with pytest.raises(UsageError, match="delete_entities is not sent"):
        system.forget(Selector((Memory("me", "I like Riga"),)))
    system.close()
    assert store.read_text() == OWN


def test_a_server_that_writes_when_it_is_asked_cannot_change_a_store_that_is_only_read(
    user: User,
) -> None:
    if best_mechanism() is None:
        missing("no Landlock, bubblewrap or sandbox-exec")
    sly = MAPPING.replace("tool: search_nodes", "tool: create_entities").replace(
        '{query: "${query.text}"}',
        '{entities: [{name: q, entityType: q, observations: ["${query.text}"]}]}',
    )
    user.mapping.write_text(sly)
    system = Mcp(user.command("env"), mapping=str(user.mapping), read_only=True)
    system.reset("s")
    with pytest.raises(Exception, match="denied"):
        system.recall(Query("Riga"), 5)
    system.close()
    assert (user.folder / "home" / "memory.jsonl").read_text() == OWN


ADAPTER = """
import json, sys
for line in sys.stdin:
    order = json.loads(line)
    sys.stderr.write(f"called {order['method']}\\n"); sys.stderr.flush()
    methods = ["reset", "remember", "ready", "recall", "forget", "stats", "close"]
    result = {"name": "a", "methods": methods, "identity": {"notes": ["mine"]}}
    if order["method"] == "recall":
        result = ["m1"]
    print(json.dumps({"jsonrpc": "2.0", "id": order["id"], "result": result}), flush=True)
"""


def test_a_read_only_adapter_gets_hello_and_recall_only(
    user: User, capfd: pytest.CaptureFixture[str]
) -> None:
    script = user.folder / "adapter.py"
    script.write_text(ADAPTER)
    system = Stdio(f"{sys.executable} {script}", read_only=True)
    system.reset("s")
    assert system.remember([MEMORY]) is None
    system.ready()
    assert system.recall(Query("Riga"), 3) == ["m1"]
    for refused in (lambda: system.forget(Selector((MEMORY,))), system.stats):
        with pytest.raises(UsageError, match="is not sent"):
            refused()
    assert len(system.identity()["hello"]["identity"]["notes"]) == 2
    system.close()
    assert calls(capfd.readouterr().err) == ["hello", "recall"]


REST = """
name: rest
health: {path: /ping}
reset: [{path: /clear}]
leave: [{path: /leave}]
remember: {path: /add, body: {text: "${memory.text}"}}
ready: {path: /ready, until: done}
recall: {path: /find, body: {q: "${query.text}", room: "${scope}"}, hits: {each: found}}
forget: {path: /del, body: {id: "${memory.id}"}}
"""


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[tuple[RawServer, list[str], Path]]:
    asked: list[str] = []

    def answer(call: Any) -> Said:
        asked.append(f"{call.path} {json.dumps(call.body)}" if "find" in call.path else call.path)
        return Said({"found": [{"id": "m1"}], "hits": ["m1"], "name": "x", "methods": ["recall"]})

    file = tmp_path / "rest.yaml"
    file.write_text(REST)
    with RawServer(answer) as server:
        yield server, asked, file


def test_a_read_only_rest_server_gets_questions_only(
    rest: tuple[RawServer, list[str], Path],
) -> None:
    server, asked, file = rest
    system: Any = Http(server.url, mapping=str(file), read_only=True, scope="mine")
    system.reset("conv 1")
    system.remember([MEMORY])
    system.ready()
    assert [hit.id for hit in system.recall(Query("Riga"), 3)] == ["m1"]
    with pytest.raises(UsageError, match="is not sent"):
        system.forget(Selector((MEMORY,)))
    system.close()
    assert [one.split()[0] for one in asked] == ["/ping", "/find"]
    assert '"mine"' in asked[1]


def test_a_running_server_without_separate_spaces_needs_a_word(
    rest: tuple[RawServer, list[str], Path], tmp_path: Path
) -> None:
    server, asked, file = rest
    with pytest.raises(UsageError, match=r"did not start.*--read-only.*live=on"):
        Http(server.url, mapping=str(file))
    graph = tmp_path / "graph.yaml"
    graph.write_text(MAPPING + "reset: forget\n")
    with pytest.raises(UsageError, match=r"did not start.*live=on"):
        Mcp(f"{server.url}/mcp", mapping=str(graph))
    # Its own space does not help if a reset empties the whole server.
    file.write_text(REST.replace("{text:", "{room: '${scope}', text:"))
    with pytest.raises(UsageError, match=r"did not start.*live=on"):
        Http(server.url, mapping=str(file))
    assert asked == []


def test_only_systems_that_can_hold_memories_before_a_run_are_asked_only(user: User) -> None:
    for system in ("mem0", "tests.nowhere:Mine", "grpc:localhost:1"):
        with pytest.raises(UsageError, match=r"--read-only: .* begins empty"):
            run_once(user, system, read_only=True)


# Listing what a server holds


def test_a_dump_lists_the_own_store_and_calls_one_tool_that_reads(
    user: User, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = user.files()
    out = tmp_path / "graph.jsonl"
    assert invoke(["systems", "dump", user.command("env"), "--out", str(out)]) == 0
    assert [json.loads(line) for line in out.read_text().splitlines()] == [json.loads(OWN)]
    assert out.stat().st_mode & 0o077 == 0
    assert user.files() == before
    assert calls(capfd.readouterr().err) == ["read_graph"]
    assert invoke(["systems", "dump", user.command("env"), "--out", str(out)]) == 2
    other = str(tmp_path / "other.jsonl")
    words = ["systems", "dump", user.command("env"), "--out", other, "--tool", "delete_entities"]
    assert invoke(words) == 2
    assert "may change the store, so it is not called" in capfd.readouterr().err


def test_a_server_with_its_own_home_is_not_said_to_have_a_scratch_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mnemoscope.isolation.lock._children.has_scratch_home", False)
    server = f"{sys.executable} {tmp_path / 'nosuch.py'}"
    assert invoke(["systems", "dump", server, "--out", str(tmp_path / "graph.jsonl")]) == 1
    told = capfd.readouterr().err
    assert "No such file" in told
    assert "scratch" not in told


def test_the_graph_of_the_reference_server_is_dumped_as_its_file_has_it(user: User) -> None:
    need("server-memory")
    modules = environments.folder("server-memory") / "node_modules"
    program = modules / "@modelcontextprotocol" / "server-memory" / "dist" / "index.js"
    store = user.folder / "home" / "memory.jsonl"
    relation = {"type": "relation", "from": "me", "to": "Riga", "relationType": "likes"}
    store.write_text(OWN + json.dumps(relation) + "\n")
    found = dump_store(f"node {program}")
    assert found.tool == "read_graph"
    assert found.rows == [json.loads(line) for line in store.read_text().splitlines()]


WAYS = """
import os, subprocess, sys
store, scratch = sys.argv[1:]
folder = os.path.dirname(store)
def attempt(name, do):
    try:
        do()
        print(name, flush=True)
    except OSError:
        pass
def linked():
    os.link(store, scratch + "/link")
    open(scratch + "/link", "a").write("x")
def by_symlink():
    os.symlink(store, scratch + "/symlink")
    open(scratch + "/symlink", "a").write("x")
def replaced():
    open(scratch + "/new", "w").write("x")
    os.replace(scratch + "/new", store)
attempt("append", lambda: open(store, "a").write("x"))
attempt("truncate", lambda: os.truncate(store, 0))
attempt("unlink", lambda: os.unlink(store))
attempt("rename", lambda: os.rename(store, folder + "/other"))
attempt("steal", lambda: os.rename(store, scratch + "/stolen"))
attempt("replace", replaced)
attempt("link", linked)
attempt("symlink", by_symlink)
attempt("beside", lambda: open(folder + "/new", "w").write("x"))
attempt("mkdir", lambda: os.mkdir(folder + "/new-folder"))
detached = "open(%r, 'a').write('x')" % store
subprocess.run([sys.executable, "-c", detached], start_new_session=True, stderr=subprocess.DEVNULL)
attempt("scratch", lambda: open(scratch + "/own", "w").write("x"))
print("end", flush=True)
"""


def test_no_way_of_changing_a_file_gets_out_of_the_scratch_folder(user: User) -> None:
    if best_mechanism() is None:
        missing("no Landlock, bubblewrap or sandbox-exec")
    before = user.files()
    scratch = make_scratch("ways")
    store = str(user.folder / "elsewhere" / "memory.jsonl")
    words = [sys.executable, "-S", "-c", WAYS, store, scratch]
    child = Child(words, None, scratch, writes=[])
    done = [line.decode() for line in _until_end(child)]
    child.close()
    assert done == ["scratch", "end"]
    assert user.files() == before
    # Without the guard the same program does change the store.
    scratch = make_scratch("ways")
    child = Child([*words[:-1], scratch], None, scratch)
    assert "append" in [line.decode() for line in _until_end(child)]
    child.close()
    assert user.files() != before


def _until_end(child: Child) -> Iterator[bytes]:
    for line in child.lines(b"", 60.0):
        yield line
        if line == b"end":
            return


# The scratch home


def test_variables_that_name_stores_are_left_out_and_others_stay() -> None:
    for name, value in {
        "MEMORY_FILE_PATH": "memory.jsonl",
        "DATABASE_URL": "postgres://me@db/mine",
        "MCP_MEMORY_SQLITE_PATH": "/home/me/memory.db",
        "PGHOST": "db",
        "NOTES_DIR": "notes",
        "CHROMA_URL": "http://localhost:8000",
        "MEM0_API_KEY": "m0-1",
        "FALKORDB_URI": "redis://db",
    }.items():
        assert is_store(name, value), name
    for name, value in {
        "PATH": "/usr/bin",
        "MEMORY_LIMIT": "2G",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/bus",
        "LD_LIBRARY_PATH": "/lib",
        "NODE_PATH": "/usr/lib/node",
    }.items():
        assert not is_store(name, value), name


def test_a_scratch_home_keeps_relative_files_modules_and_named_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "postgres://me@db/mine")
    (tmp_path / "adapter.py").touch()
    (tmp_path / "server").mkdir()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    places = child_places(["python", "adapter.py", "server", "--in=adapter.py"], str(scratch))
    script = str(tmp_path / "adapter.py")
    assert places.words == ["python", script, "server", f"--in={script}"]
    assert places.folder == str(scratch / "work")
    assert places.environment["HOME"] == str(scratch / "home")
    assert "DATABASE_URL" not in places.environment
    monkeypatch.setenv("MNEMOSCOPE_PASS", "DATABASE_URL")
    module = child_places(["python3", "-m", "adapter"], str(scratch))
    assert module.words == ["python3", "-m", "adapter"]
    assert module.environment["PYTHONPATH"].split(os.pathsep)[0] == str(tmp_path)
    assert module.environment["DATABASE_URL"] == "postgres://me@db/mine"
    assert child_places(["npx", "-y", "x"], str(scratch)).folder is None


def test_npx_runs_a_copy_and_no_place_of_the_user_counts_as_a_cache(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = user.folder / "home"
    program = home / ".npm" / "_npx" / "abc"
    for place in (program / "dist", home / ".npm" / "_cacache", home / ".cache" / "uv"):
        place.mkdir(parents=True)
    (program / "package.json").write_text('{"dependencies": {"@x/memory": "^1"}}')
    (program / "dist" / "memory.jsonl").write_text(OWN)
    (program / "dist" / "index.js").touch()
    monkeypatch.setenv("HF_HOME", str(home))  # a cache that contains everything
    monkeypatch.setenv("GOCACHE", str(user.folder))
    before = user.files()
    for name, read_only in (("default", False), ("reading", True)):
        scratch = tmp_path / name
        scratch.mkdir()
        words = ["npx", "-y", "@x/memory@1"]
        places = child_places(words, str(scratch), read_only=read_only)
        assert {*(places.writes or ())} == {f"{home}/.npm/_cacache", f"{home}/.cache/uv"}
        npm = Path(places.environment["npm_config_cache"])
        assert npm.is_relative_to(scratch)
        assert (npm / "_cacache").resolve() == home / ".npm" / "_cacache"
        copied = {path.name for path in (npm / "_npx" / "abc" / "dist").iterdir()}
        assert copied == {"index.js", *(["memory.jsonl"] if read_only else [])}
    assert user.files() == before


@pytest.mark.parametrize(
    "words",
    [
        "docker run -i -v memory:/app/dist mcp/memory",
        "podman run --mount=type=volume x",
        "sh -c 'exec docker run -i -v memory:/app/dist mcp/memory'",
        "docker exec -i memory node server.js",
        "ssh me@server memory-server",
    ],
)
def test_what_no_guard_reaches_needs_a_word(words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"(volume|reaches).*live=on"):
        child_places(shlex.split(words), str(tmp_path))
    assert child_places(shlex.split(words), str(tmp_path), live=True).writes is None


def test_a_store_beside_the_code_that_npx_keeps_cannot_be_changed(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    if best_mechanism() is None:
        missing("no Landlock, bubblewrap or sandbox-exec")
    code = user.folder / "home" / ".npm" / "_npx" / "1f" / "node_modules" / "memory"
    code.mkdir(parents=True)
    (code.parents[3] / "_cacache").mkdir()
    store = code / "memory.jsonl"
    store.write_text(OWN)
    # The home is a cache by name only: what it contains is not given away.
    monkeypatch.setenv("GOPATH", str(user.folder / "home"))
    before = user.files()
    for read_only in (False, True):
        scratch = make_scratch("npx")
        _, environment, folder, writes = child_places(["node"], scratch, read_only=read_only)
        assert writes is not None
        assert str(code.parents[3] / "_cacache") in writes
        words = [sys.executable, "-S", "-c", WAYS, str(store), scratch]
        child = Child(words, environment, scratch, folder=folder, writes=writes)
        assert list(_until_end(child)) == [b"scratch", b"end"]
        child.close()
        assert user.files() == before


def test_a_machine_without_a_guard_says_so_and_reads_no_live_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scratch_home, "best_mechanism", lambda: None)
    scratch_home._note_no_guard.cache_clear()
    with pytest.raises(UsageError, match=r"no Landlock.*live=on"):
        child_places(["node"], str(tmp_path), read_only=True)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        child_places(["node"], str(tmp_path / name))
    assert [one.message.partition(":")[0] for one in caplog.records] == [
        "this machine has no Landlock, bubblewrap or sandbox-exec"
    ]
    assert child_places(["node"], str(tmp_path), live=True, read_only=True).writes is None
