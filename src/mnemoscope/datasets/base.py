"""The interface of a dataset: its record, its scenarios, and a count of its repairs.

A loader counts every repair and every loss as a finding.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from msgspec import Struct

from mnemoscope._store.errors import MissingData
from mnemoscope.types import Reviewed, Scalar, Scenario

EXAMPLES_KEPT = 10


class PinnedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a dataset, as its publisher offers it."""

    url: str = ""
    """Empty if the file cannot be downloaded; it is then only verified."""
    sha256: str | None = None
    """Of the unpacked content. Without it the file cannot be verified, and `fetch` says so."""
    bytes: int | None = None
    optional: bool = False


class AnswerNeeds(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a dataset's questions need to be answered and judged."""

    prompt: str = "answer"
    """The prompt file for readers that call a model."""
    reader: str = "none"
    """The default reader."""
    form: Literal["short", "sentences"] = "short"
    """The form of the extractive reader's answers, unless the user names one."""
    judge: str = ""
    """The default judge; empty if the user must name one."""
    model_judge: str = "binary"
    """The judge to use if the user names only a model."""
    judges: tuple[str, ...] = ()
    """The only judges allowed; empty for any."""
    scales: tuple[str, ...] = ()
    """The only scales that a judge may have; empty for any."""
    otherwise: str = ""
    """The error for any other judge; `{judge}` is its name."""
    provides: tuple[str, ...] = ()
    """What some judges need and all of its questions have, such as a rubric."""
    may_provide: tuple[str, ...] = ()
    """What some judges need and only part of its data has."""
    baselines: tuple[str, ...] = ("none", "bm25", "oracle")
    """The baselines of a run in which a reader answers."""
    baselines_if_system_answers: tuple[str, ...] = ()


class PublishedRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How another project scored this dataset for its published figures."""

    options: Mapping[str, Scalar]
    """The dataset options that produced its figures."""
    rules: str
    sound: str
    """What sound rules do instead."""


class DatasetInfo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything about a dataset except its scenarios."""

    name: str
    summary: str = ""
    source: str = ""
    licence: str = ""
    citation: str = ""
    files: Mapping[str, PinnedFile] = {}
    """The publisher's files by name; empty if users bring their own data."""
    how_to_get: str = ""
    """The command that creates the data, if it is not downloaded."""
    granularities: tuple[str, ...] = ()
    """What one memory can be; the default comes first."""
    category_names: Mapping[str, str] = {}
    """Category key to its usual name, where the two differ."""
    cluster: str = "scenario"
    """The unit within which questions are not independent."""
    has_checkpoints: bool = False
    is_store: bool = False
    """Whether it is one store that users go on changing: runs then keep what a gate needs to follow
    its memories."""
    main_metric: str = "recall@10"
    known_defects: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ("random", "bm25", "oracle")
    """The baselines of a run that measures recall only."""
    answers: AnswerNeeds = AnswerNeeds()
    published_rules: Mapping[str, PublishedRules] = {}
    """The rules that reproduce a project's figures, by project."""

    @property
    def downloadable(self) -> dict[str, PinnedFile]:
        return {name: file for name, file in self.files.items() if file.url}


@dataclass
class Findings:
    """Repairs and losses by kind, with the first few examples of each."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, place: str) -> None:
        self.counts[kind] += 1
        kept = self.examples.setdefault(kind, [])
        if len(kept) < EXAMPLES_KEPT:
            kept.append(place)


@dataclass(frozen=True)
class DataFile:
    """A file that was read: the hash of its unpacked content, and the pinned hash."""

    path: Path
    sha256: str
    pinned: str | None = None

    @property
    def matches_pin(self) -> bool | None:
        """None if the file has no pin."""
        return None if self.pinned is None else self.sha256 == self.pinned


class Dataset(Protocol):
    """A source of scenarios. Every reading gives the same scenarios in the same order."""

    pool_known: bool
    """Whether the scenarios contain the whole corpus; relevance judgments alone do not."""
    expected_scenarios: int | None
    """How many there will be, for progress; None if unknown before reading."""

    @property
    def findings(self) -> Findings:
        """Repairs and losses of the last reading, so far."""
        ...

    @property
    def info(self) -> DatasetInfo: ...

    @property
    def name(self) -> str: ...

    @property
    def category_names(self) -> Mapping[str, str]:
        """Category key to its usual name, where the two differ."""
        ...

    @property
    def original_ids(self) -> Mapping[tuple[str, str], str]:
        """(scenario, id in the source) to memory id, where the two differ."""
        ...

    @property
    def options(self) -> dict[str, Scalar]:
        """Every option that can change a number, defaults included."""
        ...

    def files(self) -> list[DataFile]:
        """The files that were read, with their hashes. May read them again."""
        ...

    def scenarios(self) -> Iterator[Scenario]: ...

    def counts(self) -> Mapping[str, int]:
        """Counts of the last complete reading, to check against the source."""
        ...


class FileDataset:
    """The base class of datasets that are read from files.

    A subclass keeps each of its options, its keyword arguments, in an attribute of the same name.
    """

    info: ClassVar[DatasetInfo]
    original_ids: Mapping[tuple[str, str], str] = {}
    pool_known = True
    is_private = False
    """Whether its texts may stand in no file but its own: runs record ids and figures."""
    expected_scenarios: int | None = None
    withheld: Mapping[str, str] = {}
    """Category to the reason why no claim about it is made, after a complete reading."""
    reviewed: Reviewed | None = None
    """How many questions a program drafted and a person confirmed, after a complete reading."""

    def __init__(self, data: Path) -> None:
        self.name = self.info.name
        self.category_names = self.info.category_names
        self.path = self.main_file(data)
        self.paths: dict[str, Path] = {next(iter(self.info.files), self.path.name): self.path}
        """The files to read, by the name that their publisher gave them."""
        self.findings = Findings()
        self._counts: Counter[str] = Counter()
        self._kept: dict[Path, list[bytes]] = {}
        """The blocks of packed files that were read."""
        self._kept_version: dict[Path, tuple[int, ...]] = {}

    def main_file(self, data: Path) -> Path:
        """The file of the dataset in `data`, or `data` itself if the users bring their own."""
        return find_file(data, *self.info.files) if self.info.files else data

    @property
    def options(self) -> dict[str, Scalar]:
        names = [name for name in signature(type(self)).parameters if name != "data"]
        return {name: getattr(self, name) for name in names}

    def files(self) -> list[DataFile]:
        # Imported here: every command imports `base`, and few need compression.
        from mnemoscope.datasets._io.json_stream import unpacked

        found: list[DataFile] = []
        for name, path in self.paths.items():
            digest = hashlib.sha256()
            before = _version(path)
            for block in self._keeping(path, unpacked(path)):
                digest.update(block)
            self._kept_version[path] = before
            pinned = self.info.files.get(name, PinnedFile()).sha256
            found.append(DataFile(path, digest.hexdigest(), pinned))
        return found

    def unpacked(self, path: Path) -> Iterator[bytes]:
        """The content of a file, decompressed; that which `files` has read if it is the same."""
        from mnemoscope.datasets._io.json_stream import unpacked

        if path in self._kept and self._kept_version.get(path) == _version(path):
            return iter(self._kept[path])
        return unpacked(path)

    def _keeping(self, path: Path, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The blocks; those of a packed file are kept, because unpacking takes longest."""
        self._kept.pop(path, None)
        kept: list[bytes] = []
        left = _MOST_KEPT if path.suffix in (".xz", ".gz") else 0
        for block in blocks:
            left -= len(block)
            if left >= 0:
                kept.append(block)
            yield block
        if kept and left >= 0:
            self._kept[path] = kept

    def scenarios(self) -> Iterator[Scenario]:
        self.findings, self._counts = Findings(), Counter()
        yield from self.read()

    def read(self) -> Iterator[Scenario]:
        """Yield the scenarios, and update findings and counts."""
        raise NotImplementedError

    def counts(self) -> Mapping[str, int]:
        return dict(self._counts)


def withheld_of(dataset: Dataset) -> Mapping[str, str]:
    """Category to the reason why no claim about it is made; most datasets have no such rules."""
    found: Mapping[str, str] = getattr(dataset, "withheld", {})
    return found


def reviewed_of(dataset: Dataset) -> Reviewed | None:
    """How many questions were drafted and confirmed; None if the dataset does not say."""
    found: Reviewed | None = getattr(dataset, "reviewed", None)
    return found


_MOST_KEPT = 512 << 20
"""Bytes of an unpacked file that are kept in memory until the dataset is not needed any more."""


def _version(path: Path) -> tuple[int, ...]:
    """Differs if the file was replaced or written."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def find_file(data: Path, *names: str) -> Path:
    """`data` if it is a file, else the first match of `names` (globs; also .xz or .gz) in it."""
    if data.is_file():
        return data
    for name in names:
        for suffix in ("", ".xz", ".gz"):
            if found := sorted(data.glob(name + suffix)):
                return found[0]
    raise MissingData(f"{data} contains no {' or '.join(names)} (plain, .xz or .gz)")


def shortened(names: Collection[str], shown: int = 6) -> str:
    """The names in a sentence; of many, the first few and the number of the others."""
    first, others = list(names)[:shown], len(names) - shown
    return ", ".join(first) + (f" and {others} more" if others > 0 else "")
