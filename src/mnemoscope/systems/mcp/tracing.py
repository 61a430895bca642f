"""From what a server returns back to the memories that it was told.

Our id may come back as it is, spelt as a tag, as the server's own id, or not at all: then the text
is compared.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import msgspec

from mnemoscope.core.nouns import Hit, Memory
from mnemoscope.systems.mapping import of_memory
from mnemoscope.systems.mcp.mapping import ServerMapping
from mnemoscope.systems.python import BadReply

_OF_A_TAG = frozenset(string.ascii_lowercase + string.digits + "-_.:/")


def tag_of(id: str) -> str:
    """The id as a tag can carry it: nothing that a list is split at, no capitals to be lowered."""
    return "".join(
        sign
        if sign in _OF_A_TAG
        else "".join(f"%{byte:02x}" for byte in sign.encode("utf-8", "replace"))
        for sign in id
    )


class Tracing:
    """What one scope was told, and under which names it may come back."""

    def __init__(self, mapping: ServerMapping) -> None:
        self._tags = "memory.tag" in str(msgspec.to_builtins(mapping.remember))
        self._by_text = mapping.recall is not None and mapping.recall.hits.by_text
        self._told: dict[str, Memory] = {}
        self._names: dict[str, list[str]] = {}
        """What a hit may be called, to the memories that it then stands for."""
        self._kept: dict[str, str] = {}

    @property
    def told(self) -> list[Memory]:
        return list(self._told.values())

    def expect(self, memories: Sequence[Memory]) -> None:
        for memory in memories:
            self._told[memory.id] = memory
            names = {tag_of(memory.id)} if self._tags else set()
            if self._by_text:
                names = {_plain(memory.text), _plain(of_memory(memory)["dated_text"])}
            for name in names:
                self._names.setdefault(name, []).append(memory.id)

    def keep(self, memories: Sequence[Memory], found: Any) -> dict[str, str]:
        """Note the server's own ids; those that were given before say that memories were merged."""
        ids = found if isinstance(found, list) else [found]
        if len(ids) != len(memories) or any(isinstance(id, dict | list | None) for id in ids):
            raise BadReply(f"remember.keep finds {found!r:.200}; expected an id for each memory")
        merged = {}
        for memory, id in zip(memories, map(str, ids), strict=True):
            self._kept[memory.id] = id
            stands_for = self._names.setdefault(id, [])
            if stands_for and memory.id not in stands_for:
                merged[memory.id] = stands_for[0]
            stands_for.append(memory.id)
        return merged

    def kept(self, id: str) -> str | None:
        return self._kept.get(id)

    def back(self, hits: list[Hit]) -> list[Hit]:
        """The same hits with the ids of memories, each once, at its best rank."""
        found: dict[str, Hit] = {}
        for hit in hits:
            own = self._names.get(_plain(hit.id) if self._by_text else hit.id, [])
            if len(own) > 1:
                hit = msgspec.structs.replace(hit, id=own[0], sources=tuple(dict.fromkeys(own)))
            elif own:
                hit = msgspec.structs.replace(hit, id=own[0])
            found.setdefault(hit.id, hit)
        return list(found.values())


def _plain(text: str) -> str:
    return " ".join(text.split())
