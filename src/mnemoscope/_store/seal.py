"""The seal of a finished run: the hashes of its manifest and of what was written after it.

The manifest has the hashes of all other files. While a file is replaced, the seal has its old hash
and its new one, so that a kill at any moment leaves a run that can be read.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from mnemoscope._store.errors import EditedRun
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.jsonl import encode_json, write_atomically, write_json

SEAL = "seal.json"
SIGNATURE = "manifest.json.sig"
BLOCKED_FILE = "BLOCKED.md"
KEPT_STORE = "kept_store.json"
"""What a run keeps of its memories, so that a gate can follow them in a changed store."""
REPORTS = (
    "report.md",
    "report.html",
    "published.json",
    "heatmap.png",
    "hallucination.png",
    "ageing.png",
)
PRESENTED = (*REPORTS, "../summary.md", "../summary.json", "../repeats.json")
"""What `mnemoscope report` writes again from the other files."""
OPTIONAL = (
    *("answers.json", "forgetting.json", "longitudinal.json", "result.json", "failures.jsonl"),
    *(BLOCKED_FILE, SIGNATURE, KEPT_STORE, *REPORTS),
)
"""Files that commands read if they exist; one that the run did not write may not be added."""
ABSENT = ""
"""The hash of a file that does not exist."""

Hashes = Mapping[str, Sequence[str]]
"""File names to the hashes that they may have."""


class Seal:
    """The seal in a run directory."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / SEAL
        self._folder = folder

    def read(self) -> dict[str, list[str]] | None:
        """The hashes by file name; None if the run has no seal."""
        try:
            content = regular_bytes(self.path)
            found = msgspec.json.decode(content, type=dict[str, list[str]])
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise EditedRun(self.path) from None
        except OSError as error:
            raise EditedRun(self.path, f"cannot be read: {error.strerror}") from None
        own = found.pop(SEAL, [])
        if own != [_own_hash(found)] or content != encode_json({**found, SEAL: own}):
            raise EditedRun(self.path)
        return found

    def write_files(self, contents: Mapping[str, bytes | None]) -> None:
        """Write these files, or delete those that are None, and vouch for them."""
        new = {
            name: ABSENT if content is None else hashlib.sha256(content).hexdigest()
            for name, content in contents.items()
        }
        old = {name: file_hash(self._folder / name) for name in contents}
        known = self.read() or {}
        if any(old[name] != new[name] for name in new):
            self._save(known | {name: [old[name], new[name]] for name in new})
        for name, content in contents.items():
            if content is None:
                (self._folder / name).unlink(missing_ok=True)
            else:
                write_atomically(self._folder / name, content)
        self._save(known | {name: [sha256] for name, sha256 in new.items()})

    def expect(self, name: str, sha256: str) -> None:
        """Vouch for a file with this hash, which the caller writes next."""
        self._save({**(self.read() or {}), name: [sha256]})

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def _save(self, hashes: Mapping[str, list[str]]) -> None:
        kept = {name: own for name, own in hashes.items() if own != [ABSENT]}
        if self.read() != kept:
            # Its own hash tells an edited seal from an edited file.
            write_json(self.path, {**kept, SEAL: [_own_hash(kept)]})


def _own_hash(hashes: Mapping[str, list[str]]) -> str:
    return hashlib.sha256(encode_json(hashes)).hexdigest()


def file_hash(path: Path) -> str:
    """The sha256 of a regular file; an error if the path is something else."""
    try:
        _ensure_regular(path)
        return sha256_file(path)
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        raise EditedRun(path, f"cannot be read: {error.strerror}") from None


def regular_bytes(path: Path) -> bytes:
    """The content of a regular file; an error for a link, and for a pipe, which never ends."""
    _ensure_regular(path)
    return path.read_bytes()


def _ensure_regular(path: Path) -> None:
    if not stat.S_ISREG(path.lstat().st_mode):
        raise EditedRun(path, "is not a regular file")


def problems(folder: Path, expected: Hashes) -> dict[str, str]:
    """The files that are not as expected, each with the rest of a sentence that says why."""
    found = {}
    for name, allowed in expected.items():
        try:
            own = file_hash(folder / name)
        except EditedRun as error:
            found[name] = error.problem
            continue
        if own in allowed:
            continue
        if own == ABSENT:
            found[name] = "is missing"
        else:
            added = ABSENT in allowed
            found[name] = "was added after the run" if added else "was changed after the run"
    return found
