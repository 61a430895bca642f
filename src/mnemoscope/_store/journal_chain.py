"""The hash chain of a run's journal: an edited, deleted or added line is found.

h0 = sha256(file name, fingerprint) and h(i) = sha256(h(i-1), line i). `trials.chain.jsonl` has one
record for each merged scenario, with the lines and the heads of both journals up to there. A record
is written before its lines. So after a kill the journals can be shorter than the last record, but
never longer. The spools of units have a chain of their own, one head a line, with a key.
"""

from __future__ import annotations

import hashlib
import os
from binascii import hexlify
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import msgspec

from mnemoscope._store.errors import DataError, EditedRun
from mnemoscope._store.jsonl import Journal, read_records
from mnemoscope._store.private_files import write_private
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
    """The spool of one unit, with the head of its chain after each line in a file beside it.

    A head is written before its line, so that a kill leaves at most heads without lines.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._chain = Journal(chain_of_spool(path))
        known = self._chain.path.read_bytes().split(b"\n")[:-1]
        found = _spool_digests(path)
        lines = len(found) - 1
        # One more head than lines: the process was killed before it wrote the line.
        if [one.hex().encode() for one in found[1:]] != known[:lines] or len(known) > lines + 1:
            self.close()
            raise EditedRun(path, _EDITED_SPOOL.format(path.name.partition(".")[0]))
        if len(known) > lines:
            _cut(self._chain.path, lines)
        self._head = found[-1]

    def append_bytes(self, lines: bytes) -> None:
        ends = b""
        # Most are one line: a record of JSON.
        for line in (lines,) if lines.count(b"\n") == 1 else _lines(lines):
            self._head = _sha256(self._head + line).digest()
            ends += hexlify(self._head) + b"\n"
        self._chain.append_bytes(ends)
        super().append_bytes(lines)

    def close(self) -> None:
        """Close both files without waiting for the disk: they are deleted after the merge."""
        self.abandon()
        self._chain.abandon()


def chain_of_spool(path: Path) -> Path:
    return path.with_name(f"{path.name}.chain")


def checked_spool(path: Path) -> bytes:
    """The content of a finished spool; an error if it is not what its chain says."""
    content = path.read_bytes()
    found = _spool_digests(path, content)
    known = chain_of_spool(path).read_bytes().split(b"\n")[:-1]
    if known[-1:] != [one.hex().encode() for one in found[1:][-1:]] or len(known) != len(found) - 1:
        raise EditedRun(path, _EDITED_SPOOL.format(path.name.partition(".")[0]))
    return content


def seal_spool(path: Path) -> None:
    """Write the chain of a spool that was written in one step."""
    ends = "".join(f"{end.hex()}\n" for end in _spool_digests(path)[1:])
    with write_private(chain_of_spool(path)) as file:
        file.write(ends.encode())


def _spool_digests(path: Path, content: bytes | None = None) -> list[bytes]:
    # The key is not in the run, and each run has its own: a chain that was computed anew is found,
    # and so is the spool of another run.
    run = path.parent.parent
    content = path.read_bytes() if content is None else content
    return _digests(content, path.name, f"{run.name}\n{spool_key(run)}")


def _cut(path: Path, lines: int) -> None:
    """Keep only the first lines of a file."""
    if not path.exists():
        return
    kept = path.read_bytes().split(b"\n")[:lines]
    os.truncate(path, sum(len(line) + 1 for line in kept))
