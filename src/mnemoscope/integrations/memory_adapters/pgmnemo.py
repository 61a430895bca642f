"""pgmnemo: lessons in PostgreSQL, written by its `ingest` and ranked by its functions.

A project is a scope. Every memory has a unique artifact hash: without one, memories that share a
topic supersede each other, across projects too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from typing import Any, Literal
from uuid import uuid4

from . import pgmnemo_extension
from .common import NO_TIME, Endpoint, LegCounts
from .pgmnemo_calls import Calls
from .postgres_server import Database, UsageError, clean, finite, vector

_PATHS = {"lessons": "recall_lessons", "hybrid": "recall_hybrid", "fast": "recall_fast"}
_IMPORTANCE = 3
_LEGS = {"vec_score": "vector", "bm25_score": "words"}
"""The column with each leg's score."""
_NO_MATCH = "hits that match neither by vector nor by words are dropped"
# The settings that the functions of this version read.
_SETTINGS = """
    SELECT DISTINCT found[1] FROM pg_proc,
        regexp_matches(prosrc, 'current_setting\\(\\s*''(pgmnemo\\.\\w+)''', 'g') AS found
    WHERE pronamespace = to_regnamespace('pgmnemo') ORDER BY 1"""
_OURS = "role = %s AND project_id = %s"


