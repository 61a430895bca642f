"""The filter of system calls: what a locked system cannot do to others, and what it still can."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.isolation.mechanisms import require
from tests.optional import missing

from mnemoscope._store.errors import UsageError
from mnemoscope.connectors.child_process import Child
from mnemoscope.isolation import system_calls
from mnemoscope.isolation.lock import Lock, lock_children
from mnemoscope.isolation.system_calls import has_filter

ALLOWED, DENIED, KILLED = system_calls._ALLOW, 0x00050000 | errno.EPERM, system_calls._KILL
OWN, OLDER, NEWER, ADDRESS = 5000, 4000, 6000, 0x7F00_0000_0000
BEFORE_THE_IDS_BEGAN_AGAIN = 7000


def decide(machine: str, number: int, *arguments: int, arch: int = 0) -> int:
    """What the filter of a process with the id OWN returns, by the rules of BPF."""
    calls = system_calls._CALLS[machine]
    data = {0: number, 4: arch or calls.machine}
    for place in range(6):
        value = arguments[place] if place < len(arguments) else 0
        data[16 + 8 * place], data[20 + 8 * place] = value & 0xFFFFFFFF, value >> 32
    steps = list(system_calls._steps(calls))
    place, loaded = 0, 0
    while True:
        step = steps[place]
        known = {system_calls._OWN: OWN, system_calls._OLDER: BEFORE_THE_IDS_BEGAN_AGAIN}
        value = known.get(step.value, step.value)
        place += 1
        match step.code:
            case system_calls._RETURN:
                return int(value)
            case system_calls._LOAD:
                loaded = data[value]
            case system_calls._EQUAL:
                place += step.if_true if loaded == value else step.if_false
            case system_calls._AT_LEAST:
                place += step.if_true if loaded >= value else step.if_false


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_decides_by_process(machine: str) -> None:
    calls = system_calls._CALLS[machine]

    for pid in (0, OWN):
        assert decide(machine, calls.set_limits, pid, 7, ADDRESS) == ALLOWED
    for pid in (OLDER, NEWER):
        assert decide(machine, calls.set_limits, pid, 7, 0, ADDRESS) == ALLOWED  # reads
        for address in (ADDRESS, 0x1000):
            assert decide(machine, calls.set_limits, pid, 7, address) == DENIED
    for number in calls.act_on:
        found = [decide(machine, number, pid) for pid in (0, OWN, NEWER, OLDER)]
        assert found == [ALLOWED, ALLOWED, ALLOWED, DENIED]
        for pid in (BEFORE_THE_IDS_BEGAN_AGAIN, BEFORE_THE_IDS_BEGAN_AGAIN + 1):
            assert decide(machine, number, pid) == DENIED
    for number, first in zip(calls.set_priority, (0, 1), strict=True):
        process, group, user = first, first + 1, first + 2
        assert decide(machine, number, process, OWN) == ALLOWED
        assert decide(machine, number, group, 0) == ALLOWED
        assert decide(machine, number, process, OLDER) == DENIED
        assert decide(machine, number, user, 0) == DENIED
    for number in calls.denied:
        assert decide(machine, number) == DENIED
    assert decide(machine, 0x40000001) == DENIED
    assert decide(machine, 1, arch=0x40000003) == KILLED


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[None]:
    require("Landlock")
    if not has_filter():
        missing("this machine has no filter of system calls")
    (tmp_path / "secret").touch()
    lock_children(Lock("Landlock", ((tmp_path / "secret").resolve(),)))
    yield
    lock_children(None)


def prints(program: str, *words: str) -> Any:
    """The JSON that a Python child prints."""
    child = Child([sys.executable, "-S", "-c", program, *words])
    try:
        return json.loads(next(child.lines(b"", 60.0)))
    finally:
        child.end()


# With arguments that no kernel accepts, so that nothing happens where a call is not denied.
CALLS = """
import ctypes, errno, json, os, sys
library = ctypes.CDLL(None, use_errno=True)
found = {}
for number in json.loads(sys.argv[1]):
    ctypes.set_errno(0)
    library.syscall(*map(ctypes.c_long, [number, -1, -1, -1, -1, -1, -1]))
    found[number] = errno.errorcode.get(ctypes.get_errno())
