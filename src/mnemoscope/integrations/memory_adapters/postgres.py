"""PostgreSQL with pgvector and text search, fused by reciprocal ranks; one schema a scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from uuid import uuid4

from .common import Endpoint, LegCounts
from .postgres_server import Database, UsageError, clean, finite, vector

_NOTE = "times are in their own column, which the rankings do not use"
_LEGS = ("vector", "text")

_MEANING = """
    SELECT id, text, 1 - distance AS score, row_number() OVER (ORDER BY distance, id) AS place
    FROM (
        SELECT id, text, embedding <=> %(vector)s::vector AS distance
        FROM memories ORDER BY {order} LIMIT %(candidates)s
    ) AS nearest"""
# Any of the words may match: a text rarely contains all words of a question.
_WORDS = """
    SELECT id, text, score, row_number() OVER (ORDER BY score DESC, id) AS place
    FROM (
        SELECT id, text, ts_rank_cd(words, query) AS score
        FROM memories, CAST(replace(
            plainto_tsquery('english', %(text)s)::text, ' & ', ' | ') AS tsquery) AS query
        WHERE words @@ query ORDER BY score DESC, id LIMIT %(candidates)s
    ) AS matching"""
_FUSED = """
    WITH meaning AS ({meaning}), words AS ({words})
    SELECT id, coalesce(meaning.text, words.text) AS text,
        coalesce(1.0 / (%(rrf_k)s + meaning.place), 0)
            + coalesce(1.0 / (%(rrf_k)s + words.place), 0) AS score,
        meaning.place AS by_vector, words.place AS by_text
    FROM meaning FULL JOIN words USING (id)"""


class Postgres:
    """Exact cosine and ts_rank_cd; `hnsw` uses an approximate vector index.

    `dsn` is the user's server, on which each scope's schema is dropped at the end; without it a
    server is started in this environment. With `storage` its data stay there, written as safely as
    PostgreSQL does by default. `candidates` is what each ranking gives to the fusion.
    """

    def __init__(
        self,
        legs: Literal["hybrid", "vector", "text"] = "hybrid",
        hnsw: bool = False,
        ef_search: int = 200,
        candidates: int = 100,
        rrf_k: int = 60,
        dsn: str = "",
        storage: str = "",
    ) -> None:
        self._legs = legs
        self._hnsw = hnsw
        self._ef_search = ef_search
        self._candidates = candidates
        self._rrf_k = rrf_k
        if dsn and storage:
            raise UsageError("dsn= names your own server: storage= is for the one that is started")
        self._database = Database(dsn, storage)
        self._endpoint = Endpoint()
        self._schema = ""
        self._counts = LegCounts(*(_LEGS if legs == "hybrid" else (legs,)))
        self._keeps = bool(storage)
        if storage and self._database.has_data:
            self._enter_last_schema()

    def identity(self) -> dict[str, Any]:
        return {
            **self._database.about(),
            "legs": self._legs,
            "nearest": {"hnsw": True, "ef_search": self._ef_search} if self._hnsw else "exact",
            "text_search": "english, any word, ts_rank_cd",
            "fusion": {"candidates": self._candidates, "rrf_k": self._rrf_k},
            "provenance": "own id",
            "notes": [_NOTE],
        }

    def reset(self, scope: str) -> None:
        self._drop()
        schema = f"mnemoscope_{uuid4().hex}"
        execute = self._database.connection.execute
        execute(f"CREATE SCHEMA {schema}")
        self._enter(schema)
        execute(
            "CREATE TABLE memories (id text PRIMARY KEY, at timestamptz, text text NOT NULL, "
            f"embedding vector({self._endpoint.dimensions}) NOT NULL, "
            "words tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED)"
        )
        execute("CREATE INDEX ON memories USING gin (words)")
        if self._hnsw:
            execute("CREATE INDEX ON memories USING hnsw (embedding vector_cosine_ops)")

    def _enter(self, schema: str) -> None:
        execute = self._database.connection.execute
        self._schema = schema
        where = (
            "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n "
            "ON n.oid = extnamespace WHERE extname = 'vector'"
        )
        execute(f"SET search_path = {schema}, {self._database.rows(where)[0][0]}")
        if self._hnsw:
            execute(f"SET hnsw.ef_search = {self._ef_search}")
            # With few rows the planner would not use the index.
            execute("SET enable_seqscan = off")

    def _enter_last_schema(self) -> None:
        """Open the scope that an earlier process left; there is one, unless it was killed early."""
        made = "SELECT schemaname FROM pg_tables WHERE tablename = 'memories'"
        if found := self._database.rows(made):
            self._enter(found[0][0])

    def remember(self, memories: Sequence[Any]) -> None:
        if not memories:
            return
        texts = [clean(memory.text) for memory in memories]
        rows = [
            (memory.id, memory.at, text, vector(numbers))
            for memory, text, numbers in zip(
                memories, texts, self._endpoint.embed(texts), strict=True
            )
        ]
        connection = self._database.connection
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO memories (id, at, text, embedding) VALUES (%s, %s, %s, %s::vector) "
                "ON CONFLICT (id) DO UPDATE SET (at, text, embedding) = "
                "(excluded.at, excluded.text, excluded.embedding)",
                rows,
            )

    def ready(self) -> None:
        self._database.connection.execute("ANALYZE memories")

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        text = clean(query.text)
        values = {
            "text": text,
            "k": k,
            "rrf_k": self._rrf_k,
            "candidates": max(k, self._candidates),
        }
        if self._legs != "text":
            values["vector"] = vector(self._endpoint.embed([text])[0])
        places = ", by_vector, by_text" if self._legs == "hybrid" else ""
        found = self._database.rows(
            f"SELECT id, text, score{places} FROM ({self._ranking}) AS found "
            "ORDER BY score DESC, id LIMIT %(k)s",
            values,
        )
        if self._legs == "hybrid":
            # If a ranking found anything, the first two of the fusion contain one of its memories.
            for column, leg in enumerate(_LEGS, 3):
                self._counts.add(leg, found=any(row[column] is not None for row in found))
        else:
            self._counts.add(self._legs, found=bool(found))
        return [
            {"id": id, "text": text, "score": finite(float(score))} for id, text, score, *_ in found
        ]

    @property
    def _ranking(self) -> str:
        # The index is used only if the order is by distance alone.
        meaning = _MEANING.format(order="distance" if self._hnsw else "distance, id")
        if self._legs == "hybrid":
            return _FUSED.format(meaning=meaning, words=_WORDS)
        return meaning if self._legs == "vector" else _WORDS

    def forget(self, selector: Any) -> None:
        execute = self._database.connection.execute
        execute("DELETE FROM memories WHERE id = ANY(%s)", [list(selector.ids)])
        # A deleted row stays in the file until VACUUM.
        execute("VACUUM memories")

    def stats(self) -> dict[str, int]:
        size = "SELECT pg_total_relation_size('memories')"
        return {"index_bytes": self._database.rows(size)[0][0], **self._counts.counters}

    def close(self) -> None:
        try:
            if not self._keeps:
                self._drop()
        finally:
            self._database.close()

    def _drop(self) -> None:
        if self._schema:
            self._database.connection.execute(f"DROP SCHEMA {self._schema} CASCADE")
            self._schema = ""
