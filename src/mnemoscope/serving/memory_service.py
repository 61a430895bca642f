"""mnemoscope.v1.Memory: any system of ours behind our own service."""

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
    """mnemoscope.v1.Memory."""

    def __init__(self, build: Callable[[], Any], about: Hello) -> None:
        self._about = about
        self._sessions = Sessions(build)

    def answerers(self) -> dict[RpcMethod, Callable[[Any], Any]]:
        verbs: dict[str, dict[str, Callable[[Any], Any]]] = {
            "reset": {"Reset": self._reset},
            "remember": {"Remember": self._remember},
            # Remembering waits until everything can be found, so nothing is left to wait for.
            "ready": {"Ready": lambda asked: v1.ReadyResponse()},
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
        return {messages.METHODS[name]: answerer for name, answerer in offered.items()}

    def close(self) -> None:
        self._sessions.close()

    def _hello(self, asked: Any) -> Any:
        about = self._about
        return v1.HelloResponse(
            name=about.name,
            version=about.version,
            methods=about.methods,
            identity_json=msgspec.json.encode(about.identity, order="sorted").decode(),
        )

    def _reset(self, asked: Any) -> Any:
        space = asked.space if asked.space in self._sessions else new_name()
        self._sessions.reset(space, asked.scope)
        return v1.ResetResponse(space=space)

    def _remember(self, asked: Iterator[Any]) -> Any:
        space, memories = "", list[Memory]()
        for part in asked:
            space = part.space or space
            memories += map(messages.memory_of, part.memories)
        receipt = self._sessions.get(space).do(lambda driver: driver.remember(memories))
        return messages.of_receipt(receipt)

    def _recall(self, asked: Any) -> Any:
        question = as_question(messages.query_of(asked.query))
        hits = self._sessions.get(asked.space).do(lambda driver: driver.recall(question, asked.k))
        return messages.of_hits(hits)

    def _answer(self, asked: Any) -> Any:
        question = as_question(messages.query_of(asked.query))
        said = self._sessions.get(asked.space).do(lambda driver: driver.answer(question))
        return v1.AnswerResponse(answer=said)

    def _forget(self, asked: Any) -> Any:
        selector = Selector(tuple(map(messages.memory_of, asked.memories)))
        self._sessions.get(asked.space).do(lambda driver: driver.forget(selector))
        return v1.ForgetResponse()

    def _fork(self, asked: Any) -> Any:
        return v1.ForkResponse(space=self._sessions.fork(asked.space))

    def _drop_fork(self, asked: Any) -> Any:
        self._sessions.drop(asked.space)
        return v1.DropForkResponse()

    def _stats(self, asked: Any) -> Any:
        return v1.StatsResponse(counters=self._sessions.get(asked.space).stats())

    def _close(self, asked: Any) -> Any:
        self._sessions.drop(asked.space)
        return v1.CloseResponse()
