"""The connection to one gRPC server: its address, whether it serves, errors by their cause.

This module handles calls and status codes and does not interpret the messages. Each process opens
its own channel at its first call. Our workers are forked, and gRPC does not work after a fork: a
process that forks workers makes its first call in a child process (`first_call`).
"""

from __future__ import annotations

import math
import os
import pickle
import re
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import grpc
from grpc_health.v1 import health_pb2

from mnemoscope._store.errors import MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.server_access import read_key
from mnemoscope.connectors.grpc import DEFAULT_PORT, SIZE_LIMITS
from mnemoscope.connectors.handshake import ServerError, check_seconds, server_down
from mnemoscope.models.http_errors import shortened

T = TypeVar("T")

_ADDRESS = re.compile(r"(?:grpc://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\s\[\]]+)(?::(?P<port>\d+))?/?")
_LAST_PORT = 65_535
_FIRST_WAIT = 5.0
"""Seconds that we wait for a server at the first call."""
_PAUSE = 0.1
"""Seconds between two health checks of a server that is not ready."""
_OPTIONS = (
    *SIZE_LIMITS,
    # The connector talks to its server directly, and sets its own deadlines.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A reader can take longer than gRPC keeps an idle connection, and a broken connection counts
    # as a lost server.
    ("grpc.client_idle_timeout_ms", 2**31 - 1),
    ("grpc.use_local_subchannel_pool", 1),
)


class RpcMethod(NamedTuple):
    """A method of a service, with its request and response messages."""

    service: str
    name: str
    request: Any
    response: Any
    streams: bool = False
    """Whether the request is a stream of messages."""


class NotOffered(ServerError):
    """The server does not have this service, or not this method."""


