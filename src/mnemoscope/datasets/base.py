"""What every dataset offers: its record, its scenarios one by one, and an account of its repairs.

A loader repairs or drops nothing silently: each repair and loss becomes a Finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import ClassVar, Protocol

from msgspec import Struct

from mnemoscope._store.errors import MissingData
from mnemoscope.types import Scalar, Scenario

EXAMPLES_KEPT = 10


class PinnedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a dataset as its publisher offers it."""

    url: str = ""
    """Empty where it cannot be downloaded; then users bring it, and it is only verified."""
    sha256: str | None = None
    """Of the unpacked content. A file without one cannot be verified, and `fetch` says so."""
    bytes: int | None = None
    optional: bool = False


class AnswerNeeds(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What reading and judging the answers to a dataset's questions takes."""

    prompt: str = "answer"
    """The prompt file of readers that ask a model."""
    reader: str = "none"
    """Who answers where no reader is named."""
    judge: str = ""
    """Who judges where no judge is named; empty where the user must name one."""
    model_judge: str = "binary"
    """The judge that a model's name alone stands for."""
    judges: tuple[str, ...] = ()
    """The only judges that may judge here; empty for any."""
    scales: tuple[str, ...] = ()
    """The only scales that a judge may have here; empty for any."""
    otherwise: str = ""
    """What another judge is refused with; `{judge}` is its name."""
    provides: tuple[str, ...] = ()
    """What its questions have that some judges need, such as a rubric."""
    may_provide: tuple[str, ...] = ()
    """The same, of what only some of its data has."""
    baselines: tuple[str, ...] = ("none", "bm25", "oracle")
    """What runs beside the systems where a reader answers."""
    baselines_if_system_answers: tuple[str, ...] = ()


class PublishedRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How another project scored this dataset for its published figures."""

    options: Mapping[str, Scalar]
    """The dataset's options that its figures were made with."""
    rules: str
    sound: str
    """What sound rules do otherwise."""


class DatasetInfo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that is to be known about a dataset besides its scenarios."""

    name: str
    summary: str = ""
    source: str = ""
    licence: str = ""
    citation: str = ""
    files: Mapping[str, PinnedFile] = {}
    """The publisher's files by name; empty where users bring their own data."""
    how_to_get: str = ""
    """The command that makes the data, where it is not downloaded."""
    granularities: tuple[str, ...] = ()
    """What one memory can be, the default first."""
    category_names: Mapping[str, str] = {}
    """Category key to the name people use, where the two differ."""
    cluster: str = "scenario"
    """What questions share that makes their results depend on each other."""
    has_checkpoints: bool = False
    main_metric: str = "recall@10"
    known_defects: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ("random", "bm25", "oracle")
    """What runs beside the systems where only recall is measured."""
    answers: AnswerNeeds = AnswerNeeds()
    published_rules: Mapping[str, PublishedRules] = {}
    """Project to the rules that reproduce its figures."""

    @property
    def downloadable(self) -> dict[str, PinnedFile]:
        return {name: file for name, file in self.files.items() if file.url}


@dataclass
class Findings:
    """Repairs and losses by kind, with the first few places of each."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, place: str) -> None:
        self.counts[kind] += 1
        kept = self.examples.setdefault(kind, [])
        if len(kept) < EXAMPLES_KEPT:
            kept.append(place)


@dataclass(frozen=True)
class DataFile:
    """A file that was read: its content's hash (unpacked, if it was compressed) and the pin."""

    path: Path
    sha256: str
    pinned: str | None = None

    @property
    def matches_pin(self) -> bool | None:
        """None where there is no pin to match."""
        return None if self.pinned is None else self.sha256 == self.pinned


class Dataset(Protocol):
    """A source of scenarios. Reading it twice gives the same scenarios in the same order."""

    pool_known: bool
    """Whether the scenarios hold every memory there is; judgments alone do not."""
    expected_scenarios: int | None
    """How many there will be, for progress; None if that is not known before reading."""

    @property
    def findings(self) -> Findings:
        """What the last reading repaired and lost, so far."""
        ...

    @property
    def info(self) -> DatasetInfo: ...

    @property
    def name(self) -> str: ...

    @property
    def category_names(self) -> Mapping[str, str]:
        """Category key to the name people use, where the two differ."""
        ...

    @property
    def original_ids(self) -> Mapping[tuple[str, str], str]:
        """(scenario, the source's own id) to memory id, where the two differ."""
        ...

    @property
    def options(self) -> dict[str, Scalar]:
        """Every option that can change a number, given and defaulted."""
        ...

    def files(self) -> list[DataFile]:
        """What was read, hashed. May have to read the files once more."""
        ...

    def scenarios(self) -> Iterator[Scenario]: ...

    def counts(self) -> Mapping[str, int]:
        """What the last complete reading counted, for people to check against the source."""
        ...


class FileDataset:
    """A dataset that is read from files: what all of ours have in common.

    The options are the keyword arguments of a subclass, kept in attributes of the same names.
    """

    info: ClassVar[DatasetInfo]
    original_ids: Mapping[tuple[str, str], str] = {}
    pool_known = True
    expected_scenarios: int | None = None

    def __init__(self, data: Path) -> None:
        self.name = self.info.name
        self.category_names = self.info.category_names
        self.path = find_file(data, *self.info.files) if self.info.files else data
        self.findings = Findings()
        self._counts: Counter[str] = Counter()

    @property
    def options(self) -> dict[str, Scalar]:
        names = [name for name in signature(type(self)).parameters if name != "data"]
        return {name: getattr(self, name) for name in names}

    def paths(self) -> Mapping[str, Path]:
        """The files that are read, each under the name that its publisher gave it."""
        return {next(iter(self.info.files), self.path.name): self.path}

    def files(self) -> list[DataFile]:
        # Imported here, because `base` is read at every start and compression is not needed then.
        from mnemoscope.datasets._io.json_stream import sha256_unpacked

        return [
            DataFile(path, sha256_unpacked(path), self.info.files.get(name, PinnedFile()).sha256)
            for name, path in self.paths().items()
        ]

    def scenarios(self) -> Iterator[Scenario]:
        self.findings, self._counts = Findings(), Counter()
        yield from self.read()

    def read(self) -> Iterator[Scenario]:
        """The scenarios, with findings and counts kept on the way."""
        raise NotImplementedError

    def counts(self) -> Mapping[str, int]:
        return dict(self._counts)


def find_file(data: Path, *names: str) -> Path:
    """`data` itself if it is a file, else the first of `names` (globs, also .xz or .gz) in it."""
    if data.is_file():
        return data
    for name in names:
        for suffix in ("", ".xz", ".gz"):
            if found := sorted(data.glob(name + suffix)):
                return found[0]
    raise MissingData(f"{data} has no {' or '.join(names)} (plain, .xz or .gz)")
