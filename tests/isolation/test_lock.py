"""The lock of a child: what it hides, what stays usable, and a self-test that can fail."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.optional import missing

from mnemoscope._store.errors import UsageError
from mnemoscope.connectors.child_process import AdapterDied, Child
from mnemoscope.isolation import hidden_paths
from mnemoscope.isolation import lock as locks
from mnemoscope.isolation.hidden_paths import all_names, contains, hard_links
from mnemoscope.isolation.landlock import landlock_abi
from mnemoscope.isolation.lock import Lock, access_hint, best_mechanism, lock_children


@pytest.fixture
def starts() -> Iterator[list[bool]]:
    """The results of the self-tests; the lock ends with the test."""
    if best_mechanism() != "Landlock":
        missing("this machine has no Landlock")
    found: list[bool] = []
    yield found
    lock_children(None)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("runs/bm25", "beside", "home/environments"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data.json").write_text("secret")
    (tmp_path / "runs" / "bm25" / "trials.jsonl").write_text("secret")
    (tmp_path / "home" / "ledger").write_text("secret")
    (tmp_path / "home" / "environments" / "python").write_text("open")
    (tmp_path / "beside" / "notes").write_text("open")
    (tmp_path / "module.py").write_text("WORD = 'imported'")
    return tmp_path


def hide(place: Path, found: list[bool], *kept: Path, more: tuple[Path, ...] = ()) -> Lock:
    hidden = all_names([place / "data.json", place / "runs", place / "home", *more])
    lock = Lock("Landlock", hidden, kept, guarded=(os.getppid(),))
    lock_children(lock, found.append)
    return lock


def prints(program: str) -> str:
    """The first line that a locked Python prints."""
    child = Child([sys.executable, "-S", "-c", program])
    try:
        return next(child.lines(b"", 20.0)).decode()
    finally:
        child.end()


def reads(path: Path) -> str:
    return prints(
        f"try: print(open({str(path)!r}).read())\nexcept OSError as error: print(error.strerror)"
    )


def test_hidden_files_are_denied_and_their_siblings_are_not(
    place: Path, starts: list[bool]
) -> None:
    hide(place, starts, place / "home" / "environments")

    denied = [place / "data.json", place / "runs" / "bm25" / "trials.jsonl", place / "home/ledger"]
    assert [reads(path) for path in denied] == ["Permission denied"] * 3
    assert reads(place / "beside" / "notes") == "open"
    assert reads(place / "home" / "environments" / "python") == "open"
    assert starts == [True] * 5


def test_a_module_beside_the_data_can_be_imported(place: Path, starts: list[bool]) -> None:
    hide(place, starts)

    program = f"import sys; sys.path.insert(0, {str(place)!r}); import module; print(module.WORD)"
    assert prints(program) == "imported"


def test_the_temporary_folder_is_writable_and_removed(place: Path, starts: list[bool]) -> None:
    hide(place, starts)

    program = (
        "import os, sqlite3, tempfile\n"
        "folder = tempfile.mkdtemp()\n"
        "sqlite3.connect(folder + '/db').execute('create table t (a)')\n"
        "print(folder, flush=True); input()"
    )
    child = Child([sys.executable, "-S", "-c", program])
    folder = Path(next(child.lines(b"", 20.0)).decode())
    assert folder.exists()
    child.end()
    assert not folder.exists()


def test_a_new_file_beside_hidden_ones_is_denied_with_a_hint(
    place: Path, starts: list[bool]
) -> None:
    hide(place, starts)

    child = Child([sys.executable, "-S", "-c", f"open({str(place / 'new')!r}, 'w')"])
    with pytest.raises(AdapterDied) as error:
        list(child.lines(b"", 20.0))

    assert "the system may write to $TMPDIR" in str(error.value)
    assert "--isolation 1 runs it without the lock" in str(error.value)


def test_a_folder_with_very_many_entries_is_no_problem(place: Path, starts: list[bool]) -> None:
    for number in range(3000):
        (place / f"entry{number}").touch()
    (place / "entry2999").write_text("last")
    hide(place, starts)

    assert reads(place / "entry2999") == "last"
    assert reads(place / "data.json") == "Permission denied"


def test_a_symbolic_link_hides_its_target(place: Path, starts: list[bool]) -> None:
    link = place / "beside" / "link.json"
    link.symlink_to(place / "data.json")
    hidden = all_names([link])
    lock_children(Lock("Landlock", hidden), starts.append)

    assert hidden == ((place / "data.json").resolve(),)
    assert reads(link) == "Permission denied"


def test_a_lock_that_does_not_hold_stops_the_start(place: Path, starts: list[bool]) -> None:
    hide(place, starts, place / "data.json")

    with pytest.raises(UsageError, match=r"failed its self-test.*could open .*data\.json"):
        Child([sys.executable, "-c", "pass"])
    assert starts == [False]


def test_code_inside_a_hidden_folder_is_refused_by_name(place: Path, starts: list[bool]) -> None:
    hide(place, starts)
    script = place / "runs" / "adapter.py"
    script.touch()

    with pytest.raises(UsageError, match=r"needs .*adapter\.py, which is in .*runs"):
        Child([sys.executable, str(script)])


def test_our_own_code_can_be_imported_and_not_changed(place: Path, starts: list[bool]) -> None:
    code, later = place / "beside", place / "later" / "site-packages"
    (code / "ours.py").write_text("WORD = 'ours'")
    lock = hide(place, starts)
    lock_children(msgspec.structs.replace(lock, read_only=(code, later)), starts.append)

    program = f"import sys; sys.path.insert(0, {str(code)!r}); import ours; print(ours.WORD)"
    assert prints(program) == "ours"
    for path in (code / "ours.py", code / "sitecustomize.py"):
        program = (
            f"try: print(open({str(path)!r}, 'a'))\nexcept OSError as error: print(error.strerror)"
        )
        assert prints(program) == "Permission denied"
    program = f"import os\ntry: print(os.makedirs({str(later)!r}))\nexcept OSError: print('denied')"
    assert prints(program) == "denied"


@pytest.mark.parametrize("setting", ["/proc/sys/kernel/core_pattern", "/proc/{}/oom_score_adj"])
def test_settings_of_the_kernel_and_of_our_process_cannot_be_changed(
    place: Path, starts: list[bool], setting: str
) -> None:
    """The kernel starts the program that `core_pattern` names without the lock, as root."""
    path = setting.format(os.getpid())
    hide(place, starts)
    program = (
        f"import os\ntry: print(os.open({path!r}, os.O_WRONLY))\n"  # opened, never written to
        f"except OSError as error: print(error.strerror)"
    )
    assert prints(program) == "Permission denied"
    # Processes that start after the lock can be looked up, as those of an honest system are.
    assert prints("import os; print(len(os.listdir('/proc/self/fd')) > 2)") == "True"
    assert prints("print(open('/proc/self/stat').read()[:0] + 'read')") == "read"


def test_processes_outside_cannot_be_reached_by_an_abstract_socket(
    place: Path, starts: list[bool]
) -> None:
    if landlock_abi() < 6:
        missing("this kernel's Landlock does not know sockets")
    hide(place, starts)
    name = f"\0mnemoscope-{os.getpid()}"
    program = (
        f"import socket\nclient = socket.socket(socket.AF_UNIX)\n"
        f"try: print(client.connect({name!r}))\nexcept OSError as error: print(error.strerror)"
    )
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        assert prints(program) == "Operation not permitted"
    lock_children(None)


def test_a_path_that_does_not_exist_yet_is_hidden_too(place: Path, starts: list[bool]) -> None:
    later = place / "later" / "run"
    hide(place, starts, more=(later,))
    assert reads(place / "beside" / "notes") == "open"
    later.mkdir(parents=True)
    (later / "trials.jsonl").write_text("secret")

    assert reads(later / "trials.jsonl") == "Permission denied"


def test_the_variables_of_the_bait_replace_ours(
    place: Path, starts: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_DATA", "/true/data")
    lock = hide(place, starts)
    lock_children(msgspec.structs.replace(lock, environment={"MNEMOSCOPE_DATA": "/bait"}))

    assert prints("import os; print(os.environ['MNEMOSCOPE_DATA'])") == "/bait"


def test_without_a_lock_the_place_of_the_data_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOSCOPE_DATA", "/true/data")

    assert prints("import os; print(os.environ.get('MNEMOSCOPE_DATA'))") == "None"


@pytest.mark.parametrize(
    ("error", "hinted"),
    [
        ("sqlite3.OperationalError: unable to open database file", True),
        ("[Errno 13] Permission denied: '/home/me/.mine'", True),
        ("Error: EACCES: permission denied, mkdir '/home/me/.mine'", True),
        ("ValueError: no such model", False),
    ],
)
def test_errors_of_the_lock_get_a_hint(
    place: Path, starts: list[bool], error: str, hinted: bool
) -> None:
    assert access_hint(error) == ""
    hide(place, starts)
    assert bool(access_hint(error)) is hinted


def test_a_file_is_hidden_under_every_mount(tmp_path: Path) -> None:
    for name in ("data", "mounted"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.json").touch()
    mounts = [
        hidden_paths._Mount("8:1", "/", "/"),
        hidden_paths._Mount("8:1", str(tmp_path / "data"), str(tmp_path / "mounted")),
        hidden_paths._Mount("8:2", str(tmp_path / "data"), str(tmp_path / "other")),
    ]

    found = hidden_paths._mounted_elsewhere(str(tmp_path / "data" / "x.json"), mounts)
    assert list(found) == [tmp_path / "mounted" / "x.json"]


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="/dev/shm is no file system of its own")
def test_devices_are_not_looked_for_in_file_systems_mounted_below_dev(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stat, "S_ISBLK", lambda mode: True)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file = Path(folder, "file")
        file.touch()
        found = hidden_paths.raw_disks()
    assert Path("/dev/null") in found
    assert file not in found


def test_hard_links_are_found(place: Path) -> None:
    assert hard_links([place / "data.json"]) == []
    (place / "beside" / "second").hardlink_to(place / "data.json")
    assert hard_links([place / "data.json"]) == [place / "data.json"]


def test_a_path_below_a_hidden_one_needs_no_rule(tmp_path: Path) -> None:
    hidden = all_names([tmp_path / "a" / "b", tmp_path / "a", tmp_path / "ab"])

    assert hidden == (tmp_path.resolve() / "a", tmp_path.resolve() / "ab")
    assert contains(hidden, tmp_path / "a" / "b" / "c") == tmp_path.resolve() / "a"
    assert contains(hidden, tmp_path / "abc") is None


# bubblewrap and sandbox-exec are not on this machine: the commands, and a stand-in that hides
# nothing, which the self-test must notice.


def test_bubblewrap_drops_all_capabilities_and_covers_each_path(place: Path) -> None:
    lock = Lock("bubblewrap", all_names([place / "data.json", place / "runs"]))
    words = locks._prefix(lock, str(place / "beside"))

    assert words[words.index("--cap-drop") + 1] == "ALL"
    assert words[words.index("--tmpfs") + 1] == str(place / "runs")
    assert ["/dev/null", str(place / "data.json")] == words[words.index("--ro-bind") + 1 :][:2]
    assert "--unshare-pid" in words


def test_sandbox_exec_denies_each_path() -> None:
    lock = Lock("sandbox-exec", (Path('/a "b"'), Path("/c")), (Path("/c/kept"),))
    *_, profile = locks._prefix(lock, "/scratch")

    assert '(deny file-read* file-write* (subpath "/a \\"b\\""))' in profile
    assert profile.index('(subpath "/c")') < profile.index('(subpath "/c/kept")')


@pytest.mark.parametrize("mechanism", ["bubblewrap", "sandbox-exec"])
def test_a_command_that_hides_nothing_fails_the_self_test(
    place: Path, mechanism: locks.Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = place / "beside" / "bwrap"
    stand_in.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ] && [ "$1" != /bin/sh ]; do shift; done\n'
        '[ "$1" = -- ] && shift\nexec "$@"\n'
    )
    stand_in.chmod(0o755)
    shutil.copy(stand_in, stand_in.with_name("sandbox-exec"))
    monkeypatch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")
    found: list[bool] = []
    lock_children(Lock(mechanism, all_names([place / "data.json"])), found.append)
    try:
        with pytest.raises(UsageError, match=r"failed its self-test.*could open .*data\.json"):
            Child([sys.executable, "-c", "pass"])
    finally:
        lock_children(None)
    assert found == [False]
