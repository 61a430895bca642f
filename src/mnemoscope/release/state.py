"""A release folder: release.yaml has its state, the other files can be written again.

Runs are recorded with their hashes, so that a later edit of a run is found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.protocols import Chosen, load_protocol

Role = Literal["pi", "architect", "statistician", "research-supervisor"]
MatrixRow = Literal[
    "SHIP", "SHIP with caveat", "CONDITIONAL SHIP", "HOLD or SHIP as no-claim", "HOLD"
]
"""A row of the decision matrix."""
ROLES: tuple[Role, ...] = ("pi", "architect", "statistician", "research-supervisor")
SANITY_BASELINES = ("oracle", "random", "none")
"""Systems that check a benchmark and cannot be released."""


Step = Literal[
    "created", "amended", "drafted", "rederived", "decided", "circulated", "signed", "tagged"
]
FREE_FIELDS = ("words", "public", "tag_date", "log")
"""Parts of release.yaml that may be edited by hand; the log has the hashes of all others."""


def clock() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


class Moment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time; one that was given with --at also has the time of recording."""

    at: datetime
    recorded: datetime | None = None
    """The clock's time, if `at` was given."""

    @property
    def is_future(self) -> bool:
        """Whether it was given and lies in the future."""
        return self.recorded is not None and self.at > self.recorded

    def __str__(self) -> str:
        time = f"{self.at:%Y-%m-%d %H:%M} UTC"
        if self.recorded is None:
            return time
        return f"{time} (as given; recorded {self.recorded:%Y-%m-%d %H:%M} UTC)"


def moment(given: str | datetime | None = None) -> Moment:
    """Now, or the given time with the time of recording."""
    if given is None:
        return Moment(clock())
    return Moment(parse_time(given) if isinstance(given, str) else given, clock())


def parse_time(text: str) -> datetime:
    """An ISO date or time; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time: write 2026-11-20 or 2026-11-20T09:00, in UTC"
        ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


class RunRecord(msgspec.Struct, frozen=True):
    """A run and its hashes at the start of the release."""

    path: str
    """Relative to the release folder."""
    fingerprint: str
    manifest_sha256: str
    files: dict[str, str]


class RunPair(msgspec.Struct, frozen=True):
    """The base and the candidate run of one benchmark."""

    benchmark: str
    base: RunRecord
    cand: RunRecord


class Base(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the base runs come from."""

    previous: str = ""
    """The version of the previous release, if the base runs are its candidates."""
    reason: str = ""
    """Why they are others; the PI must accept it."""


class ExtraBenchmark(msgspec.Struct, frozen=True):
    """The report of a benchmark that a change triggers (§2.2), made by other tools."""

    name: str
    path: str
    """Relative to the release folder."""
    sha256: str


