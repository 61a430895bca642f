"""Exports of ChatGPT and Claude: `conversations.json`, plain, in a folder or in a zip file.

One memory is one message. Its session is the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mnemoscope._store.errors import DataError
from mnemoscope.importers.json_source import (
    Export,
    ExportFile,
    dict_of,
    elements,
    list_of,
    opened,
    text_of,
)
from mnemoscope.importers.source_record import (
    EMPTY,
    ImportSource,
    LeftOut,
    SourceRecord,
    Yielded,
)
from mnemoscope.importers.source_times import read_time

CONVERSATIONS = r"conversations(?:[-_]\d+)?\.json"
OTHER_BRANCH, BY_THE_PRODUCT = "replaced by an edited message", "written by the product or a tool"
_SAID = ("text", "multimodal_text", "code")


def conversation_files(export: Export) -> list[ExportFile]:
    if export.path.suffix == ".json":
        return export.files()
    return export.named(CONVERSATIONS)


def read_chatgpt(source: ImportSource) -> Yielded:
    """The messages of the branch that each conversation shows, oldest first."""
    yield from _conversations(source, "mapping", _chatgpt_messages)


def read_claude(source: ImportSource) -> Yielded:
    yield from _conversations(source, "chat_messages", _claude_messages)


def _conversations(source: ImportSource, needs: str, messages: Any) -> Yielded:
    with opened(source.path) as export:
        files = conversation_files(export)
        if not files:
            raise DataError("contains no conversations.json", file=source.path)
        for file in files:
            for line, conversation in elements(source, export, file):
                place = f"{file.name}, line {line}"
                if not isinstance(conversation.get(needs), dict | list):
                    raise DataError(
                        f"the conversation that begins here has no {needs!r}",
                        file=export.place(file),
                        line=line,
                    )
                yield from messages(conversation, place)


def _chatgpt_messages(conversation: dict[str, Any], place: str) -> Yielded:
    nodes = dict_of(conversation["mapping"])
    id = text_of(conversation.get("conversation_id") or conversation.get("id"))
    title = text_of(conversation.get("title"))
    began = conversation.get("create_time")
    branch = _branch(nodes, conversation.get("current_node"))
    on_branch = set(branch)
    for name in (*branch, *(name for name in nodes if name not in on_branch)):
        message = dict_of(dict_of(nodes[name]).get("message"))
        if not message:
            continue
        content, key = dict_of(message.get("content")), text_of(message.get("id")) or name
        here = f"{place}, message {key}"
        role = text_of(dict_of(message.get("author")).get("role"))
        hidden = dict_of(message.get("metadata")).get("is_visually_hidden_from_conversation")
        parts = [part for part in list_of(content.get("parts")) if isinstance(part, str)]
        text = "\n".join(parts).strip() or text_of(content.get("text")).strip()
        if (
            role not in ("user", "assistant")
            or hidden is True
            or content.get("content_type", "text") not in _SAID
            or message.get("recipient", "all") != "all"
        ):
            yield LeftOut(BY_THE_PRODUCT, here)
        elif name not in on_branch:
            yield LeftOut(OTHER_BRANCH, here)
        elif not text:
            yield LeftOut(EMPTY, here)
        else:
            yield SourceRecord(
                here,
                text,
                key,
                at=read_time(message.get("create_time") or began),
                session=id or title,
                speaker=role,
                metadata={"title": title} if title else {},
            )


def _branch(nodes: dict[str, Any], last: object) -> list[str]:
    """The names of the messages from the first to the last one that is shown."""
    if not isinstance(last, str) or last not in nodes:
        return list(nodes)
    path: dict[str, None] = {}
    while isinstance(last, str) and last in nodes and last not in path:
        path[last] = None
        last = dict_of(nodes[last]).get("parent")
    return list(reversed(path))


def _claude_messages(conversation: dict[str, Any], place: str) -> Yielded:
    id, title = text_of(conversation.get("uuid")), text_of(conversation.get("name"))
    for number, message in enumerate(map(dict_of, list_of(conversation["chat_messages"])), 1):
        key = text_of(message.get("uuid"))
        here = f"{place}, message {key or number}"
        text = "\n\n".join(_claude_texts(message)).strip()
        if not text:
            yield LeftOut(EMPTY, here)
            continue
        sender = text_of(message.get("sender"))
        yield SourceRecord(
            here,
            text,
            key or None,
            origin="" if key else f"{id}#{number}",
            at=read_time(message.get("created_at") or conversation.get("created_at")),
            session=id or title,
            speaker="user" if sender == "human" else sender,
            metadata={"title": title} if title else {},
        )


def _claude_texts(message: dict[str, Any]) -> Iterator[str]:
    """What was said, without tools and thoughts, and the texts of attached files."""
    blocks = [dict_of(block) for block in list_of(message.get("content"))]
    said = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
    yield from filter(None, said or [text_of(message.get("text"))])
    for attached in map(dict_of, list_of(message.get("attachments"))):
        if content := text_of(attached.get("extracted_content")):
            yield content