print(json.dumps(found))
"""


def test_calls_that_act_on_other_processes_or_leave_keys_are_denied(locked: None) -> None:
    calls = system_calls._calls()
    assert calls is not None
    numbers = json.dumps(calls.denied)

    assert set(prints(CALLS, numbers).values()) == {"EPERM"}
    lock_children(None)
    without = prints(CALLS, numbers)
    assert os.geteuid() != 0 or "EPERM" not in without.values()


FOREIGN = """
import ctypes, json, mmap, os
def run():
    place = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    place.write(bytes.fromhex("b814000000cd80c3"))  # getpid of the 32-bit table
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(place)))()
    os._exit(0)
child = os.fork() or run()
print(json.dumps(-os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""


def test_the_calls_of_another_machine_are_no_way_around(locked: None) -> None:
    calls = system_calls._calls()
    if calls is None or calls.machine != 0xC000003E:
        missing("this machine is not an x86_64")

    assert prints(FOREIGN) in (signal.SIGSYS, signal.SIGSEGV)  # the latter: no 32-bit programs
    assert prints(CALLS, json.dumps([0x40000000 + 302])) == {str(0x40000000 + 302): "EPERM"}


def test_a_filter_that_does_not_hold_stops_the_start(
    locked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow = system_calls._return(ALLOWED)
    monkeypatch.setattr(system_calls, "_steps", lambda calls: iter([allow]))

    with pytest.raises(UsageError, match=r"failed its self-test.*could set the limits of our"):
        Child([sys.executable, "-c", "pass"])


HONEST = """
import asyncio, ctypes, json, multiprocessing, os, resource, sqlite3, subprocess, sys, tempfile
import threading

def in_a_thread():
    library = ctypes.CDLL(None, use_errno=True)
    library.pthread_self.restype = ctypes.c_ulong
    some = (ctypes.c_ulong * 16)()
    own = ctypes.c_ulong(library.pthread_self())
    assert library.pthread_getaffinity_np(own, ctypes.c_size_t(128), some) == 0
    done.append(library.pthread_setaffinity_np(own, ctypes.c_size_t(128), some))
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0))

def in_a_process(number):
    os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))
    os.nice(1)
    return number * 2

async def in_a_loop():
    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    return (await child.communicate(b"said"))[0].decode()

done = []
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (min(soft, 256), hard))
with multiprocessing.get_context("fork").Pool(2) as pool:
    done += pool.map(in_a_process, [1, 2])
done.append(asyncio.run(in_a_loop()))
with sqlite3.connect(os.path.join(tempfile.mkdtemp(), "db")) as store:
    store.execute("create virtual table t using fts5(a)")
    store.execute("insert into t values ('found')")
    done += store.execute("select a from t where t match 'found'").fetchone()
print(json.dumps(done))
"""


def test_honest_systems_use_threads_processes_limits_and_priorities(locked: None) -> None:
    assert prints(HONEST) == [0, 2, 4, "said", "found"]


ON_OUR_PROCESS = """
import json, os, sys
parent, denied = int(sys.argv[1]), 0
for act in (
    lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent)),
    lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent)),
):
    try:
        act()
    except PermissionError:
        denied += 1
print(json.dumps([os.getpid(), denied]))
"""


def test_ids_that_began_again_do_not_make_our_process_look_newer(locked: None) -> None:
    last = Path("/proc/sys/kernel/ns_last_pid")
    try:
        last.write_text("2")
    except OSError:
        missing("the ids of processes cannot be made to begin again")
    own, denied = prints(ON_OUR_PROCESS, str(os.getpid()))

    assert own < os.getpid()
    assert denied == 2


def test_a_program_in_node_runs(locked: None) -> None:
    if (node := shutil.which("node")) is None:
        missing("this machine has no node")
    program = (
        "const {Worker} = require('worker_threads'), os = require('os');"
        "os.setPriority(os.getPriority());"
        "new Worker('require(\"worker_threads\").parentPort.postMessage(7)', {eval: true})"
        ".on('message', found => console.log(found + os.getPriority(process.pid) * 0));"
    )
    child = Child([node, "-e", program])
    try:
        assert next(child.lines(b"", 60.0)) == b"7"
    finally:
        child.end()


def test_root_can_neither_set_the_clock_nor_stop_the_machine(locked: None) -> None:
    status = "import json; print(json.dumps(open('/proc/self/status').read()))"
    [line] = [line for line in prints(status).splitlines() if line.startswith("CapEff")]
    for capability in (22, 25):
        assert not int(line.split()[1], 16) >> capability & 1
