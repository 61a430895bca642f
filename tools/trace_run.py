"""Counts and traces the functions of the package that a command calls.

    python tools/trace_run.py run locomo --data locomo10.json --system hybrid --out /tmp/run

prints how many functions were called, in how many files, and from which room into which. The
processes that the command forks count, too. A function is one `def`: lambdas, comprehensions,
module and class bodies do not count.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = str(ROOT / "src" / "mnemoscope") + os.sep
SEPARATOR = "\t"


class Call(NamedTuple):
    """The first call of a function in a process."""

    process: int
    depth: int
    """How many calls from one room into another lead to it."""
    room: str
    caller: str
    """The room that called it."""
    function: str
    """File, line and name."""


@contextlib.contextmanager
def recorded(calls: list[Call]) -> Iterator[None]:
    """While the block runs, note first calls in this process and those it forks."""
    with tempfile.NamedTemporaryFile(suffix=".calls") as log:
        seen: set[tuple[int, CodeType]] = set()

        def note(frame: FrameType, event: str, argument: object) -> None:
            code = frame.f_code
            if event != "call" or (os.getpid(), code) in seen:
                return
            seen.add((os.getpid(), code))
            if not _is_ours(code):
                return
            rooms = _rooms(frame)
            depth = sum(one != other for one, other in pairwise(rooms))
            caller = rooms[1] if len(rooms) > 1 else ""
            place = code.co_filename.removeprefix(PACKAGE)
            name = f"{place}:{code.co_firstlineno} {code.co_qualname}"
            line = SEPARATOR.join((str(os.getpid()), str(depth), rooms[0], caller, name))
            with open(log.name, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(line + "\n")

        threading.setprofile(note)
        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            for line in Path(log.name).read_text(encoding="utf-8").splitlines():
                process, depth, room, caller, name = line.split(SEPARATOR)
                calls.append(Call(int(process), int(depth), room, caller, name))


def _is_ours(code: CodeType) -> bool:
    is_function = bool(code.co_flags & inspect.CO_NEWLOCALS)
    return code.co_filename.startswith(PACKAGE) and is_function and "<" not in code.co_name


def _rooms(frame: FrameType | None) -> list[str]:
    """The rooms of the frames from here outwards."""
    found = []
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE):
            found.append(_room(name.removeprefix(PACKAGE)))
        frame = frame.f_back
    return found


def _room(place: str) -> str:
    """The room of a file, given below the package."""
    return Path(place).parts[0].removesuffix(".py")


def trace() -> dict[str, list[str]]:
    """`trace_here` in a fresh process: what is imported already is not called again."""
    command = [sys.executable, __file__, "--trace"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def trace_here() -> dict[str, list[str]]:
    """A small run's first calls from one room into another: of the parent, and of its worker."""
    from mnemoscope.cli.app import invoke

    calls: list[Call] = []
    corpus = ROOT / "examples" / "strata"
    own = {"MNEMOSCOPE_CACHE": "cache", "MNEMOSCOPE_DATA_HOME": "home"}
    with tempfile.TemporaryDirectory() as place, patch.dict(os.environ):
        os.environ.update({name: f"{place}/{folder}" for name, folder in own.items()})
        out = f"{place}/out"
        command = "run strata --system hybrid --no-baselines --workers 1 --data"
        quiet = contextlib.redirect_stdout(io.StringIO())
        with quiet, contextlib.redirect_stderr(io.StringIO()), recorded(calls):
            if invoke([*command.split(), str(corpus), "--out", out]) != 0:
                raise RuntimeError(f"{command} failed: run it by itself to see why")
    lines: dict[str, list[str]] = {"The command": [], "The worker process": []}
    for call in calls:
        # A call without a caller begins a thread: when that is, varies.
        if call.room != call.caller and (call.caller or call is calls[0]):
            _, _, name = call.function.partition(" ")
            module = call.function.partition(":")[0].removesuffix(".py").replace(os.sep, ".")
            process = "The command" if call.process == os.getpid() else "The worker process"
            lines[process].append(f"{'  ' * call.depth}{module}.{name}")
    return lines


def main(arguments: list[str]) -> int:
    """Run the command, then print the counts to stderr; $CALLS names a file for the list."""
    from mnemoscope.cli.app import invoke

    if arguments == ["--trace"]:
        print(json.dumps(trace_here()))
        return 0
    calls: list[Call] = []
    with recorded(calls):
        code = invoke(arguments)
    functions = sorted({call.function for call in calls})
    if place := os.environ.get("CALLS"):
        Path(place).write_text("\n".join(functions) + "\n", encoding="utf-8")
    files = {name.partition(":")[0] for name in functions}
    print(f"{len(functions)} functions in {len(files)} files", file=sys.stderr)
    rooms = Counter(_room(name.partition(":")[0]) for name in functions)
    for room, number in rooms.most_common():
        print(f"  {number:4} {room}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
