"""What a run had written when it was interrupted, kept in the user's data folder until its end.

Systems cannot read that folder. An interrupted run is continued only if its manifest and journals
are those that are recorded here; its spools are chained with a key that is not in the run.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec

from mnemoscope._store.jsonl import encode_json, write_atomically
from mnemoscope._store.private_files import make_private_folder
from mnemoscope._store.user_data import user_data_folder

_FOLDER = "unfinished"
Head = tuple[int, str]
"""The number of lines of a journal, and the head of its hash chain after them."""


class UnfinishedRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of one run."""

    path: str
    key: str
    """Of the hash chains of its spools."""
    id: str = ""
    manifest: list[str] = []
    """The sha256 of the manifest; two while it is replaced."""
    trials: Head | None = None
    timings: Head | None = None
    """The journals after the last merge; they are longer if the process was killed."""


def unfinished_run(run: Path, id: str = "") -> UnfinishedRun | None:
    """The record of the run in this folder; with its id also if the folder was moved."""
    own = _read(_place(run))
    if own is not None or not id:
        return own
    with suppress(OSError):
        for place in (user_data_folder() / _FOLDER).iterdir():
            found = _read(place)
            if found is not None and found.id == id and not Path(found.path).exists():
                moved = msgspec.structs.replace(found, path=str(run.resolve()))
                write_atomically(_place(run), encode_json(moved))
                place.unlink()
                return moved
    return None


def begin_unfinished(run: Path, id: str) -> None:
    """Record that a run begins; spools that were prepared for it keep their key."""
    place = _place(run)
    _keys.clear()
    before = _read(place) if (run / "units").exists() else None
    key = before.key if before else secrets.token_hex(32)
    _write(place, UnfinishedRun(str(run.resolve()), key, id))


def note_unfinished(
    run: Path,
    *,
    manifest: list[str] | None = None,
    trials: Head | None = None,
    timings: Head | None = None,
) -> None:
    """Record the new state of some of its files."""
    place = _place(run)
    before = _read(place) or UnfinishedRun(str(run.resolve()), secrets.token_hex(32))
    now = msgspec.structs.replace(
        before,
        manifest=before.manifest if manifest is None else manifest,
        trials=trials or before.trials,
        timings=timings or before.timings,
    )
    if now != before:
        _write(place, now)


def spool_key(run: Path) -> str:
    """The key of the run's spools, made if there is none; empty if it cannot be kept."""
    known = _keys.get((user_data_folder(), run))
    if known is None:
        found = unfinished_run(run)
        if found is None:
            note_unfinished(run, manifest=[""])
            found = unfinished_run(run)
        known = found.key if found else ""
        if run.is_absolute():
            _keys[user_data_folder(), run] = known
    return known


_keys: dict[tuple[Path, Path], str] = {}
"""The keys that were read, by data folder and run: each spool of a run needs it."""
os.register_at_fork(after_in_child=_keys.clear)  # the parent may begin the run anew


def forget_unfinished(run: Path) -> None:
    """The run is finished: its seal and the ledger vouch for it."""
    _keys.clear()
    with suppress(OSError):
        _place(run).unlink(missing_ok=True)


def _place(run: Path) -> Path:
    name = hashlib.sha256(str(run.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return user_data_folder() / _FOLDER / f"{name[:32]}.json"


def _read(place: Path) -> UnfinishedRun | None:
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(place.read_bytes(), type=UnfinishedRun)
    return None


def _write(place: Path, record: UnfinishedRun) -> None:
    with suppress(OSError):  # the run cannot be continued then, and says why
        make_private_folder(place.parent)
        # The journals that it is about are not on the disk yet, either.
        write_atomically(place, encode_json(record), settle=False)
