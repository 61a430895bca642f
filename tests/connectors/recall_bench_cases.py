"""The protocol of Recall Bench: adapters in another language, and its clients for our server."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from tests.connectors.grpc_servers import EXAMPLES, PROTOS, TROUBLED, Listening, heard, here
from tests.connectors.served_processes import REPOSITORY, Served, served
from tests.described import described
from tests.optional import missing
from tests.waiting import eventually

from mnemoscope._store.errors import MnemoscopeError, SystemLost
from mnemoscope._store.run_directory import read_journal
from mnemoscope.connectors.grpc import RECALL_BENCH
from mnemoscope.connectors.grpc.channel import begin_grpc
from mnemoscope.connectors.grpc.recall_bench_client import METHODS, RecallBench
from mnemoscope.types import Answer, Memory, Query, Scalar

if TYPE_CHECKING:
    from tests.conftest import StartCommand

MODULES = REPOSITORY / "tests" / "node" / "node_modules"
PROTO = PROTOS / "recall_bench.proto"
LIGHTHOUSE = "We agreed that the lighthouse weighs 101 crates."
ORCHARD = "We agreed that the orchard weighs 102 crates."


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        missing("no node on the PATH")
    if not (MODULES / "@grpc" / "grpc-js").is_dir():
        missing("npm ci --prefix tests/node has not been run")
    return found


@pytest.fixture(scope="module")
def adapter(node: str) -> Iterator[Served]:
    """The example in JavaScript, an ordinary adapter for Recall Bench."""
    script = EXAMPLES / "recall_bench_server.mjs"
    with served(node, script, PROTO, 0, NODE_PATH=str(MODULES)) as server:
        yield server


@pytest.fixture(scope="module")
def bm25() -> Iterator[Listening]:
    with here("bm25") as server:
        yield server


@pytest.fixture(scope="module")
def life(write_persona: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_persona(tmp_path_factory.mktemp("personas"))


def answers(out: Path, name: str) -> dict[tuple[str, str], str]:
    [journal] = out.glob(f"{name}*/trials.jsonl")
    lines = read_journal(journal)
    return {
        (line.checkpoint, line.question): line.text for line in lines if isinstance(line, Answer)
    }


Benchmark = Callable[[Path, Path, str, str], int]


@pytest.fixture(scope="module")
def benchmark(start_command: StartCommand) -> Benchmark:
    """Run the benchmark with this system and reader; returns the exit code."""

    def benchmark(life: Path, out: Path, system: str, reader: str) -> int:
        words = ["run", "personas", "--data", str(life), "--out", str(out), "--ranges", "6d,12d"]
        words += ["--system", system, "--no-arms", "--no-heatmap-png"]
        return start_command([*words, *(["--reader", reader] if reader else [])]).wait()

    return benchmark


# Our client


def test_a_benchmark_runs_against_an_adapter_in_javascript(
    adapter: Served, benchmark: Benchmark, life: Path, tmp_path: Path
) -> None:
    assert benchmark(life, tmp_path, f"recall-bench:{adapter.address}", "system") == 0
    said = answers(tmp_path, "recall-bench")
    assert len(said) == 12 + 24
    assert said["6d", "tester-q001"] == "We agreed that thing01 weighs 101 crates. " + (
        "The piano can wait."
    )
    assert said["12d", "tester-q023"].startswith("We agreed that thing12 weighs 112 crates.")


def test_the_identity_has_the_adapters_name_and_the_limits_of_the_protocol(adapter: Served) -> None:
    planned = described(f"recall-bench:grpc://{adapter.address}")
    assert planned.identity["name"] == "shared-words-node"
    assert planned.identity["service"] == "recall.bench.MemoryBenchService"
    assert any("no hits" in note for note in planned.identity["notes"])


def test_it_only_answers(adapter: Served, benchmark: Benchmark, life: Path, tmp_path: Path) -> None:
    system = RecallBench(adapter.address)
    assert not any(hasattr(system, verb) for verb in ("recall", "retrieve", "forget", "fork"))
    assert benchmark(life, tmp_path, f"recall-bench:{adapter.address}", "extractive") == 2


def test_setup_empties_the_memory_and_a_second_client_is_refused(adapter: Served) -> None:
    system, other = RecallBench(adapter.address), RecallBench(adapter.address)
    system.reset("one")
    system.remember([Memory("m1", LIGHTHOUSE)])
    system.ready()
    assert system.answer(Query("lighthouse?")) == LIGHTHOUSE
    with pytest.raises(MnemoscopeError, match=r"one memory at a time.*--workers 1"):
        other.reset("two")
    system.reset("three")
    assert system.answer(Query("lighthouse?")) == "No evidence found."
    system.close()
    other.reset("two")
    other.close()


@contextmanager
def recorded(health: bool) -> Iterator[tuple[str, list[str]]]:
    """A server that records which calls it gets; its health check may fail."""
    calls: list[str] = []

    def handler(name: str) -> grpc.RpcMethodHandler:
        method = METHODS[name]

        def reply(request: Any, context: grpc.ServicerContext) -> Any:
            calls.append(name)
            if name == "Healthcheck" and not health:
                context.abort(grpc.StatusCode.INTERNAL, "no health today")
            return method.response(answer=LIGHTHOUSE) if name == "Query" else method.response()

        return grpc.unary_unary_rpc_method_handler(
            reply, method.request.FromString, method.response.SerializeToString
        )

    begin_grpc()
    server = grpc.server(ThreadPoolExecutor(2))
    port = server.add_insecure_port("127.0.0.1:0")
    own = grpc.method_handlers_generic_handler(RECALL_BENCH, {n: handler(n) for n in METHODS})
    server.add_generic_rpc_handlers((own,))
    server.start()
    try:
        yield f"127.0.0.1:{port}", calls
    finally:
        server.stop(None).wait()


@pytest.mark.parametrize("health", [True, False])
def test_each_setup_follows_a_health_check_and_is_followed_by_a_teardown(health: bool) -> None:
    with recorded(health) as (address, calls):
        system = RecallBench(f"grpc://{address}")
        for _ in range(2):
            system.reset("life")
            system.remember([Memory("m1", LIGHTHOUSE)])
            system.ready()
            assert system.answer(Query("lighthouse?")) == LIGHTHOUSE
        system.close()
        system.close()
    one_life = ["Healthcheck", "Setup", "IngestDay", "FinalizeIngestion", "Query", "Teardown"]
    assert calls == [*one_life, *one_life]


def test_a_url_of_recall_bench_is_a_system() -> None:
    with recorded(health=True) as (address, calls):
        planned = described(f"grpc://{address}")
    assert planned.hosting == "server"
    assert planned.answers
    assert not planned.recalls
    assert planned.identity["service"] == RECALL_BENCH
    assert calls == ["Healthcheck"]


# Our server


def test_a_client_in_javascript_can_use_our_server(bm25: Listening, node: str) -> None:
    client = REPOSITORY / "tests" / "node" / "client.mjs"
    done = subprocess.run(
        [node, client, PROTO, bm25.address], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "health": {"name": "bm25", "ready": True},
        "first": f"[2026-01-01] {LIGHTHOUSE}",
        "second": f"[2026-01-02] {ORCHARD}",
        "afresh": json.loads(done.stdout)["afresh"],
        "late": "FAILED_PRECONDITION: Setup has not been called: call it first",
    }
    assert "101 crates" not in json.loads(done.stdout)["afresh"]


CLIENT = f"""
import sys
import grpc, recall_bench_pb2 as rb, recall_bench_pb2_grpc as services
stub = services.MemoryBenchServiceStub(grpc.insecure_channel(sys.argv[1]))
assert stub.Healthcheck(rb.HealthcheckRequest(), timeout=20).ready
stub.Setup(rb.SetupRequest(), timeout=20)
about = rb.DayMetadata(day_number=3, date="2026-01-07", persona_id="p", active_arcs=["a", "b"])
day = rb.IngestDayRequest(day_number=3, content={LIGHTHOUSE!r}, metadata=about)
stub.IngestDay(day, timeout=20)
stub.FinalizeIngestion(rb.FinalizeIngestionRequest(), timeout=20)
print(stub.Query(rb.QueryRequest(question=sys.argv[2]), timeout=20).answer)
stub.Teardown(rb.TeardownRequest(), timeout=20)
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stubs generated from the .proto file."""
    if importlib.util.find_spec("grpc_tools") is None:
        missing("grpcio-tools is not installed")
    place = tmp_path_factory.mktemp("stubs")
    out = [f"--python_out={place}", f"--grpc_python_out={place}"]
    words = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", *out, str(PROTO)]
    subprocess.run(words, check=True)
    (place / "client.py").write_text(CLIENT)
    return place


def ask(generated: Path, address: str, question: str) -> str:
    done = subprocess.run(
        [sys.executable, generated / "client.py", address, question],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_generated_client_in_python_can_use_our_server(bm25: Listening, generated: Path) -> None:
    assert (
        ask(generated, bm25.address, "What does the lighthouse weigh?")
        == f"[2026-01-07] {LIGHTHOUSE}"
    )


def test_a_system_that_answers_is_used_without_a_reader_and_gets_whole_days(
    generated: Path,
) -> None:
    with here(TROUBLED) as server:
        said = ask(generated, server.address, "What?")
    about: dict[str, Scalar] = {"day": 3, "persona": "p", "active_arcs": "a,b"}
    day = Memory("day-0003", LIGHTHOUSE, datetime(2026, 1, 7, tzinfo=UTC), metadata=about)
    assert heard(said) == (Query("What?"), [day])


def test_our_client_and_our_server_answer_as_a_run_in_process_does(
    bm25: Listening, benchmark: Benchmark, life: Path, tmp_path: Path
) -> None:
    assert benchmark(life, tmp_path / "in", "bm25", "extractive") == 0
    assert benchmark(life, tmp_path / "out", f"grpc://{bm25.address}", "") == 0
    inside, outside = answers(tmp_path / "in", "bm25"), answers(tmp_path / "out", "grpc")
    assert len(inside) == 36
    assert outside == inside


def test_a_server_that_was_replaced_after_setup_is_lost() -> None:
    with here("bm25") as server:
        system = RecallBench(server.address, patience=20.0)
        system.reset("life")
        system.remember([Memory("m1", LIGHTHOUSE)])
        system.ready()
        assert system.answer(Query("What does the lighthouse weigh?")) == LIGHTHOUSE
        # gRPC reports the state of its connection later, from another thread.
        assert eventually(lambda: system._connection._is_ready)
    assert eventually(lambda: system._connection.drops > 0)
    with here("bm25", server.port):
        with pytest.raises(SystemLost, match="the connection broke after Setup"):
            system.answer(Query("What does the lighthouse weigh?"))
        system.reset("life")
        system.remember([Memory("m1", ORCHARD)])
        assert system.answer(Query("What does the orchard weigh?")) == ORCHARD
        system.close()
