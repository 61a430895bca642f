"""The hash chain of a run's journal: an edited, deleted or added line is found.

h0 = sha256(file name, fingerprint) and h(i) = sha256(h(i-1), line i). `trials.chain.jsonl` has one
record for each merged scenario, with the lines and the heads of both journals up to there. A record
is written before its lines. So after a kill the journals can be shorter than the last record, but
never longer. The spool of a unit has a hash of its own, with a key, which each line renews.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import msgspec

from mnemoscope._store.errors import DataError, EditedRun
from mnemoscope._store.jsonl import Journal, read_records
from mnemoscope._store.private_files import open_private, write_private
from mnemoscope._store.unfinished_runs import spool_key

_sha256 = hashlib.sha256
CHAIN = "trials.chain.jsonl"
TRIALS, TIMINGS = "trials.jsonl", "timings.jsonl"
_EDITED_SPOOL = (
    "does not match its hash chain; without {}.* in that folder, its questions are asked again"
)


class FileHead(msgspec.Struct, frozen=True):
    """The number of lines of a journal, and the head of the chain over them."""

    lines: int
    head: str


class ChainRecord(msgspec.Struct, frozen=True):
    """The heads of both journals after one scenario was merged."""

    scenario: str
    trials: FileHead
    timings: FileHead


def heads(content: bytes, name: str, seed: str) -> list[str]:
    """The head after each complete line, the one before the first line included."""
    return [head.hex() for head in _digests(content, name, seed)]


def _digests(content: bytes, name: str, seed: str) -> list[bytes]:
    head = _seeded(name, seed)
    found = [head]
    for line in _lines(content):
        head = _sha256(head + line).digest()
        found.append(head)
    return found


def _seeded(name: str, seed: str) -> bytes:
    return hashlib.sha256(f"{name}\n{seed}".encode()).digest()


def extend(before: FileHead, content: bytes) -> FileHead:
    """The head after these lines."""
    head, lines = bytes.fromhex(before.head), _lines(content)
    for line in lines:
        head = _sha256(head + line).digest()
    return FileHead(before.lines + len(lines), head.hex())


def _lines(content: bytes) -> list[bytes]:
    """The complete lines, each with its newline."""
    found = BytesIO(content).readlines()
    return found[:-1] if found and not found[-1].endswith(b"\n") else found


class JournalChain:
    """The chain beside the journals of one run."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.path = folder / CHAIN
        self._folder = folder
        self._fingerprint = fingerprint

    def records(self) -> list[ChainRecord]:
        return list(read_records(self.path, ChainRecord)) if self.path.exists() else []

    def start(self) -> ChainRecord:
        """The record before the first line."""
        trials, timings = (
            FileHead(0, _seeded(name, self._fingerprint).hex()) for name in (TRIALS, TIMINGS)
        )
        return ChainRecord("", trials, timings)

    def last(self) -> ChainRecord:
        return [self.start(), *self.records()][-1]

    def advance(
        self, before: ChainRecord, scenario: str, trials: bytes, timings: bytes
    ) -> ChainRecord:
        """Record what will be appended for a scenario; the caller appends it afterwards."""
        record = ChainRecord(
            scenario, extend(before.trials, trials), extend(before.timings, timings)
        )
        journal = Journal(self.path)
        journal.append(record)
        journal.abandon()  # the disk has it at the end, as it has the lines
        return record

    def settle(self) -> None:
        """Wait until the disk has the chain."""
        if self.path.exists():
            Journal(self.path).close()

    def cover(self) -> ChainRecord:
        """Write the chain of journals that were written in one step, without a merger."""
        ends = (FileHead(len(found) - 1, found[-1].hex()) for found in self._digests())
        record = ChainRecord("", *ends)
        with Journal(self.path) as journal:
            journal.append(record)
        return record

    def check(self) -> ChainRecord:
        """The last record, if the journals are exactly what the chain says."""
        last, shorter = self._checked()
        if shorter:
            raise EditedRun(self._folder / shorter, "is shorter than its hash chain")
        return last

    def resume(self) -> None:
        """Check the journals of an unfinished run, and undo a merge that was interrupted.

        The spool of that scenario still exists, because it is deleted after the merge. After a
        power failure it may be gone, and its questions are asked again.
        """
        Journal(self.path).close()  # a killed process leaves an incomplete last line
        _, shorter = self._checked()
        if not shorter:
            return
        *kept, _ = self.records()
        before = [self.start(), *kept][-1]
        for name, head in ((TRIALS, before.trials), (TIMINGS, before.timings)):
            _cut(self._folder / name, head.lines)
        _cut(self.path, len(kept))

    def _checked(self) -> tuple[ChainRecord, str]:
        """The last record, and the journal that is shorter than it, if one is."""
        try:
            records = [self.start(), *self.records()]
        except DataError as error:
            raise EditedRun(self.path, str(error)) from None
        for name, found in zip((TRIALS, TIMINGS), self._digests(), strict=True):
            claims = [one.trials if name == TRIALS else one.timings for one in records]
            for claim in claims[:-1]:
                if claim.lines >= len(found) or found[claim.lines].hex() != claim.head:
                    raise EditedRun(self._folder / name, "does not match its hash chain")
            end = claims[-1]
            if len(found) - 1 > end.lines or (
                len(found) - 1 == end.lines and found[-1].hex() != end.head
            ):
                raise EditedRun(self._folder / name, "does not match its hash chain")
            if len(found) - 1 < end.lines:
                return records[-1], name
        return records[-1], ""

    def head_after(self, lines: int, name: str = TRIALS) -> str:
        """The head of a journal after so many lines; empty if there are fewer."""
        found = dict(zip((TRIALS, TIMINGS), self._digests(), strict=True))[name]
        return found[lines].hex() if lines < len(found) else ""

    def _digests(self) -> Iterator[list[bytes]]:
        for name in (TRIALS, TIMINGS):
            path = self._folder / name
            content = path.read_bytes() if path.exists() else b""
            yield _digests(content, name, self._fingerprint)


