"""The driver's end of the process that is connected to a cluster."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from importlib.util import find_spec
from multiprocessing import Pipe

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError

CONNECTED, REFUSED, MESSAGES, LOST = "connected", "refused", "messages", "lost"
"""What the gateway tells: that it is connected or cannot be, messages of a worker, its loss."""
_MOST_KEPT = 32
"""Scenarios that are kept in the object store; several systems use the same one."""
_CONNECT = 10.0
_START = 300.0
"""Seconds in which Ray must start, or connect; on a machine with much to do it takes long."""
_FAREWELL = 20.0


class Start(msgspec.Struct, frozen=True, tag=True):
    """Start a worker; the cluster finds a node with these resources."""

    worker: int
    setup: str
    cpus: float = 1.0
    gpus: float = 0.0
    memory: int = 0
    """Bytes; 0 for no demand."""


class Keep(msgspec.Struct, frozen=True, tag=True):
    """Put something into the object store, once for all workers."""

    key: str
    content: bytes


class Drop(msgspec.Struct, frozen=True, tag=True):
    key: str


class Send(msgspec.Struct, frozen=True, tag=True):
    """Send a message to a worker, and after it what was kept under these keys."""

    worker: int
    message: bytes
    kept: tuple[str, ...] = ()


class End(msgspec.Struct, frozen=True, tag=True):
    worker: int
    gently: bool = False


Order = Start | Keep | Drop | Send | End
Inbox = Callable[[list[bytes] | str], None]
"""Gets the messages of one worker, or the text of why it was lost."""


def check_address(executor: str) -> str:
    """The address of the cluster that `--executor` names, empty for the local Ray."""
    if find_spec("ray") is None:
        raise UsageError("--executor ray needs Ray: pip install 'mnemoscope[ray]'")
    if executor == "ray":
        return ""
    host, colon, port = executor.removeprefix("ray://").rpartition(":")
    if not (colon and host and re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 1 << 16):
        raise UsageError(
            f"--executor {executor}: write local, ray, ray://HOST:PORT (a Ray client server) or "
            "HOST:PORT (a cluster that this machine is a node of)"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT).close()
    except OSError as error:
        why = error.strerror or error
        raise MnemoscopeError(f"--executor {executor}: no cluster answers there: {why}") from None
    return executor


class Gateway(AbstractContextManager["Gateway"]):
    """The process that is connected to the cluster, inside a `with` block."""

    def __init__(self, executor: str) -> None:
        self._executor = executor
        address = check_address(executor)
        self.pipe, theirs = Pipe()
        words = [sys.executable, "-m", f"{__package__}.ray_gateway"]
        # In a session of its own, Ctrl-C does not reach it, nor a Ray that it starts.
        self._process = subprocess.Popen(
            [*words, str(theirs.fileno()), address],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # Ray prints its own logs there when a node is gone
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._inboxes: dict[int, Inbox] = {}
        self._kept: OrderedDict[str, None] = OrderedDict()
        self.cpus = 0
        """How many the cluster has at the start."""
        try:
            if not self.pipe.poll(_START):
                raise MnemoscopeError(f"--executor {executor}: no reply within {_START:g} s")
            kind, _, content = self._receive()
        except BaseException:
            self._process.kill()
            self.close()
            raise
        if kind == REFUSED:
            self.close()
            raise MnemoscopeError(
                f"--executor {executor}: Ray cannot be used: {content[0].decode()}"
            )
        self.cpus = int(content[0])

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self, worker: int, inbox: Inbox, setup: bytes, order: Start) -> None:
        self._inboxes[worker] = inbox
        self._keep(order.setup, setup)
        self._send(order)

    def order(self, worker: int, message: bytes, key: str, content: Callable[[], bytes]) -> None:
        """Send a message and, after it, the content of this key, which is made if it is new."""
        self._keep(key, content)
        self._send(Send(worker, message, (key,)))

    def send(self, worker: int, message: bytes) -> None:
        self._send(Send(worker, message))

    def end(self, worker: int, *, gently: bool) -> None:
        self._inboxes.pop(worker, None)
        with suppress(MnemoscopeError):
            self._send(End(worker, gently))

    def read(self, seconds: float = 0.0) -> None:
        """Pass what has come to the inboxes; waits at most so many seconds for the first."""
        while self.pipe.poll(seconds):
            kind, worker, content = self._receive()
            if inbox := self._inboxes.get(worker):
                inbox(content if kind == MESSAGES else content[0].decode())
            seconds = 0.0

    def close(self) -> None:
        self.pipe.close()
        try:
            self._process.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # A Ray that it started leaves agents behind; they are in its process group.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _keep(self, key: str, content: bytes | Callable[[], bytes]) -> None:
        if key in self._kept:
            self._kept.move_to_end(key)
            return
        self._kept[key] = None
        self._send(Keep(key, content if isinstance(content, bytes) else content()))
        if len(self._kept) > _MOST_KEPT:
            self._send(Drop(self._kept.popitem(last=False)[0]))

    def _send(self, order: Order) -> None:
        try:
            self.pipe.send_bytes(msgspec.msgpack.encode(order))
        except OSError:
            raise self._lost() from None

    def _receive(self) -> tuple[str, int, list[bytes]]:
        try:
            message = self.pipe.recv_bytes()
        except (EOFError, OSError):
            raise self._lost() from None
        return msgspec.msgpack.decode(message, type=tuple[str, int, list[bytes]])

    def _lost(self) -> MnemoscopeError:
        return MnemoscopeError(
            f"--executor {self._executor}: the cluster is gone. What came back is recorded; the "
            "same command continues, there or with --executor local"
        )
