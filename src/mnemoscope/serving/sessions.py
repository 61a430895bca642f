"""The sessions of a server: for each client a separate instance of the system, in one thread.

Each session has one thread, because few systems can be called from several; a copy shares the
thread of its original. A session that no call used for a long time is closed, and if there are too
many, the one that was not used for longest. The HTTP and the gRPC server share this module. The
protocols call a session a space.
"""

from __future__ import annotations

import threading
import time
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
"""Sessions at once; more are probably left over from clients that were killed."""
_IDLE_SECONDS = 6 * 3600.0
"""How long a session is kept without a call; a run may pause while its answers are judged."""
_LONGEST_CHECK = 60.0
"""Seconds between two checks for sessions that are no longer used, at most."""
LONGEST_NAME = 200
"""Characters of a session's name."""


class NoSuchSession(LookupError):
    """The space was never made on this server, or no longer exists."""


class ServedSession:
    """One instance of a system, for one client."""

    def __init__(self, driver: Driver, thread: ThreadPoolExecutor | None = None) -> None:
        self._driver = driver
        # The thread ends by itself once no session uses it.
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="space")
        self._counted: Counter[str] = Counter()
        self._calls = 0
        self._used = time.monotonic()

    def do(self, act: Callable[[Driver], T]) -> T:
        """Call `act` in the session's thread, after the calls made before."""
        with _counting:
            self._calls += 1
        try:
            return self._thread.submit(act, self._driver).result()
        finally:
            with _counting:
                self._calls -= 1
                self._used = time.monotonic()

    def is_idle(self, seconds: float) -> bool:
        """Whether no call used it in the last seconds."""
        return not self._calls and time.monotonic() - self._used >= seconds

    def fork(self) -> ServedSession:
        return ServedSession(self.do(lambda driver: driver.fork()), self._thread)

    def stats(self) -> dict[str, int]:
        """Counter totals since the session began, and the current index size."""

        def count(driver: Driver) -> dict[str, int]:
            size, grown = driver.counted()
            self._counted.update(grown)
            return {**self._counted, **({} if size is None else {"index_bytes": size})}

        return self.do(count)

    def close(self) -> None:
        """Close the system after its current call."""
        self._thread.submit(self._driver.close)


_counting = threading.Lock()


class Sessions:
    """All sessions of one server, by name."""

    def __init__(
        self, build: Callable[[], Any], *, most: int = _MOST, idle_seconds: float = _IDLE_SECONDS
    ) -> None:
        self._build = build
        self._most = most
        self._idle_seconds = idle_seconds
        self._sessions: OrderedDict[str, ServedSession] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._cleaner: threading.Thread | None = None

    def __contains__(self, name: str) -> bool:
        return name in self._sessions

    def get(self, name: str) -> ServedSession:
        with self._lock:
            if name not in self._sessions:
                raise NoSuchSession(
                    f"this server does not have the space {name!r:.80}: reset it, and send all "
                    "memories again"
                )
            self._sessions.move_to_end(name)
            return self._sessions[name]

    def reset(self, name: str, scope: str) -> None:
        """Empty the session of this name, or make it."""
        if len(name) > LONGEST_NAME:
            raise UsageError(f"the name of a space has at most {LONGEST_NAME} characters")
        try:
            session = self.get(name)
        except NoSuchSession:
            session = self._add(name, ServedSession(Driver(self._build)))
        session.do(lambda driver: driver.begin(scope))

    def fork(self, name: str) -> str:
        """Copy a session; return the name of the copy."""
        copy = new_name()
        self._add(copy, self.get(name).fork())
        return copy

    def drop(self, name: str) -> None:
        with self._lock:
            session = self._sessions.pop(name, None)
        if session is not None:
            session.close()

    def close(self) -> None:
        self._closed.set()
        for name in list(self._sessions):
            self.drop(name)

    def _add(self, name: str, session: ServedSession) -> ServedSession:
        """Add a session and return it, or the one that another thread added under this name."""
        with self._lock:
            session = self._sessions.setdefault(name, session)
            oldest = next(iter(self._sessions)) if len(self._sessions) > self._most else None
            if self._cleaner is None:
                self._cleaner = threading.Thread(target=self._drop_idle, daemon=True)
                self._cleaner.start()
        if oldest is not None:
            self.drop(oldest)
        return session

    def _drop_idle(self) -> None:
        """Close sessions that their clients left, until the server closes."""
        while not self._closed.wait(min(self._idle_seconds / 4, _LONGEST_CHECK)):
            with self._lock:
                idle = [
                    name
                    for name, session in self._sessions.items()
                    if session.is_idle(self._idle_seconds)
                ]
            for name in idle:
                self.drop(name)


def new_name() -> str:
    """A random name: after a restart, an old client must not reach another client's session."""
    return uuid4().hex


def served_hello(plan: Plan) -> Hello:
    """The hello of a server of this system; reset and close are always offered.

    A system that cannot be reset fails here, before the first client connects.
    """
    plan, system = describe(plan)
    if type(system) is Oracle:
        raise UsageError(
            "oracle needs the evidence of each question, which clients cannot send: serve another "
            "system"
        )
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
    """Convert a client's query to the question that a driver takes."""
    return Question("", query.text, query.now, session=query.session)
