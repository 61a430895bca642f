"""The stdio connector: any executable is a system, with JSON lines on its stdin and stdout.

`stdio:python adapter.py --flag`. Each process that calls the system starts its own child. The
child's reply to `hello` lists its methods; docs/connectors.md describes the protocol.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import msgspec

from mnemoscope._store.errors import BadReply, SystemLost
from mnemoscope._store.lenient_json import decoded, encoded
from mnemoscope.connectors.child_process import (
    AdapterDied,
    AdapterLate,
    Child,
    LineTooLong,
    file_hashes,
    name_of,
    shown,
    split_command,
)
from mnemoscope.connectors.handshake import (
    VERBS,
    Hello,
    check_methods,
    check_seconds,
    read_receipt,
    read_stats,
)
from mnemoscope.isolation.lock import access_hint
from mnemoscope.isolation.scratch import make_scratch
from mnemoscope.types import Memory, Query, Selector

PROTOCOL = 1
_MOST_OTHER_LINES = 1000
"""Lines on stdout, other than replies, that are skipped in one call."""
_CLOSE_SECONDS = 5.0


class AdapterError(Exception):
    """The adapter replied with an error."""


class OutOfStep(SystemLost, BadReply):
    """The child wrote something else than the reply to the call.

    Its next lines cannot be assigned to calls, so the child is ended.
    """


class Stdio:
    """A child process as a system, one call at a time.

    `timeout` is how many seconds a call may take, `start` how many the first reply may take. With
    `live` the child has the user's own home and may write anywhere; with `read_only` it has them,
    may write to its scratch folder only, and is asked and never told anything.
    """

    _verbs = VERBS
    _live = _read_only = False
    _storage = ""

    def __init__(
        self,
        address: str | Sequence[str],
        timeout: float = 3600.0,
        start: float = 120.0,
        live: bool = False,
        read_only: bool = False,
    ) -> None:
        self._words = (
            split_command(address, "stdio:python adapter.py")
            if isinstance(address, str)
            else list(address)
        )
        check_seconds(timeout=timeout, start=start)
        self._timeout, self._start = timeout, start
        self._live, self._read_only = live, read_only
        self._settings: dict[str, Any] = {}
        """What the child is told in hello besides the protocol."""
        self._limits: dict[str, float] = {}
        self._child: Child | None = None
        self._hello: Hello | None = None
        self._gone = ""
        """Why the child ended, if it did."""
        self._number = 0
        self._lock = threading.RLock()
        self._turn: AbstractContextManager[Any] = self._lock
        """Held during a call."""

    def __getattr__(self, name: str) -> Any:
        """Return a method only if the child's hello lists it."""
        if name in self._verbs and name in self._introduction().methods:
            return getattr(self, f"_{name}")
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def keep_in(self, storage: str) -> None:
        """Let the child write to this folder, too: there it keeps its memories over restarts."""
        self._storage = storage

    @property
    def scratch(self) -> str:
        """The folder of its home and its temporary files; empty if it does not run."""
        return "" if self._child is None else self._child.scratch

    def limit_calls(self, recall: float, others: float) -> None:
        """Give calls at most so many seconds, if `timeout` does not give them less."""
        self._limits = dict.fromkeys(VERBS, others) | dict.fromkeys(("recall", "answer"), recall)

    def identity(self) -> dict[str, Any]:
        return {
            "command": self._words,
            "files_sha256": file_hashes(self._words),
            "hello": self._described(),
        }

    def _described(self) -> dict[str, Any]:
        """The hello, with the caveats of a live store."""
        hello: dict[str, Any] = msgspec.to_builtins(self._introduction())
        if not self._live and not self._read_only:
            return hello
        from mnemoscope.connectors.live_store import notes_of

        about = hello["identity"]
        notes = [*about.get("notes", []), *notes_of(live=self._live, read_only=self._read_only)]
        return {**hello, "identity": {**about, "notes": notes}}

    def kill(self) -> None:
        """Kill the child and its process group as a crash would: by SIGKILL, also in a call.

        The call fails. Another thread may ask for this, so the lock of a call is not taken.
        """
        child = self._child
        if child is not None:
            child.send_signal(signal.SIGKILL)

    def close(self) -> None:
        with self._lock:
            child, foreign, self._child = self._child, self._is_foreign, None
            if child is None or foreign:
                return
            has_close = self._hello is not None and "close" in self._hello.methods
            if has_close and not self._gone and not self._read_only:
                with suppress(Exception):
                    self._ask(child, "close", {}, _CLOSE_SECONDS)
            child.close()

    def _reset(self, scope: str) -> None:
        with self._lock:
            if self._gone or self._is_foreign:
                self._child, self._gone = None, ""
            if not self._read_only:
                self._call("reset", {"scope": scope})

    def _remember(self, memories: Sequence[Memory]) -> dict[str, Any] | None:
        if self._read_only:  # it has them already
            return None
        return read_receipt(self._call("remember", {"memories": memories}))

    def _ready(self) -> None:
        if not self._read_only:
            self._call("ready", {})

    def _recall(self, query: Query, k: int) -> Any:
        return self._call("recall", {"query": query, "k": k})

    def _answer(self, query: Query) -> Any:
        return self._call("answer", {"query": query})

    def _forget(self, selector: Selector) -> None:
        self._call("forget", {"memories": selector.memories})

    def _stats(self) -> dict[str, Any]:
        return read_stats(self._call("stats", {}))

    @property
    def _is_foreign(self) -> bool:
        return self._child is not None and self._child.owner != os.getpid()

    def _introduction(self) -> Hello:
        if self._hello is not None:
            return self._hello
        with self._lock:
            if self._hello is None:
                self._started()
            assert self._hello is not None
            return self._hello

    def _started(self) -> Child:
        """The child, started on first use; only a reset replaces a child that has ended."""
        with self._lock:
            return self._started_once()

    def _started_once(self) -> Child:
        if self._gone:
            raise AdapterDied(f"it ended in an earlier call: {self._gone}")
        if self._is_foreign:
            raise AdapterDied("it belongs to another process; only a reset starts a new one here")
        if self._child is not None:
            return self._child
        child = self._spawn()
        # End the child also if the system is dropped without close().
        weakref.finalize(self, child.end)
        try:
            hello = self._greet(child)
            if self._hello is not None and self._hello != hello:
                raise BadReply("its hello differs from the one before: is it the same system?")
        except BaseException:
            child.end()
            raise
        self._child, self._hello = child, hello
        return child

    def _spawn(self) -> Child:
        from mnemoscope.connectors.scratch_home import child_places

        scratch = make_scratch("stdio")
        try:
            words, environment, folder, writes = child_places(
                self._words, scratch, live=self._live, read_only=self._read_only
            )
            if writes is not None and self._storage:
                writes.append(self._storage)
            name = name_of(self._words)
            return Child(words, environment, scratch, name=name, folder=folder, writes=writes)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise

    def _greet(self, child: Child) -> Hello:
        params = {"protocol": PROTOCOL, **self._settings}
        hello = _read_hello(self._ask(child, "hello", params, self._start))
        check_methods(hello.methods, VERBS, name_of(self._words))
        return hello

    def _call(self, method: str, params: dict[str, Any], handle: int = 0) -> Any:
        if self._read_only:
            from mnemoscope.connectors.live_store import READING, not_sent

            if method not in READING:
                raise not_sent(method)
        with self._turn:
            child = self._started()
            try:
                seconds = min(self._timeout, self._limits.get(method, self._timeout))
                return self._ask(child, method, params, seconds, handle)
            except AdapterError:
                raise
            except BaseException as error:
                # The next line that it writes may be the reply to this call.
                with self._lock:
                    child.end()
                    self._gone = self._gone or str(error) or type(error).__name__
                raise

    def _ask(
        self, child: Child, method: str, params: dict[str, Any], seconds: float, handle: int = 0
    ) -> Any:
        """`handle` is for a host with several systems."""
        self._number += 1
        order = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        skipped, last = 0, b""
        try:
            for line in child.lines(encoded(order) + b"\n", seconds):
                reply = _read_reply(line, child.stderr.log)
                if reply is not None:
                    return _result(reply, self._number, method)
                if line.strip():
                    skipped, last = skipped + 1, line
                if skipped > _MOST_OTHER_LINES:
                    raise OutOfStep(
                        f"{method}: more than {_MOST_OTHER_LINES} lines on stdout are not replies; "
                        f"print to stderr instead. The last one: {shown(last)}"
                    )
        except AdapterLate as error:
            hint = f"; {skipped} lines were not replies, the last: {shown(last)}" if skipped else ""
            raise AdapterLate(f"{method}: {error}{hint}{child.stderr.last_lines}") from None
        except AdapterDied as error:
            raise AdapterDied(f"{method}: {error}") from None
        except LineTooLong as error:
            raise OutOfStep(f"{method}: {error}") from None
        raise AssertionError("lines end by an error")


