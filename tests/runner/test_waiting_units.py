"""Units that wait for a node of a cluster get one that another worker has and does not need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.spec import Spec
from mnemoscope.runner.cluster.gateway import Start
from mnemoscope.runner.cluster.node_messages import HELLO, NodeHello
from mnemoscope.runner.cluster.remote_worker import RemoteWorker
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.scheduler import Scheduler
from mnemoscope.runner.versions import decisive_versions
from mnemoscope.runner.work_unit import WorkUnit
from mnemoscope.runner.worker import BROKEN, DESCRIBED, Description
from mnemoscope.runner.worker_process import Limits
from mnemoscope.systems.loader import Plan
from mnemoscope.types import Memory, Question, Scenario

ONE_GROUP, OTHER_GROUP = -2, -3
IDENTITY = {"source_sha256": "a"}
NODE_IS_READY = [
    HELLO + msgspec.msgpack.encode(NodeHello("n", decisive_versions())),
    DESCRIBED + msgspec.json.encode(Description(IDENTITY, True, False)),
]


class FakeGateway:
    """Keeps the inboxes of the workers, so that the test is the node."""

    def __init__(self) -> None:
        self.inboxes: dict[int, Any] = {}
        self.sent: list[int] = []
        self.ended: list[tuple[int, bool]] = []

    def start(self, worker: int, inbox: Any, setup: bytes, order: Any) -> None:
        self.inboxes[worker] = inbox

    def order(self, worker: int, message: bytes, key: str, content: Callable[[], bytes]) -> None:
        self.sent.append(worker)

    def end(self, worker: int, *, gently: bool) -> None:
        self.ended.append((worker, gently))


class FullCluster:
    """A cluster that has room for no further unit."""

    def has_room(self, workers: Any, group: int) -> bool:
        return False

    def group(self, number: int) -> int:
        return ONE_GROUP


def unit(number: int) -> WorkUnit:
    scenario = Scenario(f"conv-{number}", (Memory("m", "a memory"),), (Question("q", "what?"),))
    return WorkUnit(0, number, scenario)


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


def worker(gateway: Any, number: int, group: int = ONE_GROUP) -> RemoteWorker:
    plan = Plan(Spec("mine"), lambda: None, IDENTITY, is_described=True)
    return RemoteWorker(
        *(gateway, Start(number, "setup"), b"", 0, group, (), (0,), [plan], Pipeline()),
        lambda worker, system, isolation: None,
    )


def assigned(*workers: RemoteWorker) -> list[Any]:
    """The busy workers after one step of a run that has a further unit and no room for it."""
    cluster: Any = FullCluster()
    scheduler = Scheduler([], Pipeline(), 1, Limits(), cluster=cluster)
    scheduler.workers += workers
    busy: list[Any] = [one for one in workers if one.unit is not None]
    scheduler._assign(iter([unit(9)]), busy)
    return busy


def test_a_node_that_comes_after_its_unit_was_moved_gets_another_one(gateway: FakeGateway) -> None:
    """Its messages were not read as long as it had no unit: both waited for each other forever."""
    idle, late = worker(gateway, 3), worker(gateway, 6)
    waiting = unit(5)
    late.assign(waiting)
    assert assigned(idle, late) == [late]
    gateway.inboxes[3](NODE_IS_READY)
    assert assigned(idle, late) == [idle]
    assert idle.unit is not None and idle.unit.order == waiting.order
    assert late.unit is None
    assert gateway.sent == [3]


def test_a_node_for_other_systems_is_left_to_the_units_that_wait(gateway: FakeGateway) -> None:
    idle, late = worker(gateway, 3, OTHER_GROUP), worker(gateway, 6)
    late.assign(unit(5))
    gateway.inboxes[3](NODE_IS_READY)
    assert assigned(idle, late) == [late]
    assert gateway.ended == [(3, True)]


def test_an_idle_worker_whose_systems_cannot_run_stops_the_run(gateway: FakeGateway) -> None:
    idle, late = worker(gateway, 3), worker(gateway, 6)
    late.assign(unit(5))
    gateway.inboxes[3]([BROKEN + b"its module is missing"])
    with pytest.raises(MnemoscopeError, match="its module is missing"):
        assigned(idle, late)


def test_an_idle_worker_that_is_lost_costs_nothing(gateway: FakeGateway) -> None:
    idle, late = worker(gateway, 3), worker(gateway, 6)
    late.assign(unit(5))
    gateway.inboxes[3]("the node died")
    assert assigned(idle, late) == [late]
    assert idle.has_ended
