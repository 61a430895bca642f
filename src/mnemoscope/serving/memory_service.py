"""The gRPC service mnemoscope.v1.Memory for any of our systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mnemoscope.connectors.grpc import messages
from mnemoscope.connectors.grpc.channel import RpcMethod
from mnemoscope.connectors.grpc.protos import mnemoscope_v1_pb2 as v1
from mnemoscope.connectors.handshake import Hello
from mnemoscope.serving.sessions import Sessions, as_question, new_name
from mnemoscope.types import Memory, Selector


class MemoryService:
    """The handlers of mnemoscope.v1.Memory."""

    def __init__(self, build: Callable[[], Any], about: Hello) -> None:
        self._about = about
        self._sessions = Sessions(build)

    def handlers(self) -> dict[RpcMethod, Callable[[Any], Any]]:
        verbs: dict[str, dict[str, Callable[[Any], Any]]] = {
            "reset": {"Reset": self._reset},
            "remember": {"Remember": self._remember},
            # Remember waits until everything is searchable, so Ready can return at once.
            "ready": {"Ready": lambda request: v1.ReadyResponse()},
            "recall": {"Recall": self._recall},
            "answer": {"Answer": self._answer},
            "forget": {"Forget": self._forget},
            "fork": {"Fork": self._fork, "DropFork": self._drop_fork},
            "stats": {"Stats": self._stats},
            "close": {"Close": self._close},
        }
        offered: dict[str, Callable[[Any], Any]] = {"Hello": self._hello}
        for verb in self._about.methods:
            offered |= verbs[verb]
        return {messages.METHODS[name]: handler for name, handler in offered.items()}

    def close(self) -> None:
        self._sessions.close()

    def _hello(self, request: Any) -> Any:
        about = self._about
        return v1.HelloResponse(
            name=about.name,
            version=about.version,
            methods=about.methods,
            identity_json=msgspec.json.encode(about.identity, order="sorted").decode(),
        )

    def _reset(self, request: Any) -> Any:
        space = request.space if request.space in self._sessions else new_name()
        self._sessions.reset(space, request.scope)
        return v1.ResetResponse(space=space)

    def _remember(self, request: Iterator[Any]) -> Any:
        space, memories = "", list[Memory]()
        for part in request:
            space = part.space or space
            memories += map(messages.memory_of, part.memories)
        receipt = self._sessions.get(space).do(lambda driver: driver.remember(memories))
        return messages.of_receipt(receipt)

    def _recall(self, request: Any) -> Any:
        question = as_question(messages.query_of(request.query))
        hits = self._sessions.get(request.space).do(
            lambda driver: driver.recall(question, request.k)
        )
        return messages.of_hits(hits)

    def _answer(self, request: Any) -> Any:
        question = as_question(messages.query_of(request.query))
        answer = self._sessions.get(request.space).do(lambda driver: driver.answer(question))
        return v1.AnswerResponse(answer=answer)

    def _forget(self, request: Any) -> Any:
        selector = Selector(tuple(map(messages.memory_of, request.memories)))
        self._sessions.get(request.space).do(lambda driver: driver.forget(selector))
        return v1.ForgetResponse()

    def _fork(self, request: Any) -> Any:
        return v1.ForkResponse(space=self._sessions.fork(request.space))

    def _drop_fork(self, request: Any) -> Any:
        self._sessions.drop(request.space)
        return v1.DropForkResponse()

    def _stats(self, request: Any) -> Any:
        return v1.StatsResponse(counters=self._sessions.get(request.space).stats())

    def _close(self, request: Any) -> Any:
        self._sessions.drop(request.space)
        return v1.CloseResponse()
