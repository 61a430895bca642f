"""The one process of a run that is connected to Ray; it knows no label.

Ray ends the process that is connected to it when its head node is gone. The run itself must not end
that way, and it forks workers, which a process with Ray's threads cannot do safely.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from mnemoscope.runner.cluster.gateway import (
    CONNECTED,
    LOST,
    MESSAGES,
    REFUSED,
    Drop,
    End,
    Keep,
    Order,
    Send,
    Start,
)
from mnemoscope.text.display import one_line

_POLL = 0.2
"""Seconds that one look at the actors takes at most."""
_RECEIVE = 5.0
"""Seconds that an actor waits for a message of its process before it replies."""
_SILENCE = 20.0
"""Seconds after which a head that does not answer is gone."""
_STOP = 10.0
_TRIES = 5
"""How often a client server is asked: it forks a process for each client, which can die at once."""
_THREADS = 4
"""Of an actor: one receives, the others send and stop."""


def main() -> None:
    """`ray_gateway FD ADDRESS`; an empty address is the Ray of this machine, started if needed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, BrokenPipeError):
        try:
            ray = _connected(sys.argv[2])
        except BaseException as error:
            pipe.send_bytes(msgspec.msgpack.encode((REFUSED, 0, [_text(error).encode()])))
            return
        try:
            _Gateway(ray, pipe).serve()
        finally:
            ray.shutdown()


def _end_with(parent: int) -> None:
    """End with the run, also while Ray waits for a cluster that does not answer."""
    while os.getppid() == parent:
        time.sleep(_POLL)
    _leave()


def _leave() -> None:
    """End this process and those of a Ray that it started, which would stay behind."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _connected(address: str) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report that it is used
    if not address:
        # A Ray that is started here listens on the loopback address only.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address:
        for left in reversed(range(_TRIES)):
            try:
                ray.init(address, **options)
                return ray
            except ConnectionAbortedError:
                if not left:
                    raise
                time.sleep(_POLL)
    try:
        ray.init("auto", **options)
    except ConnectionError:
        # A Ray of our own has a token of its own, or it would keep one in the user's home folder.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        ray.init("local", include_dashboard=False, **options)
    return ray


class _Gateway:
    """Passes orders to the actors, and their messages to the run."""

    def __init__(self, ray: Any, pipe: Connection) -> None:
        from mnemoscope.runner.cluster.ray_actor import RayActor

        self._ray, self._pipe = ray, pipe
        self._actor = ray.remote(RayActor)
        self._actors: dict[int, Any] = {}
        self._kept: dict[str, Any] = {}
        self._changing = threading.Lock()
        self._replies: dict[Any, int] = {}
        """What is awaited of each actor."""

    def serve(self) -> None:
        threading.Thread(target=self._end_without_head, daemon=True).start()
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        self._tell(CONNECTED, 0, [str(cpus).encode()])
        threading.Thread(target=self._take_orders, daemon=True).start()
        idle = threading.Event()
        while True:
            with self._changing:
                waiting = list(self._replies)
            if not waiting:
                idle.wait(_POLL / 10)
                continue
            ready, _ = self._ray.wait(waiting, num_returns=1, timeout=_POLL)
            if ready and len(waiting) > 1:
                ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
            for reply in ready:
                self._pass_on(reply)

    def _end_without_head(self) -> None:
        """End when nothing listens at the head's address; Ray itself would wait for a minute."""
        address = sys.argv[2].removeprefix("ray://")
        address = address or self._ray.get_runtime_context().gcs_address
        host, _, port = address.rpartition(":")
        answered = time.monotonic()
        while time.monotonic() - answered < _SILENCE:
            time.sleep(_SILENCE / 10)
            with suppress(OSError):
                socket.create_connection((host.strip("[]"), int(port)), _SILENCE / 2).close()
                answered = time.monotonic()
        _leave()

    def _pass_on(self, reply: Any) -> None:
        with self._changing:
            worker = self._replies.pop(reply)
            actor = self._actors.get(worker)
        if actor is None:  # it was ended
            return
        try:
            messages = self._ray.get(reply)
        except BaseException as error:
            with self._changing:
                self._actors.pop(worker, None)
            with suppress(Exception):
                self._ray.kill(actor)
            self._tell(LOST, worker, [_text(error).encode("utf-8", "backslashreplace")])
            return
        with self._changing:
            if worker in self._actors:
                self._replies[actor.receive.remote(_RECEIVE)] = worker
        if messages:
            self._tell(MESSAGES, worker, messages)

    def _take_orders(self) -> None:
        """Follow the orders of the run; without it this process ends, and with it the actors."""
        try:
            while True:
                self._follow(msgspec.msgpack.decode(self._pipe.recv_bytes(), type=Order))
        except (EOFError, OSError):
            pass
        finally:
            with suppress(BaseException):
                self._ray.shutdown()
            _leave()

    def _follow(self, order: Order) -> None:
        match order:
            case Start():
                options = self._actor.options(
                    num_cpus=order.cpus,
                    num_gpus=order.gpus,
                    memory=order.memory or None,
                    max_restarts=0,  # the run itself decides how often a unit is tried again
                    max_concurrency=_THREADS,
                )
                actor = options.remote(self._kept[order.setup])
                with self._changing:
                    self._actors[order.worker] = actor
                    self._replies[actor.receive.remote(_RECEIVE)] = order.worker
            case Send():
                parts = [self._kept[key] for key in order.kept]
                if (actor := self._actors.get(order.worker)) is not None:
                    actor.send.remote(order.message, *parts)
            case Keep():
                self._kept[order.key] = self._ray.put(order.content)
            case Drop():
                self._kept.pop(order.key, None)
            case End():
                with self._changing:
                    actor = self._actors.pop(order.worker, None)
                if actor is not None and order.gently:
                    stopped = actor.stop.remote(_STOP)
                    threading.Thread(target=self._kill_after, args=(actor, stopped)).start()
                elif actor is not None:
                    self._ray.kill(actor)

    def _kill_after(self, actor: Any, stopped: Any) -> None:
        with suppress(Exception):
            self._ray.wait([stopped], timeout=_STOP + _POLL)
        with suppress(Exception):
            self._ray.kill(actor)

    def _tell(self, kind: str, worker: int, content: list[bytes]) -> None:
        self._pipe.send_bytes(msgspec.msgpack.encode((kind, worker, content)))


def _text(error: BaseException) -> str:
    """What went wrong, in a line: Ray adds its advice after it, and a remote stack before it."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    line = lines[-1 if any("Traceback" in one or one.startswith("ray::") for one in lines) else 0]
    return one_line(f"{type(error).__name__}: {line}", 200)


if __name__ == "__main__":
    main()
