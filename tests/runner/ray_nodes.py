"""A Ray cluster of two nodes on loopback addresses, whose processes are ended by their ids."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

HEAD, SECOND = "127.0.0.2", "127.0.0.3"  # Ray replaces 127.0.0.1 by an address of the machine


class TwoNodes:
    """Head and second node, one CPU each; `end` ends all of their processes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # Its sockets are in there, and their paths must be short.
        self._folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        # A token of its own: Ray would use one that the user has, or none.
        self.access: dict[str, Any] = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        """The variables of processes that may use the cluster."""
        self._environment = {
            **os.environ,
            **environment,
            **self.access,
            "RAY_raylet_start_wait_time_s": "300",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        port, client = free_port(), free_port()
        self.address, self.client = f"{HEAD}:{port}", f"ray://{HEAD}:{client}"
        self._sessions: list[int] = []
        here = ("--head", f"--port={port}", f"--ray-client-server-port={client}")
        try:
            self._start(HEAD, *here, "--include-dashboard=false", f"--temp-dir={self._folder}")
            self._start(SECOND, f"--address={self.address}")
        except BaseException:
            self.end()
            raise

    def kill_second(self) -> None:
        """End the second node as if its machine was gone."""
        _kill_session(self._sessions[1])

    def kill_head(self) -> None:
        _kill_session(self._sessions[0])

    def end(self) -> None:
        for session in self._sessions:
            _kill_session(session)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, address: str, *options: str) -> None:
        ray = Path(sys.executable).parent / "ray"
        words = [str(ray), "start", *options, f"--node-ip-address={address}", "--num-cpus=1"]
        quiet = ["--disable-usage-stats", "--include-log-monitor=false"]
        log = Path(self._folder, f"{address}.log")
        with log.open("wb") as out:
            started = subprocess.Popen(
                [*words, *quiet, "--object-store-memory=100000000"],
                env=self._environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._sessions.append(started.pid)
        assert started.wait() == 0, log.read_text()


def free_port() -> int:
    """A port that no process uses, below those that outgoing connections get."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as one, suppress(OSError):
            one.bind(("", port))
            return port


def _kill_session(session: int) -> None:
    """End all processes of a session; those that they start meanwhile, too."""
    while found := _processes(session):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _processes(session: int) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, *rest = place.read_text().rpartition(")")[2].split()
            if int(rest[2]) == session and state != "Z":
                found.append(int(place.parent.name))
    return found
