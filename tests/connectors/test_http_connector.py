"""The HTTP connector: a server with the contract ranks as the same system in process."""

from __future__ import annotations

import importlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.crashing_server import SPEC, restarted
from tests.connectors.raw_http import Call, RawServer, Said, Script
from tests.connectors.served_processes import ours
from tests.connectors.served_processes import served as started
from tests.described import described

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.json_server import JsonServer
from mnemoscope._store.spec import Spec
from mnemoscope._store.yaml import parse_yaml
from mnemoscope.cli.serve import serve_http
from mnemoscope.connectors.http import Http, client
from mnemoscope.connectors.http.client import ServerError
from mnemoscope.connectors.http.http_connector import openapi
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.runner.conformance import check_system
from mnemoscope.runner.run import Settings, run
from mnemoscope.serving.http_server import HttpServer
from mnemoscope.systems.loader import Driver, plan
from mnemoscope.types import Hit, Memory, Query, Question, Selector, Trial

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "adapters"
MEMORIES = [
    Memory("m0", "Rex the dog likes the garden"),
    Memory("m1", "the piano stands in the harbour"),
    Memory("m2", "a lantern hangs over the bridge"),
]
QUERY = Query("Who likes the garden?")
HELLO = {"name": "raw", "methods": ["reset", "remember", "ready", "recall", "answer", "stats"]}


@pytest.fixture
def served() -> Iterator[Callable[..., str]]:
    """Serve a system in a thread; return its address."""
    servers: list[JsonServer] = []

    def start(spec: str, **options: Any) -> str:
        servers.append(HttpServer(plan(Spec.parse(spec)), **options))
        return servers[-1].start().url

    yield start
    for one in servers:
        one.close()


def scripted(**replies: Any) -> Script:
    """A server with these replies to /v1/NAME, each a Said, bytes, None or a function."""

    def script(call: Call) -> Said | bytes | None:
        if call.path == "/v1/hello":
            return Said(HELLO)
        reply = replies.get(call.path.removeprefix("/v1/"), Said({}))
        said: Said | bytes | None = reply(call) if callable(reply) else reply
        return said

    return script


def opened(at: RawServer, **options: Any) -> Http:
    system = Http(at.url, **{"timeout": 20.0, "patience": 0.3, **options})
    system.reset("scope")
    return system


def all_ended(at: RawServer) -> None:
    """Wait until the server has closed all connections."""
    until = time.monotonic() + 20
    while at.ended < at.connections and time.monotonic() < until:
        time.sleep(0.005)


# In a run


def test_a_served_system_fulfils_the_contract(served: Callable[..., str]) -> None:
    results = check_system(plan(Spec.parse(f"http:{served('bm25')}")), timeout=30.0)
    verdicts = {result.check: result.verdict for result in results}
    assert {check for check, verdict in verdicts.items() if verdict != "passed"} == {
        "fork",
        "machine clock",
    }


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data") / "locomo10.json"
    return write_locomo(place, conversations=3, sessions=6, questions=5)


def trials(data: Path, out: Path, *systems: str) -> list[list[Trial]]:
    plans = [plan(Spec.parse(system)) for system in systems]
    settings = Settings(depth=10, workers=2)
    return [list(one.trials()) for one in run(Locomo(data), plans, out, settings)]


@pytest.mark.parametrize("spec", ["bm25", "fts5,variant=product", "random,seed=7"])
def test_rankings_are_those_of_the_same_system_in_process(
    spec: str, served: Callable[..., str], locomo: Path, tmp_path: Path
) -> None:
    inside, outside = trials(locomo, tmp_path, spec, f"http:{served(spec)}")
    assert len(inside) == 15
    assert {trial.status for trial in inside} == {"answered"}
    assert outside == inside


@pytest.fixture
def example() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, EXAMPLES / "http_adapter.py", str(port)], stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"at http://")
    yield f"http:http://127.0.0.1:{port}"
    process.kill()
    process.communicate()


