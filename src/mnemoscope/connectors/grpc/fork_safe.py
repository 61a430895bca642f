"""First words to a server in a process of their own.

gRPC cannot be trusted across a fork, and our workers are forked: so a process that forks them must
not have begun to speak gRPC itself. It only wants to know who is there, and sends somebody to ask.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any, TypeVar, cast

from mnemoscope._store.errors import MnemoscopeError

T = TypeVar("T")

_speaks = 0
"""The process that has begun to speak gRPC: it forks nobody any more."""


def speak_here() -> None:
    """Said before a channel is opened or a server started."""
    global _speaks
    if _speaks not in (0, os.getpid()):
        raise MnemoscopeError(
            "this process was forked from one that speaks gRPC, where calls may hang for ever: "
            "start the run from a process that has not used a gRPC door or server itself"
        )
    _speaks = os.getpid()


def apart(ask: Callable[[], T]) -> T:
    """What `ask` returns or raises, asked here only where gRPC is spoken already."""
    if _speaks == os.getpid():
        return ask()
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        _tell(ask, theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as said:
        reply = said.read()
    os.waitpid(child, 0)
    if not reply:
        raise RuntimeError("the process that was to ask the server died")
    worked, outcome = pickle.loads(reply)
    if worked:
        return cast(T, outcome)
    raise outcome


def _tell(ask: Callable[[], Any], out: int) -> None:
    """Never returns: whatever this process inherited is not its to end."""
    try:
        reply = _outcome(ask)
        while reply:
            reply = reply[os.write(out, reply) :]
    finally:
        os._exit(0)


def _outcome(ask: Callable[[], Any]) -> bytes:
    try:
        return pickle.dumps((True, ask()))
    except Exception as error:
        try:
            return pickle.dumps((False, error))
        except Exception:
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
