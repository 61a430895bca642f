"""The MCP connector: call a server's tools for our verbs, as a mapping says.

Calls are made one at a time. If a server that we started dies or is too slow, only the next reset
starts a new one.
"""

from __future__ import annotations

import json
import os
import re
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal
from uuid import uuid4

import msgspec

from mnemoscope._store.errors import BadReply, SystemLost, UsageError
from mnemoscope._store.lenient_json import decoded
from mnemoscope.connectors.child_process import AdapterLate
from mnemoscope.connectors.handshake import check_seconds
from mnemoscope.connectors.id_mapping import IdMapping
from mnemoscope.connectors.live_store import not_sent, notes_of, require_live
from mnemoscope.connectors.mapping import (
    fill,
    find,
    hits,
    names_in,
    of_query,
    secrets_of,
    sends_tags,
)
from mnemoscope.connectors.mcp.session import McpSession, ToolError, ToolReply
from mnemoscope.connectors.mcp.tool_mapping import (
    ReplyFormat,
    ToolCall,
    load,
    shipped,
    wrong_arguments,
)
from mnemoscope.connectors.mcp.transport import locate
from mnemoscope.connectors.server_lock import ServerLock
from mnemoscope.models.http_errors import shortened
from mnemoscope.text.tokenize import words
from mnemoscope.types import Hit, Memory, Query, Receipt, Selector

_SHORTEST_KEYWORD = 2
_MOST_KEYWORDS = 64
"""Each keyword is one call: this limits the calls for a long question."""
_IDS = "values(@)[0]"
_BY_FORGETTING = [
    "a reset deletes the memories sent since the last reset; older content of the server stays, "
    "also that of a killed run"
]
_ONE_SPACE = ["the server has one space for all clients: run it with one worker"]


