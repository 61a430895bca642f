"""Collections in BEIR's layout: `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`.

It becomes one scenario: the documents are memories, the judged queries of a split are questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets.base import DatasetInfo, FileDataset
from mnemoscope.datasets.labelled import (
    collect_judgments,
    columns,
    count,
    judged_question,
    note_empty_texts,
    present,
    records_by_id,
)
from mnemoscope.types import Memory, Question, Scenario

Id = Annotated[str, Meta(min_length=1)]


class BeirDocument(Struct):
    text: str
    id: Id = field(name="_id")
    title: str | None = None


def memory_of_document(row: BeirDocument) -> Memory:
    return Memory(id=row.id, text=f"{row.title}\n{row.text}" if row.title else row.text)


class BeirQuery(Struct):
    text: str
    id: Id = field(name="_id")


class Beir(FileDataset):
    """One scenario: the whole collection, with the queries of one split."""

    info = DatasetInfo(
        name="beir",
        summary="your corpus, queries and qrels",
        source="your own files, in the layout of https://github.com/beir-cellar/beir",
        granularities=("document",),
        cluster="question",
        main_metric="ndcg@10",
        is_store=True,
    )
    expected_scenarios: int | None = 1

    def __init__(self, data: Path, *, split: str = "test") -> None:
        super().__init__(data)
        self.corpus = present(data / "corpus.jsonl", "one document a line")
        self.queries = present(data / "queries.jsonl", "one query a line")
        splits = {path.stem: path for path in sorted((data / "qrels").glob("*.tsv"))}
        if split not in splits:
            there = ", ".join(splits) or "none"
            raise MissingData(f"{data} has no split {split!r}; available in qrels/: {there}")
        self.qrels = splits[split]
        self.split = split
        self.paths = {path.name: path for path in (self.corpus, self.queries, self.qrels)}

    def read(self) -> Iterator[Scenario]:
        documents = records_by_id(self.corpus, BeirDocument, lambda row: row.id, self.findings)
        memories = {id: memory_of_document(row) for id, (_, row) in documents.items()}
        scenario = Scenario(
            id=self.name,
            memories=tuple(memories.values()),
            questions=tuple(self._questions(memories)),
        )
        if not scenario.questions:
            raise DataError("contains no judgment for any query of queries.jsonl", file=self.qrels)
        note_empty_texts(scenario, self.findings)
        self._counts = count(scenario)
        yield scenario

    def _questions(self, memories: Mapping[str, Memory]) -> Iterator[Question]:
        queries = records_by_id(self.queries, BeirQuery, lambda row: row.id, self.findings)
        rows = columns(self.qrels, 3, self.findings, separator=b"\t")
        judgments = collect_judgments(
            (
                (line, query, document, score)
                for line, (query, document, score) in rows
                # Some collections have no header.
                if line > 1 or score.lower() != "score"
            ),
            self.qrels,
            self.findings,
        )
        for id in judgments:
            if id not in queries:
                self.findings.add("judgments for an unknown query", id)
        for id, (_, query) in queries.items():
            # A missing document stays evidence: no system can find it.
            for document, judgment in judgments.get(id, {}).items():
                if document not in memories:
                    self.findings.add(
                        "judgment for a document missing from the corpus",
                        f"{self.qrels}, line {judgment.line}: {document}",
                    )
            if id in judgments:
                yield judged_question(id, query.text, judgments[id], self.findings)
