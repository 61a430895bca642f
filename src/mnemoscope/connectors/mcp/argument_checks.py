"""Whether the arguments of a mapping are those that the server's tools take, by their schemas.

A server may pass over an argument that it does not know, and then does something else than the
mapping says; or die of one that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mnemoscope._store.suggest import did_you_mean
from mnemoscope.connectors.mcp.session import Tool
from mnemoscope.connectors.mcp.tool_mapping import Call, ManyCall, ServerMapping
from mnemoscope.connectors.mcp.tool_schemas import items_of, parameters

_ITEMS = "${items}"


def slips(mapping: ServerMapping, tools: Sequence[Tool]) -> list[str]:
    """What is wrong with the calls, each to be said of the mapping."""
    schemas = {tool.name: tool.parameters for tool in tools}
    found = [
        slip
        for call in mapping.calls
        for slip in _slips(_told(call), schemas.get(call.tool, {}), call.tool)
    ]
    return list(dict.fromkeys(found))


def _told(call: Call) -> dict[str, Any]:
    """The arguments, with what stands for one memory where the list of them goes."""
    if not isinstance(call, ManyCall) or call.each is None:
        return call.arguments
    return {
        name: [call.each] if value == _ITEMS else value for name, value in call.arguments.items()
    }


def _slips(given: Any, schema: dict[str, Any], whose: str) -> Iterator[str]:
    if not isinstance(given, Mapping) or any("${" in str(name) for name in given):
        return
    takes = {parameter.name: parameter for parameter in parameters(schema)}
    for name, value in given.items():
        if name in takes:
            inside, where = takes[name].schema, f"{whose}, in {name},"
            if isinstance(value, list):
                for part in value:
                    yield from _slips(part, items_of(inside), where)
            else:
                yield from _slips(value, inside, where)
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
    """Whether the properties are all that there is.

    By the letter of JSON Schema others are allowed unless it forbids them; hardly a server does,
    and those that take any others say so.
    """
    others = ("patternProperties", "anyOf", "oneOf", "allOf", "$ref")
    takes_more = schema.get("additionalProperties") or any(schema.get(key) for key in others)
    return isinstance(schema.get("properties"), dict) and not takes_more
