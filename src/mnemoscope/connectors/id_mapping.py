"""Map the hits of a server that has a mapping file back to the memories that we sent.

A hit may carry our id, our id as a tag, the server's own id, or no id. Without an id its text is
compared with the memories. The HTTP and the MCP connector share this module.
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
"""Characters; a shorter text occurs in many others by chance."""
_TAG_CHARACTERS = frozenset(string.ascii_lowercase + string.digits + "-_.:/")


class Batched(Protocol):
    """A request for each memory or, with `each`, for `batch` memories at once."""

    @property
    def each(self) -> Any: ...

    @property
    def batch(self) -> int: ...


class IdMapping:
    """The memories that were sent in one scope, and the ids and texts that identify them."""

    def __init__(self, *, by_text: bool = False) -> None:
        self._by_text = by_text
        self._memories: dict[str, Memory] = {}
        self._texts: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = {}
        """From the tags or texts that we sent to the ids of their memories."""
        self._by_server_id: dict[str, list[str]] = {}
        """From the server's ids to the ids of their memories."""
        self._server_ids: dict[str, str | int] = {}

    @property
    def memories(self) -> list[Memory]:
        return list(self._memories.values())

    def batches(
        self, call: Batched, memories: Sequence[Memory], common: Mapping[str, Any]
    ) -> Iterator[tuple[Sequence[Memory], dict[str, Any]]]:
        """Yield the memories of each call, and the values that its templates can use."""
        if call.each is None:
            for memory in memories:
                yield [memory], self._values(memory)
            return
        for first in range(0, len(memories), call.batch):
            batch = memories[first : first + call.batch]
            items = [fill(call.each, {**common, **self._values(memory)}) for memory in batch]
            yield batch, {"items": items}

    def _values(self, memory: Memory) -> dict[str, Any]:
        fields = {**of_memory(memory), "tag": tag_of(memory.id)}
        return {"memory": fields, "kept": self._server_ids.get(memory.id)}

    def add(self, memories: Iterable[Memory], *, tags: bool = False) -> None:
        """Record memories that were sent; with `tags`, hits may carry their tags."""
        for memory in memories:
            self._memories[memory.id] = memory
            names = [tag_of(memory.id)] if tags else []
            if self._by_text:
                self._texts[memory.id] = _squeezed(memory.text)
                names = [self._texts[memory.id], _squeezed(of_memory(memory)["dated_text"])]
            for name in names:
                _add_id(self._by_name, name, memory.id)

    def keep(self, memories: Sequence[Memory], reply: Any, where: str) -> dict[str, str]:
        """Record the server's ids of these memories, which the reply lists in the same order.

        If two memories get the same id, the server merged them. The result is `merged` of the
        receipt.
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
                    f"remember.keep: {where!r} finds {id!r:.80}, which is not an id, in the reply "
                    f"{reply!r:.200}"
                )
            self._server_ids[memory.id] = id
            first = _add_id(self._by_server_id, str(id), memory.id)
            if first != memory.id:
                merged[memory.id] = first
        return merged

    def with_server_id(self, memories: Iterable[Memory]) -> list[Memory]:
        """Those whose server id is known: a call without an id might mean all memories."""
        return [memory for memory in memories if memory.id in self._server_ids]

    def resolve(self, hits: Iterable[Hit]) -> list[Hit]:
        """Replace the ids of hits by ids of memories; each memory once, at its best rank.

        A hit that cannot be traced keeps its id. If it has only a text, its id becomes
        `untraced: …`, and it is credited with the memories that its text carries.
        """
        found: dict[str, Hit] = {}
        for hit in hits:
            if self._by_text:
                ids = self._find_text(hit.id)
            else:
                ids = self._by_name.get(hit.id) or self._by_server_id.get(hit.id, [])
            if ids:
                sources = tuple(ids) if len(ids) > 1 else hit.sources
                hit = msgspec.structs.replace(hit, id=ids[0], sources=sources)
            elif self._by_text:
                # Its text may still carry a memory in other words.
                name, text = f"untraced: {_squeezed(hit.id)[:80]}", hit.text or hit.id
                hit = msgspec.structs.replace(hit, id=name, text=text)
            found.setdefault(hit.id, hit)
        return list(found.values())

    def _find_text(self, text: str) -> list[str]:
        """The ids of the memories with this text, or whose text contains it or is part of it."""
        text = _squeezed(text)
        if not text:
            return []
        if same := self._by_name.get(text):
            return same
        long = {id: sent for id, sent in self._texts.items() if len(sent) >= _SHORTEST_PART}
        inside = [id for id, sent in long.items() if sent in text]
        if inside:  # the server put a name before it, or joined several
            return [id for id in inside if not self._is_part(id, inside)]
        if len(text) < _SHORTEST_PART:
            return []
        return [id for id, sent in long.items() if text in sent]

    def _is_part(self, id: str, others: Iterable[str]) -> bool:
        own = self._texts[id]
        return any(own in self._texts[other] and own != self._texts[other] for other in others)


def tag_of(id: str) -> str:
    """Encode an id as a tag: without list separators and without capital letters."""
    return "".join(
        character
        if character in _TAG_CHARACTERS
        else "".join(f"%{byte:02x}" for byte in character.encode("utf-8", "replace"))
        for character in id
    )


def _add_id(names: dict[str, list[str]], name: str, id: str) -> str:
    """Add an id to those of a name; return the first id of the name."""
    ids = names.setdefault(name, [])
    if id not in ids:
        ids.append(id)
    return ids[0]


def _squeezed(text: str) -> str:
    return " ".join(text.split())
