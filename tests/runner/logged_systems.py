"""Systems that write to $BUILT_LOG what becomes of them; logged_systems:Name."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

from mnemoscope._store.errors import MissingExtra
from mnemoscope.types import Hit, Memory, Query


def say(what: str) -> None:
    with Path(os.environ["BUILT_LOG"]).open("a") as log:
        log.write(f"{what} {os.getpid()}\n")


class Logged:
    """Says when it is built, begun with and closed; without reset, so it serves one scenario."""

    def __init__(self, note: str = "") -> None:
        self.ids: list[str] = []
        self.note = note
        say("built")

    def identity(self) -> dict[str, object]:
        return {"notes": [self.note]} if self.note else {}

    def remember(self, memories: list[Memory]) -> None:
        self.ids = [memory.id for memory in memories]

    def recall(self, query: Query, k: int) -> list[Hit]:
        return [Hit(id) for id in self.ids[:k]]

    def close(self) -> None:
        say("closed")


class WithReset(Logged):
    def reset(self, scope: str) -> None:
        self.ids = []


class OnlyAnswers:
    def remember(self, memories: list[Memory]) -> None:
        pass

    def answer(self, query: Query) -> str:
        return ""


class NeedsMore:
    def __init__(self) -> None:
        raise MissingExtra("this system", "pip install more")


class DiesWhenBuilt:
    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class HoldsTheInterpreter(WithReset):
    """Lets no other thread run in its first recall: not even the death of its parent ends it."""

    def recall(self, query: Query, k: int) -> list[Hit]:
        library = ctypes.PyDLL(None)
        say("stopped")
        library.sleep(600)
        return []


class OnlyRemembers:
    def remember(self, memories: list[Memory]) -> None:
        pass
