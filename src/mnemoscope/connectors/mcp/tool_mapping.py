"""A mapping of the MCP door: which tool remembers, recalls and forgets, and with which words."""

from __future__ import annotations

import string
from typing import Any, Literal

import msgspec

from mnemoscope.connectors.mapping import HitsFrom, expressions
from mnemoscope.connectors.mapping_checks import names_in, note_of_time

Strategy = Literal["whole", "keywords"]
Reading = Literal["auto", "structured", "json", "text"]
_OF_A_TAG = frozenset(string.ascii_lowercase + string.digits + "-_.:/")


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool and what it is given; `${…}` in the arguments stands for a value."""

    tool: str
    arguments: dict[str, Any] = {}

    @property
    def template(self) -> list[Any]:
        """All that is filled in for a call."""
        return [self.arguments]

    def speaks_of(self, name: str) -> bool:
        return name in names_in(self.template)


class ManyCall(Call, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that is called for each memory or, with `each`, for `batch` memories at once."""

    each: Any = None
    """What stands for one memory in the list `${items}`."""
    batch: int = 100

    @property
    def template(self) -> list[Any]:
        return [self.arguments, self.each]


class Remember(ManyCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server takes memories in."""

    keep: str = ""
    """Where the reply keeps the server's own id; hits that carry it are traced back by it."""
    rejected: str = ""
    """A pattern: a reply in which it is found says that the memory was not stored, and why."""

    @property
    def sends_tags(self) -> bool:
        return any("memory.tag" in expression for expression in expressions(self.template))


class Recall(Call, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server is searched."""

    hits: HitsFrom = HitsFrom()
    reply: Reading = "auto"
    strategy: Strategy = "whole"
    """`keywords` asks word by word, for servers that look for the query as it stands."""
    ranked: bool = True
    """Whether the server puts the best first."""


class Answer(Call, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server answers by itself."""

    reply: Reading = "text"
    text: str = "@"
    """Where the reply keeps the answer."""


class ServerMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server's tools as our verbs; what is not there, the system does not have."""

    name: str
    env: dict[str, str] = {}
    """Added to the environment of a server that we start."""
    reset: Literal["restart", "forget", "scope"] | Call | list[Call] | None = None
    """How a fresh space is made; servers that we start are restarted unless told otherwise."""
    remember: Remember
    recall: Recall | None = None
    forget: ManyCall | None = None
    answer: Answer | None = None
    notes: list[str] = []
    """What readers of a run should know."""

    @property
    def resets(self) -> list[Call]:
        """The calls that empty the server, where calls do."""
        if isinstance(self.reset, Call):
            return [self.reset]
        return self.reset if isinstance(self.reset, list) else []

    @property
    def calls(self) -> list[Call]:
        verbs = (self.remember, self.recall, self.forget, self.answer)
        return [*self.resets, *(verb for verb in verbs if verb is not None)]

    @property
    def needs_embeddings(self) -> bool:
        return "embeddings" in names_in(self.env)


def tag_of(id: str) -> str:
    """The id as a tag can carry it: nothing that a list is split at, no capitals to be lowered."""
    return "".join(
        sign
        if sign in _OF_A_TAG
        else "".join(f"%{byte:02x}" for byte in sign.encode("utf-8", "replace"))
        for sign in id
    )


def notes_of(mapping: ServerMapping, strategy: Strategy) -> list[str]:
    """What the mapping alone tells readers of a run's figures."""
    recall = mapping.recall
    notes = note_of_time(mapping.remember.template)
    if recall is not None and not recall.ranked:
        notes.append("results are unranked")
    if recall is not None and strategy == "keywords":
        notes.append("the server is asked word by word; what more words find comes first")
    if recall is not None and recall.hits.by_text:
        notes.append("hits are traced to memories by their text")
    return [*notes, *mapping.notes]
