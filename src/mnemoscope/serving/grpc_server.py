"""The gRPC server: services on one port, with gRPC's health check.

An error in a call becomes a status with a message, and the server goes on.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, Protocol

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.server_access import check_reach, has_key
from mnemoscope.connectors.grpc import LARGEST_MESSAGE, SIZE_LIMITS
from mnemoscope.connectors.grpc.channel import RpcMethod, begin_grpc
from mnemoscope.models.http_errors import shortened
from mnemoscope.serving.sessions import NoSuchSession

_AT_ONCE = 64
"""Calls that can wait for their systems at the same time."""
_CALLS = 256
"""Calls that are running or waiting; further ones get RESOURCE_EXHAUSTED."""
_STREAM_SECONDS = 300.0
"""How long a client may take to send the messages of one call."""
_OPTIONS = (
    *SIZE_LIMITS,
    # Without this option two servers could share a port, and each get half of the calls.
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", _CALLS),
    ("grpc.server_handshake_timeout_ms", 10_000),
)
_STOP_SECONDS = 2.0
"""How long calls may take to end when the server stops."""


class GrpcService(Protocol):
    """The handlers of a service's methods."""

    def handlers(self) -> Mapping[RpcMethod, Callable[[Any], Any]]:
        """The offered methods, each with the function from its message or messages to its reply."""
        ...

    def close(self) -> None: ...


class GrpcServer:
    """A server that runs from its construction until `close`."""

    def __init__(
        self,
        services: Iterable[GrpcService],
        host: str,
        port: int,
        key: str = "",
        stream_seconds: float = _STREAM_SECONDS,
    ) -> None:
        """With a `key`, clients must send it as `authorization: Bearer …` in their metadata."""
        check_reach(host, key)
        self._services = list(services)
        self._stream_seconds = stream_seconds
        begin_grpc()
        self._server = grpc.server(
            ThreadPoolExecutor(_AT_ONCE),
            options=_OPTIONS,
            interceptors=[_KeyCheck(key)] if key else [],
            maximum_concurrent_rpcs=_CALLS,
        )
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for service in self._services:
            self._add(service)
        where = f"[{host}]" if ":" in host else host
        try:
            self.port: int = self._server.add_insecure_port(f"{where}:{port}")
        except RuntimeError:
            raise MnemoscopeError(
                f"cannot listen on {where}:{port}: the port is in use, or the host is not this "
                "machine; choose another --port or --host"
            ) from None
        self.address = f"{where}:{self.port}"
        self._server.start()

    def wait(self) -> None:
        """Wait until the server is stopped."""
        self._server.wait_for_termination()

    def close(self) -> None:
        self._health.enter_graceful_shutdown()
        self._server.stop(_STOP_SECONDS).wait()
        for service in self._services:
            service.close()

    def _add(self, service: GrpcService) -> None:
        by_service: dict[str, dict[str, Any]] = {}
        for method, handler in service.handlers().items():
            by_service.setdefault(method.service, {})[method.name] = self._rpc_handler(
                method, handler
            )
        for name, handlers in by_service.items():
            self._server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(name, handlers),)
            )
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def _rpc_handler(self, method: RpcMethod, handler: Callable[[Any], Any]) -> Any:
        def reply(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                return handler(self._received(request, context) if method.streams else request)
            except (Exception, SystemExit) as error:
                failure = error
            _abort(failure, context)

        make = (
            grpc.stream_unary_rpc_method_handler
            if method.streams
            else grpc.unary_unary_rpc_method_handler
        )
        return make(
            reply,
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )

    def _received(self, request: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        """All messages of a stream; a client that never ends it would keep a thread."""
        late = threading.Timer(self._stream_seconds, context.cancel)
        late.daemon = True
        late.start()
        messages, size = [], 0
        try:
            for message in request:
                size += message.ByteSize()
                if size > LARGEST_MESSAGE:
                    most = f"{LARGEST_MESSAGE >> 20} MiB"
                    raise UsageError(f"a stream of more than {most}: send it in several calls")
                messages.append(message)
        finally:
            late.cancel()
        return iter(messages)


class _KeyCheck(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Refuses calls without the key; the health check needs none."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._refusal = grpc.unary_unary_rpc_method_handler(_refuse)

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        given = dict(details.invocation_metadata).get("authorization", "")
        is_open = details.method.startswith("/grpc.health.v1.")
        if is_open or has_key(str(given), self._key):
            return continuation(details)
        return self._refusal


def _refuse(request: bytes, context: grpc.ServicerContext) -> NoReturn:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "this server requires its key as a Bearer token")
    raise AssertionError("abort raises")


def _abort(error: BaseException, context: grpc.ServicerContext) -> NoReturn:
    if isinstance(error, NoSuchSession):
        context.abort(grpc.StatusCode.NOT_FOUND, str(error))
    if isinstance(error, MnemoscopeError):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, shortened(error))
    if isinstance(error, grpc.RpcError):  # the client's stream broke, or was too slow
        context.abort(grpc.StatusCode.CANCELLED, "the messages of this call did not arrive")
    traceback.print_exception(error)
    context.abort(grpc.StatusCode.INTERNAL, shortened(f"{type(error).__name__}: {error}"))
    raise AssertionError("abort raises")
