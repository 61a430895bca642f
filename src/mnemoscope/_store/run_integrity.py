"""Whether the files of a run are what the run wrote: by its seal, its manifest and the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from mnemoscope._store.attempt_ledger import COPY, AttemptLedger, read_ledger
from mnemoscope._store.errors import EditedRun
from mnemoscope._store.fingerprint import fingerprint, sha256_file
from mnemoscope._store.journal_chain import CHAIN, TIMINGS, TRIALS, FileHead, JournalChain
from mnemoscope._store.seal import ABSENT, BLOCKED_FILE, OPTIONAL, SEAL, problems
from mnemoscope._store.unfinished_runs import unfinished_run

RECORDED = ("trials.jsonl", "raw_retrievals.jsonl", "questions.jsonl", "metrics.json")
"""The files that every finished run has, and a release records."""
HASHED = (*RECORDED, "timings.jsonl", "timing.json", CHAIN)
"""The files whose hashes are in a finished run's manifest, besides those of answers."""
_CHANGED = "was changed after the run"


class SealedManifest(Protocol):
    """What is read here of a manifest."""

    schema: int
    state: Any
    identity: dict[str, Any]
    fingerprint: str
    files: dict[str, str]
    id: str


def edited_files(
    folder: Path, manifest: SealedManifest, sha256: str, sealed: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The files of a sealed run that were edited, each with the rest of a sentence."""
    if manifest.state != "complete":  # killed while it was finished
        return {}
    if fingerprint(manifest.identity) != manifest.fingerprint:
        return {"manifest.json": _CHANGED}
    expected: dict[str, Sequence[str]] = dict.fromkeys((*HASHED, *OPTIONAL), (ABSENT,))
    expected |= {name: (own,) for name, own in manifest.files.items()}
    expected |= sealed
    copy = read_ledger(folder.parent / COPY)
    for line in copy.lines:
        for name, own in line.files.items():
            expected[f"../{name}"] = (*expected.get(f"../{name}", ()), own)
    found = problems(folder, expected)
    if (folder / "units").exists():
        found["units"] = "was added after the run"
    for ledger in (read_ledger(), copy):
        lines = ledger.of_run(manifest.id)
        known = {line.manifest for line in lines if line.manifest}
        # A ledger that saw only a change, on another machine, does not know the original.
        if any(line.event == "finish" for line in lines) and sha256 not in known:
            found["manifest.json"] = "is not the one that the ledger of attempts recorded"
        if any(line.event == "block" for line in lines) and ABSENT in expected[BLOCKED_FILE]:
            found[BLOCKED_FILE] = "is missing: the run was blocked"
        if problem := _replaced(folder, manifest, ledger):
            found["manifest.json"] = problem
    return found


def edited_without_seal(folder: Path, manifest: SealedManifest) -> dict[str, str]:
    """The same for a run that has no seal: an unfinished one, or one of schema 1."""
    is_complete = manifest.state == "complete"
    if is_protected(folder, manifest):
        return {SEAL: "is missing"} if is_complete else {}
    for ledger in (read_ledger(), read_ledger(folder.parent / COPY)):
        if ledger.latest_at(folder) is not None:
            return {"manifest.json": "was changed: the ledger of attempts knows a newer run here"}
    files = {name: (own,) for name, own in manifest.files.items()} if is_complete else {}
    return {name: why for name, why in problems(folder, files).items() if name in files}


def is_protected(folder: Path, manifest: SealedManifest) -> bool:
    """Whether the run has a hash chain and, once it is finished, a seal."""
    return manifest.schema > 1 or "schema" in manifest.identity or (folder / CHAIN).exists()


def check_unfinished(folder: Path, manifest: SealedManifest) -> FileHead:
    """The head of an unfinished run's journal; an error if it is not what was recorded."""
    chain = JournalChain(folder, manifest.fingerprint)
    trials = folder / "trials.jsonl"
    if not chain.path.exists() and trials.exists() and trials.stat().st_size:
        raise EditedRun(chain.path, "is missing")
    chain.resume()
    for ledger in (read_ledger(), read_ledger(folder.parent / COPY)):
        for line in ledger.of_run(manifest.id):
            if line.event == "finish" and chain.head_after(line.lines) != line.head:
                raise EditedRun(trials, "was edited: the run was finished with other lines")
        if problem := _replaced(folder, manifest, ledger):
            raise EditedRun(folder / "manifest.json", problem)
    _check_record(folder, manifest, chain)
    return chain.last().trials


def _check_record(folder: Path, manifest: SealedManifest, chain: JournalChain) -> None:
    """Refuse to continue a run that is not as it was when it was interrupted."""
    place, record = folder / "manifest.json", unfinished_run(folder, manifest.id)
    if record is None:
        raise EditedRun(
            place,
            "cannot be continued: the user's data folder has no record of this unfinished run",
            "Choose another --out, or delete the folder, and run it again",
        )
    if sha256_file(place) not in record.manifest:
        raise EditedRun(place, "was changed after the run was interrupted")
    for name, end in ((TRIALS, record.trials), (TIMINGS, record.timings)):
        if end is not None and chain.head_after(end[0], name) != end[1]:
            raise EditedRun(folder / name, "is not the journal of the run that was interrupted")


def _replaced(folder: Path, manifest: SealedManifest, ledger: AttemptLedger) -> str:
    """What is wrong if the ledger knows another run in this folder."""
    last = ledger.latest_at(folder)
    if last is None or last.id == manifest.id:
        return ""
    return "has another id than the run that the ledger of attempts knows in this folder"
