"""Where a server is, and how a session with it is opened: a command to start, or a URL to go to."""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from mnemoscope._store.errors import MnemoscopeError, SystemLost, UsageError
from mnemoscope.connectors.child_process import file_hashes, split_command
from mnemoscope.connectors.mapping import fill
from mnemoscope.connectors.mcp.server_process import ServerProcess
from mnemoscope.connectors.mcp.session import Session, require_mcp

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_NOBODY_THERE = frozenset({502, 503, 504})
"""What a proxy says whose server is gone."""
_SECRET = re.compile(r"(key|token|secret|password)=", re.I)
_EXAMPLES = "mcp:npx server-memory or mcp:http://127.0.0.1:8000/mcp"


class Command:
    """A server that we start, as often as we like, each time in a scratch folder of its own."""

    restarts = True

    def __init__(
        self,
        words: list[str],
        env: Mapping[str, str],
        embeddings: Callable[[], Mapping[str, str]],
        secrets: Mapping[str, str],
    ) -> None:
        self._words = words
        self._env = env
        self._embeddings = embeddings
        self._secrets = secrets

    @property
    def identity(self) -> dict[str, Any]:
        return {"command": self._words, "files_sha256": file_hashes(self._words)}

    def open(self, start: float) -> Session:
        process = ServerProcess(self._words, self._environment)
        return Session(process.streams, start, lambda: process.gone, self._secrets.values())

    def open_patiently(self, start: float, patience: float) -> Session:
        return self.open(start)

    def _environment(self, scratch: str) -> dict[str, str]:
        values = {"scratch": scratch, "embeddings": self._embeddings(), "env": self._secrets}
        filled = {name: fill(value, values) for name, value in self._env.items()}
        return {name: str(value) for name, value in filled.items() if value is not None}


class Url:
    """A server that somebody else runs, over streamable HTTP."""

    restarts = False

    def __init__(self, url: str, key: str, timeout: float, secrets: Mapping[str, str]) -> None:
        self._url = _checked(url)
        self._token = _token(key)
        self._timeout = timeout
        self._secrets = [*secrets.values(), *([self._token] if self._token else [])]

    @property
    def identity(self) -> dict[str, Any]:
        return {"url": self._url}

    def open(self, start: float) -> Session:
        return Session(self._streams, start, secrets=self._secrets)

    def open_patiently(self, start: float, patience: float) -> Session:
        """Wait for a server that is being started again, but not for ever."""
        until, wait = time.monotonic() + patience, _FIRST_WAIT
        while True:
            try:
                return self.open(start)
            except (SystemLost, TimeoutError) as error:
                if time.monotonic() + wait > until:
                    raise MnemoscopeError(
                        f"the MCP server at {self._url} is down ({error}): start it; the same "
                        "command goes on; nothing recorded is lost"
                    ) from None
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any]]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        # The door counts the seconds itself; the client's own limit must not come first.
        patience = httpx2.Timeout(self._timeout + 5)

        async def heed(response: Any) -> None:
            if response.status_code in _NOBODY_THERE:
                raise httpx2.NetworkError(f"status {response.status_code}")

        client_of_ours = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {self._token}"} if self._token else {},
            timeout=patience,
            event_hooks={"response": [heed]},
        )
        async with (
            client_of_ours as client,
            streamable_http_client(self._url, http_client=client) as streams,
        ):
            yield streams


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            raise ValueError("it names no host, or no port")
    except ValueError as error:
        raise UsageError(
            f"{url!r} is no address of an MCP server ({error}); write {_EXAMPLES}"
        ) from None
    if parts.username or parts.password or _SECRET.search(parts.query):
        raise UsageError(
            "an address with a key or a password in it would be recorded: put it into an "
            "environment variable and name that, key=NAME"
        )
    return url


def _token(variable: str) -> str:
    if not variable:
        return ""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise UsageError(f"key={variable}: that environment variable is not set")
    if not (value.isascii() and value.isprintable()):
        raise UsageError(f"key={variable}: a bearer token has no such characters")
    return value


def place(
    address: str,
    *,
    env: Mapping[str, str] | None = None,
    embeddings: Callable[[], Mapping[str, str]] = dict,
    secrets: Mapping[str, str] | None = None,
    key: str = "",
    timeout: float = 120.0,
) -> Command | Url:
    """What an address means; complains about one that cannot work."""
    require_mcp()
    if address.startswith(("http://", "https://")):
        return Url(address, key, timeout, secrets or {})
    return Command(split_command(address, _EXAMPLES), env or {}, embeddings, secrets or {})
