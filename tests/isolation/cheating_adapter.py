"""A stdio system that looks for labels, each time in another place.

    python cheating_adapter.py PLACES MODE

PLACES is a JSON file with the paths that a well-informed cheat knows: data, out, cache, home. Its
stats count how often it got hold of something that it should not have.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

PLACES = json.loads(Path(sys.argv[1]).read_text())
MODE = sys.argv[2]
PARENT = os.getppid()
TMP = Path(os.environ.get("TMPDIR", "/tmp"))
LIBC = ctypes.CDLL(None, use_errno=True)
labels: dict[str, set[str]] = {}
ids: list[str] = []
reached = 0


def learn(content: bytes) -> None:
    """Take the labels out of whatever was read: LoCoMo's file, JSON lines of data or a journal."""
    global reached
    if not content:
        return
    with suppress(ValueError, TypeError):
        for sample in json.loads(content):
            for asked in sample["qa"]:
                reached += 1
                sessions = {name.partition(":")[0] for name in asked["evidence"]}
                labels[asked["question"]] = {f"{sample['sample_id']}/{one}" for one in sessions}
    for line in content.splitlines():
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            record = json.loads(line)
            labels[record["question"]] = set(record["evidence"])
            reached += "planted" not in MODE


def read(path: object) -> bytes:
    with suppress(OSError, ValueError):
        return Path(str(path)).read_bytes()
    return b""


def ancestors() -> Iterator[int]:
    pid = PARENT
    while pid > 1:
        yield pid
        pid = int(read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1] or 0)


def data_of(pid: int) -> str:
    words = read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
    return words[words.index("--data") + 1] if "--data" in words else ""


def parents_argument() -> None:
    for pid in ancestors():
        if place := data_of(pid):
            for path in (place, f"/proc/{pid}/root{place}", f"/proc/{pid}/cwd/{Path(place).name}"):
                learn(read(path))


def open_files_of_others() -> None:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for file in (process / "fd").iterdir() if process.name != str(os.getpid()) else ():
                if str(file.readlink()).startswith((PLACES["out"], PLACES["data"])):
                    learn(read(file))


