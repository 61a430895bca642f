"""The other side of the HTTP door: any system behind our contract, on this machine.

A space is what a child process is behind the stdio door: a system of its own for one client.
"""

from __future__ import annotations

import hmac
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

import mnemoscope
from mnemoscope.core.errors import UsageError
from mnemoscope.core.json_server import Handler, JsonServer, Refused, Request
from mnemoscope.core.nouns import Memory, Query, Question, Receipt, Selector
from mnemoscope.systems.arms import Oracle
from mnemoscope.systems.http.contract import GONE, Hello
from mnemoscope.systems.python import Driver, Plan, can_recall

T = TypeVar("T")

_MOST_SPACES = 256
"""Clients that died never close theirs; the one that was silent for longest has to go."""


class _InSpace(msgspec.Struct):
    space: str


class _Reset(_InSpace):
    scope: str


class _Memories(_InSpace):
    memories: list[Memory]


class _Asked(_InSpace):
    query: Query
    k: int = 0


class _Space:
    """One client's system."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self.driver = Driver(build)
        self.counted: Counter[str] = Counter()


class Service:
    """The verbs of one system, for any number of clients at once."""

    def __init__(self, plan: Plan, *, key: str = "") -> None:
        tried = plan.build()
        if type(tried) is Oracle:
            raise UsageError("the oracle is told the evidence, which no server may know")
        self._plan = plan
        self._key = key
        self._methods = _methods(tried)
        if hasattr(tried, "close"):
            tried.close()
        self._spaces: OrderedDict[str, _Space] = OrderedDict()
        self._turn = threading.Lock()

    @property
    def routes(self) -> dict[str, Handler]:
        verbs: dict[str, Handler] = {
            "POST /v1/reset": self._reset,
            "POST /v1/remember": self._remember,
            "POST /v1/recall": self._recall,
            "POST /v1/answer": self._answer,
            "POST /v1/forget": self._forget,
            "POST /v1/stats": self._stats,
            "POST /v1/close": self._close,
        }
        has = {path: verb for path, verb in verbs.items() if path[9:] in self._methods}
        guarded = {path: self._guarded(verb) for path, verb in has.items()}
        return {
            "GET /health": lambda request: {"status": "ok"},
            "GET /v1/hello": self._guarded(self._hello),
            **guarded,
        }

    def close(self) -> None:
        with self._turn:
            while self._spaces:
                self._spaces.popitem()[1].driver.close()

    def _guarded(self, verb: Handler) -> Handler:
        def serve(request: Request) -> Any:
            given = request.headers.get("Authorization") or ""
            if self._key and not hmac.compare_digest(
                given.encode(errors="replace"), f"Bearer {self._key}".encode()
            ):
                raise Refused(401, "this server wants its key as a Bearer token")
            return verb(request)

        return serve

    def _hello(self, request: Request) -> Hello:
        return Hello(
            name=str(self._plan.spec),
            version=mnemoscope.__version__,
            methods=self._methods,
            identity=self._plan.identity,
        )

    def _reset(self, request: Request) -> dict[str, Any]:
        order = _read(request, _Reset)
        with self._turn:
            space = self._spaces.setdefault(order.space, _Space(self._plan.build))
            self._spaces.move_to_end(order.space)
            left = [
                self._spaces.popitem(last=False)[1] for _ in range(len(self._spaces) - _MOST_SPACES)
            ]
        for one in left:
            one.driver.close()
        space.driver.begin(order.scope)
        return {}

    def _remember(self, request: Request) -> Receipt:
        order, space = self._in(request, _Memories)
        return space.driver.remember(order.memories)

    def _recall(self, request: Request) -> dict[str, Any]:
        order, space = self._in(request, _Asked)
        return {"hits": space.driver.recall(_question(order.query), order.k)}

    def _answer(self, request: Request) -> dict[str, Any]:
        order, space = self._in(request, _Asked)
        return {"answer": space.driver.answer(_question(order.query))}

    def _forget(self, request: Request) -> dict[str, Any]:
        order, space = self._in(request, _Memories)
        space.driver.forget(Selector(tuple(order.memories)))
        return {}

    def _stats(self, request: Request) -> dict[str, int]:
        _, space = self._in(request, _InSpace)
        size, grown = space.driver.counted()
        space.counted.update(grown)
        return {**space.counted, **({} if size is None else {"index_bytes": size})}

    def _close(self, request: Request) -> dict[str, Any]:
        order = _read(request, _InSpace)
        with self._turn:
            space = self._spaces.pop(order.space, None)
        if space is not None:
            space.driver.close()
        return {}

    def _in(self, request: Request, kind: type[_Told]) -> tuple[_Told, _Space]:
        order = _read(request, kind)
        with self._turn:
            space = self._spaces.get(order.space)
            if space is None:
                raise Refused(GONE, "this space is not known here: reset it, and tell it all again")
            self._spaces.move_to_end(order.space)
        return order, space


_Told = TypeVar("_Told", bound=_InSpace)


def _methods(system: Any) -> list[str]:
    has = [verb for verb in ("answer", "forget", "stats") if hasattr(system, verb)]
    return ["reset", "remember", *(["recall"] if can_recall(system) else []), *has, "close"]


def _question(query: Query) -> Question:
    return Question("", query.text, query.now, session=query.session)


def _read(request: Request, kind: type[T]) -> T:
    try:
        return msgspec.convert(request.body, kind)
    except msgspec.ValidationError as error:
        raise Refused(400, f"the request cannot be read: {error}") from None


def server(plan: Plan, *, host: str = "127.0.0.1", port: int = 0, key: str = "") -> JsonServer:
    """The system on a socket; `serve_forever()` or `start()` it."""
    return JsonServer(Service(plan, key=key).routes, host=host, port=port)
