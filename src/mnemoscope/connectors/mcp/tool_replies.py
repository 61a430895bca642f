"""What goes into a tool and comes out of it, as JSON that every side can bear."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from mnemoscope._store.errors import BadReply
from mnemoscope._store.lenient_json import decoded
from mnemoscope.connectors.mcp.session import Reply
from mnemoscope.connectors.mcp.tool_mapping import Reading


def read(reply: Reply, how: Reading) -> Any:
    """The reply as the mapping wants it read; by itself: structured, else JSON, else the text."""
    if how == "structured" and reply.structured is None:
        raise BadReply(f"the reply has no structured content: {reply.text[:200]}")
    if how == "structured" or (how == "auto" and reply.structured is not None):
        return reply.structured
    if how == "text":
        return reply.text
    try:
        return decoded(reply.text.encode())
    except ValueError:
        if how == "json":
            raise BadReply(f"the reply is no JSON: {reply.text[:200]}") from None
        return reply.text


def sendable(arguments: Any) -> Any:
    """The same without halves of characters, which no transport takes."""
    try:
        msgspec.json.encode(arguments)
        return arguments
    except UnicodeEncodeError:
        return json.loads(json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace"))
