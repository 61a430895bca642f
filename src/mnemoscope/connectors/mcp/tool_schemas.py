"""Guess the purpose of a tool's parameters from their names and JSON schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from mnemoscope.connectors.mcp.session import Tool

TEXT = (
    "text content memory fact note observation observations contents texts lesson_text message "
    "document body information info data value"
).split()
QUERY = "query q question search search_query query_text text prompt input term keyword".split()
LIMIT = "limit k top_k topk n_results max_results num_results n count size max top".split()
SCOPE = (
    "namespace user_id userid scope collection bank_id bank space container_tag project "
    "project_id workspace agent_id user"
).split()
TIME = "timestamp event_time occurred_at created_at reference_time at datetime date time".split()
NAME = "name external_id key title topic slug label".split()
ITS_ID = "id memory_id note_id ids memory_ids uuid".split()
TAGS = "tags tag labels keywords".split()
METADATA = "metadata meta payload attributes extra properties".split()
_VERBS = {
    "remember": "store add create save remember insert write ingest put upsert record memorize",
    "recall": "search recall find query retrieve lookup semantic",
    "forget": "delete remove forget erase drop",
    "empty": "clear reset wipe purge flush",
}
VERBS = {verb: frozenset(words.split()) for verb, words in _VERBS.items()}
_NOUNS = frozenset(
    "memory memories note notes fact facts entity entities node nodes document documents item "
    "items text texts lesson lessons record records entry entries all everything by to in".split()
)
_ALL = frozenset({"all", "everything"})


class ToolParameter(NamedTuple):
    """One argument of a tool."""

    name: str
    schema: dict[str, Any]
    required: bool

    @property
    def kinds(self) -> set[str]:
        """The JSON types that it accepts."""
        return _kinds(self.schema)

    @property
    def fields(self) -> list[ToolParameter]:
        """The fields of an object, or of the objects in a list."""
        return parameters(items_of(self.schema) if "array" in self.kinds else self.schema)


def parameters(schema: dict[str, Any]) -> list[ToolParameter]:
    """The parameters of an object's schema, with references resolved."""
    known = _dict(schema.get("$defs")) or _dict(schema.get("definitions"))
    required = schema.get("required") or []
    return [
        ToolParameter(name, _dict(_resolved(part, known, 8)), name in required)
        for name, part in _dict(schema.get("properties")).items()
        if "${" not in name  # it would be taken for a template
    ]


def named(
    given: Iterable[ToolParameter], names: Iterable[str], *kinds: str
) -> ToolParameter | None:
    """The parameter with the first of these names that accepts one of these types."""
    by_name = {_snake_case(one.name): one for one in given}
    for name in names:
        found = by_name.get(name)
        if found is not None and (not kinds or not found.kinds or found.kinds & set(kinds)):
            return found
    return None


def fitness(tool: Tool, verb: str) -> float:
    """Score how likely a tool implements a verb; 0 or less means unlikely."""
    words = set(filter(None, _snake_case(tool.name.rpartition(".")[2]).split("_")))
    if verb == "empty":
        empties = bool(words & VERBS["empty"]) or bool(words & VERBS["forget"] and words & _ALL)
        return 1.0 if empties and not any(p.required for p in parameters(tool.parameters)) else 0.0
    others = frozenset().union(*(VERBS[other] for other in VERBS if other != verb))
    score = 4.0 * bool(words & VERBS[verb]) - 3.0 * bool(words & (others - VERBS[verb]))
    first = re.split(r"[.\n]", tool.description.lower(), maxsplit=1)[0]
    score += 1.0 * any(word.startswith(tuple(VERBS[verb])) for word in first.split())
    score -= 1.0 * len(words - _NOUNS - VERBS[verb])
    score -= 4.0 * bool(words & _ALL)
    if tool.read_only is not None:
        score += 1.0 if tool.read_only == (verb == "recall") else -4.0
    if tool.destructive is not None and verb == "forget":
        score += 1.0 * tool.destructive
    return score


def _snake_case(name: str) -> str:
    """Write `topK` and `top-k` as `top_k`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def _kinds(schema: dict[str, Any]) -> set[str]:
    own = schema.get("type")
    kinds = set(map(str, own)) if isinstance(own, list) else {str(own)} if own else set()
    for choice in _choices(schema):
        kinds |= _kinds(choice)
    return kinds - {"null"}


def _choices(schema: dict[str, Any]) -> list[dict[str, Any]]:
    listed = (schema.get(key) for key in ("anyOf", "oneOf"))
    return [_dict(one) for choices in listed if isinstance(choices, list) for one in choices]


def _dict(value: Any) -> dict[str, Any]:
    """The value if it is a dict, else {}; a schema can also be `true`."""
    return value if isinstance(value, dict) else {}


def items_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list's entries."""
    for part in (schema, *_choices(schema)):
        if isinstance(part.get("items"), dict):
            items: dict[str, Any] = part["items"]
            return items
    return {}


def item_kinds(schema: dict[str, Any]) -> set[str]:
    return _kinds(items_of(schema))


def _resolved(schema: Any, known: dict[str, Any], depth: int) -> Any:
    """Resolve references in the schema; recursive ones only to this depth."""
    if isinstance(schema, list):
        return [_resolved(part, known, depth) for part in schema]
    if not isinstance(schema, dict) or depth == 0:
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.rpartition("/")[2] in known:
        return _resolved(known[reference.rpartition("/")[2]], known, depth - 1)
    return {key: _resolved(part, known, depth) for key, part in schema.items()}