def test_the_example_conforms_and_ranks_as_the_same_system_in_process(
    example: str, locomo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = check_system(plan(Spec.parse(example)), timeout=30.0)
    assert [result for result in results if result.verdict == "failed"] == []
    monkeypatch.syspath_prepend(str(EXAMPLES))
    inside, outside = trials(locomo, tmp_path, "python_adapter:SharedWords", example)
    assert outside == inside


def test_a_server_that_dies_and_comes_back_in_a_run_changes_nothing_recorded(
    locomo: Path, tmp_path: Path
) -> None:
    [undisturbed] = trials(locomo, tmp_path / "in", "bm25")
    with restarted("http", tmp_path / "calls") as (address, ends):
        [recorded] = trials(locomo, tmp_path / "out", f"http:http://{address}")
    assert ends == [9]
    assert recorded == undisturbed


# Requests and replies


def test_replies_are_those_of_the_contract(served: Callable[..., str]) -> None:
    """Requests and replies match the schemas of openapi.yaml."""
    jsonschema = importlib.import_module("jsonschema")
    contract = parse_yaml(openapi(), Path("openapi.yaml"))
    behind = served("bm25")
    passed: list[tuple[Call, Said]] = []

    def relay(call: Call) -> Said:
        line = HTTPConnection(behind.removeprefix("http://"))
        body = json.dumps(call.body) if call.body else None
        line.request(call.method, call.path, body, {"Content-Type": "application/json"})
        reply = line.getresponse()
        said = Said(reply.read(), reply.status)
        passed.append((call, said))
        line.close()
        return said

    with RawServer(relay) as between:
        system = opened(between)
        system.remember(MEMORIES)
        system.recall(QUERY, 2)
        system.forget(Selector((MEMORIES[0],)))
        system.stats()
        system.close()
        with pytest.raises(SystemLost, match="has lost the memories of this space"):
            system.recall(QUERY, 2)
        assert len({call.path for call, _ in passed}) == 7
    for call, said in passed:
        operation = contract["paths"][call.path][call.method.lower()]
        if call.body:
            asked = operation["requestBody"]
            asked = (
                contract["components"]["requestBodies"]["OnlySpace"] if "$ref" in asked else asked
            )
            schema = asked["content"]["application/json"]["schema"]
            jsonschema.validate(call.body, {**schema, "components": contract["components"]})
        reply = operation["responses"][str(said.status)]
        if "$ref" in reply:
            reply = contract["components"]["responses"][reply["$ref"].rpartition("/")[2]]
        if content := reply.get("content"):
            schema = content["application/json"]["schema"]
            value = json.loads(said.body)
            jsonschema.validate(value, {**schema, "components": contract["components"]})


def test_the_contract_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    serve_http(contract=True)
    printed = parse_yaml(capsys.readouterr().out, Path("printed"))
    assert printed["openapi"] == "3.1.0"
    assert {path for path in printed["paths"] if path.startswith("/v1/")} == {
        f"/v1/{verb}"
        for verb in "hello reset remember ready recall answer forget stats close".split()
    }


def test_the_command_serves_until_it_is_stopped_and_closes_its_systems(tmp_path: Path) -> None:
    calls, closings = tmp_path / "calls", tmp_path / "calls.closed"
    with started(*ours("http", SPEC), CRASHING_CALLS=str(calls)) as command:
        system = Http(f"http://{command.address}")
        system.reset("scope")
        system.remember(MEMORIES)
        assert system.recall(QUERY, 1)[0]["id"] == "m0"
        closed = closings.read_text()
        command.process.send_signal(signal.SIGINT)
        assert command.process.communicate()[0] == "stopped\n"
        assert command.process.returncode == 0
    assert closings.read_text() == closed + "x"


def test_consecutive_calls_share_one_connection() -> None:
    with RawServer(scripted(recall=Said({"hits": ["m1"]}))) as raw:
        system = opened(raw)
        for _ in range(20):
            assert system.recall(QUERY, 1) == ["m1"]
        assert raw.connections == 1
        other = threading.Thread(target=system.recall, args=(QUERY, 1))
        other.start()
        other.join()
        assert raw.connections == 1
        system.close()


def test_concurrent_calls_use_separate_connections() -> None:
    both = threading.Barrier(2)

    def recall(call: Call) -> Said:
        both.wait(20)
        return Said({"hits": ["m1"]})

    with RawServer(scripted(recall=recall)) as raw:
        system = opened(raw)
        other = threading.Thread(target=system.recall, args=(QUERY, 1))
        other.start()
        assert system.recall(QUERY, 1) == ["m1"]
        other.join()
        assert raw.connections == 2
        system.close()


def test_only_methods_that_hello_lists_exist() -> None:
    with RawServer(scripted()) as raw:
        system = opened(raw)
        assert all(hasattr(system, verb) for verb in ("reset", "remember", "recall", "answer"))
        assert not any(hasattr(system, verb) for verb in ("forget", "fork", "retrieve"))


def test_notes_of_a_server_are_shown_to_readers() -> None:
    hello = {**HELLO, "identity": {"notes": ["it has no clock"]}}
    with RawServer(lambda call: Said(hello)) as raw:
        assert described(f"http:{raw.url}").notes == ["it has no clock"]
    with (
        RawServer(lambda call: Said({**HELLO, "identity": {"notes": 7}})) as raw,
        pytest.raises(MnemoscopeError, match="hello cannot be read"),
    ):
        described(f"http:{raw.url}")


def test_two_connectors_to_one_server_use_separate_spaces() -> None:
    with RawServer(scripted(recall=Said({"hits": []}))) as raw:
        one, other = opened(raw), opened(raw)
        one.recall(QUERY, 1)
        other.recall(QUERY, 1)
        spaces = [call.body["space"] for call in raw.calls if call.path == "/v1/recall"]
        assert len(set(spaces)) == 2


def test_ready_waits_while_the_server_replies_202() -> None:
    left = iter([202, 202, 200])
    script = scripted(ready=lambda call: Said({}, next(left), {"Retry-After": "0.01"}))
    with RawServer(script) as raw:
        opened(raw).ready()
        assert raw.paths().count("POST /v1/ready") == 3


def test_a_server_that_never_gets_ready_is_a_timeout() -> None:
    with RawServer(scripted(ready=Said({}, 202))) as raw:
        system = opened(raw)
        system._connection.timeout = 0.5
        with pytest.raises(TimeoutError, match=r"not ready within 0.5 s"):
            system.ready()
        assert raw.paths().count("POST /v1/ready") > 1


# Slow and failing servers


def test_a_slow_reply_is_a_timeout_and_the_next_call_gets_its_own_reply() -> None:
    late = threading.Event()
    first = iter([True])

    def recall(call: Call) -> Said:
        if next(first, False):
            late.wait(60)
            return Said({"hits": ["late"]})
        return Said({"hits": ["own"]})

    with RawServer(scripted(recall=recall)) as raw:
        system = opened(raw)
        system._connection.timeout = 0.5
        with pytest.raises(TimeoutError, match=r"no complete reply to POST within 0.5 s"):
            system.recall(QUERY, 1)
        system._connection.timeout = 20.0
        late.set()
        assert system.recall(QUERY, 1) == ["own"]


def test_a_reply_that_trickles_is_a_timeout_too() -> None:
    """Each byte comes before the deadline, the complete reply does not."""
    listening = socket.create_server(("127.0.0.1", 0))

    def trickle() -> None:
        line, _ = listening.accept()
        with line, listening:
            line.recv(1 << 16)
            try:
                while True:
                    line.sendall(b"H")
                    time.sleep(0.05)
            except OSError:
                return

    threading.Thread(target=trickle, daemon=True).start()
    connector = Http(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.5)
    with pytest.raises(TimeoutError):
        connector.identity()


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (Said(b"<html>"), BadReply, "the reply is not JSON: <html>"),
        (Said(b'{"hits": ['), BadReply, "not JSON"),
        (Said(["m1"]), BadReply, 'expected {"hits": …}'),
        (Said({"hits": {"m1": 1}}), BadReply, "expected a list of hits or ids"),
        (Said({"hits": [None]}), BadReply, "as a hit"),
        (b"what?\r\n\r\n", BadReply, "does not reply with valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", SystemLost, "dropped the connection"),
        (None, SystemLost, "dropped the connection in the middle of POST"),
        (Said({"error": {"message": "index locked"}}, 500), ServerError, r"500 \(index locked\)"),
        (Said({"detail": "no such thing"}, 404), ServerError, r"404 \(no such thing\)"),
        (
            Said(b"", 302, {"Location": "https://else.where"}),
            ServerError,
            "give the address https://else.where",
        ),
    ],
)
def test_a_bad_reply_is_an_error_with_its_cause(
    reply: Said | bytes | None, error: type[Exception], says: str
) -> None:
    with RawServer(scripted(recall=reply)) as raw:
        driver = Driver(lambda: opened(raw))
        driver.begin("scope")
        with pytest.raises(error, match=says):
            driver.recall(Question("q", "text"), 5)


