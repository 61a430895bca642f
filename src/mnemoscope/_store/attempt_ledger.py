"""The ledger of attempts: every run that was begun, also those that were deleted later.

It is in the user's data folder, with a copy in the folder of the runs. Lines are only appended, and
each has the hash of the line before it. It finds edits and accidents; a user who rewrites all of
its lines is not found.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import stat
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.attempt_keys import AttemptKeys
from mnemoscope._store.jsonl import encode_lines, write_atomically
from mnemoscope._store.private_files import open_private, restore_rights
from mnemoscope._store.user_data import user_data_folder
from mnemoscope.types import Repeat

COPY = "attempts.jsonl"
"""The name of the ledger, in the user's data folder and in the folder of the runs."""
Event = Literal["start", "resume", "finish", "change", "block", "summary", "plan", "look"]
_log = logging.getLogger(__name__)


class LedgerLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happened to a run."""

    before: str
    """The sha256 of the line before; empty in the first line."""
    at: datetime
    event: Event
    path: str
    """The run directory, the folder of a summary, or the file of a plan."""
    id: str = ""
    """The id of the run, in its manifest too."""
    fingerprint: str = ""
    """That of the run; of a plan and of a look under it, the hash of the plan."""
    attempt: int = 0
    """Its number among the runs with this fingerprint."""
    lines: int = 0
    head: str = ""
    """The head of the journal's hash chain after so many lines."""
    manifest: str = ""
    """The sha256 of the manifest that was then written."""
    files: dict[str, str] = {}
    """The sha256 of the files of a summary."""
    repeat: Repeat | None = None
    """Which of the declared repeats begins."""
    alone: str = ""
    """The fingerprint that the repeat would have if it were a run of its own."""
    same: str = ""
    experiment: str = ""
    code: tuple[str, ...] = ()
    """The keys of an attempt, see `attempt_keys`; empty for systems whose code is ours."""


class AttemptLedger(NamedTuple):
    """The lines of a ledger."""

    lines: Sequence[LedgerLine]
    id: str
    """The hash of its first line; empty if it has none."""
    problem: str
    """What is wrong with it; empty if nothing is."""

    def of_run(self, id: str) -> list[LedgerLine]:
        return [line for line in self.lines if line.id == id] if id else []

    def starts(self, fingerprint: str, same: str = "") -> list[LedgerLine]:
        """The first line of each attempt with this fingerprint, or with the same code but for
        comments."""
        return [
            line
            for line in self.lines
            if line.event == "start"
            and (line.fingerprint == fingerprint or (same and line.same == same))
        ]

    def start_of(self, id: str) -> LedgerLine | None:
        return next((line for line in self.of_run(id) if line.event == "start"), None)

    def with_other_code(self, start: LedgerLine) -> list[LedgerLine]:
        """The first line of each other attempt of this system on this benchmark."""
        own = {line.id for line in self.starts(start.fingerprint, start.same)}
        return [
            line
            for line in self.lines
            if line.event == "start"
            and start.experiment
            and line.experiment == start.experiment
            and line.id not in own
            and (line.repeat is None or start.repeat is None or line.repeat.set != start.repeat.set)
        ]

    def under_other_names(self, start: LedgerLine) -> list[LedgerLine]:
        """The first line of each attempt with a file of the same code that is not counted above:
        the system was renamed, or set otherwise."""
        counted = {line.id for line in self.starts(start.fingerprint, start.same)}
        counted |= {line.id for line in self.with_other_code(start)}
        return [
            line
            for line in self.lines
            if line.event == "start"
            and not {*line.code}.isdisjoint(start.code)
            and line.id not in counted
            and (line.repeat is None or start.repeat is None or line.repeat.set != start.repeat.set)
        ]

    def repeats_of(self, set: str) -> list[LedgerLine]:
        """The starts of the repeats of all declared sets with this first repeat."""
        return [line for line in self.lines if line.repeat is not None and line.repeat.set == set]

    def repeated_as(self, fingerprint: str) -> list[LedgerLine]:
        """The starts of repeats that differ from a run only in being declared repeats."""
        return [line for line in self.lines if line.alone and line.alone == fingerprint]

    def plan_time(self, plan: str) -> datetime | None:
        """When the plan with this hash was frozen."""
        frozen = (line for line in self.lines if line.event == "plan" and line.fingerprint == plan)
        return next((line.at for line in frozen), None)

    def looks_under(self, plan: str) -> list[str]:
        """The ids of the runs that were compared under the plan with this hash, each once."""
        looks = (line for line in self.lines if line.event == "look" and line.fingerprint == plan)
        return list(dict.fromkeys(line.id for line in looks))

    def latest_at(self, path: Path) -> LedgerLine | None:
        """The start of the last run in this folder."""
        place = str(path.resolve())
        starts = [line for line in self.lines if line.event == "start" and line.path == place]
        return starts[-1] if starts else None


class StartedAttempt(NamedTuple):
    """A run that the ledger knows now."""

    id: str
    number: int
    """0 if the ledger cannot be written."""
    ledger: str
    """The id of the ledger."""


def ledger_path() -> Path:
    return user_data_folder() / COPY


def read_ledger(path: Path | None = None) -> AttemptLedger:
    """The user's ledger, or the one at a path; empty if there is none that can be read."""
    path = path or ledger_path()
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # reading a pipe would not end
            return AttemptLedger([], "", "")
        return _read(path, about.st_mtime_ns, about.st_size, about.st_ino)
    except OSError:
        return AttemptLedger([], "", "")


