"""The run directory: the files of one run, which reports, comparisons and releases read.

`trials.jsonl` is the journal. Everything except the manifest and `timings.jsonl` can be rebuilt
from it. One process at a time may write: it holds a lock while the run is open. Reading checks
first that no file was edited.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from mnemoscope._store.attempt_keys import attempt_keys
from mnemoscope._store.attempt_ledger import Event, record_event, start_attempt
from mnemoscope._store.errors import DataError, EditedRun, MissingData, RunConflict
from mnemoscope._store.fingerprint import differences, fingerprint, sha256_file
from mnemoscope._store.journal_chain import CHAIN, ChainRecord, FileHead, JournalChain
from mnemoscope._store.jsonl import encode_json, read_records, write_atomically
from mnemoscope._store.private_files import make_private, open_private
from mnemoscope._store.run_integrity import (
    HASHED,
    check_unfinished,
    edited_files,
    edited_without_seal,
)
from mnemoscope._store.run_integrity import RECORDED as RECORDED
from mnemoscope._store.seal import BLOCKED_FILE, PRESENTED, REPORTS, SEAL, Seal, regular_bytes
from mnemoscope._store.unfinished_runs import (
    begin_unfinished,
    forget_unfinished,
    note_unfinished,
)
from mnemoscope._store.watched_run import LOCK, ExpectedQuestions, note_expected
from mnemoscope.types import Answer, Ingestion, Isolation, Repeat, Reviewed, Timing, Trial, Verdict

JournalLine = Trial | Answer | Verdict | Ingestion

SCHEMA = 2
"""1: runs without a hash chain and a seal. It is in the identity, so in the fingerprint too."""
REPEAT = "repeat"
"""The key of an identity that says which declared repeat a run is."""
State = Literal["running", "interrupted", "complete"]
_log = logging.getLogger(__name__)


class Manifest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=False):
    """What was run, with which data, and its state."""

    fingerprint: str
    """The hash of the identity."""
    identity: dict[str, Any]
    """Everything that can change a figure: data, system, reader, judge, options, versions."""
    schema: int = SCHEMA
    """The version of the format of the run's files."""
    state: State = "running"
    started: datetime | None = None
    finished: datetime | None = None
    environment: dict[str, Any] = {}
    """The machine, the command and the versions; not part of the identity."""
    notes: list[str] = []
    """Caveats for readers of the numbers, such as a dataset that is a subset."""
    protocol: dict[str, str] = {}
    """`id` and `sha256` of the run's protocol, if it has one."""
    deviations: list[str] = []
    """Each deviation from the protocol, with the declared reason."""
    findings: dict[str, int] = {}
    """How many repairs and losses the loader counted in the data, by kind."""
    withheld: dict[str, str] = {}
    """Category to the reason why no claim about it is made: its questions break its rules."""
    reviewed: Reviewed | None = None
    """How many questions were drafted and confirmed; None if a person wrote all of them."""
    leaks: int = 0
    """How many findings of the leakage scan were accepted on request."""
    arm: bool = False
    """Whether the system ran as a baseline beside the systems that were asked for."""
    exams: dict[str, dict[str, Any]] = {}
    """Each judge's spec to its exam result; a judge without an exam is absent."""
    category_names: dict[str, str] = {}
    checkpoints: list[str] = []
    """Labels of the checkpoints, in order; figures without a label are those of the last."""
    isolation: Isolation | None = None
    """What kept the labels from the system; None in runs of older versions."""
    counts: dict[str, int] = {}
    """How many questions were planned and how many trials recorded, at the last checkpoint."""
    files: dict[str, str] = {}
    """The sha256 of the files that were made from the journal."""
    private: bool = False
    """Whether the run has ids and figures only: the texts are in the dataset's folder."""
    id: str = ""
    """The id of the run in the ledger of attempts; empty for a run that is not counted."""
    attempt: int = 0
    """Its number among the runs with this fingerprint; 0 if the ledger could not be written."""
    ledger: str = ""
    """The id of the ledger that counted it."""
    chain: dict[str, FileHead] = {}
    """The heads of the journals' hash chains at the end of the run."""


