"""Where a server is, and how a session with it is opened: a command to start, or a URL to go to."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mnemoscope.core.errors import MnemoscopeError, SystemLost, UsageError
from mnemoscope.systems.child import file_hashes, split_command
from mnemoscope.systems.mapping import fill
from mnemoscope.systems.mcp.process import ServerProcess
from mnemoscope.systems.mcp.session import Session, require_mcp

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_EXAMPLES = "mcp:npx server-memory or mcp:http://127.0.0.1:8000/mcp"


class Command:
    """A server that we start, as often as we like, each time in a scratch folder of its own."""

    restarts = True

    def __init__(
        self, words: list[str], env: Mapping[str, str], embeddings: Callable[[], Mapping[str, str]]
    ) -> None:
        self._words = words
        self._env = env
        self._embeddings = embeddings

    @property
    def identity(self) -> dict[str, Any]:
        return {"command": self._words, "files_sha256": file_hashes(self._words)}

    def open(self, start: float) -> Session:
        process = ServerProcess(self._words, self._environment)
        return Session(process.streams, lambda: process.gone, start)

    def open_patiently(self, start: float, patience: float) -> Session:
        return self.open(start)

    def _environment(self, scratch: str) -> dict[str, str]:
        values = {"scratch": scratch, "embeddings": self._embeddings(), "env": dict(os.environ)}
        filled = {name: fill(value, values) for name, value in self._env.items()}
        return {name: str(value) for name, value in filled.items() if value is not None}


class Url:
    """A server that somebody else runs, over streamable HTTP."""

    restarts = False

    def __init__(self, url: str, key: str, timeout: float) -> None:
        self._url = url
        self._key = key
        self._timeout = timeout

    @property
    def identity(self) -> dict[str, Any]:
        return {"url": self._url}

    def open(self, start: float) -> Session:
        return Session(self._streams, lambda: "", start)

    def open_patiently(self, start: float, patience: float) -> Session:
        """Wait for a server that is being started again, but not for ever."""
        until, wait = time.monotonic() + patience, _FIRST_WAIT
        while True:
            try:
                return self.open(start)
            except SystemLost as error:
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
        async with (
            httpx2.AsyncClient(headers=self._headers(), timeout=patience) as client,
            streamable_http_client(self._url, http_client=client) as streams,
        ):
            yield streams

    def _headers(self) -> dict[str, str]:
        if not self._key:
            return {}
        value = os.environ.get(self._key, "").strip()
        if not value:
            raise UsageError(f"key={self._key}: that environment variable is not set")
        return {"Authorization": f"Bearer {value}"}


def place(
    address: str,
    *,
    env: Mapping[str, str] | None = None,
    embeddings: Callable[[], Mapping[str, str]] = dict,
    key: str = "",
    timeout: float = 120.0,
) -> Command | Url:
    """What an address means; complains about one that cannot work."""
    require_mcp()
    if address.startswith(("http://", "https://")):
        return Url(address, key, timeout)
    return Command(split_command(address, _EXAMPLES), env or {}, embeddings)
