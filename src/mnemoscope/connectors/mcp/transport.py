"""Open sessions with an MCP server that we start by a command, or that runs at a URL."""

from __future__ import annotations

import asyncio
import math
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from mnemoscope._store.errors import SystemLost, UsageError
from mnemoscope._store.server_access import read_key
from mnemoscope.connectors.child_process import (
    LONGEST_LINE,
    Child,
    LineTooLong,
    file_hashes,
    name_of,
    split_command,
)
from mnemoscope.connectors.handshake import server_down
from mnemoscope.connectors.mapping import fill, names_in
from mnemoscope.connectors.mcp.session import McpSession, require_mcp
from mnemoscope.connectors.scratch_home import child_places
from mnemoscope.isolation.scratch import make_scratch

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_MOST_QUEUED = 1000
"""Messages that were read from a child and not handled."""
_MOST_OTHER_LINES = 1000
_PAUSE = 0.01
_CLOSED_STDOUT = "closed its stdout"
_SERVER_IS_GONE = frozenset({502, 503, 504})
"""What a proxy replies when its server is down."""
_SECRET = re.compile(r"(key|token|secret|password)=", re.I)
_EXAMPLES = "mcp:npx server-memory or mcp:http://127.0.0.1:8000/mcp"


class ChildTransport:
    """The stdin and stdout of a child process as a transport of the SDK.

    We do not use the SDK's `stdio_client`: it does not report how a server exited, it leaves the
    server's child processes running, and the server itself if our process is killed.
    """

    def __init__(self, child: Child) -> None:
        self._child = child
        self.gone = ""
        self._other_lines = 0
        """Lines on stdout since the last message."""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        import anyio

        loop = asyncio.get_running_loop()
        to_session, incoming = anyio.create_memory_object_stream[Any](math.inf)
        outgoing, from_session = anyio.create_memory_object_stream[Any](0)

        def receive() -> None:
            problem = self._received(to_session)
            if to_session.statistics().current_buffer_used > _MOST_QUEUED:
                # Messages that come faster than they are handled stay in the pipe.
                loop.remove_reader(self._child.stdout)
                loop.call_later(_PAUSE, receive_again)
            if problem:
                self._unwatch(loop)
                if problem == _CLOSED_STDOUT:
                    ended = self._child.ending() or problem
                else:
                    ended = problem
                    self._child.end()
                self.gone = f"{self._child.name} {ended}{self._child.stderr.last_lines}"
                to_session.close()

        def receive_again() -> None:
            if self.gone or self._child.stdout.closed:
                return
            if to_session.statistics().current_buffer_used > _MOST_QUEUED:
                loop.call_later(_PAUSE, receive_again)
            else:
                loop.add_reader(self._child.stdout, receive)

        async def send() -> None:
            async for message in from_session:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._child.queue(text.encode("utf-8", "backslashreplace") + b"\n")
                if not self.gone:
                    loop.add_writer(self._child.stdin, write)

        def write() -> None:
            if self._child.write():
                loop.remove_writer(self._child.stdin)

        try:
            loop.add_reader(self._child.stdout, receive)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                try:
                    yield incoming, outgoing
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            if not self.gone:
                self._unwatch(loop)
            self._child.close()
            for stream in (to_session, incoming, outgoing, from_session):
                stream.close()

    def _received(self, to_session: Any) -> str:
        """Pass the messages on; return why no more will come, if that is so."""
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        more = self._child.read()
        try:
            for line in self._lines(more):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValueError, RecursionError):
                    if line.strip():
                        self._child.stderr.log(line)
                        self._other_lines += 1
                else:
                    self._other_lines = 0
                    with suppress(anyio.BrokenResourceError):  # the session is being closed
                        to_session.send_nowait(SessionMessage(message))
        except LineTooLong:
            return f"wrote a message of more than {LONGEST_LINE >> 20} MiB"
        if self._other_lines > _MOST_OTHER_LINES:
            return (
                f"wrote more than {_MOST_OTHER_LINES} lines to stdout that are not messages; print "
                "to stderr instead"
            )
        return "" if more else _CLOSED_STDOUT

    def _lines(self, more: bool) -> Iterator[bytes]:
        """Yield the lines that were read, and at the end of stdout also an incomplete one."""
        yield from self._child.whole_lines()
        if not more:
            yield self._child.rest

    def _unwatch(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._child.stdout)
        loop.remove_writer(self._child.stdin)