class Mcp:
    """An MCP memory server as a system.

    `mapping` is a file or a shipped name; `strategy` overrides the mapping's search strategy;
    `timeout` is how many seconds a call may take, `start` how many the server may take to start,
    `patience` how many seconds we wait for a server at a URL; `key` names the environment variable
    with a bearer token; `embeddings` is MODEL@URL of an endpoint, for servers that need one.
    With `live` the server runs on the user's own files, or a running server may be emptied; with
    `read_only` it is only asked, and `scope` is the value of ${scope} in its calls.
    """

    def __init__(
        self,
        address: str,
        mapping: str = "",
        strategy: Literal["mapped", "whole", "keywords"] = "mapped",
        timeout: float = 120.0,
        start: float = 120.0,
        patience: float = 30.0,
        key: str = "",
        embeddings: str = "",
        live: bool = False,
        read_only: bool = False,
        scope: str = "",
    ) -> None:
        check_seconds(timeout=timeout, start=start)
        if not mapping:
            raise UsageError(
                f"a mapping of the server's tools is required: add mapping=FILE or one of "
                f"{', '.join(shipped())}; "
                f'mnemoscope systems probe "{address}" --out mapping.yaml proposes one'
            )
        self._mapping = load(mapping)
        self._given = embeddings
        templates = [self._mapping.env, *(call.template for call in self._mapping.calls)]
        self._secrets = secrets_of(templates, mapping)
        self._server = locate(
            address,
            env=self._mapping.env,
            embeddings=self._embeddings if "embeddings" in names_in(self._mapping.env) else dict,
            secrets=self._secrets,
            key=key,
            timeout=timeout,
            live=live,
            read_only=read_only,
        )
        self._live, self._read_only, self._own_scope = live, read_only, scope
        if scope and not read_only:
            raise UsageError("scope= names the space to read with --read-only; runs make their own")
        self._reset_by = self._mapping.reset or ("restart" if self._server.restarts else None)
        cannot = self._reset_by == "restart" and not self._server.restarts
        if not read_only and (self._reset_by is None or cannot):
            raise UsageError(
                f"{address} is a running server, which we cannot restart: map reset to a tool that "
                "empties it, to `forget`, or to `scope` if every call sends ${scope}"
            )
        shares = not self._server.restarts and self._reset_by != "scope" and not read_only
        if shares:
            require_live(live, address)
        self._lock = ServerLock(address) if shares else None
        """For a server that has one space for all clients."""
        self._strategy = self._mapping.recall.strategy if self._mapping.recall else "whole"
        if strategy != "mapped":
            self._strategy = strategy
        self._timeout, self._start, self._patience = timeout, start, patience
        self._session: McpSession | None = None
        self._gone = ""
        """Why the session ended, if it did."""
        self._fresh = False
        """Whether no tool has been called since the session was opened."""
        self._scope = ""
        self._by_text = self._mapping.recall is not None and self._mapping.recall.hits.by_text
        self._ids = IdMapping(by_text=self._by_text)
        self._call_lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        """Return a method only if it is mapped."""
        if name in ("recall", "forget", "answer") and getattr(self._mapping, name) is not None:
            return getattr(self, f"_{name}")
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def identity(self) -> dict[str, Any]:
        with self._call_lock:
            server = self._opened().server
        return {
            **self._server.identity,
            "server": server,
            "mapping": msgspec.to_builtins(self._mapping),
            "strategy": self._strategy,
            **({"embedder": self._given.partition("@")[0]} if self._given else {}),
            "notes": [
                *self._mapping.all_notes(self._strategy),
                *(_BY_FORGETTING if self._reset_by == "forget" else []),
                *(_ONE_SPACE if self._lock is not None else []),
                *notes_of(live=self._live, read_only=self._read_only),
            ],
        }

    def reset(self, scope: str) -> None:
        with self._call_lock:
            if self._lock is not None:
                self._lock.take()
            self._scope = scope
            if (
                self._is_foreign
                or self._gone
                or (self._reset_by == "restart" and not self._fresh and not self._read_only)
            ):
                self._drop()
            if self._session is None:
                self._open(self._patience)
            if self._read_only:
                self._scope = self._own_scope
                self._ids = IdMapping(by_text=self._by_text)
                return
            if self._reset_by == "scope":
                # Two resets of a scope must give two spaces, also on a server that keeps both.
                self._scope = f"{scope}-{uuid4().hex[:12]}"
            elif self._reset_by == "forget":
                self._forget_all()
            for call in self._mapping.resets:
                self._call(call, {})
            self._ids = IdMapping(by_text=self._by_text)

    def remember(self, memories: Sequence[Memory]) -> Receipt:
        how = self._mapping.remember
        rejected: dict[str, str] = {}
        merged: dict[str, str] = {}
        if self._read_only:  # the server has them: hits are traced to them
            self._ids.add(memories, tags=sends_tags(how.template))
            return Receipt()
        with self._call_lock:
            for batch, values in self._ids.batches(how, memories, self._common):
                self._ids.add(batch, tags=sends_tags(how.template))
                try:
                    reply = self._call(how, values)
                except ToolError as error:
                    if len(batch) > 1:
                        raise
                    # The memories after a rejected one are still stored.
                    rejected[batch[0].id] = str(error)
                    continue
                if how.rejected and re.search(how.rejected, reply.text):
                    rejected |= {memory.id: shortened(reply.text) for memory in batch}
                elif how.keep:
                    merged |= self._ids.keep(batch, _read(reply, "auto"), how.keep)
                elif how.keep_pattern:
                    ids = [match[1] for match in re.finditer(how.keep_pattern, reply.text)]
                    merged |= self._ids.keep(batch, {how.keep_pattern: ids}, _IDS)
        return Receipt(rejected=rejected, merged=merged)

    def close(self) -> None:
        with self._call_lock:
            is_ours = not self._is_foreign and not self._gone and not self._read_only
            if self._reset_by == "forget" and is_ours:
                with suppress(Exception):  # so that the next client does not find our memories
                    self._forget_all()
            self._drop()
            if self._lock is not None:
                self._lock.release()

    def _embeddings(self) -> dict[str, str]:
        """The model and URL of the server's embeddings endpoint."""
        model, _, url = self._given.partition("@")
        if not url:
            raise UsageError(
                f"{self._mapping.name} needs an embeddings endpoint; add "
                "embeddings=MODEL@http://host:port/v1"
            )
        return {"model": model, "url": url}

    def _recall(self, query: Query, k: int) -> list[Hit]:
        if k <= 0:
            return []
        with self._call_lock:
            if self._strategy == "whole":
                return self._search(query, k)[:k]
            asked = _keywords(query.text) or [query.text]
            found = [self._search(msgspec.structs.replace(query, text=word), k) for word in asked]
            return _voted(found)[:k]

    def _search(self, query: Query, k: int) -> list[Hit]:
        how = self._mapping.recall
        assert how is not None
        reply = self._call(how, {"query": of_query(query), "k": k})
        return self._ids.resolve(hits(_read(reply, how.reply), how.hits))

    def _answer(self, query: Query) -> str:
        how = self._mapping.answer
        assert how is not None
        with self._call_lock:
            reply = self._call(how, {"query": of_query(query)})
        answer = find(_read(reply, how.reply), how.text)
        if not isinstance(answer, str):
            raise BadReply(f"{how.tool}: there is no text at {how.text!r}: {reply.text[:200]}")
        return answer

    def _forget(self, selector: Selector) -> None:
        with self._call_lock:
            for call, values in self._forget_calls(selector.memories):
                self._call(call, values)

    def _forget_all(self) -> None:
        """Delete the memories that this connector sent; older content of the server stays."""
        for call, values in self._forget_calls(self._ids.memories):
            with suppress(ToolError):  # the server may not have stored it
                self._call(call, values)
        self._ids = IdMapping(by_text=self._by_text)

    def _forget_calls(self, memories: Sequence[Memory]) -> list[tuple[ToolCall, dict[str, Any]]]:
        """The calls that delete these memories."""
        how = self._mapping.forget
        assert how is not None
        known = self._ids.with_server_id(memories) if how.uses("kept") else memories
        return [(how, values) for _, values in self._ids.batches(how, known, self._common)]

    @property
    def _common(self) -> dict[str, Any]:
        return {"scope": self._scope, "env": self._secrets}

    def _call(self, call: ToolCall, values: dict[str, Any]) -> ToolReply:
        if (
            self._read_only
            and call is not self._mapping.recall
            and call is not self._mapping.answer
        ):
            raise not_sent(call.tool)
        session = self._opened()
        self._fresh = False
        arguments = fill(call.arguments, {**self._common, **values})
        try:
            return session.call(call.tool, _sendable(arguments), self._timeout)
        except SystemLost as error:
            self._gone = str(error)
            raise
        except TimeoutError as error:
            if not self._server.restarts:
                raise
            # The server is still busy with this call, and would delay the next ones.
            self._gone = str(error)
            session.close()
            raise AdapterLate(str(error)) from None

    def _opened(self) -> McpSession:
        if self._gone:
            raise SystemLost(f"it ended in an earlier call: {self._gone}")
        if self._is_foreign:
            raise SystemLost("it belongs to another process; only a reset opens a new one here")
        return self._session or self._open(0.0)

    def _open(self, patience: float) -> McpSession:
        session = self._server.open(self._start, patience)
        has = [tool.name for tool in session.tools]
        missing = [call.tool for call in self._mapping.calls if call.tool not in has]
        if missing:
            session.close()
            raise UsageError(
                f"the mapping {self._mapping.name!r} calls {', '.join(missing)}, which the server "
                f"does not have; its tools are {', '.join(has) or 'none'}"
            )
        if wrong := wrong_arguments(self._mapping, session.tools):
            session.close()
            raise UsageError(f"the mapping {self._mapping.name!r} {'; it '.join(wrong)}")
        self._session, self._fresh = session, True
        # End the server also if the system is dropped without close().
        self._end = weakref.finalize(self, session.close)
        return session

    def _drop(self) -> None:
        session, self._session, self._gone = self._session, None, ""
        if session is not None:
            self._end()

    @property
    def _is_foreign(self) -> bool:
        return self._session is not None and self._session.owner != os.getpid()