class Words(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """People's texts for the report."""

    internal: str = ""
    """Threats to validity inside the experiment."""
    external: str = ""
    """Threats to validity on other data."""
    simulation: str = ""
    """Threats from parts that were simulated."""
    notes: str = ""
    """What the working group discussed."""
    rationale: str = ""
    """The reason for the decision."""
    theory: str = ""
    """Why only the secondary metric can improve."""
    accept_regression: str = ""
    no_claim: str = ""
    """Why a neutral version ships without a claim."""


class Signature(msgspec.Struct, frozen=True, omit_defaults=True):
    """The signature of one role under the report with this hash."""

    role: Role
    name: str
    sha256: str
    when: Moment
    quorum_exception: str = ""
    accepts: list[str] = []
    """The declarations that the PI accepts: waivers, and a base other than the previous release."""
    amendments: int = 0
    """How many amendments the release had; a later one voids the signature."""
    key: str = ""
    """The SSH key that signed; empty for a typed name, which proves nothing."""
    ssh: str = ""
    """The signature of this key."""


class Circulation(msgspec.Struct, frozen=True, omit_defaults=True):
    """When the report with this hash was shared with the working group."""

    when: Moment
    sha256: str
    evidence: str = ""
    """Where it was shared; a given time counts only with evidence."""

    @property
    def counts_from(self) -> datetime:
        """A given time counts only with evidence; otherwise the time of recording counts."""
        if self.evidence or self.when.recorded is None:
            return self.when.at
        return max(self.when.at, self.when.recorded)

    def __str__(self) -> str:
        if self.when.recorded is None:
            time = f"{self.when}, recorded by the clock"
        elif self.evidence:
            time = str(self.when)
        else:
            time = f"{self.when}; without evidence the time of recording counts"
        return f"{time}; evidence: {self.evidence}" if self.evidence else time


class Rederivation(msgspec.Struct, frozen=True):
    """The result of the independent re-derivation of the statistics."""

    by: str
    seed: int
    when: Moment
    basis: str
    checked: int
    disagreements: list[str]


class Decision(msgspec.Struct, frozen=True):
    """The decision and the figures that it is based on."""

    outcome: str
    rows: dict[str, MatrixRow]
    """Benchmark to its row of the matrix."""
    open: list[str]
    """What the outcome still needs."""
    when: Moment
    basis: str


class LogEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of the release, and the hashes of what it changed in release.yaml."""

    before: str
    """The hash of the entry before; empty in the first."""
    step: Step
    when: Moment
    content: dict[str, str] = {}
    by: str = ""
    what: str = ""
    why: str = ""


class State(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The content of release.yaml."""

    version: str
    author: str
    created: Moment
    protocol: dict[str, str]
    pairs: list[RunPair]
    tag_date: datetime | None = None
    waived: dict[str, str] = {}
    """Benchmarks of the protocol that were not run, with the reason."""
    base: Base = Base()
    process: str = ""
    """The version of the release process (§7)."""
    changed: list[str] = []
    """What changed that triggers other benchmarks (§2.2); `none` if nothing did."""
    extras: list[ExtraBenchmark] = []
    public: list[str] = []
    """Other public texts about this release, relative to its folder; the linter checks them."""
    words: Words = msgspec.field(default_factory=Words)
    drafted: Moment | None = None
    circulated: Circulation | None = None
    rederived: Rederivation | None = None
    decision: Decision | None = None
    signatures: list[Signature] = []
    tagged: Moment | None = None
    log: list[LogEntry] = []

    @property
    def amendments(self) -> list[LogEntry]:
        return [entry for entry in self.log if entry.step == "amended"]

    @property
    def declarations(self) -> list[str]:
        """What departs from the process and needs the PI's signature by name."""
        base = ["base"] if self.base.reason else []
        return [*(f"waiver:{name}" for name in self.waived), *base]


class Release:
    """The folder of one release."""

    def __init__(self, folder: Path, state: State) -> None:
        self.folder = folder
        self.state = state

    @classmethod
    def load(cls, folder: Path) -> Release:
        file = folder / "release.yaml"
        if not file.exists():
            raise MissingData(
                f"{folder} is not a release: release.yaml is missing. Start one with "
                "`mnemoscope release new`"
            )
        content = load_yaml(file)
        if isinstance(content, dict) and isinstance(date := content.get("tag_date"), str):
            content["tag_date"] = parse_time(date)
        try:
            return cls(folder, msgspec.convert(content, State))
        except msgspec.ValidationError as error:
            raise DataError(str(error), file=file) from None

    def save(self) -> None:
        text = dump_yaml(msgspec.to_builtins(self.state))
        write_atomically(self.folder / "release.yaml", text.encode())

    @property
    def report_path(self) -> Path:
        return self.folder / "report.md"

    @property
    def notes_path(self) -> Path:
        return self.folder / "notes.md"

    @cached_property
    def protocol(self) -> Chosen:
        chosen = load_protocol(self.state.protocol["id"])
        if chosen.sha256 != self.state.protocol["sha256"]:
            raise DataError(
                f"the protocol {chosen.id} changed after the release was started",
                file=self.folder / "release.yaml",
            )
        return chosen

    def run(self, record: RunRecord) -> RunDirectory:
        return RunDirectory(Path(os.path.normpath(self.folder / record.path)))

    def records(self) -> Iterator[RunRecord]:
        for pair in self.state.pairs:
            yield from (pair.base, pair.cand)

    def edited(self) -> list[str]:
        """Files of the runs that are missing or changed after the release was started."""
        return [
            f"{self.run(record).path / name} {problem}"
            for record in self.records()
            for name, sha256 in {"manifest.json": record.manifest_sha256, **record.files}.items()
            if (problem := _problem(self.run(record).path / name, sha256))
        ]

    def edited_extras(self) -> list[str]:
        """Reports of triggered benchmarks that are missing or changed since they were recorded."""
        return [
            f"{one.path} {problem}"
            for one in self.state.extras
            if (problem := _problem(self.folder / one.path, one.sha256))
        ]

    def ensure_unedited(self) -> None:
        if found := self.edited():
            raise DataError(
                f"{'; '.join(found)}. Restore the run, or start a new release",
                file=self.folder / "release.yaml",
            )


def _problem(path: Path, sha256: str) -> str:
    if not path.exists():
        return "is missing"
    return "" if sha256_file(path) == sha256 else "was edited after the release was started"