def test_nan_in_a_reply_is_read() -> None:
    with RawServer(scripted(recall=Said(b'{"hits": [["m1", NaN]]}'))) as raw:
        [(id, score)] = opened(raw).recall(QUERY, 1)
        assert id == "m1"
        assert score != score


def test_a_server_that_died_is_lost_and_a_reset_says_that_it_is_down() -> None:
    raw = RawServer(scripted(recall=Said({"hits": []})))
    system = opened(raw)
    system.recall(QUERY, 1)
    system.close()  # closes the kept connection, so that the server can stop
    raw.close()
    with pytest.raises(SystemLost, match="no connection to http://127"):
        system.recall(QUERY, 1)
    with pytest.raises(
        MnemoscopeError, match=r"is down \(.*\): start it, then repeat the command to resume"
    ):
        system.reset("scope")


def test_a_reset_waits_for_a_server_that_comes_back() -> None:
    raw = RawServer(scripted(recall=Said({"hits": ["m1"]})))
    system = opened(raw, patience=20.0)
    system.close()
    port = raw.port
    raw.close()
    with pytest.raises(SystemLost):
        system.recall(QUERY, 1)
    back: list[RawServer] = []
    script = scripted(recall=Said({"hits": ["m2"]}))
    timer = threading.Timer(0.3, lambda: back.append(RawServer(script, port)))
    timer.start()
    system.reset("scope")
    assert system.recall(QUERY, 1) == ["m2"]
    timer.join()
    back[0].close()


