"""The sessions of a server's clients: each has a system of its own, in a thread of its own.

One thread a session, because few systems expect to be called from several; a copy shares the
thread of what it was copied from. When there are too many sessions, the oldest one is closed. The
HTTP and the gRPC server use it.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from uuid import uuid4

import mnemoscope
from mnemoscope._store.errors import UsageError
from mnemoscope.connectors.handshake import Hello
from mnemoscope.systems.builtin.baselines import Oracle
from mnemoscope.systems.loader import Driver, Plan, abilities, describe
from mnemoscope.types import Query, Question

T = TypeVar("T")

_MOST = 256
"""Sessions at once; more are those of clients that were killed."""


class NoSuchSession(LookupError):
    """A space that was never made here, or is gone."""


class ServedSession:
    """One client's system."""

    def __init__(self, driver: Driver, thread: ThreadPoolExecutor | None = None) -> None:
        self._driver = driver
        # It ends by itself once no space holds it any more.
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="space")
        self._counted: Counter[str] = Counter()

    def do(self, act: Callable[[Driver], T]) -> T:
        """Act in the space's own thread, after whatever was asked before."""
        return self._thread.submit(act, self._driver).result()

    def fork(self) -> ServedSession:
        return ServedSession(self.do(lambda driver: driver.fork()), self._thread)

    def stats(self) -> dict[str, int]:
        """Totals since the space was made; the size as it is."""

        def count(driver: Driver) -> dict[str, int]:
            size, grown = driver.counted()
            self._counted.update(grown)
            return {**self._counted, **({} if size is None else {"index_bytes": size})}

        return self.do(count)

    def close(self) -> None:
        """Let the system go, once it has done what it is doing."""
        self._thread.submit(self._driver.close)


class Sessions:
    """All lives of one server, by name."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build
        self._sessions: OrderedDict[str, ServedSession] = OrderedDict()
        self._turn = threading.Lock()

    def __contains__(self, name: str) -> bool:
        return name in self._sessions

    def get(self, name: str) -> ServedSession:
        with self._turn:
            if name not in self._sessions:
                raise NoSuchSession(
                    f"there is no space {name!r:.80} here (any more): reset it, and tell it all "
                    "again"
                )
            self._sessions.move_to_end(name)
            return self._sessions[name]

    def reset(self, name: str, scope: str) -> None:
        """A fresh scope in the session of this name, which is made if it is not there."""
        try:
            space = self.get(name)
        except NoSuchSession:
            space = self._kept(name, ServedSession(Driver(self._build)))
        space.do(lambda driver: driver.begin(scope))

    def fork(self, name: str) -> str:
        """The name of a copy."""
        twin = new_name()
        self._kept(twin, self.get(name).fork())
        return twin

    def drop(self, name: str) -> None:
        with self._turn:
            space = self._sessions.pop(name, None)
        if space is not None:
            space.close()

    def close(self) -> None:
        for name in list(self._sessions):
            self.drop(name)

    def _kept(self, name: str, space: ServedSession) -> ServedSession:
        """The space of this name: this one, unless somebody was quicker."""
        with self._turn:
            space = self._sessions.setdefault(name, space)
            oldest = next(iter(self._sessions)) if len(self._sessions) > _MOST else None
        if oldest is not None:
            self.drop(oldest)
        return space


def new_name() -> str:
    """Random: a client of a server that was here before must not find somebody else's space."""
    return uuid4().hex


def served_hello(plan: Plan) -> Hello:
    """How a server of this system introduces itself; it can always be reset and closed.

    A system that cannot be reset says so here, before a client asks.
    """
    plan, system = describe(plan)
    if type(system) is Oracle:
        raise UsageError("the oracle is told the evidence, which no client can send: serve another")
    able = abilities(system)
    has = {
        "remember": able.remembers,
        "ready": hasattr(system, "ready"),
        "recall": able.recalls,
        "answer": able.answers,
        "forget": hasattr(system, "forget"),
        "fork": hasattr(system, "fork"),
        "stats": hasattr(system, "stats") or hasattr(system, "index_size_bytes"),
    }
    driver = Driver(plan.build, system)
    driver.begin("hello")
    driver.close()
    return Hello(
        name=str(plan.spec),
        version=mnemoscope.__version__,
        methods=["reset", *(verb for verb, there in has.items() if there), "close"],
        identity=plan.identity,
    )


def as_question(query: Query) -> Question:
    """What a client asks, as a driver takes it."""
    return Question("", query.text, query.now, session=query.session)
