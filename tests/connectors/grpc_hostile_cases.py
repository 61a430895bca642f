"""Hostile gRPC servers behind our connector, and hostile clients of our gRPC server."""

from __future__ import annotations

import math
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from tests.connectors.grpc_servers import here
from tests.waiting import eventually

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.connectors.grpc import SIZE_LIMITS, channel
from mnemoscope.connectors.grpc.channel import GrpcConnection
from mnemoscope.connectors.grpc.memory_client import Grpc
from mnemoscope.connectors.grpc.messages import METHODS
from mnemoscope.connectors.grpc.protos import mnemoscope_v1_pb2 as v1
from mnemoscope.connectors.handshake import ServerError
from mnemoscope.serving import grpc_server
from mnemoscope.serving.grpc_server import GrpcServer
from mnemoscope.serving.memory_service import MemoryService
from mnemoscope.serving.sessions import served_hello
from mnemoscope.systems.loader import Driver, plan
from mnemoscope.types import Memory, Query, Question

import grpc  # isort: skip  # after our package, which sets it up

KEY = "0123456789abcdef-key"
ESCAPES = "\x1b[2J\x1b]0;owned\x07"
MEMORIES = [Memory("m1", "a dog barks"), Memory("m2", "a cat sleeps")]
LARGEST = 1 << 20


# Hostile servers

Recall = Callable[[bytes, Any], bytes]


def refuses(code: grpc.StatusCode, details: str) -> Recall:
    def recall(request: bytes, context: Any) -> bytes:
        context.abort(code, details)
        raise AssertionError("abort raises")

    return recall


def waits(request: bytes, context: Any) -> bytes:
    threading.Event().wait(3)
    return b""


def large(request: bytes, context: Any) -> bytes:
    return bytes(v1.RecallResponse(hits=[v1.Hit(id="x" * (LARGEST + 10))]).SerializeToString())


def bomb(request: bytes, context: Any) -> bytes:
    context.set_compression(grpc.Compression.Gzip)
    return bytes(v1.RecallResponse(hits=[v1.Hit(id="x" * (16 << 20))]).SerializeToString())


CASES: dict[str, tuple[Recall, type[Exception], str]] = {
    "too large": (large, ServerError, "RESOURCE_EXHAUSTED .*larger than"),
    "compressed bomb": (bomb, ServerError, "RESOURCE_EXHAUSTED"),
    "never replies": (waits, TimeoutError, "Recall: no reply in 1 s"),
    "not protobuf": (lambda request, context: b"\xff" * 100, ServerError, "INTERNAL"),
    "escapes": (refuses(grpc.StatusCode.INTERNAL, ESCAPES), ServerError, "Recall: INTERNAL"),
    "long details": (
        refuses(grpc.StatusCode.INTERNAL, "x" * 5000),
        ServerError,
        "INTERNAL|RESOURCE_EXHAUSTED",
    ),
    "repeats the key": (
        lambda request, context: refuses(
            grpc.StatusCode.INTERNAL, str(context.invocation_metadata())
        )(request, context),
        ServerError,
        "Bearer …",
    ),
    "lost each time": (refuses(grpc.StatusCode.UNAVAILABLE, "gone"), SystemLost, "UNAVAILABLE"),
    "wants a key": (
        refuses(grpc.StatusCode.UNAUTHENTICATED, "no"),
        MnemoscopeError,
        "write key=MEMORY_KEY",
    ),
    "unknown error": (lambda request, context: 1 / 0, ServerError, "UNKNOWN"),  # type: ignore
}