class RunDirectory:
    """A folder that contains one run."""

    def __init__(self, path: Path, *, checked: bool = True, rewriting: bool = False) -> None:
        """With `checked` off edited files can be read; `rewriting` accepts edited reports."""
        self.path = path
        self.label = path.name
        self.trials_path = path / "trials.jsonl"
        self.timings_path = path / "timings.jsonl"
        self.manifest_path = path / "manifest.json"
        self.lock: int | None = None
        """The file descriptor of the lock while this process holds it."""
        self._is_checked = not checked
        self._rewriting = rewriting

    def open(self, identity: dict[str, Any], *, counted: bool = True, **about: Any) -> Manifest:
        """Begin a run here, or continue the one that has this identity; refuse any other.

        A run that is not `counted` is no attempt: the ledger does not know it.
        """
        # As JSON gives it back, so that the identity of a read manifest compares equal.
        identity = msgspec.json.decode(msgspec.json.encode({**identity, "schema": SCHEMA}))
        self._take_lock()
        try:
            return self._opened(identity, counted, about)
        except BaseException:
            self.release()
            raise

    def _opened(self, identity: dict[str, Any], counted: bool, about: dict[str, Any]) -> Manifest:
        for draft in self.path.glob(".*.draft"):  # a killed process leaves them
            draft.unlink()
        if self.manifest_path.exists():
            try:
                manifest = _decoded(self._manifest_bytes(), self.manifest_path)
            except DataError:
                self.ensure_unedited()  # says whether it was edited
                raise
            if manifest.fingerprint == fingerprint(identity):
                if about.get("private", manifest.private) != manifest.private:
                    begun = "with" if manifest.private else "without"
                    raise RunConflict(
                        f"{self.path} was begun {begun} --private. Choose another --out, or begin "
                        "again with --fresh"
                    )
                self._check_resumed(manifest, counted=counted)
                for field, value in about.items():
                    setattr(manifest, field, value)
                if manifest.state == "interrupted":
                    manifest.state = "running"
                self.save(manifest)
                return manifest
            if self._has_trials():
                changed = differences(_in_short(manifest.identity), _in_short(identity))
                other = ""
                if changed and changed[0].startswith(("judge:", "appellate_judge:")):
                    other = f", judge its answers again with `mnemoscope judge {self.path} …`"
                raise RunConflict(
                    f"{self.path} contains another run; differences: {'; '.join(changed[:5])}. "
                    f"Choose another --out{other}, or delete the folder"
                )
        elif self.trials_path.exists():
            raise RunConflict(
                f"{self.path} contains trials but no manifest.json that describes them. "
                "Choose another --out, or delete the folder"
            )
        manifest = Manifest(fingerprint(identity), identity, started=datetime.now(UTC), **about)
        if counted:
            repeat, alone = declared_repeat(identity), ""
            if "derived_from" in identity:  # judging again declares no new set
                repeat = None
            elif repeat is not None:
                alone = fingerprint({k: v for k, v in identity.items() if k != REPEAT})
            attempt = start_attempt(
                self.path, manifest.fingerprint, attempt_keys(identity), repeat, alone
            )
            manifest.id, manifest.attempt, manifest.ledger = attempt
        begin_unfinished(self.path, manifest.id)
        for left in (SEAL, CHAIN):
            (self.path / left).unlink(missing_ok=True)
        self._is_checked = True
        self.save(manifest)
        return manifest

    def _check_resumed(self, manifest: Manifest, *, counted: bool) -> None:
        """Refuse to continue a run that was edited."""
        if fingerprint(manifest.identity) != manifest.fingerprint:
            raise EditedRun(self.manifest_path, "was edited: its fingerprint is another one")
        if counted and not manifest.id and manifest.state != "complete":
            raise EditedRun(self.manifest_path, "was edited: it has no id")
        if manifest.state == "complete":
            self.ensure_unedited()
            return
        end = check_unfinished(self.path, manifest)
        self._seal.remove()
        self._is_checked = True
        self._record(manifest, "resume", end=end)

    def chain(self, manifest: Manifest) -> JournalChain:
        return JournalChain(self.path, manifest.fingerprint)

    @property
    def _seal(self) -> Seal:
        return Seal(self.path)

    def _has_trials(self) -> bool:
        """Whether anything was recorded here that another run must not overwrite."""
        units = self.path / "units"
        recorded = [self.trials_path, *(units.iterdir() if units.exists() else ())]
        return any(path.exists() and path.stat().st_size for path in recorded)

    def manifest(self) -> Manifest:
        """The manifest; an error if a file of the run was edited."""
        self.ensure_unedited()
        return _decoded(self._manifest_bytes(), self.manifest_path)

    def _manifest_bytes(self) -> bytes:
        try:
            return regular_bytes(self.manifest_path)
        except FileNotFoundError:
            if any((self.path / name).exists() for name in (SEAL, CHAIN)):
                raise EditedRun(self.manifest_path, "is missing") from None
            below = sorted(self.path.glob("*/manifest.json"))
            meant = f"; did you mean {below[0].parent}?" if below else ""
            raise MissingData(
                f"{self.path} is not a run directory: it has no manifest.json{meant}"
            ) from None
        except OSError as error:
            raise EditedRun(self.manifest_path, f"cannot be read: {error.strerror}") from None

    def ensure_unedited(self) -> None:
        """Refuse to read a run if one of its files was edited, deleted or added."""
        if self._is_checked:
            return
        for name, problem in self.edited_files().items():
            file = Path(os.path.normpath(self.path / name))
            if name not in PRESENTED:
                raise EditedRun(file, problem)
            if not self._rewriting:
                remedy = f"`mnemoscope report {file.parent}` writes it again"
                raise EditedRun(file, problem, remedy)
            _log.warning("%s %s; it is written again", file, problem)
        self._is_checked = True

    def edited_files(self) -> dict[str, str]:
        """Each file that is not what the run wrote, with the rest of a sentence that says why."""
        content = self._manifest_bytes()
        sealed = self._seal.read()
        sha256 = hashlib.sha256(content).hexdigest()
        if sealed is not None and sha256 not in sealed.get("manifest.json", ()):
            return {"manifest.json": "was changed after the run: it does not match seal.json"}
        manifest = _decoded(content, self.manifest_path)
        if sealed is None:
            return edited_without_seal(self.path, manifest)
        return edited_files(self.path, manifest, sha256, sealed)

    def save(self, manifest: Manifest) -> None:
        content = encode_json(manifest)
        if manifest.state != "complete":
            self._note_unfinished(content)
            write_atomically(self.manifest_path, content)
            self._seal.remove()  # afterwards: a finished manifest without a seal is refused
            self._note_unfinished(content, is_written=True)
        elif manifest.schema < SCHEMA:
            write_atomically(self.manifest_path, content)
            self._seal.remove()
        elif content != self._manifest_bytes() or not self._seal.path.exists():
            self._record(manifest, "change", content)
            self._seal.write_files({"manifest.json": content})

    def _note_unfinished(self, content: bytes, *, is_written: bool = False) -> None:
        """Record the manifest; until it is written, the one before is as good."""
        known = [hashlib.sha256(content).hexdigest()]
        if not is_written and self.manifest_path.exists():
            known.insert(0, sha256_file(self.manifest_path))
        note_unfinished(self.path, manifest=known)

    def note_merged(self, end: ChainRecord) -> None:
        """Record the journals of a run that goes on; a shorter one is not continued."""
        trials, timings = ((one.lines, one.head) for one in (end.trials, end.timings))
        note_unfinished(self.path, trials=trials, timings=timings)

    def finish(self, manifest: Manifest, also: Sequence[str] = ()) -> None:
        """Mark the run complete, and record the hash of every file."""
        chain = self.chain(manifest)
        end = chain.check() if chain.path.exists() else chain.cover()
        manifest.chain = {"trials.jsonl": end.trials, "timings.jsonl": end.timings}
        manifest.state = "complete"
        manifest.finished = datetime.now(UTC)
        manifest.files = {
            name: sha256_file(self.path / name)
            for name in (*HASHED, BLOCKED_FILE, *also)
            if (self.path / name).exists()
        }
        content = encode_json(manifest)
        self._record(manifest, "finish", content)
        # Reports of an earlier end of this run are void.
        void = dict.fromkeys(name for name in REPORTS if (self.path / name).exists())
        self._seal.write_files({"manifest.json": content, **void})
        forget_unfinished(self.path)

    def _record(
        self, manifest: Manifest, event: Event, content: bytes = b"", end: FileHead | None = None
    ) -> None:
        """Tell the ledger what happens to the run, before it happens."""
        if not manifest.id:
            return
        end = end or manifest.chain.get("trials.jsonl", FileHead(0, ""))
        record_event(
            self.path,
            event,
            id=manifest.id,
            fingerprint=manifest.fingerprint,
            attempt=manifest.attempt,
            lines=end.lines,
            head=end.head,
            manifest=hashlib.sha256(content).hexdigest() if content else "",
        )

    def write_files(self, contents: Mapping[str, bytes | None]) -> None:
        """Write files beside a finished run, or delete those that are None, and vouch for them."""
        if self._seal.path.exists():
            self._seal.write_files(contents)
            return
        for name, content in contents.items():
            if content is not None:
                write_atomically(self.path / name, content)
        manifest = _decoded(self._manifest_bytes(), self.manifest_path)
        for name in manifest.files.keys() & contents.keys():  # a run of schema 1
            manifest.files[name] = sha256_file(self.path / name)
            self.save(manifest)

    def vouch(self, name: str) -> None:
        """Vouch for a file that was written after the run was finished."""
        self._seal.expect(name, sha256_file(self.path / name))

    def block(self, content: bytes) -> None:
        """Write BLOCKED.md; the ledger remembers it, so that it cannot be deleted."""
        self._record(_decoded(self._manifest_bytes(), self.manifest_path), "block")
        self.write_files({BLOCKED_FILE: content})

    def trials(self) -> Iterator[Trial]:
        """The trials of the last checkpoint."""
        return (line for line in self._at_last_checkpoint() if isinstance(line, Trial))

    def ingestions(self) -> Iterator[Ingestion]:
        return (line for line in self._at_last_checkpoint() if isinstance(line, Ingestion))

    def _at_last_checkpoint(self) -> Iterator[JournalLine]:
        checkpoints = self.manifest().checkpoints
        last = checkpoints[-1] if checkpoints else ""
        return (line for line in self.journal() if line.checkpoint == last)

    def journal(self, trial: type[Trial] = Trial) -> Iterator[JournalLine]:
        """All lines, of every phase and checkpoint; `trial` is what a recall is decoded as."""
        self.ensure_unedited()
        if self.trials_path.exists():
            yield from read_journal(self.trials_path, trial)

    def timings(self) -> Iterator[Timing]:
        self.ensure_unedited()
        if self.timings_path.exists():
            yield from read_records(self.timings_path, Timing)

    def questions(self) -> Iterator[dict[str, Any]]:
        """Id and text of each question at the last checkpoint."""
        checkpoints = self.manifest().checkpoints
        for line in read_records(self.path / "questions.jsonl", dict):
            if not checkpoints:
                yield line
            elif line["checkpoint"] == checkpoints[-1]:
                yield line.get("qa", line)

    def read_json(self, name: str) -> Any:
        self.ensure_unedited()
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes())
        except FileNotFoundError:
            raise MissingData(f"{self.path} has no {name}; is the run complete?") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(str(error), file=path) from None

    def _take_lock(self, patience: float = 10.0) -> None:
        # Workers inherit the descriptor: after a killed parent the lock is held until they end.
        lock = open_private(self.path / LOCK, os.O_RDWR)
        if self.manifest_path.exists():
            make_private(self.path)
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(lock)
                    raise RunConflict(f"another process is writing {self.path}") from None
                time.sleep(0.05)
            else:
                self.lock = lock
                return

    def note_expected(self, expected: ExpectedQuestions) -> None:
        """Tell other processes how many questions the run will ask."""
        if self.lock is not None:
            note_expected(self.lock, expected)

    def release(self) -> None:
        if self.lock is not None:
            os.ftruncate(self.lock, 0)
            os.close(self.lock)
            self.lock = None


