"""A server of our own: its process, its scratch folder, and messages over its stdin and stdout.

The SDK's own transport leaves the server to itself when our process is killed, and complains at
length about every line on stdout that is no message. This one ends the whole process group and
removes the folder, however we end, and passes such lines on to the log.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from mnemoscope._store.errors import UsageError
from mnemoscope.connectors.child_process import guard, signal_name
from mnemoscope.connectors.child_stderr import Talk, name_of

_FAREWELL = 3.0
"""Seconds that a server gets to leave by itself."""
_LONGEST = 64 << 20
"""Bytes of one message."""


class ServerProcess:
    """One start of a server; `streams` is what a session is opened on."""

    def __init__(
        self, words: Sequence[str], environment: Callable[[str], Mapping[str, str]]
    ) -> None:
        self.name = name_of(words)
        self._words = words
        self._environment = environment
        """From the scratch folder's path to what is added to the environment."""
        self._process: asyncio.subprocess.Process | None = None
        self._talk = Talk(words)
        self._talked = asyncio.Event()
        self._ended = ""
        self._leaving = False

    @property
    def gone(self) -> str:
        """How it ended; empty as long as it can be talked to."""
        return self._ended

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Start the server; when the session is over, end it and all that it started."""
        import anyio

        to_session, incoming = anyio.create_memory_object_stream[Any](0)
        outgoing, from_session = anyio.create_memory_object_stream[Any](0)
        scratch = tempfile.mkdtemp(prefix="mnemoscope-mcp-")
        try:
            process = self._process = await self._start(scratch)
            watch = guard(process.pid, scratch)
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._log, process)
                    tasks.start_soon(self._hear, process, to_session)
                    tasks.start_soon(self._tell, process, from_session)
                    try:
                        yield incoming, outgoing
                    finally:
                        self._leaving = True
                        with anyio.CancelScope(shield=True):
                            await _leave(process)
                        tasks.cancel_scope.cancel()
            finally:
                _end(process)
                # Its pipes belong to a loop that ends now; nothing public closes them.
                process._transport.close()  # type: ignore[attr-defined]
                await asyncio.sleep(0)
                for stream in (to_session, incoming, outgoing, from_session):
                    stream.close()
                if watch is not None:
                    watch.kill()
                    watch.communicate()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    async def _start(self, scratch: str) -> asyncio.subprocess.Process:
        pipe = subprocess.PIPE
        try:
            return await asyncio.create_subprocess_exec(
                *self._words,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                limit=_LONGEST,
                env={**os.environ, **self._environment(scratch)},
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"{self._words[0]} cannot be started: {error.strerror}") from None

    async def _hear(self, process: asyncio.subprocess.Process, to_session: Any) -> None:
        """Messages from the server, until its stdout ends; what is none goes to the log."""
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        assert process.stdout is not None
        problem = "closed its stdout"
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                try:
                    line = await process.stdout.readline()
                except ValueError:
                    problem = f"wrote a message of more than {_LONGEST >> 20} MiB"
                    break
                if not line:
                    break
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    if line.strip():
                        self._talk.log(line)
                    continue
                await to_session.send(SessionMessage(message))
        with suppress(asyncio.TimeoutError):
            # Its last words and its exit code come a moment after its stdout has ended.
            await asyncio.wait_for(process.wait(), _FAREWELL)
            await asyncio.wait_for(self._talked.wait(), _FAREWELL)
        if not self._leaving:
            ended = _ending(process.returncode) or problem
            self._ended = f"{self.name} {ended}{self._talk.last_words}"
        _end(process)
        to_session.close()

    async def _tell(self, process: asyncio.subprocess.Process, from_session: Any) -> None:
        assert process.stdin is not None
        with suppress(OSError):  # it reads no more: the end of its stdout will say why
            async for message in from_session:
                said = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(said.encode("utf-8", "backslashreplace") + b"\n")
                await process.stdin.drain()

    async def _log(self, process: asyncio.subprocess.Process) -> None:
        """What the server writes to stderr goes to ours."""
        assert process.stderr is not None
        while True:
            try:
                line = await process.stderr.readline()
            except ValueError:  # an endless line is no news
                continue
            if not line:
                break
            self._talk.hear(line)
        self._talked.set()


async def _leave(process: asyncio.subprocess.Process) -> None:
    """Let it go by itself: the end of its stdin is the sign."""
    assert process.stdin is not None
    process.stdin.close()
    # No wait(): it also waits for pipes that processes it started may hold.
    for _ in range(int(_FAREWELL / 0.01)):
        if process.returncode is not None:
            break
        await asyncio.sleep(0.01)
    _end(process)
    while process.returncode is None:
        await asyncio.sleep(0.01)


def _end(process: asyncio.subprocess.Process) -> None:
    """End all of its process group; those it started may outlive it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _ending(code: int | None) -> str:
    if code is None:
        return ""
    return f"died of {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
