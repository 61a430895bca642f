"""The gRPC connectors: a served system gives the same results as in process, or an error."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.crashing_server import restarted
from tests.connectors.grpc_servers import EXAMPLES, TROUBLED, Listening, heard, here
from tests.connectors.served_processes import REPOSITORY, Served, mnemoscope, ours, served
from tests.described import described
from tests.optional import missing

from mnemoscope._store.errors import MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.cli.app import invoke
from mnemoscope.connectors.grpc import messages
from mnemoscope.connectors.grpc.channel import GrpcConnection
from mnemoscope.connectors.grpc.memory_client import Grpc
from mnemoscope.connectors.grpc.protos import mnemoscope_v1_pb2 as v1
from mnemoscope.connectors.grpc.recall_bench_client import RecallBench
from mnemoscope.connectors.handshake import ServerError
from mnemoscope.connectors.recall_bench_days import Day, DayIndex, day_memory
from mnemoscope.serving.sessions import NoSuchSession, Sessions
from mnemoscope.systems.loader import Driver, plan
from mnemoscope.types import Hit, Memory, Query, Question, Receipt, Selector

if TYPE_CHECKING:
    from tests.conftest import StartCommand

MEMORIES = [Memory(f"m{number}", f"text {number}") for number in range(5)]
KEY = "sk-secret-of-a-test"


@pytest.fixture(scope="module")
def bm25() -> Iterator[Listening]:
    with here("bm25") as server:
        yield server


@pytest.fixture(scope="module")
def troubled() -> Iterator[Served]:
    with served(*ours("grpc", TROUBLED), SOME_API_KEY=KEY) as server:
        yield server


@pytest.fixture(scope="module")
def example() -> Iterator[Served]:
    """The example in Python, which uses only our .proto file."""
    if importlib.util.find_spec("grpc_tools") is None:
        missing("grpcio-tools is not installed")
    with served(sys.executable, EXAMPLES / "grpc_server.py", 0) as server:
        yield server


@pytest.fixture
def opened(troubled: Served) -> Iterator[Callable[..., Grpc]]:
    systems: list[Grpc] = []

    def open_system(**options: Any) -> Grpc:
        system = Grpc(troubled.address, **options)
        systems.append(system)
        system.reset("scope")
        system.remember(MEMORIES)
        return system

    yield open_system
    for system in systems:
        system.close()


# In a run


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data") / "locomo10.json"
    return write_locomo(place, conversations=4, sessions=6, questions=5)


Journals = Callable[..., list[bytes]]


def command(data: Path, out: Path, *systems: str) -> list[object]:
    """A run of the systems with two workers."""
    words = ["run", "locomo", "--data", data, "--out", out, "--depth", 10, "--workers", 2]
    return [*words, *(part for one in systems for part in ("--system", one)), "--no-arms"]


def records(out: Path, *systems: str) -> list[bytes]:
    return [(out / Spec.parse(one).slug / "trials.jsonl").read_bytes() for one in systems]


@pytest.fixture(scope="module")
def journals(start_command: StartCommand) -> Journals:
    """The records of each system in such a run."""

    def journals(data: Path, out: Path, *systems: str) -> list[bytes]:
        run = start_command(command(data, out, *systems))
        assert run.wait() == 0, run.output
        return records(out, *systems)

    return journals


@pytest.fixture(scope="module")
def in_process(
    journals: Journals, locomo: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[bytes]:
    """The records of bm25 and fts5 in process."""
    return journals(locomo, tmp_path_factory.mktemp("in"), "bm25", "fts5,variant=product")


def test_a_run_through_the_connector_records_what_one_in_process_does(
    bm25: Listening,
    in_process: list[bytes],
    journals: Journals,
    locomo: Path,
    tmp_path: Path,
) -> None:
    with served(*ours("grpc", "fts5,variant=product")) as fts5:
        connectors = [f"grpc:{server.address}" for server in (bm25, fts5)]
        recorded = journals(locomo, tmp_path, *connectors)
    assert in_process[0].count(b'"answered"') == 20
    assert in_process[0] != in_process[1]
    assert recorded == in_process


def test_the_example_in_python_ranks_as_the_same_system_in_process(
    example: Served, locomo: Path, tmp_path: Path
) -> None:
    systems = ("python_adapter:SharedWords", f"grpc:{example.address}")
    done = mnemoscope(*command(locomo, tmp_path, *systems), PYTHONPATH=str(EXAMPLES))
    assert done.returncode == 0, done.stderr
    inside, outside = records(tmp_path, *systems)
    assert inside.count(b'"answered"') == 20
    assert outside == inside


def test_a_server_that_dies_and_comes_back_in_a_run_changes_nothing_recorded(
    in_process: list[bytes], journals: Journals, locomo: Path, tmp_path: Path
) -> None:
    with restarted("grpc", tmp_path / "calls") as (address, ends):
        [recorded] = journals(locomo, tmp_path / "out", f"grpc:{address}")
    assert ends == [9]
    assert recorded == in_process[0]


def test_a_restarted_server_with_another_hello_is_refused() -> None:
    with here("bm25") as server:
        system = Grpc(server.address, patience=60.0)
        system.reset("scope")
    with (
        here("bm25,k1=2.0", server.port),
        pytest.raises(MnemoscopeError, match="came back as another system"),
    ):
        system.reset("scope")
    system.close()


@pytest.mark.parametrize("server", ["bm25", "example"])
def test_the_conformance_kit_passes_through_the_connector(
    server: str, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue(server).address
    done = mnemoscope("systems", "check", f"grpc:{address}", "--timeout", 30, "--json")
    checks = json.loads(done.stdout)["checks"]
    results = {check["check"]: check["verdict"] for check in checks}
    assert "failed" not in results.values(), results
    passed = {"read-back", "isolation", "fresh", "side by side", "forget", "unicode", "long"}
    assert {results[check] for check in passed} == {"passed"}
    assert results["fork"] == ("passed" if server == "bm25" else "not applicable")


FORKS = """
import os, sys
from mnemoscope.types import Memory
from mnemoscope._store.spec import Spec
from mnemoscope.systems.loader import Driver, describe, plan

