"""Mapping files of the MCP connector: which tools remember, recall and forget, and how.

A file is checked before a server is started. Its arguments are checked against the schemas of the
tools once the server runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.suggest import did_you_mean
from mnemoscope._store.yaml import parse_yaml
from mnemoscope.connectors.mapping import (
    HitsFrom,
    check_expression,
    check_hits,
    check_names,
    check_pattern,
    converted,
    load_mapping,
    names_in,
    note_of_time,
    shipped_in,
)
from mnemoscope.connectors.mcp.session import Tool
from mnemoscope.connectors.mcp.tool_schemas import items_of, parameters

Strategy = Literal["whole", "keywords"]
ReplyFormat = Literal["auto", "structured", "json", "text"]
_SHIPPED = Path(__file__).parent / "mappings"
_ALWAYS = {"scope", "env"}
_ITEMS = "${items}"


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool and its arguments, in which `${…}` is replaced by a value."""

    tool: str
    arguments: dict[str, Any] = {}

    @property
    def template(self) -> list[Any]:
        """All parts of the call that are templates."""
        return [self.arguments]

    def uses(self, name: str) -> bool:
        return name in names_in(self.template)


class BatchCall(ToolCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that is called for each memory or, with `each`, for `batch` memories at once."""

    each: Any = None
    """The template of one memory in the list `${items}`."""
    batch: int = 100

    @property
    def template(self) -> list[Any]:
        return [self.arguments, self.each]


class RememberCall(BatchCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server stores memories."""

    keep: str = ""
    """Where the reply has the server's id, which is used to trace hits to memories."""
    keep_pattern: str = ""
    """The same for a reply in prose: the first group of each match is an id."""
    rejected: str = ""
    """A pattern: if the reply matches it, the memory was not stored; the reply says why."""


class RecallCall(ToolCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server is searched."""

    hits: HitsFrom = HitsFrom()
    reply: ReplyFormat = "auto"
    strategy: Strategy = "whole"
    """`keywords` makes one call a word, for servers that search for the query as a substring."""
    ranked: bool = True
    """Whether the server ranks its results."""


class AnswerCall(ToolCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server answers a question."""

    reply: ReplyFormat = "text"
    text: str = "@"
    """Where the reply has the answer."""


class ToolMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our verbs as calls of a server's tools; the system has only the verbs that are mapped."""

    name: str
    env: dict[str, str] = {}
    """Added to the environment of a server that we start."""
    reset: Literal["restart", "forget", "scope"] | ToolCall | list[ToolCall] | None = None
    """How an empty space is made; by default, servers that we start are restarted."""
    remember: RememberCall
    recall: RecallCall | None = None
    forget: BatchCall | None = None
    answer: AnswerCall | None = None
    notes: list[str] = []
    """Caveats for readers of a run."""

    @property
    def resets(self) -> list[ToolCall]:
        """The calls that empty the server, if `reset` consists of calls."""
        if isinstance(self.reset, ToolCall):
            return [self.reset]
        return self.reset if isinstance(self.reset, list) else []

    @property
    def calls(self) -> list[ToolCall]:
        verbs = (self.remember, self.recall, self.forget, self.answer)
        return [*self.resets, *(verb for verb in verbs if verb is not None)]

    def all_notes(self, strategy: Strategy) -> list[str]:
        """The notes, and caveats about the figures of a run that follow from the mapping."""
        notes = note_of_time(self.remember.template)
        if self.recall is not None and not self.recall.ranked:
            notes.append("results are unranked")
        if self.recall is not None and strategy == "keywords":
            notes.append("one search a word; results found by more words rank first")
        if self.recall is not None and self.recall.hits.by_text:
            notes.append("hits are traced to memories by their text")
        return [*notes, *self.notes]


def shipped() -> list[str]:
    return shipped_in(_SHIPPED)


def load(given: str) -> ToolMapping:
    """Load a mapping by its shipped name, or from a file, and check it."""
    return _checked(*load_mapping(given, ToolMapping, _SHIPPED))


def read(text: str, path: Path) -> ToolMapping:
    return _checked(converted(parse_yaml(text, path), ToolMapping, path), path)


def _checked(mapping: ToolMapping, path: Path) -> ToolMapping:
    if mapping.recall is None and mapping.answer is None:
        raise DataError("neither recall nor answer is mapped: map at least one", file=path)
    check_names(mapping.env, "env", {"scratch", "embeddings", "env"}, path)
    _check_batch(mapping.remember, "remember", set(), path)
    if not mapping.remember.uses("memory"):
        raise DataError("remember does not send what to remember: use ${memory.text}", file=path)
    if mapping.remember.keep:
        check_expression(mapping.remember.keep, path)
    check_pattern(mapping.remember.rejected, "remember.rejected", path)
    check_pattern(mapping.remember.keep_pattern, "remember.keep_pattern", path, groups=1)
    keeps = mapping.remember.keep or mapping.remember.keep_pattern
    if mapping.remember.keep and mapping.remember.keep_pattern:
        raise DataError("remember has keep and keep_pattern: give one of them", file=path)
    if mapping.forget is not None:
        _check_batch(mapping.forget, "forget", {"kept"}, path)
        if mapping.forget.uses("kept") and not keeps:
            raise DataError(
                "forget: ${kept} needs remember.keep: where the reply has the id", file=path
            )
        if not {"memory", "kept"} & names_in(mapping.forget.template):
            raise DataError("forget does not send what to forget: use ${memory.id}", file=path)
    if mapping.recall is not None:
        _check_query(mapping.recall, "recall", {"query", "k"}, path)
        check_hits(mapping.recall.hits, path)
    if mapping.answer is not None:
        _check_query(mapping.answer, "answer", {"query"}, path)
        check_expression(mapping.answer.text, path)
    _check_reset(mapping, path)
    return mapping


def _check_batch(call: BatchCall, field: str, known: set[str], path: Path) -> None:
    if call.batch < 1:
        raise DataError(f"{field}.batch is {call.batch}: give a number above 0", file=path)
    of_one = {*_ALWAYS, *known, "memory"}
    if call.each is None:
        check_names(call.arguments, f"{field}.arguments", of_one, path)
        return
    check_names(call.arguments, f"{field}.arguments", {*_ALWAYS, "items"}, path)
    check_names(call.each, f"{field}.each", of_one, path)
    if "items" not in names_in(call.arguments):
        raise DataError(
            f"{field}.arguments do not contain the list of {field}.each: use {_ITEMS}", file=path
        )


def _check_query(call: ToolCall, field: str, known: set[str], path: Path) -> None:
    check_names(call.arguments, f"{field}.arguments", {*_ALWAYS, *known}, path)
    if not call.uses("query"):
        raise DataError(
            f"{field}.arguments do not contain the query: use ${{query.text}}", file=path
        )


def _check_reset(mapping: ToolMapping, path: Path) -> None:
    for number, call in enumerate(mapping.resets):
        check_names(call.arguments, f"reset[{number}]", _ALWAYS, path)
    if mapping.reset == "forget" and mapping.forget is None:
        raise DataError("reset: forget needs a tool that deletes memories; map forget", file=path)
    if mapping.reset == "scope":
        for verb in ("remember", "recall", "answer"):
            used: ToolCall | None = getattr(mapping, verb)
            if used is not None and not used.uses("scope"):
                raise DataError(f"reset: scope, but {verb} does not send ${{scope}}", file=path)


def wrong_arguments(mapping: ToolMapping, tools: Sequence[Tool]) -> list[str]:
    """The mistakes in the calls by the tools' schemas; the mapping is the subject of each phrase.

    A server may ignore an unknown argument, or fail if one is missing.
    """
    schemas = {tool.name: tool.parameters for tool in tools}
    found: list[str] = []
    for call in mapping.calls:
        given = call.arguments
        if isinstance(call, BatchCall) and call.each is not None:
            given = {n: [call.each] if value == _ITEMS else value for n, value in given.items()}
        found += _wrong(given, schemas.get(call.tool, {}), call.tool)
    return list(dict.fromkeys(found))


def _wrong(given: Any, schema: dict[str, Any], whose: str) -> Iterator[str]:
    if not isinstance(given, Mapping) or any("${" in str(name) for name in given):
        return
    takes = {parameter.name: parameter for parameter in parameters(schema)}
    for name, value in given.items():
        if name in takes:
            inside, where = takes[name].schema, f"{whose}, in {name},"
            if isinstance(value, list):
                for part in value:
                    yield from _wrong(part, items_of(inside), where)
            else:
                yield from _wrong(value, inside, where)
        elif _is_closed(schema):
            known = ", ".join(takes) or "none"
            yield (
                f"gives {whose} the argument {name!r}, which it does not accept: "
                f"{did_you_mean(str(name), takes)}it accepts {known}"
            )
    for name in schema.get("required") or []:
        if name not in given:
            yield f"does not give {whose} the argument {name!r}, which it requires"


def _is_closed(schema: dict[str, Any]) -> bool:
    """Whether a tool accepts only the listed properties.

    JSON Schema allows others unless the schema forbids them. Few servers forbid them, and servers
    that accept others say so.
    """
    others = ("patternProperties", "anyOf", "oneOf", "allOf", "$ref")
    takes_more = schema.get("additionalProperties") or any(schema.get(key) for key in others)
    return isinstance(schema.get("properties"), dict) and not takes_more
