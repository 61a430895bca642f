"""Propose a mapping for an unknown server from its descriptions of its tools.

No tool is called, so the shape of a reply is unknown: our id is sent as a mark, `mid:…`, and
searched for in the text of the reply.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mnemoscope._store.errors import MnemoscopeError, SystemLost
from mnemoscope._store.yaml import dump_yaml
from mnemoscope.connectors.mcp import tool_schemas
from mnemoscope.connectors.mcp.session import Tool, ToolError
from mnemoscope.connectors.mcp.tool_mapping import read
from mnemoscope.connectors.mcp.tool_schemas import ToolParameter, fitness, named, parameters
from mnemoscope.connectors.mcp.transport import locate

MARK = "mid:${memory.tag}"
PATTERN = r"mid:([a-z0-9_.:/%-]+)"
ID_IN_PROSE = r"(?i)\b(?:uu)?id\b['\"]?\s*(?:is|of|[:=#])?\s*['\"`#]?([a-z0-9][a-z0-9_-]*)"
"""`Stored note with ID: 17`, `{"id": "a-1"}`, `saved (id=17)`."""
_TEXT = "${memory.text}"
_SKELETONS = {
    "reset": "reset: forget    # or a tool: {tool: TOOL}",
    "remember": f"""remember:
  tool: TOOL
  arguments: {{PARAMETER: "{_TEXT} ({MARK})"}}""",
    "recall": f"""recall:
  tool: TOOL
  arguments: {{PARAMETER: "${{query.text}}"}}
  reply: text
  hits: {{pattern: '{PATTERN}'}}""",
    "forget": """forget:
  tool: TOOL
  arguments: {PARAMETER: "${memory.text}"}""",
}
"""Parts of a mapping that reads ids from prose."""


class MappingProposal(NamedTuple):
    """A draft of a mapping, and what the user should check."""

    mapping: dict[str, Any]
    uncertain: list[str]
    missing: list[str]
    """Without these the mapping is unusable or incomplete."""
    tools: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        return "remember" in self.mapping and "recall" in self.mapping

    def yaml(self, about: str) -> str:
        """The mapping file, with what is missing or uncertain as comments."""
        lines = [f"# Proposed by `mnemoscope systems probe` for {about}; no tool was called."]
        for title, notes in (("Missing:", self.missing), ("Uncertain:", self.uncertain)):
            lines += [f"# {title}", *(f"#   - {note}" for note in notes)] if notes else []
        lines += self._skeleton()
        lines.append("# Try it with `mnemoscope systems check`.")
        # The server chooses the names: a line break in one would end the comment.
        comments = "".join(f"{' '.join(line.splitlines())}\n" for line in lines)
        return comments + dump_yaml(self.mapping)

    def _skeleton(self) -> list[str]:
        """What the missing parts look like, to be filled in by hand."""
        wanting = [verb for verb in _SKELETONS if verb not in self.mapping]
        if not wanting:
            return []
        tools = ", ".join(self.tools) or "none"
        lines = ["# Fill in what is in capitals, and remove the # before it. The server's tools:"]
        lines.append(f"#   {tools}")
        return lines + [f"# {line}" for verb in wanting for line in _SKELETONS[verb].splitlines()]


class ProbeResult(NamedTuple):
    """A server's description of itself, and the proposed mapping."""

    server: dict[str, str]
    tools: list[Tool]
    proposal: MappingProposal
    yaml: str


def probe(address: str, *, start: float = 60.0, key: str = "") -> ProbeResult:
    """Connect, list the tools, disconnect, and propose a mapping. No tool is called."""
    server = locate(address, key=key)
    try:
        session = server.open(start)
    except (SystemLost, ToolError, TimeoutError, OSError) as error:
        raise MnemoscopeError(f"{address} cannot be probed: {error}") from None
    session.close()
    name = session.server.get("name", "")
    about = f"{name or 'a server without a name'} {session.server.get('version', '')}".strip()
    proposal = propose(name, session.tools, restarts=server.restarts)
    yaml = proposal.yaml(about)
    if proposal.usable:
        read(yaml, Path("the proposal"))  # the connector must accept the proposal
    return ProbeResult(session.server, session.tools, proposal, yaml)


def propose(name: str, tools: Sequence[Tool], *, restarts: bool) -> MappingProposal:
    """Propose a mapping of these tools; `restarts` if we start the server."""
    draft = _MappingDraft(tools, restarts)
    mapping = draft.mapping(name or "server")
    names = tuple(tool.name for tool in tools)
    return MappingProposal(mapping, draft.uncertain, draft.missing, names)