class CommandServer:
    """A server that we start, as often as needed, each time with a new scratch folder."""

    restarts = True

    def __init__(
        self,
        words: list[str],
        env: Mapping[str, str],
        embeddings: Callable[[], Mapping[str, str]],
        secrets: Mapping[str, str],
        *,
        live: bool = False,
        read_only: bool = False,
    ) -> None:
        self._words = words
        self._live, self._read_only = live, read_only
        self._env = env
        self._embeddings = embeddings
        self._secrets = secrets

    @property
    def identity(self) -> dict[str, Any]:
        return {"command": self._words, "files_sha256": file_hashes(self._words)}

    def open(self, start: float, patience: float | None = None) -> McpSession:
        scratch = make_scratch("mcp")
        try:
            words, environment, folder, writes = child_places(
                self._words, scratch, live=self._live, read_only=self._read_only
            )
            child = Child(
                words,
                {**environment, **self._environment(scratch)},
                scratch,
                name=name_of(self._words),
                folder=folder,
                writes=writes,
            )
            transport = ChildTransport(child)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        return McpSession(transport, start, self._secrets.values())

    def _environment(self, scratch: str) -> dict[str, str]:
        values = {"scratch": scratch, "embeddings": self._embeddings(), "env": self._secrets}
        # A live store is where the user has it, not in the scratch folder.
        own = self._live or self._read_only
        filled = {
            name: fill(value, values)
            for name, value in self._env.items()
            if not (own and "scratch" in names_in(value))
        }
        return {name: str(value) for name, value in filled.items() if value is not None}


class UrlServer:
    """A running server, over streamable HTTP."""

    restarts = False
    gone = ""  # only a failed call shows that the server is down

    def __init__(self, url: str, key: str, timeout: float, secrets: Mapping[str, str]) -> None:
        self._url = _checked(url)
        self._token = read_key(key, "key=")
        self._timeout = timeout
        self._secrets = [*secrets.values(), *([self._token] if self._token else [])]

    @property
    def identity(self) -> dict[str, Any]:
        return {"url": self._url}

    def open(self, start: float, patience: float | None = None) -> McpSession:
        """Open a session; `patience` is how many seconds we wait for a server that is down."""
        if patience is None:
            return McpSession(self, start, self._secrets)
        until, wait = time.monotonic() + patience, _FIRST_WAIT
        while True:
            try:
                return self.open(start)
            except (SystemLost, TimeoutError) as error:
                if time.monotonic() + wait > until:
                    raise server_down(f"the MCP server at {self._url}", error) from None
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def check_reply(response: Any) -> None:
            if response.status_code in _SERVER_IS_GONE:
                raise httpx2.NetworkError(f"status {response.status_code}")
            response.stream = limited_stream(response)

        login = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        async with (
            httpx2.AsyncClient(
                headers={"Accept-Encoding": "identity", **login},
                # The session sets the deadlines; the client's must not come first.
                timeout=httpx2.Timeout(self._timeout + 5),
                event_hooks={"response": [check_reply]},
            ) as client,
            streamable_http_client(self._url, http_client=client) as streams,
        ):
            yield streams


def limited_stream(response: Any) -> Any:
    """The stream of a reply, with an error in place of what would take too much memory."""
    import httpx2

    encoding = response.headers.get("content-encoding", "").strip().lower()

    class Limited(httpx2.AsyncByteStream):
        inner = response.stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            if encoding not in ("", "identity"):  # a few bytes can unpack to gigabytes
                raise httpx2.StreamError(f"its reply is encoded as {encoding!r:.40}, unasked")
            size = 0
            async for piece in self.inner:
                size += len(piece)
                if size > LONGEST_LINE:
                    most = f"{LONGEST_LINE >> 20} MiB"
                    raise httpx2.StreamError(f"a reply of more than {most}")
                yield piece

        async def aclose(self) -> None:
            await self.inner.aclose()

    return Limited()


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            raise ValueError("the host or the port is missing")
    except ValueError as error:
        raise UsageError(
            f"{url!r} is not the address of an MCP server ({error}); write {_EXAMPLES}"
        ) from None
    if parts.username or parts.password or _SECRET.search(parts.query):
        raise UsageError(
            "the address contains a key or a password, and addresses are recorded: put it into an "
            "environment variable and give its name, key=NAME"
        )
    return url


def locate(
    address: str,
    *,
    env: Mapping[str, str] | None = None,
    embeddings: Callable[[], Mapping[str, str]] = dict,
    secrets: Mapping[str, str] | None = None,
    key: str = "",
    timeout: float = 120.0,
    live: bool = False,
    read_only: bool = False,
) -> CommandServer | UrlServer:
    """Return the server of an address; refuse an invalid address."""
    require_mcp()
    if address.startswith(("http://", "https://")):
        return UrlServer(address, key, timeout, secrets or {})
    words = split_command(address, _EXAMPLES)
    return CommandServer(
        words, env or {}, embeddings, secrets or {}, live=live, read_only=read_only
    )
