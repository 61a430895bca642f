"""The files of a dataset folder with questions: corpus, queries and relevance judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.jsonl import encode_lines, read_records, write_atomically
from mnemoscope.datasets.base import Findings
from mnemoscope.datasets.labelled import present
from mnemoscope.datasets.strata import QrelsLine, StrataQuery, read_corpus
from mnemoscope.datasets.strata_rules import StratumQuestion
from mnemoscope.types import Memory

QUERIES, QRELS, CORPUS = "queries.jsonl", "qrels.jsonl", "corpus.jsonl"


@dataclass
class QuestionFiles:
    """The questions of a folder, in the order of the file; `save` writes them."""

    folder: Path
    queries: list[StrataQuery]

    @classmethod
    def read(cls, folder: Path) -> QuestionFiles:
        """The questions of a folder; none if it has no queries.jsonl."""
        path = folder / QUERIES
        if not path.exists():
            return cls(folder, [])
        gold: dict[str, list[int | str]] = {}
        for row in read_records(present(folder / QRELS, "the relevant memories"), QrelsLine):
            gold.setdefault(row.query_id, []).extend(row.relevant_ids)
        queries = []
        for query in read_records(path, StrataQuery):
            if query.query_id not in gold and query.drafted_by:
                continue  # a killed process had written only qrels.jsonl
            if query.query_id not in gold:
                raise DataError(f"{query.query_id!r} has no line in {QRELS}", file=path)
            # qrels.jsonl decides about relevance; the copy in queries.jsonl may be old.
            own = list(dict.fromkeys(gold[query.query_id]))
            queries.append(msgspec.structs.replace(query, relevant_ids=own))
        return cls(folder, queries)

    def save(self) -> None:
        """Write both files.

        Between the two writes the ids do not match, which the loader refuses; drafting again or
        reviewing repairs it.
        """
        qrels = [QrelsLine(one.query_id, one.relevant_ids or []) for one in self.queries]
        write_atomically(self.folder / QRELS, encode_lines(qrels))
        write_atomically(self.folder / QUERIES, encode_lines(self.queries))


def read_memories(folder: Path) -> Sequence[Memory]:
    """The memories of a dataset folder."""
    path = present(folder / CORPUS, "one memory a line; `mnemoscope import` writes it")
    return tuple(read_corpus(path, Findings()).values())


def asked(query: StrataQuery) -> StratumQuestion:
    """A line of queries.jsonl as the rules see it."""
    return StratumQuestion(
        query.query_id,
        query.text,
        query.stratum,
        tuple(map(str, query.relevant_ids or ())),
        tuple(map(str, query.superseded_ids)),
        query.answer,
    )