class _MappingDraft:
    def __init__(self, tools: Sequence[Tool], restarts: bool) -> None:
        self._tools = tools
        self._restarts = restarts
        self._carrier = ""
        self._scope = ""
        self.uncertain: list[str] = []
        self.missing: list[str] = []

    def mapping(self, name: str) -> dict[str, Any]:
        store, search = self._best("remember"), self._best("recall")
        self._scope = _shared_scope(store, search)
        drafted: dict[str, Any] = {"name": name}
        remember = self._remember(store) if store else None
        recall = self._recall(search) if search else None
        drafted["reset"] = self._reset()
        for verb, draft in (("remember", remember), ("recall", recall)):
            if draft is not None:
                drafted[verb] = draft
        forget = self._forget(self._best("forget"), remember) if remember is not None else None
        if forget is not None:
            drafted["forget"] = forget
            if drafted["reset"] is None:
                drafted["reset"] = "forget"
                self.uncertain.append(
                    "reset: the memories that the connector stored are deleted one by one; older "
                    "content of the server stays"
                )
        if drafted["reset"] is None:
            del drafted["reset"]
            self.missing.append(
                "reset: no tool empties the server or deletes memories, and no parameter separates "
                "scopes; start it with mcp:COMMAND, so that it can be restarted"
            )
        return drafted

    def _best(self, verb: str) -> Tool | None:
        fit = [(fitness(tool, verb) + _suits(tool, verb), tool) for tool in self._tools]
        good = [(score, tool) for score, tool in fit if score >= 2]
        if not good:
            named_as = ", ".join(sorted(tool_schemas.VERBS[verb]))
            self.missing.append(f"{verb}: no tool found for it (searched names: {named_as})")
            return None
        best, tool = max(good, key=lambda one: one[0])
        others = [other.name for score, other in good if score > best - 1 and other is not tool]
        if others:
            self.uncertain.append(f"{verb}: {tool.name}, but it may be {', '.join(others)}")
        return tool

    def _remember(self, tool: Tool) -> dict[str, Any] | None:
        given = parameters(tool.parameters)
        many = next((p for p in given if p.kinds == {"array"} and _holds_text(p)), None)
        if many is None:
            filled = self._filled(tool, given)
            return None if filled is None else {"tool": tool.name, "arguments": filled}
        if tool_schemas.item_kinds(many.schema) == {"string"}:
            each: Any = self._marked_text()
        else:
            each = self._filled(tool, many.fields, inside=many.name)
            if each is None:
                return None
        arguments = {many.name: "${items}", **self._rest(tool, given, {many.name})}
        return {"tool": tool.name, "arguments": arguments, "each": each}

    def _filled(
        self, tool: Tool, given: Sequence[ToolParameter], inside: str = ""
    ) -> dict[str, Any] | None:
        """Arguments for one memory: its text, the mark with its id, its date."""
        place = f"{tool.name}.{inside}" if inside else tool.name
        text = named(given, tool_schemas.TEXT, "string", "array")
        if text is None:
            listed = ", ".join(one.name for one in given) or "none is described"
            self.missing.append(f"remember: which parameter of {place} is the text? ({listed})")
            return None
        filled = self._mark(given, text.name)
        value = _TEXT
        moment = named((p for p in given if p.name not in filled), tool_schemas.TIME, "string")
        if moment is not None:
            filled[moment.name] = "${memory.at}"
            value = "${memory.text}"
            self.uncertain.append(f"remember: {moment.name} is assumed to be the event time")
        if not self._carrier:
            value = self._marked_text(value)
        filled[text.name] = [value] if text.kinds == {"array"} else value
        return {**filled, **self._rest(tool, given, {*filled})}

    def _mark(self, given: Sequence[ToolParameter], text: str) -> dict[str, Any]:
        """The parameter that can carry our id, if there is one."""
        if (tags := named(given, tool_schemas.TAGS, "array", "string")) is not None:
            self._carrier = "tags"
            return {tags.name: _listed(tags, MARK)}
        if (data := named(given, tool_schemas.METADATA, "object")) is not None:
            inner = named(data.fields, tool_schemas.TAGS, "array", "string")
            self._carrier = "tags" if inner else "metadata"
            marked = {inner.name: _listed(inner, MARK)} if inner else {"mid": MARK}
            self.uncertain.append(f"recall: the reply must repeat {data.name}, which has our id")
            return {data.name: marked}
        if (name := named(given, tool_schemas.NAME, "string")) is not None and name.name != text:
            self._carrier = "name"
            self.uncertain.append(f"remember: {name.name} carries our id; the reply must repeat it")
            return {name.name: MARK}
        return {}

    def _marked_text(self, text: str = _TEXT) -> str:
        self._carrier = "text"
        self.uncertain.append(
            "remember: no parameter can carry our id, so it is appended to the text, and the "
            "server indexes it; better: remember.keep, or recall.hits.by_text"
        )
        return f"{text} ({MARK})"

    def _rest(self, tool: Tool, given: Sequence[ToolParameter], done: set[str]) -> dict[str, Any]:
        """The other required arguments, and the scope."""
        rest: dict[str, Any] = {}
        for one in given:
            if one.name in done:
                continue
            if self._scope and tool_schemas.named([one], [self._scope]) is not None:
                rest[one.name] = "${scope}"
            elif one.required:
                rest[one.name] = _something(one)
                self.uncertain.append(
                    f"{tool.name}: {one.name} is required, its purpose is unknown; "
                    f"the proposed value is {rest[one.name]!r}"
                )
        return rest

    def _recall(self, tool: Tool) -> dict[str, Any] | None:
        given = parameters(tool.parameters)
        query = named(given, tool_schemas.QUERY, "string")
        if query is None:
            listed = ", ".join(one.name for one in given) or "none is described"
            self.missing.append(f"recall: which parameter of {tool.name} is the query? ({listed})")
            return None
        arguments: dict[str, Any] = {query.name: "${query.text}"}
        limit = named(given, tool_schemas.LIMIT, "integer", "number")
        if limit is not None:
            most = limit.schema.get("maximum")
            bounded = isinstance(most, int | float) and not isinstance(most, bool)
            arguments[limit.name] = f"${{min([k, `{json.dumps(most)}`])}}" if bounded else "${k}"
        arguments |= self._rest(tool, given, {*arguments})
        drafted: dict[str, Any] = {
            "tool": tool.name,
            "arguments": arguments,
            "reply": "text",
            "hits": {"pattern": PATTERN},
        }
        if limit is None:
            drafted |= {"strategy": "keywords", "ranked": False}
            self.uncertain.append(
                f"recall: {tool.name} has no limit parameter, so it is assumed to search for a "
                "substring and not to rank; otherwise write strategy: whole, ranked: true"
            )
        return drafted

    def _forget(self, tool: Tool | None, remember: dict[str, Any]) -> dict[str, Any] | None:
        if tool is None:
            return None
        given = parameters(tool.parameters)
        name = [*tool_schemas.NAME, "names", "entity_names", "entity_name", "id", "ids"]
        carriers = {"tags": tool_schemas.TAGS, "name": name}.get(self._carrier, ())
        target = named(given, carriers, "string", "array")
        its_id = named(given, tool_schemas.ITS_ID)
        if target is None and its_id is not None and "each" not in remember:
            remember["keep_pattern"] = ID_IN_PROSE
            self.uncertain.append(
                f"remember: {tool.name} needs the server's own id; it is searched for in the reply "
                "of the storing tool by keep_pattern; if the reply is JSON, write keep: instead"
            )
            arguments = {its_id.name: _listed(its_id, "${kept}")}
            return {
                "tool": tool.name,
                "arguments": {**arguments, **self._rest(tool, given, {its_id.name})},
            }
        if target is None:
            need = "the server's own id" if its_id else ", ".join(p.name for p in given) or "?"
            self.missing.append(
                f"forget: {tool.name} needs {need}; set remember.keep to where the reply of the "
                'storing tool has it, and map forget with "${kept}"'
            )
            return None
        many = target.kinds == {"array"}
        value = "${items}" if many else _listed(target, MARK)
        arguments = {target.name: value, **self._rest(tool, given, {target.name})}
        return {"tool": tool.name, "arguments": arguments, **({"each": MARK} if many else {})}

    def _reset(self) -> Any:
        if self._scope:
            self.uncertain.append(f"reset: {self._scope} is assumed to isolate scopes completely")
            return "scope"
        empties = [tool for tool in self._tools if fitness(tool, "empty") > 0]
        if empties and not self._restarts:
            self.uncertain.append(f"reset: {empties[0].name} is called, which empties the server")
            return {"tool": empties[0].name}
        if self._restarts:
            self.uncertain.append(
                "reset: a restart with a new home and current folder; a server that writes to "
                "another place needs ${scratch} in a variable of env, or cannot store anything"
            )
            return "restart"
        return None


