"""LanceDB in process: a table in its own folder, our ids in a column."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

from .common import NO_TIME, MemoryAdapter

_TABLE = "memories"
_WORD = re.compile(r"\w+")


class LanceDB(MemoryAdapter):
    """Exact cosine over whole texts (without a vector index), LanceDB's full-text index, or both.

    In `hybrid` LanceDB fuses its two searches by reciprocal ranks.
    """

    packages = ("lancedb",)
    notes = (
        NO_TIME,
        "forgetting rewrites the table: LanceDB's deletion only marks rows and keeps their texts",
    )

    def __init__(
        self, legs: Literal["vector", "text", "hybrid"] = "vector", storage: str = ""
    ) -> None:
        super().__init__(storage, legs=legs, metric="cosine")
        self._legs = legs
        self._table: Any = None
        if self._has_files():
            self._open()

    def _open(self) -> None:
        import lancedb

        self._table = lancedb.connect(str(self._folder)).open_table(_TABLE)

    def reset(self, scope: str) -> None:
        import lancedb
        import pyarrow

        self._folder = self._empty_folder()
        vector = pyarrow.list_(pyarrow.float32(), self._endpoint.dimensions)
        fields = [("id", pyarrow.string()), ("text", pyarrow.string()), ("vector", vector)]
        database = lancedb.connect(str(self._folder))
        self._table = database.create_table(_TABLE, schema=pyarrow.schema(fields))

    def remember(self, memories: Sequence[Any]) -> None:
        if not memories:
            return
        rows = [
            {"id": memory.id, "text": text, "vector": vector}
            for memory, text, vector in self._endpoint.embed_memories(memories)
        ]
        merge = self._table.merge_insert("id").when_matched_update_all()
        merge.when_not_matched_insert_all().execute(rows)

    def ready(self) -> None:
        """Merge the fragments of all batches: many fragments make queries many times slower."""
        self._table.optimize()
        if self._legs != "vector":
            self._table.create_fts_index("text", replace=True)

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        words = " ".join(_WORD.findall(query.text))
        if self._legs == "text" or (self._legs == "hybrid" and words):
            found = self._by_words(query.text, words) if words else None
        else:
            vector = self._endpoint.embed([query.text])[0]
            found = self._table.search(vector).distance_type("cosine")
        if found is None:
            return []
        return [{"id": row["id"], "score": _score(row)} for row in found.limit(k).to_list()]

    def _by_words(self, text: str, words: str) -> Any:
        from lancedb.rerankers import RRFReranker

        if self._legs == "text":
            return self._table.search(words, query_type="fts")
        both = self._table.search(query_type="hybrid").distance_type("cosine")
        return both.vector(self._endpoint.embed([text])[0]).text(words).rerank(RRFReranker())

    def forget(self, selector: Any) -> None:
        """Rewrite the table without them: LanceDB's deletion only marks rows."""
        listed = ", ".join("'" + id.replace("'", "''") + "'" for id in sorted(selector.ids))
        if not listed:
            return
        self._table.delete(f"id IN ({listed})")
        self._table.add(self._table.to_arrow(), mode="overwrite")
        self.ready()
        with warnings.catch_warnings():  # about other readers, which do not exist here
            warnings.simplefilter("ignore", UserWarning)
            self._table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)


def _score(row: dict[str, Any]) -> float:
    """The score of a row: its search gives a distance, bm25, or fused ranks."""
    if "_relevance_score" in row:
        return float(row["_relevance_score"])
    return float(row["_score"]) if "_score" in row else 1 - float(row["_distance"])
