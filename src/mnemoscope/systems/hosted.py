"""The worker's side of a host: a third party's Python system in a process of its own.

The worker has the labels and never imports the system; the host has the system and never gets a
label. Starting, restarting and closing the process is the stdio connector's.
"""

from __future__ import annotations

import math
import os
import select
import sys
import threading
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.import_path import path_of_hosts
from mnemoscope._store.spec import Spec
from mnemoscope.connectors.child_environment import child_environment
from mnemoscope.connectors.child_process import CHECK_SECONDS, AdapterDied, AdapterLate, Child
from mnemoscope.connectors.handshake import VERBS, Hello
from mnemoscope.connectors.stdio import AdapterError, OutOfStep, Stdio
from mnemoscope.isolation.lock import access_hint
from mnemoscope.isolation.scratch import make_scratch
from mnemoscope.models.chat import note
from mnemoscope.systems.host_frames import (
    LENGTH,
    LONGEST_FRAME,
    HostFailure,
    HostReply,
    HostStart,
    PlainReply,
    frame,
)
from mnemoscope.systems.system_replies import short_hits, short_plain_hits
from mnemoscope.types import Hit

START_SECONDS = 120.0
"""How long importing and building a system may take."""
_CALL_SECONDS = math.inf
"""The parent of a run watches each call, and kills the worker that waits too long."""
_READ = 1 << 16
_RESULTS: dict[str, Any] = {
    "recall": msgspec.msgpack.Decoder(list[Hit] | PlainReply),
    "answer": msgspec.msgpack.Decoder(str),
    "remember": msgspec.msgpack.Decoder(dict[str, Any]),
    "stats": msgspec.msgpack.Decoder(dict[str, int]),
    "fork": msgspec.msgpack.Decoder(int),
    "another": msgspec.msgpack.Decoder(int),
    "hello": msgspec.msgpack.Decoder(Hello),
    "options": msgspec.msgpack.Decoder(dict[str, str]),
}
_reply = msgspec.msgpack.Decoder(HostReply).decode


class HostedError(AdapterError):
    """An exception of the system; the name of its class is that of the original."""


class Hosted(Stdio):
    """A system in its host process. Several threads may call it."""

    takes_several_calls = False
    """Whether the hosts of this process call their systems in threads from the first call on."""
    _verbs = VERBS - {"ready"} | {"fork"}  # the host waits until the system is ready

    def __init__(self, target: str, spec: Spec, start: float | None = None) -> None:
        """`target` is the import path `module:Name` that the spec means."""
        # `module:Name` is the module that the user means, also one in the current folder.
        # Without garbage collection the imports take a tenth less; the host switches it on again.
        code = f"import gc, sys; gc.disable(); sys.path[:] = {path_of_hosts()!r}"
        words = [sys.executable, "-c", f"{code}; from mnemoscope.systems import host; host.main()"]
        super().__init__(words, _CALL_SECONDS, START_SECONDS if start is None else start)
        self._target, self._spec = target, spec
        self._turn = nullcontext()  # the host takes several calls at a time
        self._exchange: FrameExchange
        self._in_flight = 0
        self._several = self.takes_several_calls

    def identity(self) -> dict[str, Any]:
        return self._introduction().identity

    @property
    def is_bare_function(self) -> bool:
        """Whether it needs no `remember`: the host refuses other systems without one."""
        return "remember" not in self._introduction().methods

    def another(self) -> HostedCopy | None:
        """A second system in the same process; None if every build gives the same object."""
        handle = self._call("another", {})
        return HostedCopy(self, handle) if handle else None

    def set_clock(self, ahead: float | None) -> None:
        """Replace the clock of the host's Python code; None ends the replacement."""
        self._call("clock", {"ahead": ahead})

    def options(self) -> dict[str, str]:
        """The options of the system with their values; it is imported, and not built."""
        child = self._spawn()
        try:
            order = HostStart(self._target, self._spec, build=False)
            reply = FrameExchange(child).ask(0, frame(order), self._start)
            found: dict[str, str] = _result("options", reply)
            return found
        finally:
            child.end()

    def _fork(self) -> HostedCopy:
        return HostedCopy(self, self._call("fork", {}))

    def _spawn(self) -> Child:
        scratch = make_scratch("host")
        return Child(self._words, child_environment(scratch), scratch, name=str(self._spec))

    def _greet(self, child: Child) -> Hello:
        self._exchange = FrameExchange(child)
        message = frame(HostStart(self._target, self._spec))
        reply = self._exchange.ask(0, message, self._start, "building it")
        hello: Hello = _result("hello", reply)
        return hello

    def _ask(
        self, child: Child, method: str, params: dict[str, Any], seconds: float, handle: int = 0
    ) -> Any:
        with self._lock:
            self._number += 1
            number = self._number
            self._in_flight += 1
            self._several |= self._in_flight > 1
            exchange = self._exchange
        try:
            message = frame((number, method, params, handle, self._several))  # a HostOrder
            reply = exchange.ask(number, message, seconds, method)
        except UnicodeEncodeError as error:
            raise HostedError(f"{method}: a text cannot be sent as UTF-8: {error}") from None
        finally:
            with self._lock:
                self._in_flight -= 1
        for usage in reply.usages:
            note(usage)
        return _result(method, reply)


