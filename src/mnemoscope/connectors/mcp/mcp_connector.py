"""The MCP connector: our verbs as calls of a server's tools, as a mapping says.

One call at a time. A server that we started and that is gone, or was too slow, is replaced only by
the next reset.
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
from mnemoscope.connectors.id_mapping import IdMapping
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
"""Each keyword is a call: a long question must not become an endless number of calls."""
_BY_FORGETTING = [
    "a reset forgets what was told since the last one; what the server held before, also of a run "
    "that was killed, stays"
]
_ONE_SPACE = ["the server has one space for all: one worker can use it"]


class Mcp:
    """An MCP memory server as a system.

    `mapping` is a file or a shipped name; `strategy` overrides how the mapping asks; `timeout` is
    how many seconds a call may take, `start` how many the server may take to say hello, `patience`
    how long one that is not ours is waited for; `key` names the environment variable that holds a
    bearer token; `embeddings` is MODEL@URL of an endpoint, for servers that need one.
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
    ) -> None:
        for option, seconds in (("timeout", timeout), ("start", start)):
            if not seconds > 0:
                raise UsageError(f"{option}={seconds:g}: give a number of seconds above 0")
        if not mapping:
            raise UsageError(
                f"which tool does what? Add mapping=FILE or one of {', '.join(shipped())}; "
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
        )
        self._reset_by = self._mapping.reset or ("restart" if self._server.restarts else None)
        if self._reset_by is None or (self._reset_by == "restart" and not self._server.restarts):
            raise UsageError(
                f"{address} is not ours to restart: map reset to a tool that empties it, to "
                "`forget`, or to `scope` where every call carries ${scope}"
            )
        shares = not self._server.restarts and self._reset_by != "scope"
        self._lock = ServerLock(address) if shares else None
        """For a server that has one space for all clients."""
        self._strategy = self._mapping.recall.strategy if self._mapping.recall else "whole"
        if strategy != "mapped":
            self._strategy = strategy
        self._timeout, self._start, self._patience = timeout, start, patience
        self._session: McpSession | None = None
        self._gone = ""
        """Why there is no session any more, where there was one."""
        self._fresh = False
        """Whether the server was started by us and has been told nothing yet."""
        self._scope = ""
        self._by_text = self._mapping.recall is not None and self._mapping.recall.hits.by_text
        self._ids = IdMapping(by_text=self._by_text)
        self._turn = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        """Only the verbs that are mapped are there."""
        if name in ("recall", "forget", "answer") and getattr(self._mapping, name) is not None:
            return getattr(self, f"_{name}")
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def identity(self) -> dict[str, Any]:
        with self._turn:
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
            ],
        }

    def reset(self, scope: str) -> None:
        with self._turn:
            if self._lock is not None:
                self._lock.take()
            self._scope = scope
            if self._is_foreign or self._gone or (self._reset_by == "restart" and not self._fresh):
                self._drop()
            if self._session is None:
                self._open(self._patience)
            if self._reset_by == "scope":
                # The same scope twice must be two spaces, also for a server that never forgets.
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
        with self._turn:
            for batch, values in self._ids.batches(how, memories, self._common):
                self._ids.tell(batch, tags=sends_tags(how.template))
                try:
                    reply = self._call(how, values)
                except ToolError as error:
                    if len(batch) > 1:
                        raise
                    # A refused memory does not cost those that come after it.
                    rejected[batch[0].id] = str(error)
                    continue
                said = re.search(how.rejected, reply.text) if how.rejected else None
                if said is not None:
                    rejected |= {memory.id: shortened(reply.text) for memory in batch}
                elif how.keep:
                    merged |= self._ids.keep(batch, _read(reply, "auto"), how.keep)
        return Receipt(rejected=rejected, merged=merged)

    def close(self) -> None:
        with self._turn:
            if self._reset_by == "forget" and not self._is_foreign and not self._gone:
                with suppress(Exception):  # the next client should not find our memories
                    self._forget_all()
            self._drop()
            if self._lock is not None:
                self._lock.release()

    def _embeddings(self) -> dict[str, str]:
        """Where the server gets its embeddings."""
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
        with self._turn:
            if self._strategy == "whole":
                return self._search(query, k)[:k]
            asked = _keywords(query.text) or [query.text]
            found = [self._search(msgspec.structs.replace(query, text=word), k) for word in asked]
            return _voted(found)[:k]

    def _search(self, query: Query, k: int) -> list[Hit]:
        how = self._mapping.recall
        assert how is not None
        reply = self._call(how, {"query": of_query(query), "k": k})
        return self._ids.back(hits(_read(reply, how.reply), how.hits))

    def _answer(self, query: Query) -> str:
        how = self._mapping.answer
        assert how is not None
        with self._turn:
            reply = self._call(how, {"query": of_query(query)})
        said = find(_read(reply, how.reply), how.text)
        if not isinstance(said, str):
            raise BadReply(f"{how.tool}: no text at {how.text!r}: {reply.text[:200]}")
        return said

    def _forget(self, selector: Selector) -> None:
        with self._turn:
            for values in self._forgetting(selector.memories):
                self._call(*values)

    def _forget_all(self) -> None:
        """Forget what this connector has told; what was there before stays."""
        for values in self._forgetting(self._ids.told):
            with suppress(ToolError):  # the server may not know it
                self._call(*values)
        self._ids = IdMapping(by_text=self._by_text)

    def _forgetting(self, memories: Sequence[Memory]) -> list[tuple[ToolCall, dict[str, Any]]]:
        """The calls that forget these memories."""
        how = self._mapping.forget
        assert how is not None
        known = self._ids.kept(memories) if how.uses("kept") else memories
        return [(how, values) for _, values in self._ids.batches(how, known, self._common)]

    @property
    def _common(self) -> dict[str, Any]:
        return {"scope": self._scope, "env": self._secrets}

    def _call(self, call: ToolCall, values: dict[str, Any]) -> ToolReply:
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
            # It is still busy with this call, and would be late for the next ones.
            self._gone = str(error)
            session.close()
            raise AdapterLate(str(error)) from None

    def _opened(self) -> McpSession:
        if self._gone:
            raise SystemLost(f"gone since an earlier call: {self._gone}")
        if self._is_foreign:
            raise SystemLost("it belongs to another process; only a reset opens a new one here")
        return self._session or self._open(0.0)

    def _open(self, patience: float) -> McpSession:
        session = self._server.open(self._start, patience)
        has = [tool.name for tool in session.tools]
        lacking = [call.tool for call in self._mapping.calls if call.tool not in has]
        if lacking:
            session.close()
            raise UsageError(
                f"the mapping {self._mapping.name!r} calls {', '.join(lacking)}, and the server "
                f"has no such tool; it has {', '.join(has) or 'none'}"
            )
        if wrong := wrong_arguments(self._mapping, session.tools):
            session.close()
            raise UsageError(f"the mapping {self._mapping.name!r} {'; it '.join(wrong)}")
        self._session, self._fresh = session, True
        # A system that is dropped without being closed leaves nothing running.
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
    """The words worth asking for, in their order, each once.

    For servers that search for the whole query: a question is never a substring of its answer.
    """
    long = [word for word in dict.fromkeys(words(text)) if len(word) >= _SHORTEST_KEYWORD]
    return long[:_MOST_KEYWORDS]


def _voted(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    """All hits, those first that most words found; equals in the order they were found."""
    votes: dict[str, int] = {}
    first: dict[str, Hit] = {}
    for hit in (hit for some in found for hit in some):
        votes[hit.id] = votes.get(hit.id, 0) + 1
        first.setdefault(hit.id, hit)
    ordered = sorted(first.values(), key=lambda hit: -votes[hit.id])
    return [Hit(hit.id, float(votes[hit.id]), hit.text, hit.sources) for hit in ordered]


def _read(reply: ToolReply, how: ReplyFormat) -> Any:
    """The reply as the mapping wants it read; `auto`: structured, else JSON, else the text."""
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


def _sendable(arguments: Any) -> Any:
    """The same without unpaired surrogates, which cannot be sent."""
    try:
        msgspec.json.encode(arguments)
        return arguments
    except UnicodeEncodeError:
        return json.loads(json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace"))
