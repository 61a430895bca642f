"""Files of agents' memories: mem0's JSON, Letta's agent files, the graph of MCP's memory server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.jsonl import decode_lines
from mnemoscope.importers.json_source import dict_of, list_of, opened, text_of, whole_object
from mnemoscope.importers.mapped_rows import RowMapping, scalars
from mnemoscope.importers.source_record import (
    EMPTY,
    FieldNames,
    ImportSource,
    LeftOut,
    SourceRecord,
    Yielded,
)
from mnemoscope.importers.source_times import read_time


def read_mem0_json(source: ImportSource) -> Yielded:
    """What mem0's `get_all` returns, saved as JSON: a list, or an object with `results`."""
    with opened(source.path) as export:
        content = whole_object(export, export.files()[0])
    rows = content.get("results", content.get("memories")) if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise DataError("has no list of memories, such as `results`", file=source.path)
    names = FieldNames("memory", "created_at", "id", "run_id", "role")
    mapping = RowMapping(names, False)
    for number, row in enumerate(map(dict_of, rows), 1):
        record = mapping.record(row, f"memory {row.get('id', number)}", source.path, None)
        if isinstance(record, SourceRecord):
            changed = read_time(row.get("updated_at"))
            record = record._replace(
                at=changed or record.at, metadata=scalars(dict_of(row.get("metadata")))
            )
        yield record


def read_letta_file(source: ImportSource) -> Yielded:
    """An agent file (.af): its memory blocks, its messages and, if it has them, its passages."""
    with opened(source.path) as export:
        content = dict_of(whole_object(export, export.files()[0]))
    agents = [dict_of(agent) for agent in list_of(content.get("agents"))] or [content]
    for block in [*list_of(content.get("blocks")), *list_of(content.get("core_memory"))]:
        yield _block(dict_of(block))
    for passage in list_of(content.get("passages") or content.get("archival_memory")):
        one = dict_of(passage)
        yield _said(f"passage {one.get('id', '')}", one, text_of(one.get("text")), "")
    for agent in agents:
        for number, message in enumerate(map(dict_of, list_of(agent.get("messages"))), 1):
            role = text_of(message.get("role"))
            place = f"message {message.get('id', number)}"
            if role not in ("user", "assistant"):
                yield LeftOut("written by the product or a tool", place)
                continue
            parts = message.get("content", message.get("text"))
            texts = [text_of(dict_of(part).get("text")) for part in list_of(parts)]
            yield _said(place, message, text_of(parts) or "\n".join(filter(None, texts)), role)


def _block(block: dict[str, Any]) -> SourceRecord | LeftOut:
    label = text_of(block.get("label"))
    record = _said(f"memory block {label}", block, text_of(block.get("value")), "")
    if isinstance(record, LeftOut):
        return record
    return record._replace(origin=f"block#{label}", category=label)


def _said(place: str, one: dict[str, Any], text: str, speaker: str) -> SourceRecord | LeftOut:
    if not text.strip():
        return LeftOut(EMPTY, place)
    # The ids in an agent file count within the file, such as `message-0`.
    return SourceRecord(
        place,
        text,
        origin=f"{place}#{text}",
        at=read_time(one.get("created_at") or one.get("date")),
        speaker=speaker,
    )


def read_knowledge_graph(source: ImportSource) -> Yielded:
    """The file of MCP's memory server: one memory for each observation and each relation."""
    for line, row in _graph_lines(source):
        kind = row.get("type")
        if kind == "relation":
            names = [text_of(row.get(name)) for name in ("from", "relationType", "to")]
            text = " ".join([names[0], names[1].replace("_", " "), names[2]])
            yield SourceRecord(
                f"line {line}", text, origin=f"relation#{'#'.join(names)}", session=names[0]
            )
        elif kind == "entity":
            yield from _observations(row, line)
        else:
            problem = "is neither an entity nor a relation of a knowledge graph"
            raise DataError(problem, file=source.path, line=line)


def _observations(row: dict[str, Any], line: int) -> Yielded:
    name, type_ = text_of(row.get("name")), text_of(row.get("entityType"))
    about = f"{name} ({type_})" if type_ else name
    observations = list_of(row.get("observations"))
    if not observations:
        yield LeftOut("an entity without observations", f"line {line}")
    for number, observed in enumerate(observations, 1):
        one = observed if isinstance(observed, dict) else {"content": observed}
        text = text_of(one.get("content")).strip()
        place = f"line {line}, observation {number}"
        if not text:
            yield LeftOut(EMPTY, place)
            continue
        yield SourceRecord(
            place,
            f"{about}: {text}",
            origin=f"entity#{name}#{text}",
            at=read_time(one.get("timestamp") or row.get("createdAt") or row.get("timestamp")),
            session=name,
            category=type_,
        )


def _graph_lines(source: ImportSource) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines; or, of one JSON object, its entities and relations."""
    if source.path.suffix == ".json":
        with opened(source.path) as export:
            content = dict_of(whole_object(export, export.files()[0]))
        for kind, name in (("entity", "entities"), ("relation", "relations")):
            for row in list_of(content.get(name)):
                yield 1, {**dict_of(row), "type": kind}
        return
    with source.path.open("rb") as lines:
        yield from decode_lines(lines, msgspec.json.Decoder(dict[str, Any]), source.path)
