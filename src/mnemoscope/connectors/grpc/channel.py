"""One server as a door sees it: where it is, whether it is there, and what its failures mean.

It knows calls and status codes, nothing of what is said. A channel is opened at the first call of
each process: a fork must not share it.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from typing import Any, NamedTuple

import grpc
from grpc_health.v1 import health_pb2

from mnemoscope._store.errors import MnemoscopeError, SystemLost, UsageError
from mnemoscope.connectors.grpc import DEFAULT_PORT, UNLIMITED
from mnemoscope.connectors.grpc.fork_safe import speak_here
from mnemoscope.models.http_errors import shortened

_ADDRESS = re.compile(r"(?:grpc://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\s\[\]]+)(?::(?P<port>\d+))?/?")
_LAST_PORT = 65_535
_PAUSE = 0.1
"""Seconds between two looks at a server that is there and not ready."""
_OPTIONS = (
    *UNLIMITED,
    # A door leads straight to its server, and says itself how long it waits for it.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A reader can think for longer than gRPC keeps an unused connection, and a connection that
    # went away means a server that went away.
    ("grpc.client_idle_timeout_ms", 2**31 - 1),
    ("grpc.use_local_subchannel_pool", 1),
)


class ServerError(Exception):
    """The server itself says that something went wrong."""


class Method(NamedTuple):
    """A call of a service: what goes out, and what comes back."""

    service: str
    name: str
    request: Any
    response: Any
    streams: bool = False
    """Whether several messages go out."""


class NotOffered(ServerError):
    """The server has no such service, or no such method of it."""


class Line:
    """The connection to a server, with deadlines and errors for people."""

    def __init__(
        self,
        door: str,
        address: str,
        *,
        timeout: float,
        patience: float,
        lost: tuple[grpc.StatusCode, ...] = (),
        watched: bool = False,
    ) -> None:
        """`lost` are further codes by which this service says that all it held is gone.

        Only a line that is `watched` counts its drops.
        """
        for option, seconds in (("timeout", timeout), ("patience", patience)):
            if not seconds > 0:
                raise UsageError(f"{option}={seconds:g}: give a number of seconds above 0")
        self.target = _target(door, address)
        self._timeout = timeout
        self._patience = patience
        self._lost = (*_LOST, *lost)
        self._watched = watched
        self._channels: dict[int, _Channel] = {}
        """By process. What a fork inherits stays untouched: ending it could end the parent's."""
        self._opening = threading.Lock()

    def call(self, method: Method, message: Any) -> Any:
        """What the server says. It is not tried twice: who knows what became of the first try."""
        try:
            return self._channel.caller(method)(message, timeout=self._timeout)
        except grpc.RpcError as error:
            raise self._meaning(error, method) from None

    def wait(self, at_most: float = math.inf) -> None:
        """Return when the server can be reached and, as far as it tells, serves.

        gRPC's own health check is asked; a server that has none is taken at its word.
        """
        seconds = min(self._patience, at_most)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                check = self._channel.caller(_HEALTH)
                said = check(health_pb2.HealthCheckRequest(), timeout=left, wait_for_ready=True)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    break
                if error.code() not in _LOST:
                    return
            else:
                if said.status != health_pb2.HealthCheckResponse.NOT_SERVING:
                    return
            time.sleep(min(_PAUSE, left))
        raise self.is_down(f"it was not there to serve within {seconds:g} s")

    @property
    def drops(self) -> int:
        """How often the connection broke; gRPC makes a new one, whoever may answer there now."""
        return self._channel.drops

    def close(self) -> None:
        """Let go of this process's connection; another call would open a new one."""
        if (channel := self._channels.pop(os.getpid(), None)) is not None:
            channel.close()

    @property
    def _channel(self) -> _Channel:
        with self._opening:
            if (mine := self._channels.get(os.getpid())) is None:
                mine = self._channels[os.getpid()] = _Channel(self.target, watched=self._watched)
            return mine

    def is_down(self, why: str) -> MnemoscopeError:
        return MnemoscopeError(
            f"the server at {self.target} is down ({why}): start it; the same command goes on; "
            "nothing recorded is lost"
        )

    def _meaning(self, error: Any, method: Method) -> Exception:
        code, details = error.code(), shortened(error.details() or "no details")
        about = f"{self.target}: {method.name}: {code.name} ({details})"
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return TimeoutError(f"{self.target}: {method.name}: no reply in {self._timeout:g} s")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return NotOffered(f"{about}; it does not offer {method.name} of {method.service}")
        return SystemLost(about) if code in self._lost else ServerError(about)


# CANCELLED: we never cancel, so it was the server, on its way out.
_LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_HEALTH = Method(
    "grpc.health.v1.Health",
    "Check",
    health_pb2.HealthCheckRequest,
    health_pb2.HealthCheckResponse,
)


class _Channel:
    """An open channel, the callers made of it, and how often its connection broke."""

    def __init__(self, target: str, *, watched: bool) -> None:
        speak_here()
        self.drops = 0
        self._is_ready = False
        self._channel = grpc.insecure_channel(target, options=_OPTIONS)
        self._callers: dict[Method, Any] = {}
        self._watched = watched
        if watched:
            self._channel.subscribe(self._watch)

    def caller(self, method: Method) -> Any:
        if (made := self._callers.get(method)) is None:
            make = self._channel.stream_unary if method.streams else self._channel.unary_unary
            made = self._callers[method] = make(
                f"/{method.service}/{method.name}",
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
        return made

    def close(self) -> None:
        if self._watched:
            # The thread that watches for us complains where it still has somebody to tell.
            self._channel.unsubscribe(self._watch)
        self._channel.close()

    def _watch(self, state: grpc.ChannelConnectivity) -> None:
        is_ready = state is grpc.ChannelConnectivity.READY
        self.drops += self._is_ready and not is_ready
        self._is_ready = is_ready


def _target(door: str, address: str) -> str:
    found = _ADDRESS.fullmatch(address.strip())
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if not found or not 0 < port <= _LAST_PORT:
        raise UsageError(
            f"{address!r} is no address of a server: write {door}:HOST:PORT, "
            f"such as {door}:127.0.0.1:{DEFAULT_PORT}"
        )
    return f"{found['host']}:{port}"
