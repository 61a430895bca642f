"""A store that changed since a baseline: its memories now, asked the questions of the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.datasets.base import DataFile, DatasetInfo, Findings
from mnemoscope.datasets.beir import BeirDocument, memory_of_document
from mnemoscope.datasets.imported_folder import import_record
from mnemoscope.datasets.labelled import (
    count,
    note_empty_texts,
    present,
    records_by_id,
    refuse,
)
from mnemoscope.datasets.strata import FlaggedLine, memory_of
from mnemoscope.types import Memory, Question, Scalar, Scenario

CORPUS = "corpus.jsonl"
Ids = int | str | list[int | str] | None


class StoreLine(FlaggedLine):
    """One line of the corpus of a store."""

    superseded_by: Ids = None
    supersedes: Ids = None
    deleted_at: str | float | None = None
    is_deleted: bool | int | None = None
    deleted: bool | int | None = None


class StoreMemories(NamedTuple):
    """The memories of a store, and what it says about their successors."""

    file: Path
    memories: list[Memory]
    superseded: dict[str, list[str]]
    """The id of each superseded memory, to its successors."""


def is_store(path: Path) -> bool:
    """Whether a path is a store: a folder with corpus.jsonl, or a file of JSON lines."""
    return (path.suffix == ".jsonl" and path.is_file()) or (path / CORPUS).is_file()


def read_store(path: Path, dataset: str) -> StoreMemories:
    """Read the memories of a store in the format of the dataset; its questions are not read."""
    file = present(path / CORPUS if path.is_dir() else path, "one memory a line")
    if dataset == "beir":
        documents = records_by_id(file, BeirDocument, lambda row: row.id, Findings())
        return StoreMemories(file, [memory_of_document(row) for _, row in documents.values()], {})
    if dataset != "strata":
        raise UsageError(
            f"the baseline is a run of {dataset}: a gate for stores follows runs of strata and beir"
        )
    lines = records_by_id(file, StoreLine, lambda row: str(row.id), Findings())
    if sensitive := [(line, id) for id, (line, row) in lines.items() if row.is_sensitive]:
        refuse("the store contains sensitive memories; export it without them", sensitive, file)
    deleted = [
        (line, id)
        for id, (line, row) in lines.items()
        if row.deleted_at or row.is_deleted or row.deleted
    ]
    if deleted:  # they would count as found
        refuse("the store contains deleted memories; export it without them", deleted, file)
    superseded: dict[str, list[str]] = {}
    for id, (line, row) in lines.items():
        for successor in _ids(row.superseded_by):
            if successor not in lines:
                raise DataError(
                    f"memory {id} is superseded by {successor}, which is not in the store",
                    file=file,
                    line=line,
                )
            superseded.setdefault(id, []).append(successor)
        for older in _ids(row.supersedes):
            superseded.setdefault(older, []).append(id)
    return StoreMemories(file, [memory_of(row) for _, row in lines.values()], superseded)


def _ids(given: Ids) -> list[str]:
    """The ids as texts; an empty text is none, as some stores write it."""
    several = given if isinstance(given, list) else [given]
    return [str(one) for one in several if one not in (None, "")]


class ChangedStore:
    """One scenario: all memories of the store, with questions whose evidence was followed."""

    pool_known = True
    expected_scenarios: int | None = 1
    original_ids: Mapping[tuple[str, str], str] = {}

    def __init__(
        self,
        info: DatasetInfo,
        store: StoreMemories,
        questions: Sequence[Question],
        scenario: str,
        baseline: str,
    ) -> None:
        """`baseline` is the fingerprint of the run that the questions come from."""
        self.info, self.name, self.category_names = info, info.name, info.category_names
        self.paths = {store.file.name: store.file}
        self.options: dict[str, Scalar] = {"questions_of": baseline}
        record = import_record(store.file.parent)
        self.is_private = record is not None and record.private
        self.findings = Findings()
        self._scenario = Scenario(scenario, tuple(store.memories), tuple(questions))
        self._counts: Counter[str] = Counter()

    def files(self) -> list[DataFile]:
        return [DataFile(path, sha256_file(path)) for path in self.paths.values()]

    def scenarios(self) -> Iterator[Scenario]:
        self.findings = Findings()
        note_empty_texts(self._scenario, self.findings)
        self._counts = count(self._scenario)
        yield self._scenario

    def counts(self) -> Mapping[str, int]:
        return dict(self._counts)