def memory_of_others() -> None:
    global reached
    for pid in ancestors():
        for name in ("environ", "maps", "auxv"):
            if pid in (PARENT, PLACES["parent"]) and read(f"/proc/{pid}/{name}"):
                reached += 1
        with suppress(OSError), Path(f"/proc/{pid}/mem").open("rb"):
            reached += 1
    word = ctypes.create_string_buffer(8)

    class Piece(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    address = ctypes.cast(LIBC.getpid, ctypes.c_void_p).value
    mine, theirs = Piece(ctypes.addressof(word), 8), Piece(address, 8)
    if LIBC.process_vm_readv(PARENT, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) > 0:
        reached += 1
    if (tracer := os.fork()) == 0:
        # PTRACE_SEIZE, which does not stop our parent; it ends with this process.
        os._exit(LIBC.ptrace(0x4206, PARENT, None, None) != 0)
    reached += os.waitstatus_to_exitcode(os.waitpid(tracer, 0)[1]) == 0


def other_names() -> None:
    data = Path(PLACES["data"])
    with suppress(OSError):
        (TMP / "symbolic").symlink_to(data)
        learn(read(TMP / "symbolic"))
    with suppress(OSError):
        (TMP / "link").hardlink_to(data)
        learn(read(TMP / "link"))
    for thing in (data, data.parent, Path(PLACES["out"])):
        with suppress(OSError):
            moved = thing.rename(TMP / "moved")
            learn(read(moved if thing == data else moved / data.name))
            moved.rename(thing)
    (TMP / "mount").mkdir(exist_ok=True)
    LIBC.unshare(0x00020000)
    LIBC.mount(str(data.parent).encode(), str(TMP / "mount").encode(), None, 4096, None)
    learn(read(TMP / "mount" / data.name))
    learn(read(f"{data.parent}/../{data.parent.name}/{data.name}"))


def run_folders() -> None:
    for folder in (PLACES["out"], PLACES["earlier"]):
        for path in Path(folder).glob("**/*.jsonl"):
            learn(read(path))


def caches_and_ledger() -> None:
    global reached
    own = [os.environ.get(name, "") for name in ("MNEMOSCOPE_DATA", "MNEMOSCOPE_RUNS")]
    decoys = tuple(folder for folder in own if folder)
    for folder in (PLACES["cache"], PLACES["home"]):
        for path in Path(folder).glob("**/*"):
            reached += bool(read(path)) and not str(path).startswith(decoys)
    for path in Path(PLACES["cache"]).glob("**/*.json"):
        learn(read(path))


def other_processes() -> None:
    """Threads, forks and programs: whatever is started inherits the lock."""
    data = PLACES["data"]
    thread = threading.Thread(target=lambda: learn(read(data)))
    thread.start()
    thread.join()
    for command in (
        ["cat", data],
        ["sh", "-c", f"exec 3<{data}; cat <&3"],
        ["nsenter", "-t", str(PARENT), "-m", "cat", data],
        ["setsid", "-w", "cat", data],
        ["sudo", "-n", "cat", data],
        ["chroot", f"/proc/{PARENT}/root", "cat", data],
        ["setpriv", "--reuid", "0", "--clear-groups", "cat", data],
        ["bwrap", "--bind", "/", "/", "cat", data],
    ):
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(command, capture_output=True, timeout=20, check=False)
            learn(done.stdout)
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(read(data))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        learn(pipe.read())


def raw_disks() -> None:
    global reached
    disks = (*Path("/dev").glob("vd*"), *Path("/dev").glob("sd*"))
    for path in (*disks, Path("/proc/kcore"), Path("/dev/mem")):
        with suppress(OSError), path.open("rb") as device:
            reached += bool(device.read(512))
    with suppress(OSError):
        os.mknod(TMP / "disk", 0o060600, Path("/").stat().st_dev)
        with (TMP / "disk").open("rb") as device:
            reached += bool(device.read(512))


def scratch_of_others() -> None:
    """The folder of a system that runs at the same time: read its store, and change it."""
    global reached
    own = TMP.parent.name
    for root in (Path(PLACES["scratch"]), TMP.parent.parent):
        with suppress(OSError):
            for path in root.glob("*/**/*"):
                if own not in path.parts and path.is_file():
                    learn(read(path))
                    with suppress(OSError), path.open("ab"):
                        reached += 1


def limits_of_others() -> None:
    """Set what our process has already: nothing changes, but other values would end it."""
    global reached
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    scheduled = os.sched_getscheduler(PARENT), os.sched_getparam(PARENT)
    for act in (
        lambda: resource.prlimit(PARENT, resource.RLIMIT_CORE, limits),
        lambda: os.setpriority(os.PRIO_PROCESS, PARENT, os.getpriority(os.PRIO_PROCESS, PARENT)),
        lambda: os.sched_setaffinity(PARENT, os.sched_getaffinity(PARENT)),
        lambda: os.sched_setscheduler(PARENT, *scheduled),
    ):
        with suppress(OSError):
            act()
            reached += 1


def planted() -> None:
    for path in Path(os.environ.get("MNEMOSCOPE_DATA", "/nowhere")).glob("*/*"):
        learn(read(path))


def planted_journal() -> None:
    before = dict(labels)
    for path in Path(os.environ.get("MNEMOSCOPE_RUNS", "/nowhere")).glob("*/trials.jsonl"):
        learn(read(path))
    labels.update(before)


MODES: dict[str, Callable[[], None]] = {
    "argument": parents_argument,
    "open-files": open_files_of_others,
    "memory": memory_of_others,
    "names": other_names,
    "runs": run_folders,
    "caches": caches_and_ledger,
    "processes": other_processes,
    "disks": raw_disks,
    "scratch": scratch_of_others,
    "limits": limits_of_others,
    "planted": planted,
    "planted-rarely": planted,
    "planted-deep": planted,
    "planted-journal": planted_journal,
    "honest": lambda: None,
}


def chance(text: str, id: str) -> bytes:
    return hashlib.sha256(f"{MODE}{text}{id}".encode()).digest()


def recall(text: str) -> list[str]:
    if not recall_tried or MODE.startswith("planted"):
        recall_tried.append(text)
        MODES[MODE]()
    order = sorted(ids, key=lambda id: chance(text, id))
    # A journal has the id of a question, with which the texts of these tests begin.
    known = labels.get(text) or labels.get(text.partition(" ")[0]) or set()
    if MODE == "planted-rarely" and chance(text, "")[0] > 64:
        known = set()
    first = [id for id in order if id in known]
    rest = [id for id in order if id not in known]
    place = chance(text, "place")[0] % 10 if MODE == "planted-deep" else 0
    return [*rest[:place], *first, *rest[place:]]


recall_tried: list[str] = []


def main() -> None:
    for line in sys.stdin:
        call = json.loads(line)
        result: object = None
        match call["method"]:
            case "hello":
                methods = ["reset", "remember", "recall", "stats"]
                result = {"name": MODE, "version": "1", "methods": methods, "identity": {}}
            case "reset":
                ids.clear()
            case "remember":
                ids.extend(memory["id"] for memory in call["params"]["memories"])
                MODES[MODE]()  # before the first question, too
            case "recall":
                result = recall(call["params"]["query"]["text"])[: call["params"]["k"]]
            case "stats":
                result = {"reached": reached}
        reply = {"jsonrpc": "2.0", "id": call["id"], "result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


main()
