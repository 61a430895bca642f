"""SQLite full-text search, in the two variants of claude-memory's benchmark.

`or`: any word matches, ordered by bm25, then importance. `product`: all words must match, or any
word if that finds nothing, ordered by 0.7 relevance and 0.3 importance, as in that product.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Sequence
from typing import Literal

from mnemoscope.types import Hit, Memory, Query, Selector

_WORD = re.compile(r"[A-Za-z0-9_]+")
_DEFAULT_IMPORTANCE = 0.5
_LONGEST_PATTERN = 50_000
"""SQLITE_MAX_LIKE_PATTERN_LENGTH: SQLite refuses a longer pattern."""
_ORDER = {
    "or": "bm25(search), memories.importance DESC",
    "product": "-bm25(search) * 0.7 + memories.importance * 0.3 DESC",
}


class Fts5:
    """A real SQLite database in memory, searched with FTS5."""

    def __init__(self, variant: Literal["or", "product"] = "or") -> None:
        self.variant = variant
        self._one_at_a_time = threading.Lock()

    def reset(self, scope: str) -> None:
        self._db = _empty_database()
        self._db.executescript(
            """
            CREATE TABLE memories (place INTEGER PRIMARY KEY, id TEXT, content TEXT,
                category TEXT, tags TEXT, expanded_keywords TEXT, importance REAL);
            CREATE VIRTUAL TABLE search USING fts5(content, category, tags, expanded_keywords,
                content='memories', content_rowid='place');
            """
        )

    def remember(self, memories: Sequence[Memory]) -> None:
        rows = [
            (
                memory.id,
                memory.text,
                *(
                    str(memory.metadata.get(f, ""))
                    for f in ("category", "tags", "expanded_keywords")
                ),
                _importance(memory),
            )
            for memory in memories
        ]
        with self._db:
            [(last,)] = self._db.execute("SELECT coalesce(max(place), 0) FROM memories")
            self._db.executemany(
                "INSERT INTO memories (id, content, category, tags, expanded_keywords, importance)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                rows,
            )
            self._db.execute(
                "INSERT INTO search(rowid, content, category, tags, expanded_keywords)"
                " SELECT place, content, category, tags, expanded_keywords"
                " FROM memories WHERE place > ?",
                (last,),
            )

    def forget(self, selector: Selector) -> None:
        """Delete the rows and their words, and overwrite the free pages that SQLite leaves."""
        gone = selector.ids
        with self._one_at_a_time:
            rows = self._db.execute("SELECT place, id FROM memories").fetchall()
            places = [(place,) for place, id in rows if id in gone]
            self._db.execute("PRAGMA secure_delete = ON")
            with self._db:
                self._db.executemany("DELETE FROM memories WHERE place = ?", places)
                self._db.execute("INSERT INTO search(search) VALUES ('rebuild')")
            self._db.execute("VACUUM")

    def fork(self) -> Fts5:
        twin = Fts5(self.variant)
        twin._db = _empty_database()
        self._db.backup(twin._db)
        return twin

    def recall(self, query: Query, k: int) -> list[Hit]:
        text = query.text.replace("\0", " ")  # SQLite would end the query there
        if self.variant == "or":
            terms = [f'"{word}"' for word in _WORD.findall(text.lower())]
            return self._match(" OR ".join(terms), k) or self._like(text, k)
        terms = [f'"{word}"' for word in text.replace('"', "").split()]
        return (
            self._match(" ".join(terms), k)
            or self._match(" OR ".join(terms), k)
            or self._like(text, k)
        )

    def stats(self) -> dict[str, int]:
        pages = self._db.execute("PRAGMA page_count").fetchone()[0]
        size = self._db.execute("PRAGMA page_size").fetchone()[0]
        return {"index_bytes": pages * size}

    def _match(self, expression: str, k: int) -> list[Hit]:
        if not expression:
            return []
        with self._one_at_a_time:
            found = self._db.execute(
                "SELECT memories.id, -bm25(search)"
                " FROM search JOIN memories ON place = search.rowid"
                f" WHERE search MATCH ? ORDER BY {_ORDER[self.variant]}, place LIMIT ?",
                (expression, k),
            )
            return [Hit(id, round(score, 6)) for id, score in found]

    def _like(self, text: str, k: int) -> list[Hit]:
        pattern = "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"
        if len(pattern.encode()) > _LONGEST_PATTERN:
            return []
        with self._one_at_a_time:
            found = self._db.execute(
                "SELECT id FROM memories WHERE content LIKE ? ESCAPE '\\'"
                " ORDER BY importance DESC, place LIMIT ?",
                (pattern, k),
            )
            return [Hit(id) for (id,) in found]


def _empty_database() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", check_same_thread=False)  # questions may come in parallel


def _importance(memory: Memory) -> float:
    """The memory's importance, or the default if it is absent or empty."""
    given = memory.metadata.get("importance", "")
    return _DEFAULT_IMPORTANCE if given == "" else float(given)