class SpoolJournal(Journal):
    """The spool of one unit, with a hash of all that it contains in a file beside it.

    The hash that includes a line is written before the line, into shared memory: after a kill the
    file beside it has the hashes with and without that line. The operating system keeps both.
    """

    _states: _SharedBytes | None = None

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        content = path.read_bytes()
        self._hash = _spool_hash(path)
        self._hash.update(content)
        self._states = states = _SharedBytes(chain_of_spool(path), 2 * _STATE.size)
        state = _STATE.pack(len(content), self._hash.digest())
        known = _split(states.read())
        if not (content or any(map(any, known))):  # both files are new
            known[0] = state
            states.write(0, state)
        if state not in known:
            self.close()
            raise EditedRun(path, _EDITED_SPOOL.format(path.name.partition(".")[0]))
        self._free = 1 - known.index(state)

    def append_bytes(self, lines: bytes) -> None:
        after = self._hash.copy()
        after.update(lines)
        state = _STATE.pack(self._size + len(lines), after.digest())
        assert self._states is not None
        self._states.write(self._free * _STATE.size, state)
        super().append_bytes(lines)
        self._hash, self._free = after, 1 - self._free

    def close(self) -> None:
        """Close both files without waiting for the disk: they are deleted after the merge."""
        self.abandon()

    def abandon(self) -> None:
        super().abandon()
        if self._states is not None:
            self._states.close()


class _SharedBytes:
    """A few bytes of a file; what is written outlives this process, as after a `write`."""

    def __init__(self, path: Path, size: int) -> None:
        self._size = size
        self._file = open_private(path, os.O_RDWR)
        self._memory: mmap.mmap | None = None
        try:
            if os.fstat(self._file).st_size < size:
                os.pwrite(self._file, bytes(size), 0)  # so that a full disk is an error here
            with suppress(OSError):  # some file systems cannot share memory
                self._memory = mmap.mmap(self._file, size)
        except BaseException:
            self.close()
            raise

    def read(self) -> bytes:
        return os.pread(self._file, self._size, 0)

    def write(self, at: int, content: bytes) -> None:
        if self._memory is None:
            os.pwrite(self._file, content, at)
        else:  # takes a tenth of the time
            self._memory[at : at + len(content)] = content

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


_STATE = struct.Struct(">Q32s")
"""The size of a spool in bytes, and the hash of its key and content."""


def _split(content: bytes) -> list[bytes]:
    """The two states in the file beside a spool."""
    return [content[: _STATE.size], content[_STATE.size :]]


def chain_of_spool(path: Path) -> Path:
    return path.with_name(f"{path.name}.chain")


def checked_spool(path: Path) -> bytes:
    """The content of a finished spool; an error if its hash is not the one beside it."""
    content = path.read_bytes()
    # The larger state is the later one.
    if max(_split(chain_of_spool(path).read_bytes())) != _state_of(path, content):
        raise EditedRun(path, _EDITED_SPOOL.format(path.name.partition(".")[0]))
    return content


def seal_spool(path: Path) -> None:
    """Write the hash of a spool that was written in one step."""
    content = path.read_bytes()
    state = _state_of(path, content[: content.rfind(b"\n") + 1])
    with write_private(chain_of_spool(path)) as file:
        file.write(state + bytes(len(state)))


def _state_of(path: Path, content: bytes) -> bytes:
    found = _spool_hash(path)
    found.update(content)
    return _STATE.pack(len(content), found.digest())


def _spool_hash(path: Path) -> hashlib._Hash:
    # The key is not in the run, and each run has its own: a hash that was computed anew is found,
    # and so is the spool of another run.
    run = path.parent.parent
    return _sha256(_seeded(path.name, f"{run.name}\n{spool_key(run)}"))


def _cut(path: Path, lines: int) -> None:
    """Keep only the first lines of a file."""
    if not path.exists():
        return
    kept = path.read_bytes().split(b"\n")[:lines]
    os.truncate(path, sum(len(line) + 1 for line in kept))
