"""A conversation with an MCP server, for callers that know no event loop.

The SDK wants a session opened and closed in one task: that task lives in a thread with a loop of
its own, and calls are handed to it. A session belongs to the process that opened it.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Collection
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

from mnemoscope._store.errors import MissingExtra, MnemoscopeError, SystemLost
from mnemoscope.models.http_errors import shortened, without_keys

_GOODBYE = 10.0
"""Seconds that closing may take; the process group's end is certain all the same."""
_PAGES = 100
_NO_SESSION = re.compile(
    r"session.{0,20}(not found|terminated|expired|unknown|invalid)"
    r"|(no|unknown|invalid).{0,7}session",
    re.I,
)

Transport = Callable[[], AbstractAsyncContextManager[tuple[Any, Any]]]


class ToolError(Exception):
    """The server itself says that a call went wrong."""


class Reply(NamedTuple):
    """What a tool returned: structured content where it has some, and its texts."""

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


class Session:
    """An open session; `gone` says why there is nobody to talk to any more."""

    def __init__(
        self,
        transport: Transport,
        start: float,
        gone: Callable[[], str] = str,
        secrets: Collection[str] = (),
    ) -> None:
        """Open it; raises what kept it from being opened within `start` seconds."""
        require_mcp()
        self.owner = os.getpid()
        self.server: dict[str, str] = {}
        """The server's name and version, as it says them."""
        self.tools: list[Tool] = []
        self._gone = gone
        self._secrets = sorted(secrets, key=len, reverse=True)
        """What no error may repeat."""
        self._start = start
        self._lost = ""
        self._opened: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: Any = None
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._live, args=(transport,), daemon=True)
        self._thread.start()
        self._opened.result()

    def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> Reply:
        """What the tool returns.

        Raises ToolError where the server refuses, SystemLost where there is no server any more,
        and TimeoutError.
        """
        if self._lost:
            raise SystemLost(self._lost)
        assert self._loop is not None
        asked = self._call(tool, arguments, seconds)
        try:
            # A loop that is just ending takes calls that it never makes.
            longest = seconds + _GOODBYE
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
        """End the session, and a server that we started. A fork has no say in it."""
        if os.getpid() != self.owner:
            return
        if self._loop is not None and self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._over.set)
            except RuntimeError:  # the loop ended by itself
                return
            self._thread.join(_GOODBYE)

    def _live(self, transport: Transport) -> None:
        try:
            asyncio.run(self._main(transport))
        except BaseException as error:
            first = _first(error)
            if not self._opened.done():
                self._opened.set_exception(self._opening_failed(first))
            self._lost = self._lost or self._cause(first)

    async def _main(self, transport: Transport) -> None:
        from mcp.client.session import ClientSession

        self._loop = asyncio.get_running_loop()
        async with (
            transport() as (incoming, outgoing),
            ClientSession(incoming, outgoing) as session,
        ):
            async with asyncio.timeout(self._start):
                await _greet(session)
                self.tools = await _tools(session)
            about = session.server_info
            if about is not None:
                self.server = {"name": about.name, "version": about.version}
            self._session = session
            self._opened.set_result(None)
            await self._over.wait()

    async def _call(self, tool: str, arguments: dict[str, Any], seconds: float) -> Reply:
        from mcp.shared.exceptions import MCPError

        try:
            async with asyncio.timeout(seconds):
                result = await self._session.call_tool(tool, arguments)
        except MCPError as error:
            if self._gone() or _is_lost(error):
                raise SystemLost(f"{tool}: {self._cause(error)}") from None
            raise ToolError(self._clean(f"{tool}: {error}")) from None
        except TimeoutError:
            raise
        except Exception as error:
            if self._gone() or _is_lost(error):
                raise SystemLost(f"{tool}: {self._cause(error)}") from None
            raise ToolError(self._clean(f"{tool}: {type(error).__name__}: {error}")) from None
        text = "\n".join(part.text for part in result.content if part.type == "text")
        if result.is_error:
            raise ToolError(self._clean(f"{tool}: {text or 'an error without a word'}"))
        return Reply(result.structured_content, text)

    def _cause(self, error: BaseException) -> str:
        said = str(error) or type(error).__name__
        return self._clean(self._gone() or f"the connection was lost ({said})")

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return without_keys(text)

    def _opening_failed(self, error: BaseException) -> BaseException:
        from mcp.shared.exceptions import MCPError

        if isinstance(error, TimeoutError):
            return TimeoutError(f"no MCP server said hello within {self._start:g} s")
        if self._gone() or _is_lost(error):
            return SystemLost(self._cause(error))
        if isinstance(error, MCPError):
            return ToolError(
                f"the server refuses to talk: {self._clean(str(error))}; if it wants a key, name "
                "the environment variable that holds it with key=VARIABLE"
            )
        if isinstance(error, Exception) and not isinstance(error, MnemoscopeError | OSError):
            said = shortened(self._clean(f"{type(error).__name__}: {error}"))
            return ToolError(f"the server speaks no MCP that can be understood: {said}")
        return error


def require_mcp() -> None:
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise MissingExtra("the MCP door", "pip install 'mnemoscope[mcp]'") from None


async def _greet(session: Any) -> None:
    """The handshake that servers of all years know; the newest may know only their own."""
    from mcp.shared.exceptions import MCPError

    try:
        await session.initialize()
    except MCPError as error:
        if _is_lost(error):
            raise
        await session.discover()


async def _tools(session: Any) -> list[Tool]:
    from mcp_types import PaginatedRequestParams

    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        tools += map(_tool, page.tools)
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _tool(listed: Any) -> Tool:
    hints = listed.annotations
    return Tool(
        listed.name,
        listed.description or "",
        listed.input_schema or {},
        hints.read_only_hint if hints else None,
        hints.destructive_hint if hints else None,
    )


def _is_lost(error: BaseException) -> bool:
    """Whether nobody is there any more: the connection, or a server that knows our session."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    if isinstance(error, MCPError):
        # A server that was started anew does not know us; there are words for it, and no code.
        return error.code == CONNECTION_CLOSED or bool(_NO_SESSION.search(str(error)))
    import httpx2

    return isinstance(error, httpx2.TransportError | ConnectionError)


def _first(error: BaseException) -> BaseException:
    """The first thing that went wrong in a group of tasks."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