def test_a_restarted_server_with_another_hello_is_refused() -> None:
    """Also if no call was made while the server was down."""
    raw = RawServer(scripted())
    system = opened(raw)
    system.close()
    port = raw.port
    raw.close()
    other = RawServer(lambda call: Said({**HELLO, "version": "2"}), port)
    with other, pytest.raises(MnemoscopeError, match="came back as another system"):
        system.reset("scope")


def test_a_restarted_server_without_the_space_is_lost(
    served: Callable[..., str],
) -> None:
    url = served("bm25")
    system = Http(url)
    system.reset("scope")
    system.remember(MEMORIES)
    assert [hit["id"] for hit in system.recall(QUERY, 1)] == ["m0"]
    fresh = Http(url)
    with pytest.raises(SystemLost, match="reset it, and send all memories again"):
        fresh.recall(QUERY, 1)


def test_a_server_that_never_answered_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_reached", set())  # an earlier test may have had this port
    with socket.socket() as held:  # keeps the port, where no server listens
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with pytest.raises(MnemoscopeError, match=f"no server answers at http://127.0.0.1:{port}"):
            described(f"http:http://127.0.0.1:{port},patience=600")


def test_a_server_without_the_contract_is_distinguished_from_a_missing_one() -> None:
    with (
        RawServer(lambda call: Said({"detail": "Not Found"}, 404)) as raw,
        pytest.raises(MnemoscopeError, match="does not implement Mnemoscope's contract"),
    ):
        described(f"http:{raw.url}")


def test_a_closed_connection_is_reopened_and_no_request_is_sent_twice() -> None:
    with RawServer(scripted(recall=Said({"hits": ["m1"]}))) as raw:
        raw.hangs_up = True
        system = opened(raw)
        for _ in range(3):
            all_ended(raw)
            system.remember(MEMORIES)
            all_ended(raw)
            assert system.recall(QUERY, 1) == ["m1"]
        assert raw.paths().count("POST /v1/remember") == 3
        assert raw.connections == len(raw.calls)


@pytest.mark.parametrize(("verb", "sent"), [("recall", 2), ("remember", 1)])
def test_only_repeatable_requests_are_sent_again_on_a_new_connection(verb: str, sent: int) -> None:
    """The kept connection breaks after the request was sent: the server may have acted on it."""
    drops = iter([True])

    def once(call: Call) -> Said | None:
        return None if next(drops, False) else Said({"hits": []})

    with RawServer(scripted(**{verb: once})) as raw:
        system = opened(raw)
        if verb == "recall":
            assert system.recall(QUERY, 1) == []
        else:
            with pytest.raises(SystemLost):
                system.remember(MEMORIES)
        assert raw.paths().count(f"POST /v1/{verb}") == sent


def test_a_server_that_asks_to_wait_is_waited_for_within_patience() -> None:
    busy = iter([429, 503])

    def recall(call: Call) -> Said:
        status = next(busy, 200)
        return Said({"hits": ["m1"]}, status, {"Retry-After": "0.05"})

    with RawServer(scripted(recall=recall)) as raw:
        assert opened(raw).recall(QUERY, 1) == ["m1"]


