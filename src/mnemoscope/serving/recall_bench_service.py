"""The gRPC service of Recall Bench, MemoryBenchService, for a system of ours that answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mnemoscope._store.errors import UsageError
from mnemoscope.connectors.grpc.channel import RpcMethod
from mnemoscope.connectors.grpc.protos import recall_bench_pb2 as rb
from mnemoscope.connectors.grpc.recall_bench_client import METHODS
from mnemoscope.connectors.recall_bench_days import Day, day_memory
from mnemoscope.serving.sessions import ServedSession
from mnemoscope.systems.loader import Driver
from mnemoscope.types import Question

_SCOPE = "recall-bench"
"""Setup does not name the persona."""
_MOST_PENDING = 256 << 20
"""Characters of days that were received and not ingested."""


class RecallBenchService:
    """Holds one history at a time. Days are ingested together, before the next question."""

    def __init__(self, build: Callable[[], Any], name: str) -> None:
        self._name = name
        self._session = ServedSession(Driver(build))
        self._pending: list[Day] = []
        self._is_set_up = False

    def handlers(self) -> dict[RpcMethod, Callable[[Any], Any]]:
        verbs: dict[str, Callable[[Any], Any]] = {
            "Healthcheck": lambda request: rb.HealthcheckResponse(name=self._name, ready=True),
            "Setup": self._setup,
            "IngestDay": self._ingest_day,
            "FinalizeIngestion": self._finalize,
            "Query": self._query,
            "Teardown": self._teardown,
        }
        return {METHODS[name]: handler for name, handler in verbs.items()}

    def close(self) -> None:
        self._session.close()

    def _setup(self, request: Any) -> Any:
        def begin(driver: Driver) -> None:
            self._pending = []
            driver.begin(_SCOPE)
            self._is_set_up = True

        self._session.do(begin)
        return rb.SetupResponse()

    def _ingest_day(self, request: Any) -> Any:
        about = request.metadata
        number = request.day_number or about.day_number
        arcs = tuple(about.active_arcs)
        day = Day(number, request.content, about.date, about.persona_id, arcs)
        self._do(lambda driver: self._add(day))
        return rb.IngestDayResponse()

    def _add(self, day: Day) -> None:
        size = len(day.content) + sum(len(one.content) for one in self._pending)
        if size > _MOST_PENDING:
            raise UsageError("too many days at once: call FinalizeIngestion before the next day")
        self._pending.append(day)

    def _finalize(self, request: Any) -> Any:
        self._do(self._ingest_pending)
        return rb.FinalizeIngestionResponse()

    def _query(self, request: Any) -> Any:
        def answer(driver: Driver) -> str:
            self._ingest_pending(driver)
            return driver.answer(Question("", request.question))

        return rb.QueryResponse(answer=self._do(answer))

    def _teardown(self, request: Any) -> Any:
        def end(driver: Driver) -> None:
            self._pending, self._is_set_up = [], False
            driver.close()

        self._session.do(end)
        return rb.TeardownResponse()

    def _ingest_pending(self, driver: Driver) -> None:
        if self._pending:
            driver.remember([day_memory(day) for day in self._pending])
            self._pending = []

    def _do(self, act: Callable[[Driver], Any]) -> Any:
        def checked(driver: Driver) -> Any:
            if not self._is_set_up:
                raise UsageError("Setup has not been called: call it first")
            return act(driver)

        return self._session.do(checked)
