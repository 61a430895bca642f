"""Serve a system over gRPC, for Recall Bench together with a reader.

Recall Bench needs answers. A system that only recalls gets a reader, and its answers are those that
it would give in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemoscope._store.errors import UsageError
from mnemoscope.connectors.handshake import Hello
from mnemoscope.runner.answer_and_judge import AnswerAndJudge
from mnemoscope.runner.pipeline import Ask, Pipeline
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.systems.loader import Driver, Plan
from mnemoscope.types import FAILED, Memory, Query, Question, Receipt, Scenario

if TYPE_CHECKING:
    from mnemoscope.serving.grpc_server import GrpcServer


class SystemWithReader:
    """A system that stores memories as usual, and answers through a reader as in a run."""

    def __init__(self, system: Plan, reader: Plan, depth: int) -> None:
        self._driver = Driver(system.build)
        self._depth = depth
        self._answer_and_judge = AnswerAndJudge(Pipeline(depth=depth, reader=reader))
        self._use(Scenario("", (), ()))

    def reset(self, scope: str) -> None:
        self._driver.begin(scope)
        self._use(Scenario(scope, (), ()))

    def remember(self, memories: Sequence[Memory]) -> Receipt:
        receipt = self._driver.remember(memories)
        self._use(Scenario(self._scenario.id, (*self._scenario.memories, *memories), ()))
        return receipt

    def answer(self, query: Query) -> str:
        ask = Ask("", Question("", query.text, query.now, session=query.session))
        trial = self._trials.trial(ask, self._driver.recall(ask.question, self._depth))
        answer = self._answer_and_judge.answer(ask, trial, None, len(self._scenario.memories))
        if answer.status in FAILED:
            raise RuntimeError(answer.error)
        return answer.text

    def close(self) -> None:
        self._driver.close()

    def _use(self, scenario: Scenario) -> None:
        """Answer from the memories of this scenario from now on."""
        self._scenario = scenario
        self._trials = TrialBuilder(scenario)
        self._answer_and_judge.begin(scenario)


def serve_grpc(
    system: Plan,
    hello: Hello,
    *,
    host: str,
    port: int,
    reader: Plan | None = None,
    depth: int,
    recall_bench_only: bool = False,
    key: str = "",
) -> GrpcServer:
    """Start a server with mnemoscope.v1 and the service of Recall Bench.

    `hello` is the result of `served_hello` for the system. With a reader, the reader answers for
    Recall Bench; without one, the system must answer by itself.
    """
    from mnemoscope.serving.grpc_server import GrpcServer, GrpcService
    from mnemoscope.serving.memory_service import MemoryService
    from mnemoscope.serving.recall_bench_service import RecallBenchService

    if reader is None and "answer" not in hello.methods:
        raise UsageError(f"{hello.name} cannot answer by itself: give a reader with --reader")
    build = system.build if reader is None else lambda: SystemWithReader(system, reader, depth)
    services: list[GrpcService] = [RecallBenchService(build, hello.name)]
    if not recall_bench_only:
        services.append(MemoryService(system.build, hello))
    return GrpcServer(services, host, port, key)
