"""From what a mapped server returns back to the memories that it was told.

Our id may come back as it is, under another name that it was sent by, as the server's own id, or
not at all: then the text is compared. The HTTP and the MCP door share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mnemoscope._store.errors import BadReply
from mnemoscope.connectors.mapping import find, of_memory
from mnemoscope.types import Hit, Memory

_SHORTEST_PART = 20
"""Characters; a shorter text is a part of many others by chance."""


class Tracing:
    """What one scope was told, and under which names it may come back."""

    def __init__(self, *, by_text: bool = False) -> None:
        self._by_text = by_text
        self._told: dict[str, Memory] = {}
        self._texts: dict[str, str] = {}
        self._names: dict[str, list[str]] = {}
        """What we sent that a hit may be called by, to the memories that it then stands for."""
        self._held: dict[str, list[str]] = {}
        """The server's own ids, to the memories that they stand for."""
        self._kept: dict[str, str | int] = {}

    @property
    def told(self) -> list[Memory]:
        return list(self._told.values())

    def tell(self, memory: Memory, *names: str) -> None:
        """Note a memory, and other names that its id is sent by."""
        self._told[memory.id] = memory
        if self._by_text:
            self._texts[memory.id] = _squeezed(memory.text)
            names = (self._texts[memory.id], _squeezed(of_memory(memory)["dated_text"]))
        for name in names:
            _stands_for(self._names, name, memory.id)

    def keep(self, memories: Sequence[Memory], reply: Any, where: str) -> dict[str, str]:
        """Note the server's own ids of these memories, in their order, as the reply has them.

        An id that was given before says that the server holds two memories to be the same: what
        comes back is the receipt's `merged`.
        """
        found = find(reply, where)
        ids = found if isinstance(found, list) else [found]
        if len(ids) != len(memories):
            raise BadReply(
                f"remember.keep: expected {len(memories)} ids at {where!r}, found {found!r:.200}"
            )
        merged = {}
        for memory, id in zip(memories, ids, strict=True):
            if not isinstance(id, str | int) or isinstance(id, bool) or id == "":
                raise BadReply(
                    f"remember.keep: {where!r} finds no id but {id!r:.80} in the reply "
                    f"{reply!r:.200}"
                )
            self._kept[memory.id] = id
            first = _stands_for(self._held, str(id), memory.id)
            if first != memory.id:
                merged[memory.id] = first
        return merged

    def kept(self, id: str) -> str | int | None:
        """The server's own id of a memory, as it gave it."""
        return self._kept.get(id)

    def back(self, hits: Iterable[Hit]) -> list[Hit]:
        """The hits with the ids of memories, each once, at its best rank.

        A hit that cannot be traced keeps the id that it came with; where there is only text, it
        gets one that says so.
        """
        found: dict[str, Hit] = {}
        for hit in hits:
            stem = self._of_text(hit.id) if self._by_text else self._of_id(hit.id)
            if stem:
                sources = tuple(stem) if len(stem) > 1 else hit.sources
                hit = msgspec.structs.replace(hit, id=stem[0], sources=sources)
            elif self._by_text:
                hit = msgspec.structs.replace(hit, id=f"untraced: {_squeezed(hit.id)[:80]}")
            found.setdefault(hit.id, hit)
        return list(found.values())

    def _of_id(self, id: str) -> list[str]:
        return self._names.get(id) or self._held.get(id, [])

    def _of_text(self, text: str) -> list[str]:
        said = _squeezed(text)
        if not said:
            return []
        if same := self._names.get(said):
            return same
        long = {id: held for id, held in self._texts.items() if len(held) >= _SHORTEST_PART}
        inside = [id for id, held in long.items() if held in said]
        if inside:  # a name was put before it, or several were made one
            return [id for id in inside if not self._is_part(id, inside)]
        if len(said) < _SHORTEST_PART:
            return []
        return [id for id, held in long.items() if said in held]

    def _is_part(self, id: str, others: Iterable[str]) -> bool:
        own = self._texts[id]
        return any(own in self._texts[other] and own != self._texts[other] for other in others)


def _stands_for(names: dict[str, list[str]], name: str, id: str) -> str:
    """Note that the name stands for the memory, too; the first one that it stands for."""
    ids = names.setdefault(name, [])
    if id not in ids:
        ids.append(id)
    return ids[0]


def _squeezed(text: str) -> str:
    return " ".join(text.split())
