"""SQLite with FTS5 and sqlite-vec in one file: keywords and vectors, fused by reciprocal ranks.

APSW contains an SQLite that loads extensions; Python's often cannot.
"""

from __future__ import annotations

import array
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any, Literal

from .common import LegCounts, MemoryAdapter

_WORD = re.compile(r"\w+")
_MOST = 4096
"""The most neighbours that sqlite-vec returns."""


class SqliteVec(MemoryAdapter):
    """Exact cosine over whole texts, and bm25 for any word of the query.

    In `hybrid` each ranking returns `depth` memories (or k, if that is more); a memory scores
    1/(rrf_k + rank) for each ranking that contains it.
    """

    packages = ("sqlite-vec", "apsw")

    def __init__(
        self,
        legs: Literal["hybrid", "vector", "text"] = "hybrid",
        depth: int = 100,
        rrf_k: int = 60,
        storage: str = "",
    ) -> None:
        super().__init__(storage, legs=legs, depth=depth, rrf_k=rrf_k, most_neighbours=_MOST)
        self._legs = legs
        self._depth = depth
        self._rrf_k = rrf_k
        self._db: Any = None
        self._counts = LegCounts(*(("text", "vector") if legs == "hybrid" else (legs,)))
        if self._has_files():
            self._open()

    def identity(self) -> dict[str, Any]:
        import apsw

        about = super().identity()
        about["versions"]["sqlite"] = apsw.sqlite_lib_version()
        return about

    def reset(self, scope: str) -> None:
        self.close()
        self._folder = self._empty_folder()
        self._open()
        self._all(
            "CREATE TABLE memories (place INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT);"
            "CREATE VIRTUAL TABLE words USING fts5(text, content='memories', content_rowid='place',"
            " tokenize='porter unicode61');"
            "CREATE VIRTUAL TABLE vectors USING vec0(place INTEGER PRIMARY KEY,"
            f" vector float[{self._endpoint.dimensions}] distance_metric=cosine);"
        )

    def _open(self) -> None:
        import apsw
        import sqlite_vec

        self._db = apsw.Connection(str(self._folder / "memories.sqlite"))
        self._db.enable_load_extension(True)
        self._db.load_extension(sqlite_vec.loadable_path())
        self._db.enable_load_extension(False)
        self._all("PRAGMA secure_delete = ON")

    def remember(self, memories: Sequence[Any]) -> None:
        texts = [memory.text for memory in memories]
        vectors = self._endpoint.embed(texts) if self._legs != "text" else []
        with self._db:
            self._delete(memory.id for memory in memories)
            for number, (memory, text) in enumerate(zip(memories, texts, strict=True)):
                self._all("INSERT INTO memories (id, text) VALUES (?, ?)", (memory.id, text))
                place = self._db.last_insert_rowid()
                self._all("INSERT INTO words (rowid, text) VALUES (?, ?)", (place, text))
                if vectors:
                    row = (place, _packed(vectors[number]))
                    self._all("INSERT INTO vectors (place, vector) VALUES (?, ?)", row)

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        if self._legs == "text":
            found = self._by_words(query.text, k)
        elif self._legs == "vector":
            found = self._by_vector(query.text, k)
        else:
            depth = max(k, self._depth)
            legs = (self._by_words(query.text, depth), self._by_vector(query.text, depth))
            found = self._fused(legs)[:k]
        return [{"id": id, "score": score} for id, score in found]

    def stats(self) -> dict[str, int]:
        return {**super().stats(), **self._counts.counters}

    def forget(self, selector: Any) -> None:
        """Delete the rows, and overwrite the copies that SQLite would leave in the file."""
        with self._db:
            self._delete(selector.ids)
            self._all("INSERT INTO words (words) VALUES ('rebuild')")
        self._all("VACUUM")

    def close(self) -> None:
        if self._db is not None:
            self._db.close()

    def _all(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with closing(self._db.cursor()) as cursor:
            return list(cursor.execute(statement, values))

    def _delete(self, ids: Iterable[str]) -> None:
        for id in ids:
            for place, text in self._all("SELECT place, text FROM memories WHERE id = ?", (id,)):
                self._all(
                    "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (place, text)
                )
                self._all("DELETE FROM vectors WHERE place = ?", (place,))
                self._all("DELETE FROM memories WHERE place = ?", (place,))

    def _by_words(self, text: str, k: int) -> list[tuple[str, float]]:
        found: list[tuple[str, float]] = []
        if expression := " OR ".join(f'"{word}"' for word in _WORD.findall(text)):
            found = self._all(
                "SELECT id, -bm25(words) AS score FROM words JOIN memories ON place = words.rowid"
                " WHERE words MATCH ? ORDER BY score DESC, place LIMIT ?",
                (expression, k),
            )
        self._counts.add("text", found=bool(found))
        return found

    def _by_vector(self, text: str, k: int) -> list[tuple[str, float]]:
        vector = _packed(self._endpoint.embed([text])[0])
        found = self._all(
            "SELECT id, distance FROM vectors JOIN memories USING (place)"
            " WHERE vector MATCH ? AND k = ? ORDER BY distance",
            (vector, min(k, _MOST)),
        )
        self._counts.add("vector", found=bool(found))
        # A text without words has a zero vector, whose distance is NULL.
        scored = [(id, 0.0 if distance is None else 1 - distance) for id, distance in found]
        return sorted(scored, key=lambda one: -one[1])

    def _fused(self, legs: Iterable[list[tuple[str, float]]]) -> list[tuple[str, float]]:
        scores: defaultdict[str, float] = defaultdict(float)
        for leg in legs:
            for rank, (id, _) in enumerate(leg, 1):
                scores[id] += 1 / (self._rrf_k + rank)
        return sorted(scores.items(), key=lambda found: -found[1])


def _packed(vector: list[float]) -> bytes:
    return array.array("f", vector).tobytes()
