"""Calls of a system's async methods: one event loop a process, in its own thread."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from mnemoscope._store.errors import error_text

if TYPE_CHECKING:  # it takes long to import, and few systems need it
    import asyncio


def finished(value: Any) -> Any:
    """The value itself, or the result of an async method."""
    if isinstance(value, list) or not inspect.isawaitable(value):
        return value
    import asyncio

    return asyncio.run_coroutine_threadsafe(_awaited(value), _event_loop()).result()


async def _awaited(value: Awaitable[Any]) -> Any:
    try:
        return await value
    except (SystemExit, KeyboardInterrupt) as error:
        # It would end the event loop, and the caller would wait forever.
        raise RuntimeError(error_text(error)) from error


def _event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process, in its own thread, so that several threads can use it."""
    import asyncio

    global _loop, _loop_owner
    with _starting:
        if _loop is None or _loop_owner != os.getpid():  # a fork has the loop, not its thread
            _loop, _loop_owner = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, daemon=True).start()
        return _loop


_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_loop_owner = 0
