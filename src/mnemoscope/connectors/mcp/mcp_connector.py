"""The MCP door itself: our verbs as calls of a server's tools, as a mapping says.

One call at a time. A server that we started and that is gone, or was too slow, is never replaced
in silence: the next reset starts a fresh one.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal
from uuid import uuid4

import msgspec

from mnemoscope._store.errors import BadReply, SystemLost, UsageError
from mnemoscope.connectors.child_process import AdapterLate
from mnemoscope.connectors.id_mapping import Tracing
from mnemoscope.connectors.mapping import fill, find, hits, of_memory, of_query
from mnemoscope.connectors.mapping_checks import secrets_of
from mnemoscope.connectors.mcp.argument_checks import slips
from mnemoscope.connectors.mcp.keyword_queries import keywords, voted
from mnemoscope.connectors.mcp.session import Reply, Session, ToolError
from mnemoscope.connectors.mcp.tool_mapping import Call, ManyCall, notes_of, tag_of
from mnemoscope.connectors.mcp.tool_mapping_file import load, shipped
from mnemoscope.connectors.mcp.tool_replies import read, sendable
from mnemoscope.connectors.mcp.transport import place
from mnemoscope.connectors.server_lock import Claim
from mnemoscope.models.http_errors import shortened
from mnemoscope.types import Hit, Memory, Query, Receipt, Selector

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
        self._place = place(
            address,
            env=self._mapping.env,
            embeddings=self._embeddings if self._mapping.needs_embeddings else dict,
            secrets=self._secrets,
            key=key,
            timeout=timeout,
        )
        self._reset_by = self._mapping.reset or ("restart" if self._place.restarts else None)
        if self._reset_by is None or (self._reset_by == "restart" and not self._place.restarts):
            raise UsageError(
                f"{address} is not ours to restart: map reset to a tool that empties it, to "
                "`forget`, or to `scope` where every call carries ${scope}"
            )
        shares = not self._place.restarts and self._reset_by != "scope"
        self._claim = Claim(address) if shares else None
        """On a server that has one space for all who come."""
        self._strategy = self._mapping.recall.strategy if self._mapping.recall else "whole"
        if strategy != "mapped":
            self._strategy = strategy
        self._timeout, self._start, self._patience = timeout, start, patience
        self._session: Session | None = None
        self._gone = ""
        """Why there is no session any more, where there was one."""
        self._fresh = False
        """Whether the server was started by us and has been told nothing yet."""
        self._scope = ""
        self._trace = self._traced()
        self._turn = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        """Only what is mapped is there to be asked for."""
        if name in ("recall", "forget", "answer") and getattr(self._mapping, name) is not None:
            return getattr(self, f"_{name}")
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def identity(self) -> dict[str, Any]:
        with self._turn:
            server = self._opened().server
        return {
            **self._place.identity,
            "server": server,
            "mapping": msgspec.to_builtins(self._mapping),
            "strategy": self._strategy,
            **({"embedder": self._given.partition("@")[0]} if self._given else {}),
            "notes": [
                *notes_of(self._mapping, self._strategy),
                *(_BY_FORGETTING if self._reset_by == "forget" else []),
                *(_ONE_SPACE if self._claim is not None else []),
            ],
        }

    def reset(self, scope: str) -> None:
        with self._turn:
            if self._claim is not None:
                self._claim.take()
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
            self._trace = self._traced()

    def remember(self, memories: Sequence[Memory]) -> Receipt:
        how = self._mapping.remember
        rejected: dict[str, str] = {}
        merged: dict[str, str] = {}
        with self._turn:
            for batch, values in self._batches(how, memories):
                for memory in batch:
                    tags = [tag_of(memory.id)] if how.sends_tags else []
                    self._trace.tell(memory, *tags)
                try:
                    reply = self._call(how, values)
                except ToolError as error:
                    if len(batch) > 1:
                        raise
                    # One that is refused costs itself, not all that come after it.
                    rejected[batch[0].id] = str(error)
                    continue
                said = re.search(how.rejected, reply.text) if how.rejected else None
                if said is not None:
                    rejected |= {memory.id: shortened(reply.text) for memory in batch}
                elif how.keep:
                    merged |= self._trace.keep(batch, read(reply, "auto"), how.keep)
        return Receipt(rejected=rejected, merged=merged)

    def close(self) -> None:
        with self._turn:
            if self._reset_by == "forget" and not self._is_foreign and not self._gone:
                with suppress(Exception):  # whoever comes next should not hear of it
                    self._forget_all()
            self._drop()
            if self._claim is not None:
                self._claim.release()

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
                return self._trace.back(self._search(query, k))[:k]
            asked = keywords(query.text) or [query.text]
            found = [
                self._trace.back(self._search(msgspec.structs.replace(query, text=word), k))
                for word in asked
            ]
            return voted(found)[:k]

    def _search(self, query: Query, k: int) -> list[Hit]:
        how = self._mapping.recall
        assert how is not None
        reply = self._call(how, {"query": of_query(query), "k": k})
        return hits(read(reply, how.reply), how.hits)

    def _answer(self, query: Query) -> str:
        how = self._mapping.answer
        assert how is not None
        with self._turn:
            reply = self._call(how, {"query": of_query(query)})
        said = find(read(reply, how.reply), how.text)
        if not isinstance(said, str):
            raise BadReply(f"{how.tool}: no text at {how.text!r}: {reply.text[:200]}")
        return said

    def _forget(self, selector: Selector) -> None:
        how = self._mapping.forget
        assert how is not None
        with self._turn:
            for _, values in self._batches(how, self._forgettable(selector.memories)):
                self._call(how, values)

    def _forget_all(self) -> None:
        """Forget what this door has told; what was there before it came stays."""
        how = self._mapping.forget
        assert how is not None
        for _, values in self._batches(how, self._forgettable(self._trace.told)):
            with suppress(ToolError):  # what the server does not know, it need not forget
                self._call(how, values)
        self._trace = self._traced()

    def _forgettable(self, memories: Sequence[Memory]) -> list[Memory]:
        """Those that the server took in: a call without its id might mean all that there is."""
        how = self._mapping.forget
        by_its_id = how is not None and how.speaks_of("kept")
        return [one for one in memories if not by_its_id or self._trace.kept(one.id) is not None]

    def _traced(self) -> Tracing:
        recall = self._mapping.recall
        return Tracing(by_text=recall is not None and recall.hits.by_text)

    def _batches(
        self, how: ManyCall, memories: Sequence[Memory]
    ) -> Iterator[tuple[Sequence[Memory], dict[str, Any]]]:
        """The memories of each call, and what its arguments can speak of."""
        if how.each is None:
            for memory in memories:
                yield [memory], self._of(memory)
            return
        for first in range(0, len(memories), how.batch):
            batch = memories[first : first + how.batch]
            items = [fill(how.each, {**self._common(), **self._of(memory)}) for memory in batch]
            yield batch, {"items": items}

    def _of(self, memory: Memory) -> dict[str, Any]:
        said = {**of_memory(memory), "tag": tag_of(memory.id)}
        return {"memory": said, "kept": self._trace.kept(memory.id)}

    def _common(self) -> dict[str, Any]:
        return {"scope": self._scope, "env": self._secrets}

    def _call(self, call: Call, values: dict[str, Any]) -> Reply:
        session = self._opened()
        self._fresh = False
        arguments = fill(call.arguments, {**self._common(), **values})
        try:
            return session.call(call.tool, sendable(arguments), self._timeout)
        except SystemLost as error:
            self._gone = str(error)
            raise
        except TimeoutError as error:
            if not self._place.restarts:
                raise
            # Busy with what nobody waits for any more, it would make the next ones late.
            self._gone = str(error)
            session.close()
            raise AdapterLate(str(error)) from None

    def _opened(self) -> Session:
        if self._gone:
            raise SystemLost(f"gone since an earlier call: {self._gone}")
        if self._is_foreign:
            raise SystemLost("it belongs to another process; only a reset opens a new one here")
        return self._session or self._open(0.0)

    def _open(self, patience: float) -> Session:
        session = self._place.open_patiently(self._start, patience)
        has = [tool.name for tool in session.tools]
        lacking = [call.tool for call in self._mapping.calls if call.tool not in has]
        if lacking:
            session.close()
            raise UsageError(
                f"the mapping {self._mapping.name!r} calls {', '.join(lacking)}, and the server "
                f"has no such tool; it has {', '.join(has) or 'none'}"
            )
        if wrong := slips(self._mapping, session.tools):
            session.close()
            raise UsageError(f"the mapping {self._mapping.name!r} {'; it '.join(wrong)}")
        self._session, self._fresh = session, True
        # Whoever lets go of the system without closing it leaves nothing running.
        self._end = weakref.finalize(self, session.close)
        return session

    def _drop(self) -> None:
        session, self._session, self._gone = self._session, None, ""
        if session is not None:
            self._end()

    @property
    def _is_foreign(self) -> bool:
        return self._session is not None and self._session.owner != os.getpid()