def test_a_wait_beyond_patience_is_an_error_at_once() -> None:
    script = scripted(recall=Said({"detail": "slow down"}, 429, {"Retry-After": "3600"}))
    with RawServer(script) as raw, pytest.raises(ServerError, match=r"429 \(slow down\)"):
        opened(raw).recall(QUERY, 1)


# Keys and addresses


def test_a_key_is_sent_with_every_call_and_not_written_to_a_file(
    served: Callable[..., str], locomo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "open-sesame-4711"
    monkeypatch.setenv("CAVE", secret)
    url = served("bm25", key=secret)
    [asked] = trials(locomo, tmp_path / "out", f"http:{url},key=CAVE")
    assert {trial.status for trial in asked} == {"answered"}
    written = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert any(b"CAVE" in content for content in written)
    assert not any(secret.encode() in content for content in written)


def test_a_wrong_key_says_which_variable_to_set(
    served: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAVE", "open-barley")
    url = served("bm25", key="open-sesame")
    with pytest.raises(
        MnemoscopeError, match="set CAVE to a key that this server accepts"
    ) as caught:
        described(f"http:{url},key=CAVE")
    assert "open-barley" not in str(caught.value)
    with pytest.raises(MnemoscopeError, match="export MEMORY_KEY=…, write key=MEMORY_KEY"):
        described(f"http:{url}")


def test_a_key_that_a_server_repeats_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAVE", "open-sesame-4711")

    def script(call: Call) -> Said:
        if call.path == "/v1/hello":
            return Said({**HELLO, "identity": {"seen": call.headers["Authorization"]}})
        if call.path == "/v1/recall":
            return Said({"detail": f"bad {call.headers['Authorization']}"}, 500)
        if call.path == "/v1/answer":
            return Said(f"bad {call.headers['Authorization']}".encode())
        return Said({})

    with RawServer(script) as raw:
        system = opened(raw, key="CAVE")
        assert system.identity()["hello"]["identity"] == {"seen": "Bearer …"}
        with pytest.raises(ServerError, match="bad Bearer …"):
            system.recall(QUERY, 1)
        with pytest.raises(BadReply, match="not JSON: bad Bearer …"):
            system.answer(QUERY)


def test_a_key_may_come_under_any_spelling_of_its_header(served: Callable[..., str]) -> None:
    line = HTTPConnection(served("bm25", key="open-sesame").removeprefix("http://"))
    line.request("GET", "/v1/hello", headers={"authorization": "Bearer open-sesame"})
    assert line.getresponse().status == 200
    line.close()


@pytest.mark.parametrize("key", ["NOT_SET_ANYWHERE", "sk-live-0815"])
def test_a_value_that_may_be_a_key_is_not_repeated(key: str) -> None:
    with pytest.raises(UsageError, match="takes the name of the environment variable") as caught:
        Http("http://localhost:1", key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("localhost:8000", "is not the address of an HTTP server"),
        ("ftp://localhost", "is not the address of an HTTP server"),
        ("http://", "is not the address of an HTTP server"),
        ("http://localhost:port", "cannot be read"),
        ("http://me:pass@localhost", "and addresses are recorded"),
        ("http://localhost/v1?x=1", r"must end with its path; omit \?"),
    ],
)
def test_an_invalid_address_is_refused(address: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        Http(address)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize("option", ["timeout=0", "timeout=-1", "patience=-1"])
def test_invalid_timeouts_are_refused(option: str) -> None:
    with pytest.raises(UsageError, match="seconds"):
        described(f"http:http://localhost:1,{option}")


def test_the_oracle_cannot_be_served() -> None:
    with pytest.raises(UsageError, match="which clients cannot send"):
        HttpServer(plan(Spec.parse("oracle")))


def test_hits_keep_their_scores_and_sources(served: Callable[..., str]) -> None:
    system = Http(served("bm25"))
    system.reset("scope")
    system.remember(MEMORIES)
    driver_hits = plan(Spec.parse("bm25")).build()
    driver_hits.reset("scope")
    driver_hits.remember(MEMORIES)
    inside = driver_hits.recall(QUERY, 3)
    assert [Hit(**hit) for hit in system.recall(QUERY, 3)] == list(inside)
    system.close()
