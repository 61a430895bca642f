"""An adapter for the stdio connector, in Python: a toy memory that ranks by shared words.

    mnemoscope run locomo --system "stdio:python examples/adapters/python_adapter.py" --out runs/toy

Put your own system where `SharedWords` is; the last line does the rest.
"""

from __future__ import annotations

import re
from typing import Any

from mnemoscope.connectors.serve_stdio import serve


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


class SharedWords:
    """Ranks memories by how many of the question's words they share, the later first."""

    def reset(self, scope: str) -> None:
        self.memories: list[tuple[str, set[str]]] = []

    def remember(self, memories: Any) -> dict[str, dict[str, str]]:
        empty = {memory.id: "no words in it" for memory in memories if not words(memory.text)}
        self.memories += [(m.id, words(m.text)) for m in memories if m.id not in empty]
        return {"rejected": empty}

    def recall(self, query: Any, k: int) -> list[tuple[str, int]]:
        asked = words(query.text)
        scored = [(id, len(asked & held)) for id, held in reversed(self.memories)]
        return sorted(scored, key=lambda hit: -hit[1])[:k]

    def forget(self, selector: Any) -> None:
        self.memories = [kept for kept in self.memories if kept[0] not in selector.ids]

    def stats(self) -> dict[str, int]:
        return {"memories_held": len(self.memories)}


if __name__ == "__main__":
    serve(SharedWords, name="shared-words", version="1.0")
