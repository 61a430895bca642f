"""Runs, caches and locks are their user's alone, whatever the umask is."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mnemoscope._store.jsonl import Journal, write_atomically, write_json
from mnemoscope._store.private_files import make_private, make_private_folder, open_private
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.connectors.server_lock import ServerLock
from mnemoscope.datasets._io.download import download
from mnemoscope.datasets.base import PinnedFile
from mnemoscope.models import cache as caches
from mnemoscope.models.budget import Budget
from mnemoscope.models.cache import ContentCache


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o277], ids=lambda umask: f"umask {umask:03o}")
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> set[tuple[str, int]]:
    """The kinds and modes of everything in the folder."""
    return {("folder" if one.is_dir() else "file", mode(one)) for one in folder.rglob("*")}


PRIVATE = {("file", 0o600), ("folder", 0o700)}


@pytest.mark.usefixtures("_umask")
def test_everything_that_we_write_is_private(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"data")
    place = tmp_path / "ours"
    write_json(place / "a" / "b.json", {})
    write_atomically(place / "c", b"")
    with Journal(place / "units" / "0.jsonl") as journal:
        journal.append({})
    run = RunDirectory(place / "runs" / "bm25")
    run.open({"benchmark": "x"})
    run.release()
    cache = ContentCache(place / "cache" / "vectors.sqlite", "name")
    cache.get_or_compute(["text"], lambda texts: [b"1"])
    assert {"vectors.sqlite", "vectors.sqlite-wal", "vectors.sqlite.lock"} <= {
        one.name for one in (place / "cache").iterdir()
    }
    Budget(1.0, 0.0, 1, place / "budget" / "lock")
    download(PinnedFile(source.as_uri(), None, None), place / "data" / "file")
    assert modes(place) == PRIVATE
    assert mode(place) == 0o700
    cache.close()


def test_an_existing_run_and_its_files_are_taken_away_from_others(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.open({"benchmark": "x"})
    run.release()
    for path in (run.path, run.path / ".lock", run.trials_path):
        path.touch()
        path.chmod(0o755 if path.is_dir() else 0o644)
    run.open({"benchmark": "x"})
    Journal(run.trials_path).close()
    run.release()
    assert mode(run.path) == 0o700
    assert modes(run.path) == {("file", 0o600)}


def test_a_folder_of_the_user_that_is_not_a_run_keeps_its_mode(tmp_path: Path) -> None:
    """`--out .` must not take a project away from its group."""
    tmp_path.chmod(0o755)
    run = RunDirectory(tmp_path)
    run.open({"benchmark": "x"})
    run.release()
    assert mode(tmp_path) == 0o755
    assert modes(tmp_path) == {("file", 0o600)}


def test_our_own_cache_folder_is_tightened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "mnemoscope"
    own.mkdir()
    own.chmod(0o755)
    old = own / "tokens.sqlite"
    old.touch()
    old.chmod(0o644)
    monkeypatch.delenv("MNEMOSCOPE_CACHE")
    monkeypatch.setattr(caches, "default_cache_dir", lambda: own)
    cache = ContentCache(old, "name")
    cache.get_or_compute(["text"], lambda texts: [b"1"])
    assert mode(own) == 0o700
    assert modes(own) == {("file", 0o600)}
    cache.close()


def test_a_chosen_cache_folder_that_others_can_write_gets_one_note(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o777)
    for name in ("one", "other"):
        cache = ContentCache(tmp_path / name, "name")
        cache.get_or_compute(["text"], lambda texts: [b"1"])
        cache.close()
    notes = [record.getMessage() for record in caplog.records]
    assert notes == [
        f"note: other users of this machine can use the folder {tmp_path}; "
        f"run: chmod 700 {tmp_path}"
    ]
    assert mode(tmp_path) == 0o777
    assert modes(tmp_path) == {("file", 0o600)}


def test_a_folder_for_all_users_is_never_tightened(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    make_private(tmp_path)
    assert mode(tmp_path) == 0o1777


def test_a_folder_that_cannot_be_tightened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(self: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    tmp_path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", refused)
    with caplog.at_level(logging.WARNING):
        make_private(tmp_path)
    assert f"chmod 700 {tmp_path}" in caplog.text


def test_only_new_folders_get_our_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path / "a" / "b")
    assert [mode(tmp_path / one) for one in (".", "a", "a/b")] == [0o755, 0o700, 0o700]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"exists|directory"):
        make_private_folder(tmp_path / "file")


def test_a_descriptor_is_not_inherited_by_programs_that_we_start(tmp_path: Path) -> None:
    file = open_private(tmp_path / "file", os.O_RDWR)
    asked = subprocess.run(
        [sys.executable, "-c", f"import os; os.fstat({file})"],
        capture_output=True,
        close_fds=False,
        check=False,
    )
    assert b"Bad file descriptor" in asked.stderr
    os.close(file)


def test_a_lock_does_not_follow_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lock = ServerLock("a server")
    lock.take()
    lock.release()
    [made] = tmp_path.iterdir()
    assert mode(made) == 0o600
    made.unlink()
    made.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        lock.take()
    assert not (tmp_path / "elsewhere").exists()


def test_a_whole_run_is_private(write_locomo: Callable[..., Path], tmp_path: Path) -> None:
    from mnemoscope.api import run

    data = write_locomo(tmp_path / "locomo10.json", conversations=1, sessions=2, questions=2)
    before = os.umask(0)
    try:
        run("locomo", systems=["bm25"], data=data, out=tmp_path / "out", workers=1)
    finally:
        os.umask(before)
    assert (tmp_path / "out" / "bm25" / "report.md").exists()
    assert modes(tmp_path / "out") <= PRIVATE
