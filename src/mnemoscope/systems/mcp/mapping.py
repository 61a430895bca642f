"""Mapping files of the MCP door: which tool remembers, recalls and forgets, and with which words.

Strict on purpose: a field that nobody reads, a value that nobody gives and an expression that
cannot be read are refused when the file is, not when a run is half done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from mnemoscope.core.errors import DataError, UsageError
from mnemoscope.core.yaml import parse_yaml
from mnemoscope.systems.mapping import HitsFrom, check, check_expression

Strategy = Literal["whole", "keywords"]
Reading = Literal["auto", "structured", "json", "text"]
_SHIPPED = Path(__file__).parent / "mappings"
_ROOT = re.compile(r"\$\{\s*([A-Za-z_]\w*)\s*(?![\w(])")
_ALWAYS = {"scope", "env"}


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool and what it is given; `${…}` in the arguments stands for a value."""

    tool: str
    arguments: dict[str, Any] = {}


class ManyCall(Call, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that is called for each memory or, with `each`, for `batch` memories at once."""

    each: Any = None
    """What stands for one memory in the list `${items}`."""
    batch: int = 100


class Remember(ManyCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server takes memories in."""

    keep: str = ""
    """Where the reply keeps the server's own id; hits that carry it are traced back by it."""
    rejected: str = ""
    """A pattern: a reply in which it is found says that the memory was not stored, and why."""


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
        return any("${embeddings" in value for value in self.env.values())


def shipped() -> list[str]:
    return sorted(path.stem for path in _SHIPPED.glob("*.yaml"))


def load(given: str) -> ServerMapping:
    """A mapping by its shipped name, or from a file."""
    path = _SHIPPED / f"{given}.yaml" if given in shipped() else Path(given)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"mapping={given} cannot be read ({reason}); give a file, or one of those that are "
            f"shipped: {', '.join(shipped())}"
        ) from None
    return read(text, path)


def read(text: str, path: Path) -> ServerMapping:
    try:
        mapping = msgspec.convert(parse_yaml(text, path), ServerMapping)
    except msgspec.ValidationError as error:
        raise DataError(f"{error}", file=path) from None
    _check(mapping, path)
    return mapping


def _check(mapping: ServerMapping, path: Path) -> None:
    if mapping.recall is None and mapping.answer is None:
        raise DataError("neither recall nor answer is mapped: nothing can be asked", file=path)
    if mapping.reset == "forget" and mapping.forget is None:
        raise DataError("reset: forget needs a tool that forgets; map forget", file=path)
    _check_values(mapping.env, "env", {"scratch", "embeddings", "env"}, path)
    for number, call in enumerate(mapping.resets):
        _check_values(call.arguments, f"reset[{number}]", _ALWAYS, path)
    _check_many(mapping.remember, "remember", _ALWAYS, path)
    if mapping.remember.keep:
        check_expression(mapping.remember.keep, str(path))
    _check_pattern(mapping.remember.rejected, "remember.rejected", path, groups=0)
    if mapping.forget is not None:
        _check_many(mapping.forget, "forget", {*_ALWAYS, "kept"}, path)
    if mapping.recall is not None:
        _check_recall(mapping.recall, path)
    if mapping.answer is not None:
        _check_values(mapping.answer.arguments, "answer", {*_ALWAYS, "query"}, path)
        check_expression(mapping.answer.text, str(path))


def _check_many(call: ManyCall, field: str, known: set[str], path: Path) -> None:
    if call.batch < 1:
        raise DataError(f"{field}.batch is {call.batch}: give a number above 0", file=path)
    if call.each is None:
        _check_values(call.arguments, f"{field}.arguments", {*known, "memory"}, path)
    else:
        _check_values(call.arguments, f"{field}.arguments", {*(known - {"kept"}), "items"}, path)
        _check_values(call.each, f"{field}.each", {*known, "memory"}, path)


def _check_recall(recall: Recall, path: Path) -> None:
    _check_values(recall.arguments, "recall.arguments", {*_ALWAYS, "query", "k"}, path)
    where = recall.hits
    for expression in (where.each, where.id, where.score, where.text):
        if expression:
            check_expression(expression, str(path))
    _check_pattern(where.pattern, "recall.hits.pattern", path, groups=1)
    if where.by_text and not where.text:
        raise DataError("recall.hits.by_text needs recall.hits.text: where it stands", file=path)
    if not any("${query" in text for text in _texts(recall.arguments)):
        raise DataError("recall.arguments never say what is asked: use ${query.text}", file=path)


def _check_values(template: Any, field: str, known: set[str], path: Path) -> None:
    check(template, str(path))
    for text in _texts(template):
        for root in _ROOT.findall(text):
            if root not in known:
                raise DataError(
                    f"{field}: ${{{root}}} is not known here; known are {', '.join(sorted(known))}",
                    file=path,
                )


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping):
        for key, part in template.items():
            yield from _texts(key)
            yield from _texts(part)
    elif isinstance(template, Sequence):
        for part in template:
            yield from _texts(part)


def _check_pattern(pattern: str, field: str, path: Path, groups: int) -> None:
    try:
        has = re.compile(pattern).groups
    except re.error as error:
        raise DataError(f"{field} is no regular expression: {error}", file=path) from None
    if pattern and has < groups:
        raise DataError(f"{field} needs a group (…) around the id", file=path)
