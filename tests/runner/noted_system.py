"""A system that notes its calls, and waits in those in which a test kills a process.

It imports nothing of ours, so that a child that serves it starts fast.
"""

from __future__ import annotations

import os
import time
from typing import Any


class Noted:
    """Notes each call in $NOTED, and waits in each call whose number is a file in $NOTED.kill."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def note(self, verb: str) -> None:
        log = os.environ["NOTED"]
        with open(log, "a+") as file:  # noqa: PTH123
            file.write(f"{verb} {os.getpid()} {os.getppid()}\n")
            end = file.tell()
            file.seek(0)
            number = file.read(end).count("\n")
        while os.path.exists(f"{log}.kill/{number}"):  # noqa: PTH110
            time.sleep(0.002)

    def reset(self, scope: str) -> None:
        self.ids = []

    def remember(self, memories: Any) -> None:
        self.note("remember")
        self.ids += [memory.id for memory in memories]

    def recall(self, query: Any, k: int) -> list[str]:
        self.note("recall")
        start = len(query.text) % (len(self.ids) or 1)
        return [*self.ids[start:], *self.ids[:start]][:k]


class Copied(Noted):
    """Can be copied."""

    def fork(self) -> Copied:
        twin = Copied()
        twin.ids = list(self.ids)
        return twin