@contextmanager
def hostile(recall: Recall) -> Iterator[str]:
    """A server that works, except for Recall."""

    def plain(name: str, reply: Any) -> Any:
        def handler(request: Any, context: Any) -> bytes:
            if name == "Remember":
                list(request)
            return bytes(reply.SerializeToString())

        make = (
            grpc.stream_unary_rpc_method_handler
            if name == "Remember"
            else grpc.unary_unary_rpc_method_handler
        )
        return make(handler)

    methods = ["reset", "remember", "recall", "close"]
    handlers = {
        "Hello": plain("Hello", v1.HelloResponse(name="hostile", methods=methods)),
        "Reset": plain("Reset", v1.ResetResponse(space="s")),
        "Remember": plain("Remember", v1.Receipt()),
        "Close": plain("Close", v1.CloseResponse()),
        "Recall": grpc.unary_unary_rpc_method_handler(recall),
    }
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)])
    service = METHODS["Recall"].service
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    channel.begin_grpc()
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    options = dict([*SIZE_LIMITS, *channel._OPTIONS])
    options["grpc.max_receive_message_length"] = LARGEST
    monkeypatch.setattr(channel, "_OPTIONS", tuple(options.items()))
    monkeypatch.setenv("HOSTILE_KEY", KEY)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("case", CASES)
def test_a_hostile_reply_is_an_error_with_its_cause(case: str) -> None:
    recall, kind, says = CASES[case]
    seconds = 1.0 if kind is TimeoutError else 30.0
    with hostile(recall) as address:
        driver = Driver(lambda: Grpc(address, timeout=seconds, patience=5.0, key="HOSTILE_KEY"))
        driver.begin("scope")
        driver.remember(MEMORIES)
        with pytest.raises(kind, match=says) as caught:
            driver.recall(Question("", "dog"), 2)
        driver.close()
    assert len(str(caught.value)) < 600
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("hits", "ids"),
    [
        ([v1.Hit(id="m1", score=math.nan), v1.Hit(id="m2", score=-math.inf)], ["m1", "m2"]),
        ([v1.Hit(id=""), v1.Hit(id="\x00"), v1.Hit(id=ESCAPES)], ["", "\x00", ESCAPES]),
        ([], []),
    ],
    ids=["scores", "ids", "none"],
)
def test_unusual_hits_are_read(hits: list[Any], ids: list[str]) -> None:
    reply = v1.RecallResponse(hits=hits).SerializeToString()
    with hostile(lambda request, context: reply) as address:
        driver = Driver(lambda: Grpc(address, timeout=5.0, patience=5.0))
        driver.begin("scope")
        assert [hit.id for hit in driver.recall(Question("", "dog"), 2)] == ids
        driver.close()


def test_a_hello_that_is_not_one_is_refused() -> None:
    bad = v1.HelloResponse(name="x", methods=["reset"], identity_json="[" * 100_000)
    server = grpc.server(ThreadPoolExecutor(1))
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: bad.SerializeToString())
    service = METHODS["Hello"].service
    handlers = grpc.method_handlers_generic_handler(service, {"Hello": handler})
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.raises((BadReply, MnemoscopeError), match="identity_json that is not JSON"):
            Grpc(f"127.0.0.1:{port}", timeout=5.0).identity()
    finally:
        server.stop(None).wait()


# Hostile clients


@contextmanager
def served(**options: Any) -> Iterator[GrpcServer]:
    system = plan(Spec.parse("bm25"))
    service = MemoryService(system.build, served_hello(system))
    server = GrpcServer([service], options.pop("host", "127.0.0.1"), 0, **options)
    try:
        yield server
    finally:
        server.close()


def works(address: str, key: str = "") -> bool:
    system = Grpc(address, timeout=20.0, patience=20.0, key=key)
    system.reset("scope")
    system.remember(MEMORIES)
    found = [hit.id for hit in system.recall(Query("dog"), 1)]
    system.close()
    return found == ["m1"]


def test_a_key_is_required_and_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGHT", KEY)
    monkeypatch.setenv("WRONG", "another-key-of-a-test")
    with served(key=KEY) as server:
        assert works(server.address, "RIGHT")
        for key in ("", "WRONG"):
            with pytest.raises(
                MnemoscopeError, match=r"UNAUTHENTICATED .*key=MEMORY_KEY"
            ) as caught:
                works(server.address, key)
            assert "another-key" not in str(caught.value)
        assert works(server.address, "RIGHT")