class GrpcConnection:
    """The connection to a server, with deadlines and readable errors."""

    def __init__(
        self,
        connector: str,
        address: str,
        *,
        timeout: float,
        patience: float,
        key: str = "",
        lost: tuple[grpc.StatusCode, ...] = (),
        watched: bool = False,
    ) -> None:
        """`key` is the name of an environment variable with the server's key.

        `lost` are further codes that mean that the server lost its memories.

        Only a `watched` connection counts its drops.
        """
        check_seconds(timeout=timeout, patience=patience)
        self.target = _target(connector, address)
        self.who = f"the server at {self.target}"
        self._timeout = timeout
        self._patience = patience
        token = read_key(key, "key=")
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._lost = (*_LOST, *lost)
        self._watched = watched
        self.drops = 0
        """How often the connection broke; gRPC reconnects, perhaps to another server."""
        self._is_ready = False
        self._channel: grpc.Channel | None = None
        self._callers: dict[RpcMethod, Any] = {}
        self._opening = threading.Lock()

    def call(self, method: RpcMethod, message: Any) -> Any:
        """Return the server's reply. A call is not repeated: the first may have had its effect."""
        try:
            return self._caller(method)(message, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._exception(error, method) from None

    def wait(self, at_most: float = math.inf) -> None:
        """Wait until the server can be reached and its health check says that it serves.

        A server without gRPC's health check counts as ready.
        """
        seconds = min(self._patience, at_most)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                check = self._caller(_HEALTH)
                reply = check(health_pb2.HealthCheckRequest(), timeout=left, wait_for_ready=True)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    break
                if error.code() not in _LOST:
                    return
            else:
                if reply.status != health_pb2.HealthCheckResponse.NOT_SERVING:
                    return
            time.sleep(min(_PAUSE, left))
        raise server_down(self.who, f"it did not serve within {seconds:g} s")

    def first_call(self, call: Callable[[], T]) -> T:
        """Wait a short time for the server and make the first call, before a run begins."""

        def wait_and_call() -> T:
            self.wait(_FIRST_WAIT)
            try:
                return call()
            except SystemLost as error:
                raise server_down(self.who, error) from None

        return _in_fork(wait_and_call)

    def close(self) -> None:
        """Close this process's connection; another call would open a new one."""
        if self._channel is None or not is_grpc_process():
            return  # closing an inherited channel could close the parent's
        channel, self._channel = self._channel, None
        self._callers.clear()
        if self._watched:
            # gRPC's thread prints an error if a subscriber is left.
            channel.unsubscribe(self._watch)
        channel.close()

    def _caller(self, method: RpcMethod) -> Any:
        """The callable of a method; the first call opens the channel."""
        begin_grpc()
        with self._opening:
            if self._channel is None:
                self._channel = grpc.insecure_channel(self.target, options=_OPTIONS)
                self.drops, self._is_ready = 0, False
                if self._watched:
                    self._channel.subscribe(self._watch)
            if (made := self._callers.get(method)) is None:
                make = self._channel.stream_unary if method.streams else self._channel.unary_unary
                made = self._callers[method] = make(
                    f"/{method.service}/{method.name}",
                    request_serializer=method.request.SerializeToString,
                    response_deserializer=method.response.FromString,
                )
            return made

    def _watch(self, state: grpc.ChannelConnectivity) -> None:
        is_ready = state is grpc.ChannelConnectivity.READY
        self.drops += self._is_ready and not is_ready
        self._is_ready = is_ready

    def _exception(self, error: Any, method: RpcMethod) -> Exception:
        code, details = error.code(), shortened(error.details() or "no details")
        about = f"{self.target}: {method.name}: {code.name} ({details})"
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return TimeoutError(f"{self.target}: {method.name}: no reply in {self._timeout:g} s")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return NotOffered(f"{about}; it does not offer {method.name} of {method.service}")
        if code is grpc.StatusCode.UNAUTHENTICATED:
            return MnemoscopeError(
                f"{about}; export MEMORY_KEY=… with its key, write key=MEMORY_KEY, then resume"
            )
        return SystemLost(about) if code in self._lost else ServerError(about)


# CANCELLED: we never cancel calls, so the server did, while it was shutting down.
_LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_HEALTH = RpcMethod(
    "grpc.health.v1.Health",
    "Check",
    health_pb2.HealthCheckRequest,
    health_pb2.HealthCheckResponse,
)


def _target(connector: str, address: str) -> str:
    found = _ADDRESS.fullmatch(address.strip())
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if not found or not 0 < port <= _LAST_PORT:
        raise UsageError(
            f"{address!r} is not the address of a server: write {connector}:HOST:PORT, "
            f"such as {connector}:127.0.0.1:{DEFAULT_PORT}"
        )
    return f"{found['host']}:{port}"


_process_with_grpc = 0
"""The id of the process that uses gRPC: from then on it must not fork workers."""


def begin_grpc() -> None:
    """Call this before you open a channel or start a server."""
    global _process_with_grpc
    if _process_with_grpc not in (0, os.getpid()):
        raise MnemoscopeError(
            "this process was forked from one that uses gRPC, so its calls may hang for ever: "
            "start the run from a process that has not used a gRPC connector or server itself"
        )
    _process_with_grpc = os.getpid()


def is_grpc_process() -> bool:
    return _process_with_grpc == os.getpid()


def _in_fork(call: Callable[[], T]) -> T:
    """Call `call` in a child process, unless this process uses gRPC already."""
    if is_grpc_process():
        return call()
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            reply = _outcome(call)
            while reply:
                reply = reply[os.write(theirs, reply) :]
        finally:
            os._exit(0)  # without the exit handlers that it inherited
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        reply = pipe.read()
    os.waitpid(child, 0)
    if not reply:
        raise RuntimeError("the child process that calls the server died")
    worked, outcome = pickle.loads(reply)
    if worked:
        return cast(T, outcome)
    raise outcome


def _outcome(call: Callable[[], Any]) -> bytes:
    try:
        return pickle.dumps((True, call()))
    except Exception as error:
        try:
            return pickle.dumps((False, error))
        except Exception:
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
