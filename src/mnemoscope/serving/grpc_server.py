"""The server: services on one port, with gRPC's own health check beside them.

What goes wrong behind a call becomes a status with a sentence, and the server lives on.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, Protocol

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.connectors.grpc import UNLIMITED
from mnemoscope.connectors.grpc.channel import RpcMethod, begin_grpc
from mnemoscope.models.http_errors import shortened
from mnemoscope.serving.sessions import NoSuchSession

_AT_ONCE = 64
"""Calls that can be waiting for their systems at the same time."""
_FAREWELL = 2.0
"""Seconds that calls get to end when the server does."""


class GrpcService(Protocol):
    """Something that answers the methods of a service."""

    def answerers(self) -> Mapping[RpcMethod, Callable[[Any], Any]]:
        """Each method that is offered, and what makes its reply of a message or of several."""
        ...

    def close(self) -> None: ...


class GrpcServer:
    """Serves from the moment it is made until it is closed."""

    def __init__(self, services: Iterable[GrpcService], host: str, port: int) -> None:
        self._services = list(services)
        begin_grpc()
        # Without the option two servers could share a port, and each get half of the calls.
        options = (*UNLIMITED, ("grpc.so_reuseport", 0))
        self._server = grpc.server(ThreadPoolExecutor(_AT_ONCE), options=options)
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for service in self._services:
            self._add(service)
        where = f"[{host}]" if ":" in host else host
        try:
            self.port: int = self._server.add_insecure_port(f"{where}:{port}")
        except RuntimeError:
            raise MnemoscopeError(
                f"cannot listen on {where}:{port}: it is in use or not ours; choose another --port"
            ) from None
        self.address = f"{where}:{self.port}"
        self._server.start()

    def wait(self) -> None:
        """Until somebody ends it."""
        self._server.wait_for_termination()

    def close(self) -> None:
        self._health.enter_graceful_shutdown()
        self._server.stop(_FAREWELL).wait()
        for service in self._services:
            service.close()

    def _add(self, service: GrpcService) -> None:
        by_service: dict[str, dict[str, Any]] = {}
        for method, answerer in service.answerers().items():
            by_service.setdefault(method.service, {})[method.name] = _handler(method, answerer)
        for name, handlers in by_service.items():
            self._server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(name, handlers),)
            )
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)


def _handler(method: RpcMethod, answerer: Callable[[Any], Any]) -> Any:
    def reply(asked: Any, context: grpc.ServicerContext) -> Any:
        try:
            return answerer(asked)
        except (Exception, SystemExit) as error:
            failure = error
        _refuse(failure, context)

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


def _refuse(error: BaseException, context: grpc.ServicerContext) -> NoReturn:
    if isinstance(error, NoSuchSession):
        context.abort(grpc.StatusCode.NOT_FOUND, str(error))
    if isinstance(error, MnemoscopeError):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, shortened(error))
    traceback.print_exception(error)
    context.abort(grpc.StatusCode.INTERNAL, shortened(f"{type(error).__name__}: {error}"))
    raise AssertionError("abort raises")