planned = plan(Spec.parse(sys.argv[1]))
Driver(planned.build, describe(planned).system).close()
for spoken_before in (False, True):
    if spoken_before:
        mine = planned.build()
        mine.reset("mine")
    if not os.fork():
        try:
            planned.build().reset("child")
            print("asked", flush=True)
        except Exception as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()
"""


def test_a_process_that_only_asked_for_hello_may_fork_and_one_that_called_is_refused(
    bm25: Listening,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, f"grpc:{bm25.address}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    asked, refused = done.stdout.splitlines()
    assert asked == "asked"
    assert "forked from one that uses gRPC" in refused


# Methods and messages


def test_only_methods_that_hello_lists_exist(opened: Callable[..., Grpc], bm25: Listening) -> None:
    system, ranked = opened(), Grpc(bm25.address)
    verbs = {"reset", "remember", "ready", "recall", "answer", "forget", "fork", "stats", "dance"}
    assert {v for v in verbs if hasattr(system, v)} == verbs - {"ready", "forget", "dance"}
    assert {v for v in verbs if hasattr(ranked, v)} == verbs - {"answer", "dance"}
    ranked.close()


def test_the_identity_is_that_of_hello_and_the_same_at_every_start(bm25: Listening) -> None:
    with served(*ours("grpc", "bm25")) as other:
        identities = [described(f"grpc:{s.address}").identity for s in (bm25, other)]
        assert other.greeting == (
            f"serving bm25 on {other.address} (recall.bench and mnemoscope.v1); "
            "stop it with Ctrl-C\n"
        )
        assert other.end() == 0
    assert identities[0] == identities[1]
    assert identities[0]["service"] == "mnemoscope.v1.Memory"
    assert identities[0]["hello"]["name"] == "bm25"
    assert identities[0]["hello"]["identity"]["arguments"]["k1"] == 1.5


def test_memories_queries_and_receipts_arrive_unchanged(opened: Callable[..., Grpc]) -> None:
    system = opened()
    system.reset("another")
    at = datetime(2023, 5, 8, 13, 56, 7, 123456, tzinfo=UTC)
    told = Memory(
        "é/1", "🙂\u2028\0", at, "s", "Ann", {"n": 2**60, "x": 0.5, "b": True, "t": ""}, "é"
    )
    huge = Memory("huge", "", metadata={"n": 2**70})
    assert system.remember([told, huge]) == Receipt(rejected={"huge": "no text"})
    query = Query("what?", at, "s")
    spelt = Memory("huge", "", metadata={"n": str(2**70)})
    assert heard(system.answer(query)) == (query, [told, spelt])


@pytest.mark.parametrize(
    "hit",
    [Hit("a"), Hit("a", 0.0), Hit("a", -1.5, "text", ("b", "c")), Hit("a", float("inf"))],
)
def test_a_hit_arrives_unchanged(hit: Hit) -> None:
    sent = messages.of_hits([hit]).SerializeToString()
    assert messages.hits_of(v1.RecallResponse.FromString(sent)) == [hit]


def test_an_unpaired_surrogate_is_escaped() -> None:
    assert messages.of_memory(Memory("m", "\ud83d!")).text == "\\ud83d!"


def test_messages_above_the_default_size_limit_are_sent_and_received(
    opened: Callable[..., Grpc],
) -> None:
    system = opened()
    system.reset("large")
    many = [Memory(f"m{number}", "word " * 1000) for number in range(2000)]
    system.remember([*many, Memory("long", "é" * 5_000_000)])
    assert len(system.recall(Query("?"), 5000)) == 2001
    assert len(system.answer(Query("?"))) > 15_000_000


def test_a_fork_is_independent_of_its_original(bm25: Listening) -> None:
    driver = Driver(lambda: Grpc(bm25.address))
    driver.begin("scope")
    driver.remember([Memory("m1", "a dog barks"), Memory("m2", "a cat purrs")])
    copy = driver.fork()
    copy.remember([Memory("m3", "dog dog dog")])
    copy.forget(Selector((Memory("m1", "a dog barks"),)))
    dog = Question("q", "dog")
    assert [hit.id for hit in copy.recall(dog, 5)] == ["m3"]
    copy.close()
    assert [hit.id for hit in driver.recall(dog, 5)] == ["m1"]
    driver.close()


def test_counters_are_sent_as_totals(opened: Callable[..., Grpc]) -> None:
    system = opened()
    assert system.stats() == {"index_bytes": 5, "asked": 1}
    assert system.stats() == {"index_bytes": 5, "asked": 2}


# Failures


def test_an_exception_of_the_system_is_the_error_of_that_call_without_keys(
    opened: Callable[..., Grpc], troubled: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = opened()
    with pytest.raises(ServerError) as caught:
        system.recall(Query("fail"), 5)
    assert str(caught.value) == (
        f"{troubled.address}: Recall: INTERNAL (ValueError: the index is locked, …)"
    )
    with pytest.raises(ServerError, match="SystemExit: enough"):
        system.answer(Query("exit"))
    assert len(system.recall(Query("?"), 5)) == 5


def test_a_call_that_takes_too_long_is_a_timeout_and_the_next_one_is_answered(
    opened: Callable[..., Grpc],
) -> None:
    hasty, patient = opened(), opened()
    hasty._connection._timeout = 0.5
    with pytest.raises(TimeoutError, match=r"Recall: no reply in 0.5 s"):
        hasty.recall(Query("sleep"), 5)
    assert len(patient.recall(Query("?"), 5)) == 5


def test_a_server_that_dies_is_lost_and_a_restarted_one_has_no_memories() -> None:
    with served(*ours("grpc", TROUBLED)) as server:
        connector = Driver(lambda: Grpc(server.address, patience=60.0))
        connector.begin("scope")
        connector.remember(MEMORIES)
        with pytest.raises(SystemLost, match=rf"{server.address}: Recall: UNAVAILABLE"):
            connector.recall(Question("q", "die"), 5)
        with served(*ours("grpc", TROUBLED, port=server.port)) as again:
            assert again.address == server.address
            with pytest.raises(SystemLost, match="Recall: NOT_FOUND"):
                connector.recall(Question("q", "?"), 5)
            connector.begin("scope")
            connector.remember(MEMORIES)
            assert len(connector.recall(Question("q", "?"), 5)) == 5
        connector.close()


def test_a_server_that_stays_down_stops_the_run_with_instructions(free_port: int) -> None:
    for connector in (Grpc, RecallBench):
        system = connector(f"127.0.0.1:{free_port}", patience=0.3)
        with pytest.raises(
            MnemoscopeError,
            match=r"is down \(.*0\.3 s\): start it, then repeat the command to resume",
        ):
            system.identity()


@pytest.fixture
def free_port() -> Iterator[int]:
    with socket.socket() as held:  # keeps the port, where no server listens
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_an_error_names_the_connector_for_the_service_that_is_offered(example: Served) -> None:
    with (
        here("bm25", recall_bench_only=True) as bench,
        pytest.raises(UsageError, match=rf"write recall-bench:{bench.address}"),
    ):
        Grpc(bench.address).identity()
    system = RecallBench(example.address)
    assert system.identity()["name"] == ""
    with pytest.raises(UsageError, match=rf"MemoryBenchService; .*write grpc:{example.address}"):
        system.reset("scope")
    system.close()


@pytest.mark.parametrize(
    "address", ["", ":50052", "host:port", "host:0", "host:70000", "http://host:1", "a b:1"]
)
def test_an_invalid_address_is_refused_with_an_example(address: str) -> None:
    for connector, system in (("grpc", Grpc), ("recall-bench", RecallBench)):
        with pytest.raises(UsageError, match=rf"write {connector}:HOST:PORT"):
            system(address)


def test_all_forms_of_an_address_are_accepted() -> None:
    def target(address: str) -> str:
        return GrpcConnection("grpc", address, timeout=1, patience=1).target

    assert target("localhost") == "localhost:50052"
    assert target("grpc://10.0.0.7:1234/") == "10.0.0.7:1234"
    assert target("[::1]:9") == "[::1]:9"
    with pytest.raises(UsageError, match="timeout=0: give a number of seconds above 0"):
        Grpc("localhost", timeout=0.0)


# The server


def test_health_is_served_and_waited_for(bm25: Listening) -> None:
    import grpc
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc

    with grpc.insecure_channel(bm25.address) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        for service in ("", "mnemoscope.v1.Memory", "recall.bench.MemoryBenchService"):
            said = check(health_pb2.HealthCheckRequest(service=service), timeout=10)
            assert said.status == health_pb2.HealthCheckResponse.SERVING
    server, state = grpc.server(ThreadPoolExecutor(2)), health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(state, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    state.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    connection = GrpcConnection("grpc", f"127.0.0.1:{port}", timeout=5, patience=60)
    with pytest.raises(MnemoscopeError, match="is down"):
        connection.wait(at_most=0.4)
    state.set("", health_pb2.HealthCheckResponse.SERVING)
    connection.wait()
    connection.close()
    server.stop(None)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["oracle"], "oracle needs the evidence of each question"),
        (["bm25", "--port", "70000"], "from 0 to 65535"),
        (["bm25", "--depth", "0"], "at least one hit"),
        (["bm25", "--reader", "system"], "cannot answer by itself: give a reader with --reader"),
        (["nonsense"], "unknown system"),
    ],
)
def test_what_cannot_be_served_is_explained(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["serve", "grpc", *words]) == 2
    assert complaint in " ".join(capsys.readouterr().err.split())


def test_a_port_that_is_taken_is_explained(
    bm25: Listening, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["serve", "grpc", "bm25", "--port", str(bm25.port)]) == 1
    assert f"cannot listen on {bm25.address}" in capsys.readouterr().err


def test_the_least_recently_used_sessions_are_closed() -> None:
    held = Sessions(plan(Spec("bm25")).build, most=3)
    for name in "abc":
        held.reset(name, "scope")
    held.get("a")
    held.reset("d", "scope")
    with pytest.raises(NoSuchSession):
        held.get("b")
    assert all(name in held for name in "acd")
    held.close()


def test_a_fork_works_after_its_original_is_closed() -> None:
    held = Sessions(plan(Spec("bm25")).build)
    held.reset("first", "scope")
    held.get("first").do(lambda driver: driver.remember([Memory("m1", "a dog barks")]))
    copy = held.fork("first")
    held.drop("first")
    found = held.get(copy).do(lambda driver: driver.recall(Question("q", "dog"), 5))
    assert [hit.id for hit in found] == ["m1"]
    held.close()


def test_the_generated_messages_are_those_of_the_protos(tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc_tools") is None:
        missing("grpcio-tools is not installed")
    builder = importlib.util.spec_from_file_location(
        "build_protos", REPOSITORY / "tools" / "build_protos.py"
    )
    assert builder is not None and builder.loader is not None
    module: Any = importlib.util.module_from_spec(builder)
    builder.loader.exec_module(module)
    made = module.build(tmp_path)
    assert len(made) == 2
    for path in made:
        committed = REPOSITORY / "src" / path.relative_to(tmp_path)
        assert path.read_bytes() == committed.read_bytes(), f"run tools/build_protos.py: {path}"


# Days


def test_the_datasets_own_days_are_kept_and_pieces_of_a_day_are_joined() -> None:
    at = datetime(2026, 1, 7, tzinfo=UTC)
    pieces = [
        Memory("p/day-0003/a", "one", at, metadata={"day": 3, "active_arcs": "x,y"}),
        Memory("p/day-0003/b", "two", at, metadata={"day": 3}),
        Memory("p/day-0009", "three", metadata={"day": 9}),
    ]
    assert DayIndex().days("p", pieces) == [
        Day(3, "one\n\ntwo", "2026-01-07", "p", ("x", "y")),
        Day(9, "three", "", "p"),
    ]


def test_days_are_counted_from_the_first_date_over_all_batches() -> None:
    calendar = DayIndex()

    def told(*days: int) -> list[Memory]:
        return [Memory(f"m{day}", f"{day}", datetime(2026, 1, day, 9, tzinfo=UTC)) for day in days]

    assert [day.number for day in calendar.days("s", told(5, 5, 7))] == [1, 3]
    later = [*told(12), Memory("undated", "of the same day"), *told(13)]
    assert [(day.number, day.content) for day in calendar.days("s", later)] == [
        (8, "12\n\nof the same day"),
        (9, "13"),
    ]


def test_without_any_date_every_memory_is_a_day() -> None:
    calendar = DayIndex()
    assert [day.number for day in calendar.days("s", MEMORIES[:2])] == [1, 2]
    assert [day.number for day in calendar.days("s", MEMORIES[2:])] == [3, 4, 5]


def test_a_day_of_another_harness_becomes_a_memory() -> None:
    assert day_memory(Day(12, "log", "2026-01-16", "tester", ("x", "y"))) == Memory(
        "day-0012",
        "log",
        datetime(2026, 1, 16, tzinfo=UTC),
        metadata={"day": 12, "persona": "tester", "active_arcs": "x,y"},
    )
    assert day_memory(Day(1, "log", "someday")) == Memory("day-0001", "log", metadata={"day": 1})
