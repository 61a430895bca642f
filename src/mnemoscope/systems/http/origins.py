"""Which of our memories the hits of a mapped server stem from: by id, by its own id, or by text."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mnemoscope.core.nouns import Hit, Memory

_SHORTEST_PART = 20
"""Characters; a shorter hit could be a part of many memories."""


class Origins:
    """What a server was told in one scope, and under which ids of its own it holds it."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._kept: dict[str, str | int] = {}
        self._stem: dict[str, list[str]] = {}
        """The server's id to the memories that it stands for."""

    def told(self, memory: Memory, kept: str | int | None = None) -> str | None:
        """Note it; the id of the memory that the server holds it to be the same as, if it does."""
        self._texts[memory.id] = squeezed(memory.text)
        if kept is None:
            return None
        same = self._stem.setdefault(str(kept), [])
        self._kept[memory.id] = kept
        merged_into = next((id for id in same if id != memory.id), None)
        if memory.id not in same:
            same.append(memory.id)
        return merged_into

    def kept(self, id: str) -> str | int | None:
        return self._kept.get(id)

    def traced(self, hits: Iterable[Hit], *, by_text: bool) -> list[Hit]:
        """The hits by our ids, each once; those that cannot be traced keep what they came with."""
        found: dict[str, Hit] = {}
        for hit in hits:
            stem = self._of_text(hit.text) if by_text else self._stem.get(hit.id, [])
            if stem:
                more = tuple(stem) if len(stem) > 1 else hit.sources
                hit = msgspec.structs.replace(hit, id=stem[0], sources=more)
            elif by_text:
                hit = msgspec.structs.replace(hit, id=f"untraced: {squeezed(hit.text)[:80]}")
            found.setdefault(hit.id, hit)
        return list(found.values())

    def _of_text(self, text: str) -> list[str]:
        said = squeezed(text)
        if not said:
            return []
        if same := [id for id, held in self._texts.items() if held == said]:
            return same
        inside = [id for id, held in self._texts.items() if held and held in said]
        if inside:  # a date or a name was put before it, or several were made one
            return [id for id in inside if not self._is_part(id, inside)]
        if len(said) < _SHORTEST_PART:
            return []
        return [id for id, held in self._texts.items() if said in held]

    def _is_part(self, id: str, others: Iterable[str]) -> bool:
        return any(
            self._texts[id] in self._texts[other] and self._texts[id] != self._texts[other]
            for other in others
        )


def squeezed(text: str) -> str:
    return " ".join(text.split())
