"""Your own memory corpus, with questions in strata: exact, paraphrase, multihop, update, absent.

Reads the JSONL files of the claude-memory benchmark: `corpus.jsonl`, `queries.jsonl` and
`qrels.jsonl`, which decides about relevance. A corpus with sensitive memories is refused. A
line of `corpus.jsonl` may also have what `mnemoscope import` writes: a time, a session, a speaker,
metadata, and an id that is text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from mnemoscope._store.errors import DataError
from mnemoscope.datasets.base import DatasetInfo, FileDataset, Findings
from mnemoscope.datasets.labelled import (
    count,
    note_empty_texts,
    present,
    records,
    records_by_id,
    refuse,
)
from mnemoscope.datasets.near_duplicates import NearDuplicates
from mnemoscope.datasets.strata_rules import (
    BrokenRule,
    StrataRules,
    StratumQuestion,
    withheld_strata,
)
from mnemoscope.types import Memory, Question, Reviewed, Scalar, Scenario

STRATA = ("exact", "paraphrase", "multihop", "update", "absent")
ABSENT = "absent"
"""The stratum of questions that no memory answers; only these have no relevant memory."""
DESCRIPTIONS = ("category", "tags", "expanded_keywords", "importance")
"""The fields of a line that become metadata of its memory."""

QueryId = Annotated[str, Meta(min_length=1)]
MemoryId = int | Annotated[str, Meta(min_length=1)]


class CorpusLine(Struct):
    """One line of corpus.jsonl, as the export writes it."""

    id: MemoryId
    content: str
    category: str | None = None
    tags: str | None = None
    expanded_keywords: str | None = None
    importance: float | None = None


class ImportedLine(CorpusLine, omit_defaults=True):
    """One line of corpus.jsonl, as `mnemoscope import` writes it."""

    at: datetime | None = None
    """When it was said, written or last changed. Without an offset it is read as UTC."""
    session: str = ""
    speaker: str = ""
    metadata: dict[str, Scalar] = {}


class FlaggedLine(ImportedLine):
    """One line of corpus.jsonl from another source."""

    is_sensitive: bool | int | None = None


def memory_of(row: ImportedLine) -> Memory:
    """The memory of one line."""
    values = {name: getattr(row, name) for name in DESCRIPTIONS}
    metadata = {name: "" if value is None else value for name, value in values.items()}
    return Memory(
        str(row.id),
        row.content,
        at=_in_utc(row.at),
        session=row.session,
        speaker=row.speaker,
        metadata=row.metadata | metadata,
    )


class StrataQuery(Struct, omit_defaults=True):
    """One line of queries.jsonl."""

    query_id: QueryId
    text: str
    stratum: str
    relevant_ids: list[MemoryId] | None = None
    superseded_ids: list[MemoryId] = []
    """Of an update: the earlier memories that the relevant one supersedes."""
    answer: str = ""
    drafted_by: str = ""
    """What wrote the question, such as `templates` or the spec of a model; empty for a person."""


class QrelsLine(Struct):
    query_id: QueryId
    relevant_ids: list[MemoryId]


class Strata(FileDataset):
    """One scenario: the whole corpus.

    With `twins="expand"`, near-duplicates of a gold memory become evidence too, so that a system
    may return either copy.
    """

    info = DatasetInfo(
        name="strata",
        summary="your memories: exact, paraphrase, multi-hop, update, absent",
        source="your own files, in the format of the claude-memory benchmark",
        granularities=("memory",),
        cluster="question",
        is_store=True,
    )
    expected_scenarios: int | None = 1

    def __init__(self, data: Path, *, twins: Literal["none", "expand"] = "none") -> None:
        super().__init__(data)
        self.corpus = present(data / "corpus.jsonl", "one memory a line")
        self.queries = present(data / "queries.jsonl", "one query a line")
        self.qrels = present(data / "qrels.jsonl", "the relevant memory ids of each query")
        self.paths = {path.name: path for path in (self.corpus, self.queries, self.qrels)}
        self.twins = twins
        self.broken: list[BrokenRule] = []
        """The questions of the last reading that break a rule of their stratum."""
        if (data / "import.json").exists():  # few datasets were imported
            from mnemoscope.datasets.imported_folder import import_record

            record = import_record(data)
            self.is_private = record is not None and record.private

    def read(self) -> Iterator[Scenario]:
        memories = read_corpus(self.corpus, self.findings)
        queries = self._queries()
        gold = self._gold(memories, queries)
        for id, (line, query) in queries.items():
            if query.relevant_ids is not None and set(map(str, query.relevant_ids)) != set(
                gold[id]
            ):
                place = f"{self.queries}, line {line}: {id}"
                self.findings.add("relevant_ids differ from qrels", place)
        twins = NearDuplicates(tuple(memories.values()))
        for id, earlier in twins.repeats():
            self.findings.add("near-duplicate memory", f"{id} repeats {earlier}")
        self._apply_rules(memories, queries, gold, twins)
        scenario = Scenario(
            id=self.name,
            memories=tuple(memories.values()),
            questions=tuple(
                Question(
                    id=id,
                    text=query.text,
                    category=query.stratum,
                    evidence=self._evidence(id, gold[id], twins),
                    reference=query.answer,
                    expects="abstain" if query.stratum == ABSENT else "answer",
                )
                for id, (_, query) in queries.items()
            ),
        )
        note_empty_texts(scenario, self.findings)
        self._counts = count(scenario)
        yield scenario

    def _apply_rules(
        self,
        memories: Mapping[str, Memory],
        queries: Mapping[str, tuple[int, StrataQuery]],
        gold: Mapping[str, list[str]],
        twins: NearDuplicates,
    ) -> None:
        """Find the questions that break a rule of their stratum, and those a person confirmed."""
        asked = []
        for id, (line, query) in queries.items():
            superseded = tuple(map(str, query.superseded_ids))
            if unknown := [one for one in superseded if one not in memories]:
                refuse(
                    "superseded ids that are not in corpus.jsonl",
                    [(line, one) for one in unknown],
                    self.queries,
                )
            own = (id, query.text, query.stratum, tuple(gold[id]), superseded, query.answer)
            asked.append(StratumQuestion(*own))
        rules = StrataRules(tuple(memories.values()), twins)
        self.broken = [one for question in asked for one in rules.broken(question)]
        self.withheld = withheld_strata(asked, self.broken)
        drafted = sum(bool(query.drafted_by) for _, query in queries.values())
        if drafted:
            from mnemoscope.datasets.review_log import confirmed  # most questions are a person's

            agreed = confirmed(asked, self.path)
            self.reviewed = Reviewed(len(asked), drafted, len(agreed))

    def _queries(self) -> dict[str, tuple[int, StrataQuery]]:
        queries = records_by_id(self.queries, StrataQuery, lambda row: row.query_id, self.findings)
        for id, (line, query) in queries.items():
            if query.stratum not in STRATA:
                raise DataError(
                    f"stratum {query.stratum!r} of query {id!r} is not one of {', '.join(STRATA)}",
                    file=self.queries,
                    line=line,
                )
        return queries

    def _gold(
        self, memories: Mapping[str, Memory], queries: Mapping[str, tuple[int, StrataQuery]]
    ) -> dict[str, list[str]]:
        """The relevant memories of each query; unknown ids are refused."""
        gold: dict[str, dict[str, int]] = {}
        first_line: dict[str, int] = {}
        for line, row in records(self.qrels, QrelsLine, self.findings):
            first_line.setdefault(row.query_id, line)
            relevant = gold.setdefault(row.query_id, {})
            for memory in row.relevant_ids:
                relevant.setdefault(str(memory), line)
        checks: list[tuple[str, list[tuple[int, object]], Path]] = [
            (
                "queries that have no line in qrels.jsonl",
                [(line, id) for id, (line, _) in queries.items() if id not in gold],
                self.queries,
            ),
            (
                "judgments for queries that are not in queries.jsonl",
                [(line, id) for id, line in first_line.items() if id not in queries],
                self.qrels,
            ),
            (
                "queries without relevant memories",
                [
                    (first_line[id], id)
                    for id, relevant in gold.items()
                    if not relevant and not (id in queries and queries[id][1].stratum == ABSENT)
                ],
                self.qrels,
            ),
            (
                "relevant ids that are not in corpus.jsonl",
                [
                    (line, f"{memory} of {id}")
                    for id, relevant in gold.items()
                    for memory, line in relevant.items()
                    if memory not in memories
                ],
                self.qrels,
            ),
        ]
        for problem, offenders, file in checks:
            if offenders:
                refuse(problem, offenders, file)
        return {id: list(relevant) for id, relevant in gold.items()}

    def _evidence(self, question: str, gold: list[str], twins: NearDuplicates) -> tuple[str, ...]:
        evidence = dict.fromkeys(gold)
        if self.twins == "expand":
            for id in gold:
                for twin in twins.of(id):
                    if twin not in evidence:
                        evidence[twin] = None
                        self.findings.add(
                            "near-duplicate added to evidence", f"{question}: {twin}, twin of {id}"
                        )
        return tuple(evidence)


def read_corpus(path: Path, findings: Findings) -> dict[str, Memory]:
    """The memories of a corpus.jsonl by id; a corpus with sensitive memories is refused."""
    rows = records_by_id(path, FlaggedLine, lambda row: str(row.id), findings)
    sensitive = [(line, id) for id, (line, row) in rows.items() if row.is_sensitive]
    if sensitive:
        refuse(
            "the corpus contains sensitive memories; export it again without them",
            sensitive,
            path,
        )
    return {id: memory_of(row) for id, (_, row) in rows.items()}


def _in_utc(at: datetime | None) -> datetime | None:
    if at is None or at.tzinfo is None:
        return at and at.replace(tzinfo=UTC)
    return at.astimezone(UTC)
