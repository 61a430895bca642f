"""The workers of a run on a cluster: which systems they take, how many, and what they need."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope.runner.cluster.gateway import Gateway, Start
from mnemoscope.runner.cluster.node_messages import NodePlan, NodeSetup
from mnemoscope.runner.cluster.remote_worker import NoteIsolation, RemoteWorker
from mnemoscope.runner.cluster.resources import Resources
from mnemoscope.runner.failures import warn
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.worker_process import SHARED, Limits
from mnemoscope.systems.loader import Plan

LOCAL = "local"
_SAY_AGAIN = 60.0
"""Seconds between two warnings that no node has room."""


class Cluster(AbstractContextManager["Cluster"]):
    """The connection to a cluster, inside a `with` block.

    Systems that need the same resources share workers: a group. The oracle is not among them. It is
    given the labels, which stay here.
    """

    def __init__(
        self,
        executor: str,
        plans: Sequence[Plan],
        resources: Sequence[Resources],
        pipeline: Pipeline,
        limits: Limits,
        workers: int,
        note_isolation: NoteIsolation,
        *,
        benchmark: str,
        hidden: Sequence[Path],
        out: Path,
        isolation: int | None,
    ) -> None:
        """`workers`: how many there are at most; 0 for as many as the cluster has room for."""
        _check(plans)
        self._plans, self._pipeline = plans, pipeline
        self._workers, self._note_isolation = workers, note_isolation
        self._numbers = count(1)
        self._groups: dict[Resources, list[int]] = {}
        for number, plan in enumerate(plans):
            if not _sees_labels(plan):
                self._groups.setdefault(resources[number], []).append(number)
        self._setups = [
            NodeSetup(
                tuple(_node_plan(plans[number]) for number in systems),
                pipeline.depth,
                pipeline.lifecycle,
                pipeline.system_answers,
                pipeline.compat,
                pipeline.parallelism,
                limits,
                benchmark,
                tuple(str(path.resolve()) for path in hidden),
                str(out.resolve()),
                isolation,
                str(Path.cwd()),
                tuple(
                    str(Path(one).resolve()) for one in sys.path if Path(one or os.curdir).is_dir()
                ),
            )
            for systems in self._groups.values()
        ]
        self._gateway = Gateway(executor)
        self._said_at = time.monotonic()

    def __exit__(self, *error: object) -> None:
        self._gateway.close()

    @property
    def pipe(self) -> Connection:
        return self._gateway.pipe

    def read(self) -> None:
        """Pass what has come to the workers that it is for."""
        self._gateway.read()

    def group(self, number: int) -> int:
        """The group of a system's workers on the cluster; SHARED if it runs here."""
        for place, systems in enumerate(self._groups.values()):
            if number in systems:
                return SHARED - 1 - place
        return SHARED

    def start(
        self, place: int, group: int, describes: Sequence[int], plans: Sequence[Plan]
    ) -> RemoteWorker:
        resources, systems = list(self._groups.items())[SHARED - 1 - group]
        setup = self._setups[SHARED - 1 - group]
        order = Start(
            next(self._numbers),
            f"setup {group}",
            resources.cpus,
            resources.gpus,
            resources.memory,
        )
        return RemoteWorker(
            self._gateway,
            order,
            msgspec.msgpack.encode(setup),
            place,
            group,
            describes,
            systems,
            plans,
            self._pipeline,
            self._note_isolation,
        )

    def has_room(self, workers: Sequence[RemoteWorker], group: int) -> bool:
        """Whether another worker may have a unit.

        As many may wait for a node as have one, so that a cluster that can grow does.
        """
        busy = [one for one in workers if one.unit is not None]
        if self._workers:
            return len(busy) < self._workers
        cpus = list(self._groups)[SHARED - 1 - group].cpus
        first = int(self.cpus / cpus) if cpus else self.cpus
        started = sum(one.has_started for one in busy)
        return len(busy) < max(first, 2 * started, 1)

    @property
    def cpus(self) -> int:
        return self._gateway.cpus

    def warn_if_full(self, workers: Sequence[RemoteWorker]) -> None:
        """Say that the run waits, if no node has room for a worker."""
        now = time.monotonic()
        if not workers or any(one.has_started for one in workers):
            self._said_at = now
        elif now - self._said_at > _SAY_AGAIN:
            self._said_at = now
            warn("no node of the cluster has had room for a worker for a minute; still waiting")


def _sees_labels(plan: Plan) -> bool:
    return plan.hosting == "built-in" and plan.spec.name == "oracle"


def _check(plans: Sequence[Plan]) -> None:
    for plan in plans:
        if plan.hosting == "worker":
            raise UsageError(
                f"{plan.spec}: a node cannot import it. On a cluster a system is a class in a "
                "module that every node has, and runs in a process of its own (--isolation 1 or "
                "more)"
            )


def _node_plan(plan: Plan) -> NodePlan:
    return NodePlan(plan.spec, plan.hosting, plan.target, plan.repeat)
