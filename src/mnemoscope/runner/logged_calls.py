"""Read what an agent wrote to and asked of its memory from a log of tool calls.

Two formats: MCP messages (JSON-RPC), one in a line, with or without a time and other words before
it, as clients log them; and JSON lines with an operation each. No reply is taken for a label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.lenient_json import decoded
from mnemoscope.connectors.mapping import find
from mnemoscope.connectors.mcp.session import Tool
from mnemoscope.connectors.mcp.tool_schemas import METADATA, QUERY, TAGS, TEXT, VERBS, fitness
from mnemoscope.importers.secret_scan import mask, shown
from mnemoscope.models.http_errors import without_keys
from mnemoscope.types import Memory

Operation = Literal["remember", "recall", "forget"]
FIELDS = ("op", "at", "id", "text", "query", "hits")
"""The fields of a JSON line; `--field NAME=EXPRESSION` says where a log has one of them."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_SHORTEST = 12
"""Characters; a shorter text occurs in a reply by chance."""
_LONGEST_LINE = 16 << 20
_decoder = json.JSONDecoder()


class LoggedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the log, in its order."""

    line: int
    operation: Operation
    at: datetime | None = None
    memories: tuple[Memory, ...] = ()
    """What was written; of a deletion, ids or texts of what was deleted."""
    query: str = ""
    reply: str | None = None
    """The texts of the reply to a recall; None if the log has none."""
    hits: tuple[str, ...] | None = None
    """The ids or texts that a JSON line lists as found."""


class CallLog(msgspec.Struct, frozen=True):
    """The calls of a log, and what was not understood."""

    calls: list[LoggedCall]
    skipped: dict[str, int]
    """Tools and operations that neither write, search nor delete, with their numbers."""


def read_log(path: Path, fields: Mapping[str, str] | None = None) -> CallLog:
    """Read a log; with `fields`, its lines are JSON objects with these expressions."""
    unknown = set(fields or ()) - set(FIELDS)
    if unknown:
        raise UsageError(f"--field {unknown.pop()}: known fields are {', '.join(FIELDS)}")
    reader = _LogReader(path, fields or {})
    for number, line in enumerate(_lines(path), 1):
        reader.add(number, line)
    if not any(call.operation == "recall" for call in reader.calls):
        others = ", ".join(reader.skipped) or "none"
        raise DataError(
            "no call in it searches a memory: expected MCP messages of tools/call, or JSON lines "
            f"with op, text and query (--field names others); other calls: {others}",
            file=path,
        )
    return CallLog(reader.finished(), reader.skipped)


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            while line := file.readline(_LONGEST_LINE):
                yield line
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


class _LogReader:
    def __init__(self, path: Path, fields: Mapping[str, str]) -> None:
        self._path, self._fields = path, fields
        self.calls: list[LoggedCall] = []
        self.skipped: dict[str, int] = {}
        self._open: dict[str, int] = {}
        """From the id of an MCP request to the place of its recall."""
        self._failed: set[int] = set()
        self._used: set[str] = set()

    def add(self, number: int, line: str) -> None:
        start = line.find("{")
        if start < 0:
            return
        try:
            message, _ = _decoder.raw_decode(line, start)
        except (ValueError, RecursionError):
            if start == 0:
                raise DataError("is not valid JSON", file=self._path, line=number) from None
            return
        at = _time(line[:start])
        if isinstance(message, dict) and isinstance(message.get("message"), dict):
            at = at or _time(message.get("timestamp") or message.get("time"))
            message = message["message"]
        if not isinstance(message, dict):
            return
        if "jsonrpc" in message or message.get("method") == "tools/call":
            self._message(number, message, at or _time(message.get("timestamp")))
        elif self._fields or "op" in message:
            self._row(number, message, at)

    def finished(self) -> list[LoggedCall]:
        """The calls without those that the server refused."""
        return [call for place, call in enumerate(self.calls) if place not in self._failed]

    def _message(self, number: int, message: dict[str, Any], at: datetime | None) -> None:
        key = json.dumps(message.get("id"))
        if message.get("method") == "tools/call":
            params = message.get("params")
            params = params if isinstance(params, dict) else {}
            tool = str(params.get("name", ""))
            given = params.get("arguments")
            call = self._tool_call(number, tool, given if isinstance(given, dict) else {}, at)
            if call is None:
                self.skipped[tool] = self.skipped.get(tool, 0) + 1
                return
            self._open[key] = len(self.calls)
            self.calls.append(call)
        elif ("result" in message or "error" in message) and key in self._open:
            place = self._open.pop(key)
            result = message.get("result")
            if "error" in message or (isinstance(result, dict) and result.get("isError")):
                self._failed.add(place)
            elif self.calls[place].operation == "recall":
                reply = without_secrets("\n".join(_reply_texts(result)))
                self.calls[place] = msgspec.structs.replace(self.calls[place], reply=reply)

    def _tool_call(
        self, line: int, tool: str, given: dict[str, Any], at: datetime | None
    ) -> LoggedCall | None:
        operation = _operation(tool)
        if operation == "recall":
            query = next((given[name] for name in QUERY if isinstance(given.get(name), str)), "")
            if not query.strip():
                return None
            return LoggedCall(line=line, operation="recall", at=at, query=without_secrets(query))
        if operation is None:
            return None
        texts = [*_texts(given)] if operation == "remember" else [*_strings(given)]
        memories = self._memories(line, texts, at)
        return (
            LoggedCall(line=line, operation=operation, at=at, memories=memories)
            if memories
            else None
        )

    def _row(self, number: int, row: dict[str, Any], before: datetime | None) -> None:
        values = {name: find(row, self._fields.get(name, name)) for name in FIELDS}
        word = str(values["op"] or "").lower()
        operation = _operation(word)
        at = _time(values["at"]) or before
        if operation is None:
            self.skipped[word] = self.skipped.get(word, 0) + 1
            return
        if operation == "recall":
            query = values["query"] or values["text"]
            if not isinstance(query, str) or not query.strip():
                raise DataError("a recall without a query", file=self._path, line=number)
            hits = values["hits"]
            found = tuple(map(without_secrets, _strings(hits))) if isinstance(hits, list) else None
            self.calls.append(
                LoggedCall(
                    line=number,
                    operation="recall",
                    at=at,
                    query=without_secrets(query),
                    hits=found,
                )
            )
            return
        text, id = values["text"], values["id"]
        if operation == "remember" and (not isinstance(text, str) or not text.strip()):
            raise DataError("a write without a text", file=self._path, line=number)
        given = [str(one) for one in (id, text) if one not in (None, "")]
        if operation == "remember":
            own = (
                self._unique(without_secrets(str(id))) if id not in (None, "") else f"line-{number}"
            )
            memories: tuple[Memory, ...] = (Memory(own, without_secrets(str(text)), at),)
        else:
            memories = self._memories(number, given[:1], at)
        self.calls.append(LoggedCall(line=number, operation=operation, at=at, memories=memories))

    def _memories(self, line: int, texts: list[str], at: datetime | None) -> tuple[Memory, ...]:
        return tuple(
            Memory(f"line-{line}.{place}" if len(texts) > 1 else f"line-{line}", text, at)
            for place, text in enumerate(map(without_secrets, texts), 1)
        )

    def _unique(self, id: str) -> str:
        """An id that was written before gets a number: the text may be another."""
        name, number = id, 1
        while name in self._used:
            number += 1
            name = f"{id}.{number}"
        self._used.add(name)
        return name


def without_secrets(text: str) -> str:
    """The text with every secret replaced by its kind, as in an import."""
    return shown(mask(without_keys(text)).text)


def _operation(name: str) -> Operation | None:
    """The verb of a tool by its name."""
    tool = Tool(name, "", {}, None, None)
    if fitness(tool, "empty") > 0:
        return None
    words = set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))
    verbs: tuple[Operation, ...] = ("remember", "recall", "forget")
    found = [verb for verb in verbs if words & VERBS[verb] and fitness(tool, verb) > 0]
    return found[0] if len(found) == 1 else None


def _texts(given: Any, about: str = "") -> Iterator[str]:
    """The texts that a call stores: those of usual names, with the name of what they are about."""
    if isinstance(given, list):
        for one in given:
            yield from _texts(one, about)
    elif isinstance(given, dict):
        name = next((given[key] for key in ("entityName", "name", "title") if key in given), "")
        about = name if isinstance(name, str) and name else about
        names = [key for key in given if key.lower() in TEXT]
        for key in names:
            for text in _strings(given[key]):
                yield f"{about}: {text}" if about and text.strip() else text
            if isinstance(given[key], list | dict):
                yield from _texts([one for one in _list(given[key]) if isinstance(one, dict)])
        for key, value in given.items():
            if key not in (*names, *METADATA, *TAGS) and isinstance(value, list | dict):
                yield from _texts(value, about)


def _strings(value: Any) -> Iterator[str]:
    """The texts directly in a value, or in a list."""
    for one in value.values() if isinstance(value, dict) else _list(value):
        if isinstance(one, str) and one.strip():
            yield one
        elif isinstance(one, dict):
            inner = one.get("id") or one.get("text")
            if isinstance(inner, str):
                yield inner
        elif isinstance(one, list):
            yield from _strings(one)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _reply_texts(result: Any) -> Iterator[str]:
    """All texts in a reply; JSON in a text is read, so that its escapes do not hide a memory."""
    if isinstance(result, str):
        try:
            inner = decoded(result.encode())
        except (ValueError, UnicodeEncodeError):
            inner = result
        if isinstance(inner, str):
            yield inner
        else:
            yield from _reply_texts(inner)
    elif isinstance(result, list | dict):
        for one in result.values() if isinstance(result, dict) else result:
            yield from _reply_texts(one)


def found_in(call: LoggedCall, memories: Mapping[str, Memory]) -> list[str] | None:
    """Ids of the memories that a logged recall found, in its order; None if the log has no reply.

    They are recognised by their ids or their texts.
    """
    if call.hits is not None:
        by_text = {_squeezed(memory.text): id for id, memory in memories.items()}
        found = [hit if hit in memories else by_text.get(_squeezed(hit), "") for hit in call.hits]
        return list(dict.fromkeys(filter(None, found)))
    if call.reply is None:
        return None
    reply = _squeezed(call.reply)
    places: dict[str, int] = {}
    for id, memory in memories.items():
        text = _squeezed(memory.text)
        # A graph returns an observation without the name that we put before it.
        for part in (text, text.partition(": ")[2]):
            if len(part) >= _SHORTEST and (at := reply.find(part)) >= 0:
                places.setdefault(id, at)
    return sorted(places, key=lambda id: places[id])


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _time(value: Any) -> datetime | None:
    """A time in a text or a number of seconds or milliseconds; UTC unless it says otherwise."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if value > 1e11 else float(value)
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    if not isinstance(value, str) or (match := _TIME.search(value)) is None:
        return None
    try:
        found = datetime.fromisoformat(match[0].replace(",", "."))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