def _read_reply(line: bytes, log: Callable[[bytes], None]) -> dict[str, Any] | None:
    """Return the reply on a line of stdout, or None; anything else goes to the log."""
    reply = _decoded(line)
    start = line.find(b'{"jsonrpc"')
    if reply is None and start > 0:  # something was printed without an end of line
        log(line[:start])
        line = line[start:]
        reply = _decoded(line)
    if isinstance(reply, dict) and "method" not in reply:
        # A reply without an id is returned too: the caller then reports it instead of waiting.
        if reply.keys() & {"jsonrpc", "result"} or {"id", "error"} <= reply.keys():
            return reply
    elif reply is None and start >= 0:
        raise OutOfStep(f"a reply is not valid JSON: {shown(line)}")
    if line.strip():
        log(line)
    return None


def _decoded(line: bytes) -> Any:
    """Return the value, or None if the line is not JSON."""
    with suppress(ValueError):
        return decoded(line)
    return None


def _result(reply: dict[str, Any], number: int, method: str) -> Any:
    error = reply.get("error")
    if error is not None and reply.get("id") in (number, None):
        text = error.get("message", error) if isinstance(error, dict) else error
        text = str(text)
        said = shown(text.encode("utf-8", "backslashreplace"))
        raise AdapterError(f"{method}: {said}{access_hint(text)}")
    if "id" not in reply:
        raise OutOfStep(
            f"{method}: a reply without id; repeat the id of the call, "
            f'{{"jsonrpc": "2.0", "id": {number}, "result": …}}: {reply!r:.200}'
        )
    if reply.get("id") != number or isinstance(reply.get("id"), bool):
        raise OutOfStep(f"{method}: a reply to call {reply.get('id')!r:.40}; expected {number}")
    if "result" not in reply:
        raise OutOfStep(f"{method}: a reply without result and without error")
    return reply["result"]


def _read_hello(reply: Any) -> Hello:
    try:
        return msgspec.convert(reply, Hello)
    except msgspec.ValidationError as error:
        raise BadReply(
            f"hello cannot be read: {error}; expected "
            '{"name": "…", "version": "…", "methods": ["remember", "recall"], "identity": {}}'
        ) from None
