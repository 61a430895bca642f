"""Systems that we start, kill and start again on the same storage.

Only processes that were started here are killed: a child by its process group, with SIGKILL.
"""

from __future__ import annotations

import ipaddress
import shlex
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec.structs import replace

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.connectors.child_environment import child_environment
from mnemoscope.connectors.child_process import Child, LineTooLong, split_command
from mnemoscope.integrations.catalog import ITEMS
from mnemoscope.isolation.scratch import make_scratch
from mnemoscope.systems import BUILT_IN, CONNECTORS
from mnemoscope.systems.loader import Plan, abilities, options_of, plan

STORAGE = "{storage}"
_OPTION = "storage"
_POLL = 0.02


class Restartable(Protocol):
    """A system with a process of its own, which is ours to kill."""

    def start(self) -> Any:
        """Start it on its storage, and return the system; a start that fails raises."""
        ...

    def kill(self) -> None:
        """Kill it with SIGKILL; calls under way fail."""
        ...

    def stop(self) -> None:
        """End it in the usual way, so that it can write what it holds."""
        ...

    def close(self) -> None:
        """End whatever still runs."""
        ...

    @property
    def scratch(self) -> str:
        """The folder of its home and its temporary files, while it runs; else empty."""
        ...


class ChildSystem:
    """A system behind the stdio connector: an adapter, an integration, or a Python class."""

    def __init__(self, planned: Plan, storage: Path, timeout: float) -> None:
        self._plan, self._storage, self._timeout = planned, storage, timeout
        self._system: Any = None

    def start(self) -> Any:
        self.close()
        self._system = self._plan.build()
        self._system.keep_in(str(self._storage))
        abilities(self._system)  # its first use starts the process
        self._system.limit_calls(self._timeout, self._timeout)
        return self._system

    @property
    def scratch(self) -> str:
        return "" if self._system is None else str(self._system.scratch)

    def kill(self) -> None:
        self._system.kill()

    def stop(self) -> None:
        self.close()

    def close(self) -> None:
        system, self._system = self._system, None
        if system is not None:
            system.close()


class ServerSystem:
    """A server that we start by a command; its client survives, as an application's would."""

    def __init__(self, planned: Plan, command: str, timeout: float, start: float) -> None:
        self._plan, self._timeout, self._start = planned, timeout, start
        self._words = split_command(command, "--command 'my-server --port 8080 --data {storage}'")
        self._address = _loopback(planned.spec)
        self._child: Child | None = None
        self._system: Any = None

    def start(self) -> Any:
        if self._listens():
            host, port = self._address
            raise UsageError(f"a server listens at {host}:{port} already: end it, --command does")
        scratch = make_scratch("server")
        self._child = child = Child(self._words, child_environment(scratch), scratch)
        threading.Thread(target=_drain, args=(child,), daemon=True).start()
        until = time.monotonic() + self._start
        while not self._listens():
            if child.has_exited:
                raise MnemoscopeError(f"the server ended: {child.exit_reason()}")
            if time.monotonic() > until:
                raise MnemoscopeError(f"the server does not listen after {self._start:g} s")
            time.sleep(_POLL)
        if self._system is None:
            self._system = self._plan.build()
            abilities(self._system)
        return self._system

    @property
    def scratch(self) -> str:
        return "" if self._child is None else self._child.scratch

    def kill(self) -> None:
        if self._child is not None:
            self._child.send_signal(signal.SIGKILL)
            self._child.end()

    def stop(self) -> None:
        if self._child is not None:
            self._child.send_signal(signal.SIGTERM)
            self._child.close()

    def close(self) -> None:
        system, self._system = self._system, None
        if system is not None and hasattr(system, "close"):
            with suppress(Exception):
                system.close()
        if self._child is not None:
            self._child.end()

    def _listens(self) -> bool:
        try:
            socket.create_connection(self._address, timeout=1.0).close()
        except OSError:
            return False
        return True


def why_not_durable(spec: Spec) -> str:
    """Why a system keeps nothing by design; empty if it may keep its memories.

    An integration whose adapter cannot open its storage again is refused: that is our limit, not
    the system's.
    """
    if spec.name in BUILT_IN:
        return "it keeps its memories in the process that uses it"
    if spec.name in ITEMS:
        if ITEMS[spec.name].in_memory:
            return "it keeps its memories in the memory of its process"
        if _OPTION not in options_of(spec.name):
            able = [name for name in ITEMS if _can_be_reopened(name)]
            raise UsageError(
                f"the integration of {spec.name} cannot be started again on its storage; those of "
                f"{', '.join(able)} can"
            )
    return ""


def _can_be_reopened(name: str) -> bool:
    item = ITEMS[name]
    return not item.untested and _OPTION in options_of(name)


def with_storage(spec: Spec) -> Spec:
    """The spec with `storage={storage}`, if the system has this option and no place is named."""
    named = STORAGE in spec.name or any(STORAGE in str(value) for value in spec.args.values())
    if named or spec.name.partition(":")[0] in CONNECTORS.builtin or _OPTION in spec.args:
        return spec
    if _OPTION in options_of(spec.name):
        return replace(spec, args={**spec.args, _OPTION: STORAGE})
    return spec


def restartable(
    spec: Spec, command: str, storage: Path, *, timeout: float, start: float
) -> Restartable:
    """The system with `{storage}` replaced by a folder."""
    quoted = shlex.quote(str(storage))
    placed = Spec(
        spec.name.replace(STORAGE, quoted),
        {
            key: value.replace(STORAGE, str(storage)) if isinstance(value, str) else value
            for key, value in spec.args.items()
        },
        spec.label,
    )
    planned = plan(placed)
    if planned.hosting == "server":
        if not command:
            raise UsageError(
                f"{spec.name} is a server that we did not start, so it is not ours to kill; give "
                "the command that starts it: --command 'my-server --port 8080 --data {storage}'"
            )
        return ServerSystem(planned, command.replace(STORAGE, quoted), timeout, start)
    if command:
        raise UsageError("--command starts a server: name its address, such as http:URL")
    if spec.name.startswith("mcp:"):
        raise UsageError(
            "an MCP server behind a command cannot be tested: start it with an HTTP transport by "
            "--command, and name its URL"
        )
    if planned.hosting != "child":
        raise UsageError(f"{spec.name} has no process of its own that could be killed")
    return ChildSystem(planned, storage, timeout)


def _drain(child: Child) -> None:
    """Read what a server prints, so that a full pipe does not stop it."""
    with suppress(OSError, ValueError, LineTooLong):
        while child.read():
            for line in child.whole_lines():
                child.stderr.log(line)


def _loopback(spec: Spec) -> tuple[str, int]:
    """The address of a server on this machine: another's is not ours to kill."""
    address = spec.name.partition(":")[2]
    parts = urlsplit(address if "//" in address else f"//{address}")
    try:
        host, port = parts.hostname or "", parts.port or {"https": 443}.get(parts.scheme, 80)
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local, host, port = False, address, 0
    if not is_local:
        raise UsageError(f"{host} is not a loopback address: --command starts a server here")
    return host, port
