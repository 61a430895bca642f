"""The Recall Bench connector: `grpc://HOST:PORT`, a server with its MemoryBenchService.

An adapter that was written for Recall Bench, in any language, works unchanged. It answers by itself
and returns no hits, so it needs `--reader system`. Each Setup is followed by a Teardown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mnemoscope._store.errors import SystemLost, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.connectors.grpc import RECALL_BENCH
from mnemoscope.connectors.grpc.channel import GrpcConnection, NotOffered, RpcMethod
from mnemoscope.connectors.grpc.protos import recall_bench_pb2 as rb
from mnemoscope.connectors.handshake import ServerError
from mnemoscope.connectors.recall_bench_days import DayIndex
from mnemoscope.connectors.server_lock import ServerLock
from mnemoscope.types import Memory, Query

METHODS = {
    name: RpcMethod(
        RECALL_BENCH, name, getattr(rb, f"{name}Request"), getattr(rb, f"{name}Response")
    )
    for name in ("Setup", "IngestDay", "FinalizeIngestion", "Query", "Teardown", "Healthcheck")
}
_NOTES = [
    "The protocol of Recall Bench has no hits: answers are judged, recall is not measured.",
    "The system does not get the time or the session of a question.",
]


class RecallBench:
    """A Recall Bench server as a system: it ingests days of one history, and answers questions.

    `timeout` is how many seconds a call may take, `patience` how many seconds a reset waits for a
    server that cannot be reached, `key` the environment variable with the server's key.
    """

    def __init__(
        self, address: str, timeout: float = 120.0, patience: float = 30.0, key: str = ""
    ) -> None:
        self._connection = GrpcConnection(
            "recall-bench", address, timeout=timeout, patience=patience, key=key, watched=True
        )
        self._name: str | None = None
        self._scope = ""
        self._days = DayIndex()
        self._drops: int | None = None
        """How often the connection had broken at the reset; None before it."""
        self._lock = ServerLock(self._connection.target)

    def identity(self) -> dict[str, Any]:
        if self._name is None:
            self._name = self._connection.first_call(self._request_name)
        return {"service": RECALL_BENCH, "name": self._name, "notes": _NOTES}

    def reset(self, scope: str) -> None:
        self._lock.take()
        self._tear_down()
        try:
            self._connection.wait()
            self._request_name()
            self._ask("Setup", rb.SetupRequest())
        except BaseException:
            self._lock.release()
            raise
        self._drops = self._connection.drops
        self._scope, self._days = scope, DayIndex()

    def remember(self, memories: Sequence[Memory]) -> None:
        for day in self._days.days(self._scope, memories):
            about = rb.DayMetadata(
                day_number=day.number,
                date=day.date,
                persona_id=printable(day.persona),
                active_arcs=map(printable, day.arcs),
            )
            self._ask(
                "IngestDay",
                rb.IngestDayRequest(
                    day_number=day.number, content=printable(day.content), metadata=about
                ),
            )

    def ready(self) -> None:
        self._ask("FinalizeIngestion", rb.FinalizeIngestionRequest())

    def answer(self, query: Query) -> str:
        answer: str = self._ask("Query", rb.QueryRequest(question=printable(query.text))).answer
        return answer

    def close(self) -> None:
        if self._lock.is_mine:
            self._tear_down()
        self._drops = None
        self._lock.release()
        self._connection.close()

    def _tear_down(self) -> None:
        """End what the last Setup began; a server that was lost or replaced is not told."""
        if self._drops is not None:
            with suppress(Exception):
                self._ask("Teardown", rb.TeardownRequest())
        self._drops = None

    def _request_name(self) -> str:
        """The server's name; the rest of the health check is ignored, as Recall Bench does."""
        try:
            name: str = self._ask("Healthcheck", rb.HealthcheckRequest()).name
            return name
        except (NotOffered, ServerError, TimeoutError):
            return ""

    def _check_same_server(self) -> None:
        if self._drops is not None and self._connection.drops != self._drops:
            raise SystemLost(
                f"{self._connection.target}: the connection broke after Setup: the server that "
                "answers now may have lost the memories"
            )

    def _ask(self, name: str, message: Any) -> Any:
        self._check_same_server()
        try:
            reply = self._connection.call(METHODS[name], message)
            self._check_same_server()  # gRPC reports a broken connection late
            return reply
        except NotOffered as error:
            if name == "Healthcheck":
                raise
            raise UsageError(
                f"{error}; if it offers mnemoscope.v1, write grpc:{self._connection.target}"
            ) from None