class Pgmnemo:
    """`path` is the recall function; `gate` and `recency` are the protocol's settings.

    `min_score` drops hits below a score, if the version supports it; 0 drops none.
    `version` is the version to install from the folder.
    """

    def __init__(
        self,
        path: Literal["lessons", "hybrid", "fast"] = "lessons",
        gate: Literal["warn", "enforce", "off"] = "warn",
        recency: float = 0.1,
        role: str = "mnemoscope",
        min_score: float = 0.0,
        version: str = "",
        dsn: str = "",
    ) -> None:
        self._path = path
        self._set = {"gate_strict": gate, "recency_weight": f"{recency:g}", "tenant_id": ""}
        self._role = role
        self._min_score = min_score
        self._version = version
        self._database = Database(dsn)
        self._endpoint = Endpoint()
        self._installed: dict[str, Any] = {}
        self._token = uuid4().hex
        self._scopes = 0
        self._project = 0
        self._lessons: dict[int, list[Any]] = {}
        """The memories of each lesson: the one it stores, then those merged into it."""
        self._unmatched = 0
        self._legs = LegCounts(*_LEGS.values())

    def identity(self) -> dict[str, Any]:
        calls = self._ready_calls()
        about = self._database.about()
        extension = dict(self._installed)
        return {
            **about,
            "versions": {**about["versions"], "pgmnemo": extension.pop("version")},
            **extension,
            "settings": self._settings(),
            "calls": {
                "ingest": calls.signature("ingest") if calls.has("ingest") else "INSERT",
                self._function: calls.signature(self._function),
            },
            "role": self._role,
            "importance": _IMPORTANCE,
            "min_score": self._min_score,
            "dimensions": calls.dimensions,
            "provenance": "own id",
            "notes": [NO_TIME, _NO_MATCH],
        }

    def reset(self, scope: str) -> None:
        self._ready_calls()
        self._delete()
        self._scopes += 1
        self._scope = scope
        # Other users may work on the same server, so the number is random among 2**30.
        self._project = uuid4().int % 2**30 + 1
        self._unmatched = 0

    def remember(self, memories: Sequence[Any]) -> dict[str, dict[str, str]]:
        import psycopg

        self._remove({memory.id for memory in memories})
        rejected: dict[str, str] = {}
        merged: dict[str, str] = {}
        texts = [clean(memory.text) for memory in memories]
        vectors = self._endpoint.embed(texts) if texts else []
        for memory, text, numbers in zip(memories, texts, vectors, strict=True):
            try:
                lesson = self._ingest(memory, text, numbers)
            except (psycopg.errors.RaiseException, psycopg.DataError, psycopg.IntegrityError) as no:
                rejected[memory.id] = str(no).splitlines()[0]
                continue
            if lesson in self._lessons:
                merged[memory.id] = self._lessons[lesson][0].id
                self._lessons[lesson].append(memory)
            elif self._is_ours(lesson):
                self._lessons[lesson] = [memory]
            else:
                rejected[memory.id] = "treated as a lesson of another project, and not stored"
        rejected.update(dict.fromkeys(self._superseded(), "superseded by a later memory"))
        return {"rejected": rejected, "merged": merged}

    def ready(self) -> None:
        self._database.connection.execute("ANALYZE pgmnemo.agent_lesson")

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        text = clean(query.text)
        calls = self._ready_calls()
        values = {
            "embedding": self._vector(self._endpoint.embed([text])[0]),
            "query": text,
            "k": k,
            "role": self._role,
            "project": self._project,
            **({"min_score": self._min_score} if self._min_score else {}),
        }
        cursor = self._database.connection.execute(*calls.recall(self._function, values))
        columns = [column.name for column in cursor.description]
        rows = [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]
        for column, leg in _LEGS.items():
            if column in columns:
                self._legs.add(leg, found=any(finite(row[column] or 0.0) for row in rows))
        hits = []
        for row in rows:
            if all(row.get(leg) is not None and not finite(row[leg]) for leg in _LEGS):
                self._unmatched += 1
                continue
            memories = self._lessons[row["lesson_id"]]
            hit = {"id": memories[0].id, "score": finite(row["score"]), "text": row["lesson_text"]}
            if len(memories) > 1:
                hit["sources"] = [memory.id for memory in memories]
            hits.append(hit)
        return hits

    def forget(self, selector: Any) -> None:
        self._remove(selector.ids)
        # A deleted row stays in the file until VACUUM.
        self._database.connection.execute("VACUUM pgmnemo.agent_lesson")

    def stats(self) -> dict[str, int]:
        size = "SELECT pg_total_relation_size('pgmnemo.agent_lesson')"
        return {
            "index_bytes": self._database.rows(size)[0][0],
            "hits_without_a_match": self._unmatched,
            **self._legs.counters,
        }

    def close(self) -> None:
        try:
            self._delete()
        finally:
            self._database.close()

    @property
    def _function(self) -> str:
        return _PATHS[self._path]

    def _ready_calls(self) -> Calls:
        """Its functions, after it is installed and has the protocol's settings."""
        if not self._installed:
            self._installed = pgmnemo_extension.install(self._database, self._version)
            for name, value in self._set.items():
                self._database.rows("SELECT set_config(%s, %s, false)", [f"pgmnemo.{name}", value])
            self._calls = Calls(self._database)
            if not self._calls.has(self._function):
                raise UsageError(
                    f"pgmnemo {self._installed['version']} has no {self._function}: "
                    "choose another path"
                )
        return self._calls

    def _settings(self) -> dict[str, str | None]:
        """All settings that affect results; None if the extension's default applies."""
        names = {f"pgmnemo.{name}" for name in self._set}
        names |= {row[0] for row in self._database.rows(_SETTINGS)}
        return {
            name: self._database.rows("SELECT current_setting(%s, true)", [name])[0][0]
            for name in sorted(names)
        }

    def _ingest(self, memory: Any, text: str, numbers: Sequence[float]) -> int:
        values = {
            "role": self._role,
            "project": self._project,
            "topic": memory.id,
            "text": text,
            "importance": _IMPORTANCE,
            "embedding": self._vector(numbers),
            "artifact": f"{self._token}/{self._scopes}/{self._scope}/{memory.id}",
            "metadata": json.dumps({"mid": memory.id, "at": memory.at and memory.at.isoformat()}),
        }
        return int(self._database.rows(*self._ready_calls().ingest(values))[0][0])

    def _vector(self, numbers: Sequence[float]) -> str:
        length = self._ready_calls().dimensions
        if length and len(numbers) > length:
            raise UsageError(
                f"pgmnemo's vectors have {length} dimensions, the embedder's {len(numbers)}: "
                "choose another with model=…"
            )
        return vector(numbers, length)

    def _is_ours(self, lesson: int) -> bool:
        there = f"SELECT 1 FROM pgmnemo.agent_lesson WHERE id = %s AND {_OURS}"
        return bool(self._database.rows(there, [lesson, self._role, self._project]))

    def _superseded(self) -> list[str]:
        """Ids of our memories that are no longer active; they are removed here too."""
        active = f"SELECT id FROM pgmnemo.agent_lesson WHERE is_active AND {_OURS}"
        kept = {row[0] for row in self._database.rows(active, [self._role, self._project])}
        gone = [self._lessons.pop(lesson) for lesson in set(self._lessons) - kept]
        return [memory.id for memories in gone for memory in memories]

    def _remove(self, ids: Set[str]) -> None:
        """Delete the lessons of these memories; memories merged into them are stored again."""
        merged: list[Any] = []
        gone: list[int] = []
        for lesson, memories in list(self._lessons.items()):
            left = [memory for memory in memories if memory.id not in ids]
            if memories[0].id in ids:
                del self._lessons[lesson]
                gone.append(lesson)
                merged += left
            else:
                self._lessons[lesson] = left
        if gone:
            delete = "DELETE FROM pgmnemo.agent_lesson WHERE id = ANY(%s)"
            self._database.connection.execute(delete, [gone])
        if merged and (lost := self.remember(merged)["rejected"]):
            raise RuntimeError(f"lost with the lesson into which they were merged: {lost}")

    def _delete(self) -> None:
        if self._project:
            if self._database.is_ours:  # restarts the ids too
                empty = "TRUNCATE pgmnemo.agent_lesson RESTART IDENTITY CASCADE"
                self._database.connection.execute(empty)
            else:
                delete = f"DELETE FROM pgmnemo.agent_lesson WHERE {_OURS}"
                self._database.connection.execute(delete, [self._role, self._project])
        self._lessons, self._project = {}, 0
