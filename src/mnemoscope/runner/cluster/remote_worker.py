"""A worker on a node as the scheduler sees it: the same methods as a local worker process.

Its lines are joined with the labels and written to the unit's spool here, by the driver.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.journal_chain import SpoolJournal
from mnemoscope._store.jsonl import read_lines
from mnemoscope.runner.cluster.gateway import Gateway, Start
from mnemoscope.runner.cluster.label_free import LabelJoiner
from mnemoscope.runner.cluster.node_messages import (
    GONE,
    HALT,
    HELLO,
    LINES,
    SAID,
    STATE,
    NodeHello,
    NodeLines,
    NodeState,
)
from mnemoscope.runner.heartbeat import InFlight, Signals
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.spool_lines import SPOOL_LINE
from mnemoscope.runner.versions import decisive_versions
from mnemoscope.runner.work_unit import WorkUnit, spool_of
from mnemoscope.runner.worker import DESCRIBED, Description
from mnemoscope.runner.worker_process import Limits, Overdue, share_done
from mnemoscope.systems.loader import Plan
from mnemoscope.types import Isolation, Timing

_encode = msgspec.msgpack.encode
_LOST = b"!"
NoteIsolation = Callable[[int, int, Isolation], None]
"""Notes of which worker and which system the isolation on the node is this."""


class RemoteWorker:
    """A process on a node and what it is working on."""

    def __init__(
        self,
        gateway: Gateway,
        start: Start,
        setup: bytes,
        place: int,
        group: int,
        describes: Sequence[int],
        systems: Sequence[int],
        plans: Sequence[Plan],
        pipeline: Pipeline,
        note_isolation: NoteIsolation,
    ) -> None:
        """`systems` are the numbers of the plans that the node has, in their order there."""
        self.unit: WorkUnit | None = None
        self.place, self.group, self.describes = place, group, describes
        self.has_a_node = self.has_started = False
        """Whether its process runs on a node, and whether it has built its systems there."""
        self.cause = ""
        self.signals = Signals()
        self._gateway, self._number = gateway, start.worker
        self._systems, self._plans, self._pipeline = systems, plans, pipeline
        self._undescribed = deque(systems)
        self._note_isolation = note_isolation
        self._inbox: deque[bytes] = deque()
        self._node = "a node"
        self._joiner: LabelJoiner | None = None
        self._spool: tuple[SpoolJournal, SpoolJournal] | None = None
        self.is_gone = False
        gateway.start(start.worker, self._take, setup, start)

    def assign(self, unit: WorkUnit) -> None:
        """Take the unit; it is sent when the process is ready, and may be taken back before."""
        self.unit = msgspec.structs.replace(unit, folder=str(Path(unit.folder).absolute()))
        self.signals = Signals()
        self.signals.restarts, self.signals.settled = unit.restarts, len(unit.settled)
        if self.has_started:
            self._send_unit()

    def _send_unit(self) -> None:
        assert self.unit is not None
        joiner = self._joiner = LabelJoiner(self.unit, self._pipeline)
        self._gateway.order(
            self._number,
            _encode(joiner.order(self._systems.index(self.unit.run))),
            joiner.scenario_key,
            lambda: _encode(joiner.scenario()),
        )

    @property
    def progress(self) -> float:
        return share_done(self.unit, self.signals)

    @property
    def settled(self) -> int:
        return 0 if self.unit is None else min(self.signals.settled, self.unit.asked)

    @property
    def in_flight(self) -> list[InFlight]:
        """Not known here: the node itself fails a question for which its worker dies."""
        return []

    def overdue(self, limits: Limits) -> Overdue | None:
        """The node itself ends what exceeds a limit."""
        return None

    @property
    def has_ended(self) -> bool:
        return self.is_gone or bool(self.cause)

    @property
    def has_message(self) -> bool:
        return bool(self._inbox)

    def poll(self, seconds: float = 0.0) -> bool:
        if not self._inbox:
            self._gateway.read(seconds)
        return bool(self._inbox)

    def receive(self, longest: int | None = None) -> bytes:
        """The next message for the scheduler; empty if there is none. Lines are recorded here."""
        while self._inbox:
            message = self._inbox.popleft()
            kind, content = message[:1], message[1:]
            if kind in (GONE, _LOST):
                text = content.decode("utf-8", "replace")
                self.cause = f"{self._node}: {text}" if kind == GONE else f"lost with {text}"
                raise EOFError
            if kind == HELLO:
                self._check(msgspec.msgpack.decode(content, type=NodeHello))
            elif kind == SAID:
                with suppress(OSError):
                    os.write(2, content)
            elif kind == LINES:
                self._record(msgspec.msgpack.decode(content, type=NodeLines))
            elif kind == STATE:
                self._note(msgspec.msgpack.decode(content, type=NodeState))
            elif kind != DESCRIBED or self._is_news(content):
                return message
        return b""

    def hold(self, locks: Sequence[int]) -> None:
        """Nothing: the driver writes the run directories."""

    def halt(self) -> None:
        self._gateway.send(self._number, HALT)

    def wait(self, seconds: float) -> None:
        """Nothing to wait for: the cluster has said that it is gone, or ends it by itself."""

    def ask_to_stop(self) -> None:
        if not self.is_gone:
            self.is_gone = True
            self._gateway.end(self._number, gently=True)

    def kill(self) -> None:
        self._close_spool()
        if not self.is_gone:
            self.is_gone = True
            self._gateway.end(self._number, gently=False)

    def finish(self) -> None:
        """Close the unit's spool, so that it can be merged."""
        self._close_spool()

    def _take(self, messages: list[bytes] | str) -> None:
        if isinstance(messages, str):
            self._inbox.append(_LOST + f"its worker on {self._node}: {messages}".encode())
        else:
            self._inbox.extend(messages)

    def _check(self, hello: NodeHello) -> None:
        """Refuse a node on which the same units could give other figures."""
        self._node, self.has_a_node = hello.node, True
        ours = decisive_versions()
        if hello.versions != ours:
            names = [n for n in {**ours, **hello.versions} if ours.get(n) != hello.versions.get(n)]
            differ = ", ".join(
                f"{name} {hello.versions.get(name, 'missing')} instead of "
                f"{ours.get(name, 'missing')}"
                for name in names
            )
            raise UsageError(f"node {hello.node} has other versions than this machine: {differ}")

    def _is_news(self, content: bytes) -> bool:
        """Whether the scheduler waits for this description; if not, it must be the known one."""
        number = self._undescribed.popleft()
        if not self._undescribed:
            self.has_started = True
            if self.unit is not None:
                self._send_unit()
        if number in self.describes:
            return True
        if not self._plans[number].is_described:
            return False
        plan, found = self._plans[number], msgspec.json.decode(content, type=Description)
        if found.identity != plan.identity:
            parts = {**plan.identity, **found.identity}
            names = [n for n in parts if plan.identity.get(n) != found.identity.get(n)]
            raise UsageError(
                f"node {self._node} has another {plan.spec} than the run: its "
                f"{', '.join(names)} differ; install the same on every node"
            )
        return False

    def _record(self, new: NodeLines) -> None:
        assert self.unit is not None and self._joiner is not None
        if self._spool is None:
            spool = spool_of(self.unit.folder, self.unit.order)
            self._spool = SpoolJournal(spool.trials), SpoolJournal(spool.timings)
        lines, timings = self._spool
        joined = [self._joiner.line(line) for line in read_lines(new.trials, SPOOL_LINE)]
        for timing in read_lines(new.timings, Timing):
            timings.append(self._joiner.timing(timing))
        for line in joined:
            lines.append(line)
            self.signals.settled += self._pipeline.settles(self._joiner.outline(line))

    def _note(self, state: NodeState) -> None:
        self.signals.ingested, self.signals.ingesting = state.ingested, state.ingesting
        self.signals.restarts, self.signals.has_called = state.restarts, state.has_called
        for number, isolation in zip(self._systems, state.isolation, strict=True):
            self._note_isolation(self._number, number, isolation)

    def _close_spool(self) -> None:
        for journal in self._spool or ():
            journal.close()
        self._spool = None
