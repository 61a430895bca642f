"""The host: a process of its own that imports, builds and calls one system.

It imports little, because it starts once for each worker. The worker never imports the system, and
this process never gets a label. `hosted` is the worker's side.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import IO, TYPE_CHECKING, Any

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope._store.registry import describe_options, import_target
from mnemoscope.connectors.handshake import Hello
from mnemoscope.systems.host_frames import (
    LENGTH,
    LONGEST_FRAME,
    AnswerParams,
    ClockParams,
    HostFailure,
    HostOrder,
    HostStart,
    MemoriesParams,
    PlainReply,
    RecallParams,
    ResetParams,
    encode,
)
from mnemoscope.systems.loader import Driver, abilities, describe, plan_here
from mnemoscope.types import Hit, Query, Question, Selector, Usage

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from mnemoscope.systems.machine_clock import MachineClock

_MOST_THREADS = 256
_LONGEST_TEXT = 2000
"""Characters of an exception's text that are sent."""
_LONGEST_CHAIN = 20
_CHAT = "mnemoscope.models.chat"
_Decoder = msgspec.msgpack.Decoder
_order = _Decoder(HostOrder).decode
_reset = _Decoder(ResetParams).decode
_memories = _Decoder(MemoriesParams).decode
_recall = _Decoder(RecallParams).decode
_answer = _Decoder(AnswerParams).decode
_clock = _Decoder(ClockParams).decode


_CLOSE_SECONDS = 5.0
"""How long a system without `reset` may take to close before the next scenario begins."""


def main() -> None:
    """Serve the worker that started this process, until it closes the pipe."""
    frames, replies = _frames(os.fdopen(os.dup(0), "rb")), os.dup(1)
    # What the system, its libraries and its processes read and print is not the protocol's.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    host = SystemHost(replies)
    start = msgspec.msgpack.decode(next(frames), type=HostStart)
    if host.reply(0, lambda: host.build(start)):
        host.serve(frames)
    with suppress(Exception):
        sys.stderr.flush()
    os._exit(0)  # threads that the system left, and its atexit functions, must not delay the run


def _frames(orders: IO[bytes]) -> Iterator[bytes]:
    while len(head := orders.read(LENGTH.size)) == LENGTH.size:
        yield orders.read(LENGTH.unpack(head)[0])