def _decoded(content: bytes, path: Path) -> Manifest:
    try:
        return msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(str(error), file=path) from None


_PARTS = ("reader", "judge", "appellate_judge")


def _in_short(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The identity with readers and judges shortened to their specs and a hash."""
    short = dict(identity)
    for part in _PARTS:
        if isinstance(about := identity.get(part), Mapping):
            short[part] = f"{about['spec']} ({fingerprint(about)[:6]})"
    if not any(part in identity for part in _PARTS):
        return short
    return {key: value for key, value in short.items() if key not in ("compat", "lifecycle")} | {
        key: short[key] for key in ("compat", "lifecycle") if short.get(key) not in ("", "auto")
    }


def declared_repeat(identity: Mapping[str, Any]) -> Repeat | None:
    """Which of the declared repeats a run is; None for a run that is no repeat."""
    about = identity.get(REPEAT)
    try:
        return None if about is None else msgspec.convert(about, Repeat)
    except msgspec.ValidationError as error:
        raise DataError(f"identity.{REPEAT}: {error}", file="manifest.json") from None


def read_journal(path: Path, trial: type[Trial] = Trial) -> Iterator[JournalLine]:
    """The lines of a journal, or of one unit's spool."""
    kind: Any = trial | Answer | Verdict | Ingestion
    return read_records(path, kind)


def find_runs(path: Path) -> list[RunDirectory]:
    """The run at `path`, or all runs in the folders directly below it."""
    if is_run(path):
        return [RunDirectory(path)]
    runs = [RunDirectory(folder) for folder in sorted(path.glob("*/")) if is_run(folder)]
    if not runs:
        raise MissingData(f"no run directory at {path} or directly below it")
    return runs


def is_run(path: Path) -> bool:
    """Whether a folder contains a run, also one whose manifest was deleted."""
    return any((path / name).exists() for name in ("manifest.json", SEAL, CHAIN))
