"""A session with an MCP server, for callers without an event loop.

The SDK's `ClientSession` implements the protocol. It must be opened and closed in one task. That
task runs in a separate thread with its own event loop, which makes the calls. (Not anyio's blocking
portal: one that a fork inherits waits for ever when it is dropped.) A session belongs to the
process that opened it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
from collections.abc import Collection
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from mnemoscope._store.errors import MissingExtra, MnemoscopeError, SystemLost
from mnemoscope.isolation.lock import access_hint
from mnemoscope.models.http_errors import shortened, without_keys

_CLOSE_SECONDS = 10.0
"""How long closing may take; a child process is ended in any case."""
_PAGES = 100
_NO_SESSION = re.compile(
    r"session.{0,20}(not found|terminated|expired|unknown|invalid)"
    r"|(no|unknown|invalid).{0,7}session",
    re.I,
)


class Transport(Protocol):
    """The connection that carries the messages of a session."""

    gone: str
    """How the server ended; empty while it runs."""

    def streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]: ...


class ToolError(Exception):
    """The server reports that a call failed."""


class ToolReply(NamedTuple):
    """The structured content of a tool's reply, if any, and its text."""

    structured: Any
    text: str


class Tool(NamedTuple):
    """A tool as the server describes it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """The JSON schema of its arguments."""
    read_only: bool | None
    destructive: bool | None


class McpSession:
    """An open session."""

    def __init__(self, transport: Transport, start: float, secrets: Collection[str]) -> None:
        """Open the session within `start` seconds, or raise why that failed."""
        self.owner = os.getpid()
        self.server: dict[str, str] = {}
        """The server's name and version."""
        self.tools: list[Tool] = []
        self._transport = transport
        self._secrets = sorted(secrets, key=len, reverse=True)
        """Removed from every error."""
        self._start = start
        self._lost = ""
        self._opened: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: Any = None
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        try:
            self._opened.result(start + _CLOSE_SECONDS)
        except TimeoutError:
            if self._opened.done():
                raise
            # Its thread hangs outside the event loop, for example on a lock of a C library that
            # another thread held when this process was forked.
            raise self._opening_failed(TimeoutError()) from None

    def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> ToolReply:
        """Call a tool and return its reply.

        Raises ToolError if the server reports an error, SystemLost if it died, and TimeoutError.
        """
        if self._lost:
            raise SystemLost(self._lost)
        assert self._loop is not None
        asked = self._call(tool, arguments, seconds)
        try:
            # An event loop that is ending accepts calls that it never runs.
            longest = seconds + _CLOSE_SECONDS
            return asyncio.run_coroutine_threadsafe(asked, self._loop).result(longest)
        except TimeoutError:
            raise TimeoutError(f"{tool} gave no reply within {seconds:g} s") from None
        except (CancelledError, RuntimeError) as error:
            asked.close()
            raise SystemLost(f"{tool}: {self._cause(error)}") from None
        except SystemLost as error:
            self._lost = str(error)
            raise

    def close(self) -> None:
        """End the session, and a server that we started. In a forked process, do nothing."""
        if os.getpid() != self.owner:
            return
        if self._loop is not None and self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._over.set)
            except RuntimeError:  # the loop ended by itself
                return
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            if not self._opened.done():
                self._opened.set_exception(self._opening_failed(error))
            self._lost = self._lost or self._cause(error)

    async def _main(self) -> None:
        from mcp.client.session import ClientSession

        self._loop = asyncio.get_running_loop()
        async with (
            self._transport.streams() as (incoming, outgoing),
            ClientSession(incoming, outgoing) as session,
        ):
            async with asyncio.timeout(self._start):
                await _initialize(session)
                self.tools = await _list_tools(session)
            about = session.server_info
            if about is not None:
                self.server = {"name": about.name, "version": about.version}
            self._session = session
            self._opened.set_result(None)
            await self._over.wait()

    async def _call(self, tool: str, arguments: dict[str, Any], seconds: float) -> ToolReply:
        from mcp.shared.exceptions import MCPError

        try:
            async with asyncio.timeout(seconds):
                result = await self._session.call_tool(tool, arguments)
        except TimeoutError:
            raise
        except Exception as error:
            if self._transport.gone or _is_lost(error):
                raise SystemLost(f"{tool}: {self._cause(error)}") from None
            kind = "" if isinstance(error, MCPError) else f"{type(error).__name__}: "
            raise ToolError(self._clean(f"{tool}: {kind}{error}")) from None
        text = "\n".join(part.text for part in result.content if part.type == "text")
        if result.is_error:
            said = self._clean(f"{tool}: {text or 'an error without a message'}")
            raise ToolError(f"{said}{access_hint(text)}")
        return ToolReply(result.structured_content, text)

    def _cause(self, error: BaseException) -> str:
        reason = str(error) or type(error).__name__
        return self._clean(self._transport.gone or f"the connection was lost ({reason})")

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return without_keys(text)

    def _opening_failed(self, error: BaseException) -> BaseException:
        from mcp.shared.exceptions import MCPError

        if isinstance(error, TimeoutError):
            return TimeoutError(f"the MCP server did not initialize within {self._start:g} s")
        if self._transport.gone or _is_lost(error):
            return SystemLost(self._cause(error))
        if isinstance(error, MCPError):
            return ToolError(
                f"the server refuses the session: {self._clean(str(error))}; if it requires a key, "
                "name the environment variable that has it with key=VARIABLE"
            )
        if isinstance(error, Exception) and not isinstance(error, MnemoscopeError | OSError):
            reason = shortened(self._clean(f"{type(error).__name__}: {error}"))
            return ToolError(f"the server's MCP messages cannot be read: {reason}")
        return error


def require_mcp() -> None:
    try:
        import mcp  # noqa: F401

        # Errors are raised; the SDK would also print them, with whatever a server wrote.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
    except ImportError:
        raise MissingExtra("the MCP connector", "pip install 'mnemoscope[mcp]'") from None


async def _initialize(session: Any) -> None:
    """Try `initialize`, which most servers have, then `discover`, for very new servers.

    The SDK's `Client` uses the other order, and the unknown method can crash an old server.
    """
    from mcp.shared.exceptions import MCPError

    try:
        await session.initialize()
    except MCPError as error:
        if _is_lost(error):
            raise
        await session.discover()


async def _list_tools(session: Any) -> list[Tool]:
    from mcp_types import PaginatedRequestParams

    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            hints = tool.annotations
            read_only = hints.read_only_hint if hints else None
            destructive = hints.destructive_hint if hints else None
            schema = tool.input_schema or {}
            tools.append(Tool(tool.name, tool.description or "", schema, read_only, destructive))
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _is_lost(error: BaseException) -> bool:
    """Whether the connection is lost, or the server no longer has our session."""
    import httpx2
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    if isinstance(error, MCPError):
        # A restarted server reports an unknown session in its message, without an error code.
        return error.code == CONNECTION_CLOSED or bool(_NO_SESSION.search(str(error)))
    return isinstance(error, httpx2.TransportError | ConnectionError)