class SystemHost:
    """The systems of this process: one, its copies, and in checks others beside it."""

    def __init__(self, replies: int) -> None:
        self._replies = replies
        self._process = os.getpid()
        self._writing = threading.Lock()
        self._drivers: dict[int, Driver] = {}
        self._build: Callable[[], Any] = lambda: None
        self._made = 0
        self._threads: ThreadPoolExecutor | None = None
        self._clock: MachineClock | None = None
        self._real_time = ExitStack()
        self._verbs: dict[str, Callable[[Driver, msgspec.Raw], Any]] = {
            "reset": lambda driver, params: self._begin(driver, _reset(params).scope),
            "remember": lambda driver, params: driver.remember(_memories(params).memories),
            "recall": self._recall,
            "answer": lambda driver, params: driver.answer(_as_question(_answer(params).query)),
            "forget": lambda driver, params: driver.forget(Selector(_memories(params).memories)),
            "stats": lambda driver, params: driver.report(),
            "fork": lambda driver, params: self._add(driver.fork()),
            "another": lambda driver, params: self._another(driver),
            "clock": lambda driver, params: self._set_clock(_clock(params).ahead),
        }

    def build(self, start: HostStart) -> Hello | dict[str, str]:
        """Import and build the system; errors are those of the user's spec."""
        target = import_target(start.target, "system")
        gc.freeze()  # modules stay: no collection needs to visit them
        gc.enable()
        if not start.build:
            return describe_options(target) if callable(target) else {}
        plan, system = describe(plan_here(start.spec, target))
        driver = Driver(plan.build, system)
        self._drivers[0] = driver
        self._build = plan.build
        able = abilities(system)
        has = {
            "remember": hasattr(system, "remember") or hasattr(system, "build_index"),
            "ready": hasattr(system, "ready"),
            "recall": able.recalls,
            "answer": able.answers,
            "forget": hasattr(system, "forget"),
            "stats": hasattr(system, "stats") or hasattr(system, "index_size_bytes"),
            "fork": hasattr(system, "fork"),
        }
        methods = ["reset", *(verb for verb, there in has.items() if there), "close"]
        return Hello(name=type(system).__name__, methods=methods, identity=plan.identity)

    def serve(self, frames: Iterator[bytes]) -> None:
        """Call the system until the worker closes it, or is gone."""
        for message in frames:
            order = _order(message)
            if order.method == "close" and order.handle == 0:
                self.reply(order.number, self._close_all)
                return
            if order.in_thread:
                self._pool().submit(self._do, order)
            else:
                self._do(order)
        with suppress(BaseException):
            self._close_all()

    def reply(self, number: int, call: Callable[[], Any]) -> bool:
        """Send the result of a call, or the exception that it raised; False for an exception."""
        usages: list[Usage] = []
        failure: HostFailure | None = None
        result: Any = None
        try:
            if _CHAT in sys.modules:
                result = _metered(call, usages)
            else:  # the system does not use our models
                result = call()
        except BaseException as error:  # a system may raise any, and must still reply
            failure = _failure_of(error)
        if os.getpid() != self._process:
            os._exit(0)  # the system forked in a call, and the copy returned from it, too
        try:
            message = encode((number, result, failure, usages))
            if len(message) > LONGEST_FRAME:
                raise BadReply(f"it returned more than {LONGEST_FRAME >> 20} MiB")
        except UnicodeEncodeError:
            message = encode((number, _printable(msgspec.to_builtins(result)), failure, usages))
        except Exception as error:
            failure = failure or _failure_of(error)
            message = encode((number, None, failure, usages))
        left = LENGTH.pack(len(message)) + message
        with self._writing:
            while (written := os.write(self._replies, left)) < len(left):
                left = left[written:]
        return failure is None

    def _do(self, order: HostOrder) -> None:
        def call() -> Any:
            driver = self._drivers[order.handle]
            if order.method == "close":
                return self._drivers.pop(order.handle).close()
            return self._verbs[order.method](driver, order.params)

        self.reply(order.number, call)

    def _begin(self, driver: Driver, scope: str) -> None:
        if driver.must_rebuild:
            closing = threading.Thread(target=driver.close, daemon=True)
            closing.start()
            closing.join(_CLOSE_SECONDS)
            if closing.is_alive():
                sys.stderr.write(f"close took longer than {_CLOSE_SECONDS:g} s\n")
        driver.begin(scope)

    def _recall(self, driver: Driver, params: msgspec.Raw) -> Sequence[Hit] | PlainReply:
        asked = _recall(params)
        hits = driver.ask(asked.query, asked.k)
        if not hits or any(hit.text or hit.sources or hit.ordered for hit in hits):
            return hits
        return PlainReply([hit.id for hit in hits], [hit.score for hit in hits])

    def _add(self, driver: Driver) -> int:
        self._made += 1
        self._drivers[self._made] = driver
        return self._made

    def _another(self, driver: Driver) -> int:
        """A second system in this process; 0 if every build gives the same object."""
        system = self._build()
        return 0 if driver.drives(system) else self._add(Driver(self._build, system))

    def _set_clock(self, ahead: float | None) -> None:
        if ahead is None:
            self._real_time.close()
            self._clock = None
            return
        if self._clock is None:
            from mnemoscope.systems.machine_clock import machine_clock

            self._clock = self._real_time.enter_context(machine_clock())
        self._clock.put(ahead)

    def _close_all(self) -> None:
        for driver in [*self._drivers.values()][::-1]:
            driver.close()

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(_MOST_THREADS)
        return self._threads


def _as_question(query: Query) -> Question:
    return Question("", query.text, query.now, session=query.session)


def _metered(call: Callable[[], Any], usages: list[Usage]) -> Any:
    from mnemoscope.models.chat import metered

    with metered() as counted:
        try:
            return call()
        finally:
            usages += counted


def _failure_of(error: BaseException) -> HostFailure:
    ours, errno = "", 0
    cause: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if cause is None:
            break
        if isinstance(cause, MnemoscopeError):
            ours = ours or _text(cause) or type(cause).__name__
        elif isinstance(cause, OSError):
            errno = errno or cause.errno or 0
        cause = cause.__cause__ or cause.__context__
    return HostFailure(
        printable(type(error).__name__)[:80],
        _text(error),
        is_lost=isinstance(error, SystemLost),
        is_late=isinstance(error, TimeoutError) or getattr(error, "timed_out", False) is True,
        is_bad_reply=isinstance(error, BadReply),
        is_exit=isinstance(error, SystemExit),
        is_usage=isinstance(error, UsageError),
        ours=ours,
        errno=errno if isinstance(errno, int) else 0,
    )


def _text(error: BaseException) -> str:
    try:
        return printable(str(error)[:_LONGEST_TEXT])
    except BaseException as problem:
        return f"its text cannot be read: {type(problem).__name__}"


def _printable(value: Any) -> Any:
    """The value with each lone surrogate as an escape sequence, because UTF-8 has none."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_printable(key): _printable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(one) for one in value]
    return value
