"""The gRPC connector: `grpc:HOST:PORT`, a server that offers mnemoscope.v1.Memory.

The system has the verbs that the server's Hello lists. Each worker has a space that the server
names, so several workers can use one server at once.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import grpc
import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.connectors.grpc import MEMORY, messages
from mnemoscope.connectors.grpc.channel import GrpcConnection, NotOffered
from mnemoscope.connectors.grpc.messages import METHODS
from mnemoscope.connectors.grpc.protos import mnemoscope_v1_pb2 as v1
from mnemoscope.connectors.handshake import VERBS, Hello, check_methods, check_same, read_hello
from mnemoscope.types import Hit, Memory, Query, Receipt, Selector

_VERBS = VERBS | {"fork"}


class Grpc:
    """A server as a system.

    `timeout` is how many seconds a call may take, `patience` how many seconds a reset waits for a
    server that cannot be reached, `key` the environment variable with the server's key.
    """

    def __init__(
        self, address: str, timeout: float = 120.0, patience: float = 30.0, key: str = ""
    ) -> None:
        # NOT_FOUND: a restarted server does not have our space.
        lost = (grpc.StatusCode.NOT_FOUND,)
        self._connection = GrpcConnection(
            "grpc", address, timeout=timeout, patience=patience, key=key, lost=lost
        )
        self._hello: Hello | None = None
        self._hello_lock = threading.RLock()
        self._space = ""
        self._owner = os.getpid()
        """The process that made the space: a fork must not reuse its parent's space."""
        self._is_copy = False

    def __getattr__(self, name: str) -> Any:
        """Return a method only if the server's hello lists it."""
        if name in _VERBS and name in self._introduction().methods:
            return getattr(self, f"_{name}")
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def identity(self) -> dict[str, Any]:
        return {"service": MEMORY, "hello": msgspec.to_builtins(self._introduction())}

    def close(self) -> None:
        """Tell the server, if it can be reached, that the space is no longer needed."""
        space, self._space = self._own_space, ""
        with suppress(Exception):
            if space and self._is_copy:
                self._ask("DropFork", v1.DropForkRequest(space=space))
            elif space and "close" in self._introduction().methods:
                self._ask("Close", v1.CloseRequest(space=space))
        if not self._is_copy:
            self._connection.close()

    def _reset(self, scope: str) -> None:
        reusable, self._space, self._owner = self._own_space, "", os.getpid()
        try:
            self._space = self._begun(scope, reusable)
        except SystemLost:
            # The server was restarted and has lost the old space: ask for a new one.
            if not reusable:
                raise
            self._space = self._begun(scope, "")

    def _begun(self, scope: str, space: str) -> str:
        self._connection.wait()
        check_same(self._introduction(), self._request_hello(), self._connection.who)
        return _named(self._ask("Reset", v1.ResetRequest(scope=printable(scope), space=space)))

    @property
    def _own_space(self) -> str:
        return self._space if self._owner == os.getpid() else ""

    def _remember(self, memories: Sequence[Memory]) -> Receipt:
        return messages.receipt_of(self._ask("Remember", messages.batches(self._space, memories)))

    def _ready(self) -> None:
        self._ask("Ready", v1.ReadyRequest(space=self._space))

    def _recall(self, query: Query, k: int) -> list[Hit]:
        request = v1.RecallRequest(space=self._space, query=messages.of_query(query), k=k)
        return messages.hits_of(self._ask("Recall", request))

    def _answer(self, query: Query) -> str:
        request = v1.AnswerRequest(space=self._space, query=messages.of_query(query))
        answer: str = self._ask("Answer", request).answer
        return answer

    def _forget(self, selector: Selector) -> None:
        given = map(messages.of_memory, selector.memories)
        self._ask("Forget", v1.ForgetRequest(space=self._space, memories=given))

    def _fork(self) -> Grpc:
        """A copy of the space on the same server, over the same connection."""
        twin = copy.copy(self)
        twin._space = _named(self._ask("Fork", v1.ForkRequest(space=self._space)))
        twin._is_copy = True
        return twin

    def _stats(self) -> dict[str, int]:
        return dict(self._ask("Stats", v1.StatsRequest(space=self._space)).counters)

    def _ask(self, name: str, message: Any) -> Any:
        return self._connection.call(METHODS[name], message)

    def _introduction(self) -> Hello:
        with self._hello_lock:
            if self._hello is None:
                self._hello = self._connection.first_call(self._request_hello)
            return self._hello

    def _request_hello(self) -> Hello:
        try:
            reply = self._ask("Hello", v1.HelloRequest())
        except NotOffered:
            raise UsageError(
                f"{self._connection.who} does not offer {MEMORY}; if it is an adapter for Recall "
                f"Bench, write recall-bench:{self._connection.target}"
            ) from None
        try:
            about = msgspec.json.decode(reply.identity_json or "{}")
        except (msgspec.DecodeError, RecursionError) as error:
            raise MnemoscopeError(
                f"{self._connection.who} gives an identity_json that is not JSON: {error}"
            ) from None
        fields = {"name": reply.name, "version": reply.version, "methods": list(reply.methods)}
        hello = read_hello({**fields, "identity": about}, self._connection.who)
        check_methods(hello.methods, _VERBS, self._connection.who)
        return hello


def _named(reply: Any) -> str:
    """The name of the space in a reply."""
    if not reply.space:
        raise BadReply("the reply does not name a space; expected one that later calls can use")
    name: str = reply.space
    return name
