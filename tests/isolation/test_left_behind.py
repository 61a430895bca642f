"""No process of a system outlives its child: not in another session, nor without its variables."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.isolation.mechanisms import LOCKS, require, use

import mnemoscope as ms
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.verify import verify
from mnemoscope.connectors.child_process import Child
from mnemoscope.isolation import left_behind
from mnemoscope.isolation.lock import Lock, Mechanism, lock_children

# A daemon: forked twice, in a session of its own, with none of the pipes of the system.
DAEMON = """
import os, sys
def daemon(place, environment):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            with open(place, "w") as file:
                file.write(str(os.getpid()))
            os.execve("/bin/sleep", [place, "600"], environment)
        os._exit(0)
    os.wait()
    while not os.path.exists(place) or not open(place).read():
        pass
"""
ADAPTER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from daemon import daemon
import os
for number, environment in enumerate((dict(os.environ), {})):
    daemon(f"{sys.argv[1]}/pids/{number}", environment)
for line in sys.stdin:
    call = json.loads(line)
    result = ids if call["method"] == "recall" else None
    if call["method"] == "hello":
        methods = ["reset", "remember", "recall"]
        result = {"name": "daemon", "version": "1", "methods": methods, "identity": {}}
    elif call["method"] == "remember":
        ids = [memory["id"] for memory in call["params"]["memories"]]
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "code" / "pids").mkdir(parents=True)
    (tmp_path / "code" / "daemon.py").write_text(DAEMON)
    (tmp_path / "code" / "adapter.py").write_text(ADAPTER)
    return tmp_path


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[None]:
    require("Landlock")
    (tmp_path / "secret").touch()
    lock_children(Lock("Landlock", (tmp_path / "secret",)))
    yield
    lock_children(None)


def is_gone(pid: int) -> bool:
    """Wait until a process that was killed has ended."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watch], [], [], 20.0)[0])
    finally:
        os.close(watch)


def start(place: Path, number: str, environment: str) -> int:
    program = (
        f"import sys; sys.path.insert(0, {str(place / 'code')!r})\n"
        f"from daemon import daemon; import os\n"
        f"daemon({str(place / 'code' / 'pids' / number)!r}, {environment})\n"
        "print('ready', flush=True); input()"
    )
    child = Child([sys.executable, "-S", "-c", program], scratch=tempfile.mkdtemp())
    next(child.lines(b"", 20.0))
    daemon = int((place / "code" / "pids" / number).read_text())
    os.kill(daemon, 0)
    child.close()
    return daemon


@pytest.mark.parametrize("environment", ["dict(os.environ)", "{}"])
def test_a_daemon_of_a_locked_child_ends_with_it_and_is_named(
    place: Path, locked: None, environment: str
) -> None:
    named: list[str] = []
    left_behind.on_left_behind(named.append)
    try:
        assert is_gone(start(place, "0", environment))
    finally:
        left_behind.on_left_behind(lambda name: None)
    assert named == ["sleep"]


def test_a_daemon_of_another_child_that_still_runs_is_left_alone(place: Path, locked: None) -> None:
    code = str(place / "code")
    program = (
        f"import sys; sys.path.insert(0, {code!r}); from daemon import daemon; import os\n"
        f"daemon({code + '/pids/other'!r}, dict(os.environ)); print('ready', flush=True); input()"
    )
    other = Child([sys.executable, "-S", "-c", program], scratch=tempfile.mkdtemp())
    next(other.lines(b"", 20.0))
    spared = int((place / "code" / "pids" / "other").read_text())

    assert is_gone(start(place, "0", "{}"))
    os.kill(spared, 0)
    other.close()
    assert is_gone(spared)


def test_our_own_children_are_left_alone(place: Path, locked: None) -> None:
    with subprocess.Popen(["sleep", "600"]) as ours:
        assert is_gone(start(place, "0", "{}"))
        assert ours.poll() is None
        ours.kill()


def test_a_daemon_ends_if_our_process_is_killed(place: Path) -> None:
    program = (
        "import os, signal, sys, tempfile\n"
        "from mnemoscope.connectors.child_environment import child_environment\n"
        "from mnemoscope.connectors.child_process import Child\n"
        "from mnemoscope.isolation.scratch import make_scratch\n"
        "scratch = make_scratch('test')\n"
        'code = "import sys; sys.path.insert(0, sys.argv[1]); from daemon import daemon; import '
        "os; daemon(sys.argv[1] + '/pids/0', dict(os.environ)); print(1, flush=True); input()\"\n"
        "words = [sys.executable, '-S', '-c', code, sys.argv[1]]\n"
        "child = Child(words, child_environment(scratch), scratch)\n"
        "next(child.lines(b'', 20.0))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(place / "code")], check=False)

    assert done.returncode == -signal.SIGKILL
    assert is_gone(int((place / "code" / "pids" / "0").read_text()))


@pytest.mark.parametrize("mechanism", LOCKS)
def test_no_process_outlives_its_run_and_the_run_says_so(
    place: Path,
    mechanism: Mechanism,
    write_locomo: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(mechanism, monkeypatch)
    code = place / "code"
    (place / "data").mkdir()
    write_locomo(place / "data" / "locomo10.json", 1, 4, 3)
    found = ms.run(
        "locomo",
        systems={"daemon": f"stdio:{sys.executable} -S {code}/adapter.py {code},live=on"},
        data=place / "data",
        out=place / "out",
        baselines=False,
        workers=1,
        progress=False,
    )

    assert len([*(code / "pids").iterdir()]) == 2
    commands = []
    for pid in left_behind._processes():
        with suppress(OSError):
            commands.append(Path(f"/proc/{pid}/cmdline").read_bytes())
    assert not [one for one in commands if one.startswith(bytes(code / "pids"))]
    isolation = found["daemon"].manifest.isolation
    assert isolation is not None
    why = verify(RunDirectory(place / "out" / "daemon")).gate("isolation").why
    if mechanism == "Landlock":  # bubblewrap's own processes end with its process namespace
        assert isolation.left_behind == ("sleep",)
        assert "processes that it left behind were ended: sleep" in why
