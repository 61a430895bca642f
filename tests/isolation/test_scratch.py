"""Scratch folders: one folder of the user above them all, and no way to those of other systems."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.isolation.mechanisms import LOCKS, require
from tests.optional import missing

from mnemoscope._store.errors import UsageError
from mnemoscope.connectors.child_environment import child_environment
from mnemoscope.connectors.child_process import Child
from mnemoscope.isolation import scratch
from mnemoscope.isolation.hidden_paths import all_names
from mnemoscope.isolation.lock import Lock, Mechanism, lock_children
from mnemoscope.isolation.scratch import make_scratch, scratch_root

# Writes its own note, waits for the folder of another system, and tries what it can do there.
NEIGHBOUR = """
import os
place = os.environ["TMPDIR"] + "/note"
open(place, "w").write("mine")
print(os.path.dirname(os.environ["TMPDIR"]), flush=True)
def allowed(call, *given):
    try:
        call(*given)
        return True
    except OSError:
        return False
while other := input():
    root, note = os.path.dirname(other), other + "/tmp/note"
    print(*[name for name, is_allowed in {
        "read": allowed(open, note),
        "write": allowed(open, note, "a"),
        "make": allowed(os.mkdir, other + "/tmp/made"),
        "remove": allowed(os.remove, note),
        "rename": allowed(os.rename, other, other + "-moved"),
        "link": allowed(os.link, note, place + "-link"),
        "own": open(place).read() == "mine",
        "own folder": allowed(os.mkdir, place + "-folder"),
    }.items() if is_allowed], flush=True)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path.resolve()


@pytest.fixture(params=LOCKS)
def locked(place: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    mechanism: Mechanism = request.param
    require(mechanism)
    lock_children(Lock(mechanism, all_names([scratch_root()])))
    yield
    lock_children(None)


def start() -> tuple[Child, str]:
    own = make_scratch("host")
    child = Child([sys.executable, "-S", "-c", NEIGHBOUR], child_environment(own), own)
    return child, next(child.lines(b"", 20.0)).decode()


def test_a_system_reaches_no_other_scratch_folder_whether_older_or_newer(locked: None) -> None:
    started = [start(), start()]
    try:
        (older, old_folder), (newer, new_folder) = started

        for child, other in ((older, new_folder), (newer, old_folder)):
            found = next(child.lines(f"{other}\n".encode(), 20.0)).decode()
            assert found == "own own folder"
        for folder in (old_folder, new_folder):
            assert Path(folder, "tmp", "note").read_text() == "mine"
    finally:
        for child, _ in started:
            child.end()
    assert [path.name for path in scratch_root().iterdir()] == ["README"]


def test_without_a_lock_the_same_system_reaches_it(place: Path) -> None:
    started = [start(), start()]
    try:
        (child, _), (_, other) = started
        found = next(child.lines(f"{other}\n".encode(), 20.0)).decode()
        assert found == "read write make remove rename own own folder"
    finally:
        for child, _ in started:
            child.end()


def test_all_scratch_folders_are_in_one_private_folder(place: Path) -> None:
    first, second = Path(make_scratch("host")), Path(make_scratch("mcp"))

    assert first.parent == second.parent == scratch_root() == place / f"mnemoscope-{os.geteuid()}"
    mode = 0o711 if os.geteuid() == 0 else 0o700  # PostgreSQL of root runs as another user
    assert stat.S_IMODE(first.parent.stat().st_mode) == mode
    assert stat.S_IMODE(first.stat().st_mode) == 0o700
    first.parent.chmod(0o777)
    assert stat.S_IMODE(scratch_root().stat().st_mode) == mode


def test_a_link_in_its_place_is_refused(place: Path) -> None:
    (place / "elsewhere").mkdir()
    (place / f"mnemoscope-{os.geteuid()}").symlink_to(place / "elsewhere")

    with pytest.raises(UsageError, match=r"belongs to another user, or is not a folder.*TMPDIR"):
        make_scratch("host")
    assert not list((place / "elsewhere").iterdir())


def test_a_folder_of_another_user_in_its_place_is_refused(place: Path) -> None:
    if os.geteuid() != 0:
        missing("only root can make a folder of another user")
    os.chown(scratch_root(), 65534, 65534)

    with pytest.raises(UsageError, match="belongs to another user"):
        make_scratch("host")


def test_tmp_itself_stays_free_for_programs_that_write_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    assert next(scratch._places()) == "/var/tmp"
