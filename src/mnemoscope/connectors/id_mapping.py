"""From what a mapped server returns back to the memories that it was told.

Our id may come back unchanged, as a tag, as the server's own id, or not at all: then the text is
compared. The HTTP and the MCP connector share this module.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from mnemoscope._store.errors import BadReply
from mnemoscope.connectors.mapping import fill, find, of_memory
from mnemoscope.types import Hit, Memory

_SHORTEST_PART = 20
"""Characters; a shorter text is a part of many others by chance."""
_OF_A_TAG = frozenset(string.ascii_lowercase + string.digits + "-_.:/")


class Batched(Protocol):
    """A call for each memory or, with `each`, for `batch` memories at once."""

    @property
    def each(self) -> Any: ...

    @property
    def batch(self) -> int: ...


class IdMapping:
    """What one scope was told, and under which names it may come back."""

    def __init__(self, *, by_text: bool = False) -> None:
        self._by_text = by_text
        self._told: dict[str, Memory] = {}
        self._texts: dict[str, str] = {}
        self._names: dict[str, list[str]] = {}
        """Names that we sent, to the memories that a hit of this name stands for."""
        self._held: dict[str, list[str]] = {}
        """The server's own ids, to the memories that they stand for."""
        self._kept: dict[str, str | int] = {}

    @property
    def told(self) -> list[Memory]:
        return list(self._told.values())

    def batches(
        self, call: Batched, memories: Sequence[Memory], common: Mapping[str, Any]
    ) -> Iterator[tuple[Sequence[Memory], dict[str, Any]]]:
        """The memories of each call, and the values that its templates can use."""
        if call.each is None:
            for memory in memories:
                yield [memory], self._values(memory)
            return
        for first in range(0, len(memories), call.batch):
            batch = memories[first : first + call.batch]
            items = [fill(call.each, {**common, **self._values(memory)}) for memory in batch]
            yield batch, {"items": items}

    def _values(self, memory: Memory) -> dict[str, Any]:
        said = {**of_memory(memory), "tag": tag_of(memory.id)}
        return {"memory": said, "kept": self._kept.get(memory.id)}

    def tell(self, memories: Iterable[Memory], *, tags: bool = False) -> None:
        """Note memories; with `tags`, their tags were sent, and hits may come back by them."""
        for memory in memories:
            self._told[memory.id] = memory
            names = [tag_of(memory.id)] if tags else []
            if self._by_text:
                self._texts[memory.id] = _squeezed(memory.text)
                names = [self._texts[memory.id], _squeezed(of_memory(memory)["dated_text"])]
            for name in names:
                _stands_for(self._names, name, memory.id)

    def keep(self, memories: Sequence[Memory], reply: Any, where: str) -> dict[str, str]:
        """Note the server's own ids of these memories, in their order, as the reply has them.

        The same id for two memories says that the server merged them: the result is the receipt's
        `merged`.
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

    def kept(self, memories: Iterable[Memory]) -> list[Memory]:
        """Those with a known id of the server: a call without an id might mean all memories."""
        return [memory for memory in memories if memory.id in self._kept]

    def back(self, hits: Iterable[Hit]) -> list[Hit]:
        """The hits with the ids of memories, each once, at its best rank.

        A hit that cannot be traced keeps its id; where there is only text, it gets an id that says
        so.
        """
        found: dict[str, Hit] = {}
        for hit in hits:
            if self._by_text:
                ids = self._of_text(hit.id)
            else:
                ids = self._names.get(hit.id) or self._held.get(hit.id, [])
            if ids:
                sources = tuple(ids) if len(ids) > 1 else hit.sources
                hit = msgspec.structs.replace(hit, id=ids[0], sources=sources)
            elif self._by_text:
                hit = msgspec.structs.replace(hit, id=f"untraced: {_squeezed(hit.id)[:80]}")
            found.setdefault(hit.id, hit)
        return list(found.values())

    def _of_text(self, text: str) -> list[str]:
        said = _squeezed(text)
        if not said:
            return []
        if same := self._names.get(said):
            return same
        long = {id: held for id, held in self._texts.items() if len(held) >= _SHORTEST_PART}
        inside = [id for id, held in long.items() if held in said]
        if inside:  # the server put a name before it, or joined several
            return [id for id in inside if not self._is_part(id, inside)]
        if len(said) < _SHORTEST_PART:
            return []
        return [id for id, held in long.items() if said in held]

    def _is_part(self, id: str, others: Iterable[str]) -> bool:
        own = self._texts[id]
        return any(own in self._texts[other] and own != self._texts[other] for other in others)


def tag_of(id: str) -> str:
    """The id as a tag can carry it: without separators of lists and without capital letters."""
    return "".join(
        sign
        if sign in _OF_A_TAG
        else "".join(f"%{byte:02x}" for byte in sign.encode("utf-8", "replace"))
        for sign in id
    )


def _stands_for(names: dict[str, list[str]], name: str, id: str) -> str:
    """Note that the name stands for this memory, too; the first memory that it stands for."""
    ids = names.setdefault(name, [])
    if id not in ids:
        ids.append(id)
    return ids[0]


def _squeezed(text: str) -> str:
    return " ".join(text.split())