@lru_cache(maxsize=8)
def _read(path: Path, *_: int) -> AttemptLedger:
    return _parsed(path.read_bytes(), path)


def _parsed(content: bytes, path: Path) -> AttemptLedger:
    lines: list[LedgerLine] = []
    before, first, problem = "", "", ""
    decoder = msgspec.json.Decoder(LedgerLine)
    for number, raw in enumerate(content.split(b"\n")[:-1], 1):
        own = hashlib.sha256(raw).hexdigest()
        first = first or own
        try:
            line = decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            problem = problem or f"{path} was edited: line {number} cannot be read"
        else:
            if line.before != before:
                problem = problem or f"{path} was edited before line {number}"
            lines.append(line)
        before = own
    return AttemptLedger(lines, first, problem)


def start_attempt(
    run: Path,
    fingerprint: str,
    keys: AttemptKeys = AttemptKeys("", ""),
    repeat: Repeat | None = None,
    alone: str = "",
) -> StartedAttempt:
    """Record that a run begins, and return its number among those with the same code.

    A declared repeat is recorded as such; `alone` is its fingerprint without the declaration.
    """
    id, number, ledger = uuid.uuid4().hex, 0, ""

    def line(content: bytes) -> LedgerLine:
        nonlocal number, ledger
        number = 1 + len(_starts_in(content, fingerprint, keys.same))
        ledger = hashlib.sha256(content.partition(b"\n")[0]).hexdigest() if content else ""
        return start()

    def start() -> LedgerLine:
        own = _line(run, "start", id, fingerprint, attempt=number)
        return msgspec.structs.replace(own, **keys._asdict(), repeat=repeat, alone=alone)

    with _warning_once():
        raw = _append(ledger_path(), line)
        ledger = ledger or hashlib.sha256(raw).hexdigest()
    with _warning_once():
        _append(run.parent / COPY, lambda content: start())
    return StartedAttempt(id, number, ledger)


def record_event(
    run: Path,
    event: Event,
    *,
    id: str = "",
    fingerprint: str = "",
    attempt: int = 0,
    lines: int = 0,
    head: str = "",
    manifest: str = "",
    files: dict[str, str] | None = None,
    folder: Path | None = None,
) -> None:
    """Record what happens to a run, in the user's ledger and in the copy in its folder."""
    line = _line(run, event, id, fingerprint, attempt, lines, head, manifest, files or {})
    for place in (ledger_path(), (folder or run.parent) / COPY):
        with _warning_once():
            _append(place, lambda content: line)


def record_plan(path: Path, event: Literal["plan", "look"], plan: str, run: str = "") -> None:
    """Record that the plan with this hash is frozen, or that a run is compared under it."""
    with _warning_once():
        _append(ledger_path(), lambda content: _line(path, event, run, plan))


def write_vouched(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files of a summary; the ledger records their hashes first."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    if (folder / COPY).exists():  # the runs below are counted
        record_event(folder, "summary", files=hashes, folder=folder)
    for name, content in contents.items():
        write_atomically(folder / name, content)


def _line(
    run: Path,
    event: Event,
    id: str,
    fingerprint: str,
    attempt: int = 0,
    lines: int = 0,
    head: str = "",
    manifest: str = "",
    files: dict[str, str] | None = None,
) -> LedgerLine:
    return LedgerLine(
        before="",
        at=datetime.now(UTC),
        event=event,
        path=str(run.resolve()),
        id=id,
        fingerprint=fingerprint,
        attempt=attempt,
        lines=lines,
        head=head,
        manifest=manifest,
        files=files or {},
    )


def _starts_in(content: bytes, fingerprint: str, same: str) -> list[LedgerLine]:
    """What `starts` finds in the ledger; the lines of other systems are not decoded."""
    wanted = [text.encode() for text in (fingerprint, same) if text]
    lines = [
        line
        for line in content.split(b"\n")[:-1]
        if b"\\" in line or (b"start" in line and any(text in line for text in wanted))
    ]
    return _parsed(b"\n".join([*lines, b""]), Path()).starts(fingerprint, same)


def _append(path: Path, make: Callable[[bytes], LedgerLine]) -> bytes:
    """Append the line that `make` returns for the complete lines so far; returns its bytes."""
    if path == ledger_path():
        restore_rights(path)
    file = open_private(path, os.O_RDWR | os.O_APPEND)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        content = os.pread(file, size, 0)
        whole = content.rfind(b"\n") + 1
        if whole != size:  # a killed process left an incomplete line
            os.ftruncate(file, whole)
            content = content[:whole]
        last = content.rstrip(b"\n").rpartition(b"\n")[2]
        line = make(content)
        before = hashlib.sha256(last).hexdigest() if whole else ""
        raw = encode_lines([msgspec.structs.replace(line, before=before)])
        os.write(file, raw)
        return raw.rstrip(b"\n")
    finally:
        os.close(file)


_warned: set[str] = set()


@contextmanager
def _warning_once() -> Iterator[None]:
    """A ledger that cannot be written does not stop a run; one warning says so."""
    try:
        yield
    except OSError as error:
        place = error.filename or str(ledger_path())
        if place not in _warned:
            _warned.add(place)
            _log.warning(
                "the ledger of attempts cannot be written (%s: %s); `verify` will not know how "
                "often this run was tried",
                place,
                error.strerror,
            )
