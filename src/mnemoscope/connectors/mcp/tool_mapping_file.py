"""Mapping files of the MCP door: read strictly, and checked before a server is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mnemoscope._store.errors import DataError
from mnemoscope._store.yaml import parse_yaml
from mnemoscope.connectors import mapping_checks as checks
from mnemoscope.connectors.mapping import check_expression
from mnemoscope.connectors.mapping_types import shaped
from mnemoscope.connectors.mcp.tool_mapping import Call, ManyCall, ServerMapping

_SHIPPED = Path(__file__).parent / "mappings"
_ALWAYS = {"scope", "env"}


def shipped() -> list[str]:
    return checks.shipped_in(_SHIPPED)


def load(given: str) -> ServerMapping:
    """A mapping by its shipped name, or from a file."""
    path, content = checks.found(given, _SHIPPED)
    return _read(content, path)


def read(text: str, path: Path) -> ServerMapping:
    return _read(parse_yaml(text, path), path)


def _read(content: Any, path: Path) -> ServerMapping:
    mapping = shaped(content, ServerMapping, path)
    _check(mapping, path)
    _check_reset(mapping, path)
    return mapping


def _check(mapping: ServerMapping, path: Path) -> None:
    if mapping.recall is None and mapping.answer is None:
        raise DataError("neither recall nor answer is mapped: nothing can be asked", file=path)
    checks.check_names(mapping.env, "env", {"scratch", "embeddings", "env"}, path)
    _check_many(mapping.remember, "remember", set(), path)
    if not mapping.remember.speaks_of("memory"):
        raise DataError("remember never says what to remember: use ${memory.text}", file=path)
    if mapping.remember.keep:
        check_expression(mapping.remember.keep, str(path))
    checks.check_pattern(mapping.remember.rejected, "remember.rejected", path)
    if mapping.forget is not None:
        _check_many(mapping.forget, "forget", {"kept"}, path)
        if mapping.forget.speaks_of("kept") and not mapping.remember.keep:
            raise DataError("forget: ${kept} needs remember.keep: where it stands", file=path)
        if not {"memory", "kept"} & checks.names_in(mapping.forget.template):
            raise DataError("forget never says what to forget: use ${memory.id}", file=path)
    if mapping.recall is not None:
        _check_asking(mapping.recall, "recall", {"query", "k"}, path)
        checks.check_hits(mapping.recall.hits, path)
    if mapping.answer is not None:
        _check_asking(mapping.answer, "answer", {"query"}, path)
        check_expression(mapping.answer.text, str(path))


def _check_many(call: ManyCall, field: str, known: set[str], path: Path) -> None:
    if call.batch < 1:
        raise DataError(f"{field}.batch is {call.batch}: give a number above 0", file=path)
    of_one = {*_ALWAYS, *known, "memory"}
    if call.each is None:
        checks.check_names(call.arguments, f"{field}.arguments", of_one, path)
        return
    checks.check_names(call.arguments, f"{field}.arguments", {*_ALWAYS, "items"}, path)
    checks.check_names(call.each, f"{field}.each", of_one, path)
    if "items" not in checks.names_in(call.arguments):
        raise DataError(f"{field}.arguments never hold what each makes: use ${{items}}", file=path)


def _check_asking(call: Call, field: str, known: set[str], path: Path) -> None:
    checks.check_names(call.arguments, f"{field}.arguments", {*_ALWAYS, *known}, path)
    if not call.speaks_of("query"):
        raise DataError(
            f"{field}.arguments never say what is asked: use ${{query.text}}", file=path
        )


def _check_reset(mapping: ServerMapping, path: Path) -> None:
    for number, call in enumerate(mapping.resets):
        checks.check_names(call.arguments, f"reset[{number}]", _ALWAYS, path)
    if mapping.reset == "forget" and mapping.forget is None:
        raise DataError("reset: forget needs a tool that forgets; map forget", file=path)
    if mapping.reset == "scope":
        for verb in ("remember", "recall", "answer"):
            used: Call | None = getattr(mapping, verb)
            if used is not None and not used.speaks_of("scope"):
                raise DataError(f"reset: scope, but {verb} does not carry ${{scope}}", file=path)
