"""What a spec opens: the door itself, whichever of the two kinds of server is behind it."""

from __future__ import annotations

import os
import re
from typing import Any

from mnemoscope._store.errors import UsageError
from mnemoscope.connectors.http.client import Wire
from mnemoscope.connectors.http.contract import VERBS, Contract
from mnemoscope.connectors.http.rest_mapping_file import find_mapping
from mnemoscope.connectors.http.rest_system import Mapped

_NAME = re.compile(r"[A-Za-z_]\w*")


class Http:
    """A server as a system, by our contract or by a mapping.

    `timeout` is how many seconds a call may take, `patience` how many a server that is down is
    waited for, `key` the name of the environment variable that holds the key, `mapping` a shipped
    mapping's name or a file.
    """

    def __init__(
        self,
        address: str,
        timeout: float = 3600.0,
        patience: float = 30.0,
        key: str = "",
        mapping: str = "",
    ) -> None:
        if not timeout > 0:
            raise UsageError(f"timeout={timeout:g}: give a number of seconds above 0")
        if not patience >= 0:
            raise UsageError(f"patience={patience:g}: give a number of seconds")
        token = _token(key)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        file = find_mapping(mapping) if mapping else None
        secrets = dict(file.secrets) if file else {}
        variables = [*([key] if key else []), *secrets]
        self._wire = Wire(
            address, timeout, patience, headers, [token, *secrets.values()], _login(variables)
        )
        self._behind = Mapped(self._wire, file) if file else Contract(self._wire)

    def __getattr__(self, name: str) -> Any:
        """Only what the other side can do is there to be asked for."""
        if name in VERBS and name in self._behind.methods:
            return getattr(self._behind, name)
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def identity(self) -> dict[str, Any]:
        about: dict[str, Any] = _cleaned(self._behind.identity(), self._wire)
        return about

    def close(self) -> None:
        self._behind.close()
        self._wire.close()


def _token(variable: str) -> str:
    """What goes with every request. The variable's value is never repeated, nor what may be one."""
    if not variable:
        return ""
    if not _NAME.fullmatch(variable) or not os.environ.get(variable, "").strip():
        raise UsageError(
            "key= takes the name of an environment variable that holds the key, and there is "
            "none of that name, or it is empty; export MEMORY_KEY=… and say key=MEMORY_KEY"
        )
    return os.environ[variable].strip()


def _login(variables: list[str]) -> str:
    if variables:
        return f"set {' and '.join(variables)} to what this server takes, then resume"
    return (
        "it wants a key: export MEMORY_KEY=…, say key=MEMORY_KEY, then resume (a mapping can send "
        "it in any header: ${env.MEMORY_KEY})"
    )


def _cleaned(value: Any, wire: Wire) -> Any:
    """A server may repeat a key in what it says of itself."""
    if isinstance(value, str):
        return wire.clean(value)
    if isinstance(value, dict):
        return {wire.clean(str(key)): _cleaned(part, wire) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(part, wire) for part in value]
    return value