class HostedCopy(Hosted):
    """A copy that `fork` made in the same host, or another system beside the first."""

    def __init__(self, host: Hosted, handle: int) -> None:
        self._host, self._handle = host, handle
        self._child = host._child

    def _introduction(self) -> Hello:
        return self._host._introduction()

    def _call(self, method: str, params: dict[str, Any], handle: int = 0) -> Any:
        if self._child is not self._host._child:
            raise AdapterDied("its host process has ended")
        return self._host._call(method, params, self._handle)

    def _reset(self, scope: str) -> None:
        self._call("reset", {"scope": scope})

    def _fork(self) -> HostedCopy:
        return HostedCopy(self._host, self._call("fork", {}))

    def close(self) -> None:
        if self._child is self._host._child and self._child is not None:
            self._call("close", {})


class FrameExchange:
    """Sends orders to one host, and gives each caller the reply to its order.

    Of several threads that wait, one reads for all.
    """

    def __init__(self, child: Child) -> None:
        self._child = child
        self._in, self._out = child.stdin.fileno(), child.stdout.fileno()
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._out, select.POLLIN)
        self._writable.register(self._in, select.POLLOUT)
        self._inbox = bytearray()
        self._writing = threading.Lock()
        self._sharing = threading.Lock()
        """Held while the fields below change; it is faster than the condition's own methods."""
        self._arrived = threading.Condition(self._sharing)
        self._is_reading = False
        self._replies: dict[int, HostReply] = {}
        self._waiting: set[int] = set()

    def ask(self, number: int, message: bytes, seconds: float, method: str = "hello") -> HostReply:
        until = time.monotonic() + seconds
        try:
            with self._sharing:
                self._waiting.add(number)
            with self._writing:
                self._send(message, until)
            return self._reply_to(number, until)
        except AdapterLate:
            name, said = self._child.name, self._child.stderr.last_lines
            late = f"{method}: {name} gave no reply within {seconds:g} s{said}"
            raise AdapterLate(late) from None
        except (AdapterDied, OutOfStep) as error:
            raise type(error)(f"{method}: {error}") from None
        finally:
            with self._sharing:
                self._waiting.discard(number)
                self._replies.pop(number, None)

    def _reply_to(self, number: int, until: float) -> HostReply:
        while True:
            with self._sharing:
                while self._is_reading and number not in self._replies:
                    if not self._arrived.wait(_left(until)):
                        raise AdapterLate
                if number in self._replies:
                    return self._replies.pop(number)
                self._is_reading = True
            reply = None
            is_expected = False
            try:
                reply = self._next_reply(until)
            finally:
                with self._sharing:
                    self._is_reading = False
                    if reply is not None and reply.number in self._waiting:
                        is_expected = True
                        self._replies[reply.number] = reply
                    if len(self._waiting) > 1:
                        self._arrived.notify_all()
            if reply.number == number:
                return reply
            if not is_expected:
                raise OutOfStep(f"a reply to call {reply.number}, which was not made")

    def _send(self, message: bytes, until: float) -> None:
        sent = 0
        while sent < len(message):
            try:
                sent += os.write(self._in, memoryview(message)[sent:] if sent else message)
            except BlockingIOError:
                self._wait(self._writable, until)
            except BrokenPipeError:  # it may have replied before it ended
                return
            except (OSError, ValueError):  # another thread ended it
                raise AdapterDied("its host process has ended") from None

    def _next_reply(self, until: float) -> HostReply:
        body = self._next_frame(until)
        try:
            return _reply(body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise OutOfStep(f"a reply cannot be read: {error}") from None

    def _next_frame(self, until: float) -> bytes:
        """The next message; what was read beyond its end stays in the inbox."""
        inbox = self._inbox
        end = LENGTH.size  # of the message, as far as it is known
        while True:
            if len(inbox) >= end and (end := _end_of_frame(inbox, self._child.name)) <= len(inbox):
                with memoryview(inbox) as view:
                    body = bytes(view[LENGTH.size : end])
                del inbox[:end]
                return body
            data = self._read(until)
            # A short reply comes whole, and needs no copies.
            if (
                not inbox
                and len(data) > LENGTH.size
                and _end_of_frame(data, self._child.name) == len(data)
            ):
                return data[LENGTH.size :]
            inbox += data

    def _wait(self, watch: select.poll, until: float) -> None:
        while not watch.poll(1000 * min(CHECK_SECONDS, max(0.0, until - time.monotonic()))):
            if time.monotonic() >= until:
                raise AdapterLate
            if self._child.has_exited:  # a process that it has started holds its stdout open
                raise AdapterDied(self._child.exit_reason())

    def _read(self, until: float) -> bytes:
        self._wait(self._readable, until)
        try:
            data = os.read(self._out, _READ)
        except (OSError, ValueError):  # another thread ended it
            raise AdapterDied("its host process has ended") from None
        if not data:
            raise AdapterDied(self._child.exit_reason())
        return data


def _end_of_frame(data: bytes | bytearray, name: str) -> int:
    """Where the first message of the data ends."""
    length: int = LENGTH.unpack_from(data)[0]
    if length > LONGEST_FRAME:
        raise OutOfStep(f"{name} returned more than {LONGEST_FRAME >> 20} MiB")
    return LENGTH.size + length


def _left(until: float) -> float | None:
    return None if until == math.inf else max(0.0, until - time.monotonic())


def _result(method: str, reply: HostReply) -> Any:
    if reply.failure is not None:
        _fail(reply.failure, is_start=method in ("hello", "options"))
    decoder = _RESULTS.get(method)
    if decoder is None:
        return None
    try:
        result = decoder.decode(reply.result)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise OutOfStep(f"{method}: a reply cannot be read: {error}") from None
    if type(result) is PlainReply:
        if len(result.ids) != len(result.scores):
            raise OutOfStep(f"{method}: a reply cannot be read: not one score for each id")
        return short_plain_hits(result.ids, result.scores, len(reply.result))
    return short_hits(result, len(reply.result)) if method == "recall" else result


def _fail(failure: HostFailure, *, is_start: bool) -> None:
    """Raise what the system raised: the same name, text and consequences."""
    text = failure.text + access_hint(f"{failure.name}: {failure.text}")
    if failure.ours and is_start:
        raise (UsageError if failure.is_usage else MnemoscopeError)(text)
    bases: tuple[type[BaseException], ...] = (HostedError,)
    for holds, kind in (
        (failure.is_lost, SystemLost),
        (failure.is_late, TimeoutError),
        (failure.is_bad_reply, BadReply),
        (failure.is_exit, SystemExit),
    ):
        bases += (kind,) if holds else ()
    error: BaseException = type(failure.name, bases, {})(text)
    cause: Exception | None = None
    if failure.ours:
        cause = MnemoscopeError(failure.ours)
    elif failure.errno:
        cause = OSError(failure.errno, os.strerror(failure.errno))
    raise error from cause


def importable(target: Any) -> str:
    """The import path of an object that another process can import; empty if there is none.

    The objects of a notebook or a script, lambdas, instances and classes inside functions cannot
    be imported.
    """
    module_name, name = getattr(target, "__module__", ""), getattr(target, "__qualname__", "")
    module = sys.modules.get(module_name or "")
    if module is None or module_name == "__main__" or not name or "<" in name:
        return ""
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    if not origin or not Path(origin).exists():
        return ""
    found: Any = module
    with suppress(AttributeError):
        for part in name.split("."):
            found = getattr(found, part)
    return f"{module_name}:{name}" if found is target else ""