def _suits(tool: Tool, verb: str) -> float:
    """Score whether the tool has the parameter that the verb requires."""
    given = parameters(tool.parameters)
    if verb == "remember":
        fits = named(given, tool_schemas.TEXT, "string") or any(map(_holds_text, given))
    elif verb == "recall":
        fits = named(given, tool_schemas.QUERY, "string") is not None
    else:
        return 0.0
    return 2.0 if fits else -2.0


def _holds_text(parameter: ToolParameter) -> bool:
    """Whether a list contains texts, or objects with a text."""
    if "array" not in parameter.kinds:
        return False
    if tool_schemas.item_kinds(parameter.schema) == {"string"}:
        return parameter.name in tool_schemas.TEXT or parameter.name in ("memories", "documents")
    inside = named(parameter.fields, tool_schemas.TEXT, "string", "array")
    return inside is not None and named(parameter.fields, ["entity_name"]) is None


def _shared_scope(store: Tool | None, search: Tool | None) -> str:
    if store is None or search is None:
        return ""
    both = [parameters(tool.parameters) for tool in (store, search)]
    return next(
        (name for name in tool_schemas.SCOPE if all(named(one, [name], "string") for one in both)),
        "",
    )


def _listed(parameter: ToolParameter, value: str) -> Any:
    return [value] if "array" in parameter.kinds else value


def _something(parameter: ToolParameter) -> Any:
    """A value that a required parameter probably accepts."""
    schema = parameter.schema
    for choice in (schema.get("default"), *(schema.get("enum") or ())[:1]):
        # A value from the server must not be taken for a template.
        if choice is not None and "${" not in str(choice):
            return choice
    by_kind = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
    return next((by_kind[kind] for kind in by_kind if kind in parameter.kinds), "memory")
