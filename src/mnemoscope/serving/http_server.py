"""The HTTP server: any system behind our contract.

Each space has a separate instance of the system, for one client.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, TypeVar

import msgspec

from mnemoscope._store.json_server import (
    Handler,
    JsonRequest,
    JsonServer,
    Refused,
    ServerLimits,
)
from mnemoscope._store.server_access import check_reach
from mnemoscope.connectors.http.http_connector import GONE
from mnemoscope.models.http_errors import shortened
from mnemoscope.serving.sessions import (
    LONGEST_NAME,
    NoSuchSession,
    ServedSession,
    Sessions,
    as_question,
    served_hello,
)
from mnemoscope.systems.loader import Plan
from mnemoscope.types import Memory, Query, Receipt, Selector

T = TypeVar("T")

_HEALTH = "GET /health"
_LONGEST_SCOPE = 10_000
_LARGEST_K = 1_000_000


class _SessionRequest(msgspec.Struct):
    space: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


class _ResetRequest(_SessionRequest):
    scope: Annotated[str, msgspec.Meta(max_length=_LONGEST_SCOPE)]


class _MemoriesRequest(_SessionRequest):
    memories: list[Memory]


class _QueryRequest(_SessionRequest):
    query: Query
    k: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_K)] = 0


class HttpServer(JsonServer):
    """Serves one system to any number of clients; call `serve_forever()` or `start()`."""

    def __init__(
        self,
        plan: Plan,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str = "",
        allow_hosts: Collection[str] = (),
        limits: ServerLimits | None = None,
    ) -> None:
        check_reach(host, key)
        hello = served_hello(plan)
        # Remember waits until all is searchable, so ready is not needed; HTTP has no fork.
        methods = [verb for verb in hello.methods if verb not in ("ready", "fork")]
        self._hello = msgspec.structs.replace(hello, methods=methods)
        self._sessions = Sessions(plan.build)
        verbs: dict[str, Handler] = {
            "reset": self._reset,
            "remember": self._remember,
            "recall": self._recall,
            "answer": self._answer,
            "forget": self._forget,
            "stats": self._stats,
            "close": self._close,
        }
        routes = {f"POST /v1/{verb}": _guarded(verbs[verb]) for verb in self._hello.methods}
        routes["GET /v1/hello"] = lambda request: self._hello
        routes[_HEALTH] = lambda request: {"status": "ok"}
        super().__init__(
            routes,
            host=host,
            port=port,
            key=key,
            keyless=[_HEALTH],
            allow_hosts=allow_hosts,
            limits=limits,
        )

    def close(self) -> None:
        super().close()
        self._sessions.close()

    def _reset(self, request: JsonRequest) -> dict[str, Any]:
        body = _read(request, _ResetRequest)
        self._sessions.reset(body.space, body.scope)
        return {}

    def _remember(self, request: JsonRequest) -> Receipt:
        body, session = self._in(request, _MemoriesRequest)
        return session.do(lambda driver: driver.remember(body.memories))

    def _recall(self, request: JsonRequest) -> dict[str, Any]:
        body, session = self._in(request, _QueryRequest)
        question = as_question(body.query)
        return {"hits": session.do(lambda driver: driver.recall(question, body.k))}

    def _answer(self, request: JsonRequest) -> dict[str, Any]:
        body, session = self._in(request, _QueryRequest)
        return {"answer": session.do(lambda driver: driver.answer(as_question(body.query)))}

    def _forget(self, request: JsonRequest) -> dict[str, Any]:
        body, session = self._in(request, _MemoriesRequest)
        session.do(lambda driver: driver.forget(Selector(tuple(body.memories))))
        return {}

    def _stats(self, request: JsonRequest) -> dict[str, int]:
        return self._in(request, _SessionRequest)[1].stats()

    def _close(self, request: JsonRequest) -> dict[str, Any]:
        self._sessions.drop(_read(request, _SessionRequest).space)
        return {}

    def _in(self, request: JsonRequest, kind: type[_Kind]) -> tuple[_Kind, ServedSession]:
        body = _read(request, kind)
        return body, self._sessions.get(body.space)


_Kind = TypeVar("_Kind", bound=_SessionRequest)


def _guarded(verb: Handler) -> Handler:
    def serve(request: JsonRequest) -> Any:
        try:
            return verb(request)
        except Refused:
            raise
        except NoSuchSession as error:
            raise Refused(GONE, str(error)) from None
        except (Exception, SystemExit) as error:  # its text may contain a key
            raise Refused(500, shortened(f"{type(error).__name__}: {error}")) from None

    return serve


def _read(request: JsonRequest, kind: type[T]) -> T:
    try:
        return msgspec.convert(request.body, kind)
    except msgspec.ValidationError as error:
        raise Refused(400, f"the request cannot be read: {error}") from None