def test_a_server_beyond_loopback_needs_a_key() -> None:
    with pytest.raises(UsageError, match=r"other machines can reach .*--key MEMORY_KEY"):
        GrpcServer([], "0.0.0.0", 0)
    with (
        served(host="0.0.0.0", key=KEY) as server,
        pytest.raises(MnemoscopeError, match="UNAUTHENTICATED"),
    ):
        works(server.address.replace("0.0.0.0", "127.0.0.1"))


def test_a_message_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = (("grpc.max_receive_message_length", LARGEST), ("grpc.max_send_message_length", -1))
    monkeypatch.setattr(grpc_server, "_OPTIONS", limits)
    with served() as server:
        system = Grpc(server.address, timeout=20.0)
        system.reset("scope")
        with pytest.raises(ServerError, match="RESOURCE_EXHAUSTED"):
            system.remember([Memory("m", "x" * (LARGEST + 10))])
        system.close()
        assert works(server.address)


def test_a_stream_is_bounded_in_bytes_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_server, "LARGEST_MESSAGE", LARGEST)
    over = threading.Event()
    part = v1.RememberRequest(space="s", memories=[v1.MemoryRecord(id="m", text="x" * 100_000)])

    def without_end() -> Iterator[Any]:
        while not over.is_set():
            yield part

    def stuck() -> Iterator[Any]:
        yield v1.RememberRequest(space="s")
        over.wait(60)

    with served(stream_seconds=0.5) as server:
        connection = GrpcConnection("grpc", server.address, timeout=20.0, patience=5.0)
        tracemalloc.start()
        with pytest.raises(ServerError, match="a stream of more than 1 MiB"):
            connection.call(METHODS["Remember"], without_end())
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
        tracemalloc.stop()
        with pytest.raises(SystemLost, match="CANCELLED"):
            connection.call(METHODS["Remember"], stuck())
        over.set()
        connection.close()
        assert works(server.address)


def test_calls_too_many_are_refused_and_the_server_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_server, "_CALLS", 2)
    over = threading.Event()
    with served() as server:
        connection = GrpcConnection("grpc", server.address, timeout=60.0, patience=5.0)
        held = [threading.Thread(target=_call_until, args=(over, connection)) for _ in range(2)]
        for one in held:
            one.start()
        other = GrpcConnection("grpc", server.address, timeout=20.0, patience=5.0)

        def is_refused() -> bool:
            try:
                other.call(METHODS["Hello"], v1.HelloRequest())
            except ServerError as error:
                return "RESOURCE_EXHAUSTED" in str(error)
            return False

        assert eventually(is_refused)
        over.set()
        for one in held:
            one.join()
        connection.close()
        other.close()
        assert works(server.address)


def _call_until(over: threading.Event, connection: GrpcConnection) -> None:
    """Hold a call open; one that the server refuses is repeated."""

    def stuck() -> Iterator[Any]:
        yield v1.RememberRequest(space="s")
        over.wait(60)

    while not over.is_set():
        with suppress(ServerError, SystemLost, TimeoutError):
            connection.call(METHODS["Remember"], stuck())


@pytest.mark.parametrize("name", ["x" * 5000, "", "\x00", ESCAPES])
def test_any_name_of_a_space_is_answered(name: str) -> None:
    with here("bm25") as server:
        connection = GrpcConnection("grpc", server.address, timeout=20.0, patience=5.0)
        with pytest.raises(ServerError, match="does not have the space") as caught:
            connection.call(METHODS["Stats"], v1.StatsRequest(space=name))
        assert len(str(caught.value)) < 400
        reset = connection.call(METHODS["Reset"], v1.ResetRequest(space=name, scope=name))
        assert reset.space != name
        connection.close()
        assert works(server.address)