def _keywords(text: str) -> list[str]:
    """The words of a query to search for, in their order, each once.

    For servers that search for the query as a substring: an answer does not contain its question.
    """
    long = [word for word in dict.fromkeys(words(text)) if len(word) >= _SHORTEST_KEYWORD]
    return long[:_MOST_KEYWORDS]


def _voted(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Rank hits by how many words found them; ties stay in the order they were found."""
    votes: dict[str, int] = {}
    first: dict[str, Hit] = {}
    for hit in (hit for some in found for hit in some):
        votes[hit.id] = votes.get(hit.id, 0) + 1
        first.setdefault(hit.id, hit)
    ordered = sorted(first.values(), key=lambda hit: -votes[hit.id])
    return [msgspec.structs.replace(hit, score=float(votes[hit.id])) for hit in ordered]


def _read(reply: ToolReply, how: ReplyFormat) -> Any:
    """Read the reply as the mapping says; `auto`: structured content, else JSON, else text."""
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
            raise BadReply(f"the reply is not JSON: {reply.text[:200]}") from None
        return reply.text


def _sendable(arguments: Any) -> Any:
    """Replace unpaired surrogates, which cannot be sent."""
    try:
        msgspec.json.encode(arguments)
        return arguments
    except UnicodeEncodeError:
        return json.loads(json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace"))
