"""Objects of different shapes for serve_stdio."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

sys.stdout.write("imported, without an end of line")


class Talks:
    """Prints in every method, and has no reset."""

    def __init__(self, greeting: str = "", louder: bool = False) -> None:
        self.greeting = greeting.upper() if louder else greeting
        self.memories: list[Any] = []

    def remember(self, memories: Sequence[Any]) -> None:
        sys.stdout.write("remembering\n")
        self.memories.extend(memories)

    def recall(self, query: Any, k: int) -> Iterator[dict[str, Any]]:
        os.system("echo from a shell")
        for memory in self.memories[:k]:
            told = f"{memory.at:%Y-%m-%d} {query.now:%Y-%m-%d} {memory.speaker} {self.greeting}"
            yield {"id": memory.id, "text": told}

    def answer(self, query: Any) -> str:
        raise SystemExit(f"nothing about {query.text}")


class Waits:
    """All methods are async."""

    async def reset(self, scope: str) -> None:
        self.ids: list[str] = []

    async def remember(self, memories: Sequence[Any]) -> dict[str, Any]:
        self.ids += [memory.id for memory in memories]
        return {"merged": {self.ids[0]: "nothing"}}

    async def recall(self, query: Any, k: int) -> list[str]:
        return self.ids[:k]

    async def forget(self, selector: Any) -> None:
        self.ids = [id for id in self.ids if id not in selector.ids]

    def identity(self) -> dict[str, str]:
        return {"model": "none"}
