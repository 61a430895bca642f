"""Recall Bench's door: `recall-bench:HOST:PORT`, a server that offers its MemoryBenchService.

An adapter that was written for Recall Bench, in whatever language, works as it is. It answers by
itself and recalls nothing that could be looked at, so it is for `--reader system`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mnemoscope._store.errors import SystemLost, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.connectors.grpc import RECALL_BENCH
from mnemoscope.connectors.grpc.channel import Line, Method, NotOffered, ServerError
from mnemoscope.connectors.grpc.day_messages import DayIndex
from mnemoscope.connectors.grpc.fork_safe import apart
from mnemoscope.connectors.grpc.protos import recall_bench_pb2 as rb
from mnemoscope.connectors.server_lock import Claim
from mnemoscope.types import Memory, Query

METHODS = {
    name: Method(RECALL_BENCH, name, getattr(rb, f"{name}Request"), getattr(rb, f"{name}Response"))
    for name in ("Setup", "IngestDay", "FinalizeIngestion", "Query", "Teardown", "Healthcheck")
}
_GREETING = 5.0
_NOTES = [
    "Recall Bench's wire carries no hits: answers can be judged, recall cannot.",
    "The system is not told when, nor in which session, a question is asked.",
]


class RecallBench:
    """A server of Recall Bench's as a system: one life at a time, days in, answers out.

    `timeout` is how many seconds a call may take, `patience` how many a server that cannot be
    reached is waited for when a life begins.
    """

    def __init__(self, address: str, timeout: float = 120.0, patience: float = 30.0) -> None:
        self._line = Line("recall-bench", address, timeout=timeout, patience=patience, watched=True)
        self._name: str | None = None
        self._scope = ""
        self._calendar = DayIndex()
        self._drops: int | None = None
        """How often the connection had broken when the life began; none before it did."""
        self._claim = Claim(self._line.target)

    def identity(self) -> dict[str, Any]:
        if self._name is None:
            self._name = apart(self._greet)
        return {"service": RECALL_BENCH, "name": self._name, "notes": _NOTES}

    def reset(self, scope: str) -> None:
        self._claim.take()
        self._drops = None
        try:
            self._line.wait()
            self._ask("Setup", rb.SetupRequest())
        except BaseException:
            self._claim.release()
            raise
        self._drops = self._line.drops
        self._scope, self._calendar = scope, DayIndex()

    def remember(self, memories: Sequence[Memory]) -> None:
        for day in self._calendar.days(self._scope, memories):
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
        if self._drops is not None and self._claim.is_mine:
            with suppress(Exception):
                self._ask("Teardown", rb.TeardownRequest())
        self._drops = None
        self._claim.release()
        self._line.close()

    def _greet(self) -> str:
        """Its name, as Recall Bench takes it; what the check says otherwise is no matter."""
        self._line.wait(_GREETING)
        try:
            name: str = self._ask("Healthcheck", rb.HealthcheckRequest()).name
            return name
        except SystemLost as error:
            raise self._line.is_down(str(error)) from None
        except (NotOffered, ServerError, TimeoutError):
            return ""

    def _see_the_same(self) -> None:
        if self._drops is not None and self._line.drops != self._drops:
            raise SystemLost(
                f"{self._line.target}: the connection broke since Setup: whoever answers there now "
                "may remember nothing"
            )

    def _ask(self, name: str, message: Any) -> Any:
        self._see_the_same()
        try:
            reply = self._line.call(METHODS[name], message)
            self._see_the_same()  # that a connection broke is told late
            return reply
        except NotOffered as error:
            if name == "Healthcheck":
                raise
            raise UsageError(
                f"{error}; if it offers mnemoscope.v1, write grpc:{self._line.target}"
            ) from None
