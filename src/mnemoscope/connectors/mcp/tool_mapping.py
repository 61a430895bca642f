"""Mapping files of the MCP connector: which tool remembers, recalls and forgets, and how.

A file is read strictly and checked before a server is started; its arguments are checked once the
server has described its tools.
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
    """A tool and what it is given; `${…}` in the arguments stands for a value."""

    tool: str
    arguments: dict[str, Any] = {}

    @property
    def template(self) -> list[Any]:
        """All that is filled in for a call."""
        return [self.arguments]

    def uses(self, name: str) -> bool:
        return name in names_in(self.template)


class BatchCall(ToolCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that is called for each memory or, with `each`, for `batch` memories at once."""

    each: Any = None
    """What stands for one memory in the list `${items}`."""
    batch: int = 100

    @property
    def template(self) -> list[Any]:
        return [self.arguments, self.each]


class RememberCall(BatchCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server takes memories in."""

    keep: str = ""
    """Where the reply keeps the server's own id; hits that carry it are traced back by it."""
    rejected: str = ""
    """A pattern: a reply in which it is found says that the memory was not stored, and why."""


class RecallCall(ToolCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server is searched."""

    hits: HitsFrom = HitsFrom()
    reply: ReplyFormat = "auto"
    strategy: Strategy = "whole"
    """`keywords` asks word by word, for servers that search for the query as a substring."""
    ranked: bool = True
    """Whether the server puts the best first."""


class AnswerCall(ToolCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server answers by itself."""

    reply: ReplyFormat = "text"
    text: str = "@"
    """Where the reply keeps the answer."""


class ToolMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server's tools as our verbs; a verb that is not mapped, the system does not have."""

    name: str
    env: dict[str, str] = {}
    """Added to the environment of a server that we start."""
    reset: Literal["restart", "forget", "scope"] | ToolCall | list[ToolCall] | None = None
    """How a fresh space is made; servers that we start are restarted unless told otherwise."""
    remember: RememberCall
    recall: RecallCall | None = None
    forget: BatchCall | None = None
    answer: AnswerCall | None = None
    notes: list[str] = []
    """What readers of a run should know."""

    @property
    def resets(self) -> list[ToolCall]:
        """The calls that empty the server, where calls do."""
        if isinstance(self.reset, ToolCall):
            return [self.reset]
        return self.reset if isinstance(self.reset, list) else []

    @property
    def calls(self) -> list[ToolCall]:
        verbs = (self.remember, self.recall, self.forget, self.answer)
        return [*self.resets, *(verb for verb in verbs if verb is not None)]

    def all_notes(self, strategy: Strategy) -> list[str]:
        """The notes, with what the mapping itself tells about the figures of a run."""
        notes = note_of_time(self.remember.template)
        if self.recall is not None and not self.recall.ranked:
            notes.append("results are unranked")
        if self.recall is not None and strategy == "keywords":
            notes.append("the server is asked word by word; what more words find comes first")
        if self.recall is not None and self.recall.hits.by_text:
            notes.append("hits are traced to memories by their text")
        return [*notes, *self.notes]


def shipped() -> list[str]:
    return shipped_in(_SHIPPED)


def load(given: str) -> ToolMapping:
    """A mapping by its shipped name, or from a file."""
    return _checked(*load_mapping(given, ToolMapping, _SHIPPED))


def read(text: str, path: Path) -> ToolMapping:
    return _checked(converted(parse_yaml(text, path), ToolMapping, path), path)


def _checked(mapping: ToolMapping, path: Path) -> ToolMapping:
    if mapping.recall is None and mapping.answer is None:
        raise DataError("neither recall nor answer is mapped: nothing can be asked", file=path)
    check_names(mapping.env, "env", {"scratch", "embeddings", "env"}, path)
    _check_batch(mapping.remember, "remember", set(), path)
    if not mapping.remember.uses("memory"):
        raise DataError("remember never says what to remember: use ${memory.text}", file=path)
    if mapping.remember.keep:
        check_expression(mapping.remember.keep, path)
    check_pattern(mapping.remember.rejected, "remember.rejected", path)
    if mapping.forget is not None:
        _check_batch(mapping.forget, "forget", {"kept"}, path)
        if mapping.forget.uses("kept") and not mapping.remember.keep:
            raise DataError("forget: ${kept} needs remember.keep: where it stands", file=path)
        if not {"memory", "kept"} & names_in(mapping.forget.template):
            raise DataError("forget never says what to forget: use ${memory.id}", file=path)
    if mapping.recall is not None:
        _check_asking(mapping.recall, "recall", {"query", "k"}, path)
        check_hits(mapping.recall.hits, path)
    if mapping.answer is not None:
        _check_asking(mapping.answer, "answer", {"query"}, path)
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
        raise DataError(f"{field}.arguments never hold what each makes: use {_ITEMS}", file=path)


def _check_asking(call: ToolCall, field: str, known: set[str], path: Path) -> None:
    check_names(call.arguments, f"{field}.arguments", {*_ALWAYS, *known}, path)
    if not call.uses("query"):
        raise DataError(
            f"{field}.arguments never say what is asked: use ${{query.text}}", file=path
        )


def _check_reset(mapping: ToolMapping, path: Path) -> None:
    for number, call in enumerate(mapping.resets):
        check_names(call.arguments, f"reset[{number}]", _ALWAYS, path)
    if mapping.reset == "forget" and mapping.forget is None:
        raise DataError("reset: forget needs a tool that forgets; map forget", file=path)
    if mapping.reset == "scope":
        for verb in ("remember", "recall", "answer"):
            used: ToolCall | None = getattr(mapping, verb)
            if used is not None and not used.uses("scope"):
                raise DataError(f"reset: scope, but {verb} does not carry ${{scope}}", file=path)


def wrong_arguments(mapping: ToolMapping, tools: Sequence[Tool]) -> list[str]:
    """What is wrong with the calls by the tools' schemas, each to be said of the mapping.

    A server may ignore an argument that it does not know, or fail where one is missing.
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
                f"gives {whose} the argument {name!r}, which it does not take: "
                f"{did_you_mean(str(name), takes)}it takes {known}"
            )
    for name in schema.get("required") or []:
        if name not in given:
            yield f"does not give {whose} the argument {name!r}, which it requires"


def _is_closed(schema: dict[str, Any]) -> bool:
    """Whether the properties are all that a tool takes.

    JSON Schema allows others unless the schema forbids them. Hardly any server forbids them, and
    those that take others say so.
    """
    others = ("patternProperties", "anyOf", "oneOf", "allOf", "$ref")
    takes_more = schema.get("additionalProperties") or any(schema.get(key) for key in others)
    return isinstance(schema.get("properties"), dict) and not takes_more
