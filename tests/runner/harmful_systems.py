"""Systems that try to harm the run that they are part of, each in one way.

They answer like `hostile_systems.Plain`, and do harm when a question has the word "trouble" in it,
or where their name says. `EXPECTED` has the true status of each. The tests give them to a run as
classes, and start them as `serve_stdio harmful_systems:Name`.

More than a hundred processes import this module, so what few systems need is imported in them.
"""

from __future__ import annotations

import atexit
import builtins
import errno
import gc
import itertools
import os
import resource
import signal
import stat
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mnemoscope.types import Memory, Query, Selector

FOREVER = 3600.0


def hit(id: str, **fields: Any) -> Any:
    from mnemoscope.types import Hit

    return Hit(id, **fields)


class Harmless:
    """A correct system, which the others change."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def reset(self, scope: str) -> None:
        self.ids = []

    def remember(self, memories: Sequence[Memory]) -> Any:
        self.ids.extend(memory.id for memory in memories)
        return None

    def recall(self, query: Query, k: int) -> Any:
        wanted = query.text.split()[-1]
        start = self.ids.index(wanted) if wanted in self.ids else 0
        found = [*self.ids[start:], *self.ids[:start]][:k]
        return self.trouble(found) if "trouble" in query.text else found

    def trouble(self, found: list[str]) -> Any:
        return found


def hang() -> None:
    """Exceed the time limit of the call at once."""
    from tests.runner import hanging

    hanging.hang()


# Exceptions


class RaisesKeyboardInterrupt(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise KeyboardInterrupt


class RaisesGeneratorExit(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise GeneratorExit("leaving")


class RaisesStopIteration(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise StopIteration("nothing more")


class Unheard(BaseException):
    """An exception that `except Exception` does not catch."""


class RaisesBaseException(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise Unheard("not an Exception")


class RaisesSurrogates(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise ValueError("half a character: \ud800")


class RaisesEscapes(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise ValueError("\x1b[2J\x1b]0;owned\x07\n# a heading\r\u202e<script>")


class RaisesAMegabyte(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise ValueError("x" * 1_000_000)


class Wordless(Exception):
    def __str__(self) -> str:
        raise Unheard("no message")

    __repr__ = __str__


class RaisesWithoutMessage(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise Wordless


class Faceless(Exception):
    """Raises when it is asked for its class or its cause, and is its own cause."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise Unheard("no class")

    __cause__ = __context__ = property(lambda self: self)


class RaisesFaceless(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise Faceless("who")


class RaisesInACircle(Harmless):
    def trouble(self, found: list[str]) -> Any:
        first, second = ValueError("first"), ValueError("second")
        first.__cause__, second.__cause__ = second, first
        raise first


class RecursesForever(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return self.trouble(found)


class InterruptsItsEventLoop(Harmless):
    def trouble(self, found: list[str]) -> Any:
        async def found_later() -> Any:
            raise KeyboardInterrupt

        return found_later()


class ClaimsToBeLost(Harmless):
    """Raises the error of a connector whose server is gone, each time."""

    def trouble(self, found: list[str]) -> Any:
        from mnemoscope._store.errors import SystemLost

        raise SystemLost("gone \ud800")


# Replies


class ReturnsSurrogateId(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [*found, "\udfff"]


class ReturnsSurrogateText(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [hit(id, text="half \ud800") for id in found]


class ReturnsSurrogateSource(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [hit("fact", sources=("\ud800",))]


class ReturnsAnIdOfAMegabyte(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return ["x" * 1_000_000]


class ReturnsAMillionHits(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [*found, *map(str, range(1_000_000))]


class ReturnsWithoutEnd(Harmless):
    def trouble(self, found: list[str]) -> Iterator[str]:
        return itertools.chain(found, map(str, itertools.count()))


class ReturnsAGenerator(Harmless):
    """That blocks after its first hit."""

    def trouble(self, found: list[str]) -> Iterator[str]:
        yield found[0]
        hang()


class ReturnsAHugeText(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [hit(found[0], text="x" * (65 << 20))]


class ReturnsHugeSources(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [{"id": "fact", "sources": found[:1] * 1_000_001}]


class ReturnsAHugeNumber(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [10**5000]


class Touchy(str):
    """A text that raises when it is compared."""

    def __eq__(self, other: object) -> bool:
        raise Unheard("compared")

    def __hash__(self) -> int:
        raise Unheard("hashed")


class ReturnsTouchyIds(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [Touchy(id) for id in found]


class ReturnsTouchyHits(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [hit(Touchy(id), text=Touchy("own")) for id in found]


class Shapeless:
    def __repr__(self) -> str:
        raise Unheard("no shape")

    def __bool__(self) -> bool:
        raise Unheard("neither")


class ReturnsWhatCannotBeShown(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return Shapeless()


class ReturnsShapelessSources(Harmless):
    def trouble(self, found: list[str]) -> Any:
        sources: Any = Shapeless()
        return [hit(found[0], sources=sources)]


class ReturnsNan(Harmless):
    def trouble(self, found: list[str]) -> Any:
        return [(id, float(score)) for id, score in zip(found, ("nan", "inf", "-inf"), strict=True)]


# Ingestion and reports


class InterruptsReset(Harmless):
    def reset(self, scope: str) -> None:
        raise KeyboardInterrupt


class InterruptsRemember(Harmless):
    def remember(self, memories: Sequence[Memory]) -> Any:
        raise Unheard("too much")


class HangsInReset(Harmless):
    def reset(self, scope: str) -> None:
        hang()


class HangsInReady(Harmless):
    def ready(self) -> None:
        hang()


class RejectsWithSurrogates(Harmless):
    def remember(self, memories: Sequence[Memory]) -> Any:
        from mnemoscope.types import Receipt

        super().remember(memories)
        return Receipt(rejected={"\ud800": "\udfff"})


class TruncatesByNan(Harmless):
    def remember(self, memories: Sequence[Memory]) -> Any:
        super().remember(memories)
        return {"truncated": {memories[0].id: float("nan")}}


class ReportsAbsurdNumbers(Harmless):
    def stats(self) -> Any:
        return {"index_bytes": 10**400, "texts": float("nan"), "unit\ud800": -1, "more": {"a": []}}


class ReportsHugeNumbers(Harmless):
    def stats(self) -> Any:
        return {"index_bytes": 2**70}


class ReportsWithoutEnd(Harmless):
    def stats(self) -> Any:
        class Endless(dict[str, int]):
            def items(self) -> Any:
                return ((f"\x1b[2J{number}", 1) for number in itertools.count())

        return Endless()


class InterruptsItsReport(Harmless):
    def stats(self) -> Any:
        raise KeyboardInterrupt


# The process


class ForksInRecall(Harmless):
    """The copy of the process returns, too."""

    def trouble(self, found: list[str]) -> Any:
        os.fork()
        return found


class ForksInConstructor(Harmless):
    def __init__(self) -> None:
        super().__init__()
        os.fork()


class ForksInRemember(Harmless):
    def remember(self, memories: Sequence[Memory]) -> Any:
        if os.fork() == 0:
            raise ValueError("from the copy")
        return super().remember(memories)


class LeavesAProcess(Harmless):
    """The copy of the process stays; it writes its number to a file in $LEFT."""

    def trouble(self, found: list[str]) -> Any:
        pid = os.fork()
        if pid == 0:
            time.sleep(FOREVER)
            os._exit(0)
        if place := os.environ.get("LEFT"):
            (Path(place) / str(pid)).touch()
        return found


class DiesBehindAProcess(LeavesAProcess):
    """Leaves a process that holds its files open, and dies."""

    def trouble(self, found: list[str]) -> Any:
        super().trouble(found)
        os.kill(os.getpid(), signal.SIGKILL)


class ExitsInRecall(Harmless):
    def trouble(self, found: list[str]) -> Any:
        os._exit(0)


class RaisesSystemExit(Harmless):
    def trouble(self, found: list[str]) -> Any:
        sys.exit("leaving")


class ClosesFiles(Harmless):
    def trouble(self, found: list[str]) -> Any:
        os.closerange(3, 4096)
        return found


class ClosesStreams(Harmless):
    def trouble(self, found: list[str]) -> Any:
        with suppress(OSError):
            sys.stdout.close()
            sys.stderr.close()
        with suppress(OSError):
            os.close(2)
        return found


class WritesToSockets(Harmless):
    """Writes nonsense to every socket that it has inherited."""

    def trouble(self, found: list[str]) -> Any:
        import socket

        for number in (int(one.name) for one in Path("/proc/self/fd").iterdir()):
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    with socket.socket(fileno=os.dup(number)) as end:
                        end.sendall(b"\x00\x00\x00\x01d")  # a message of our own: done
        time.sleep(FOREVER)


class LowersLimits(Harmless):
    """So that no file can grow."""

    def trouble(self, found: list[str]) -> Any:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        return found


class UsesAllFiles(Harmless):
    def trouble(self, found: list[str]) -> Any:
        with suppress(OSError):
            while True:
                os.dup(2)
        return found


class ChangesFolder(Harmless):
    def remember(self, memories: Sequence[Memory]) -> Any:
        os.chdir("/")
        return super().remember(memories)


class LeavesThreads(Harmless):
    def trouble(self, found: list[str]) -> Any:
        threading.Thread(target=time.sleep, args=(FOREVER,)).start()
        return found


class HangsAtExit(Harmless):
    def trouble(self, found: list[str]) -> Any:
        atexit.register(time.sleep, FOREVER)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with suppress(ValueError):  # not in the main thread
                signal.signal(number, signal.SIG_IGN)
        return found


class HangsInClose(Harmless):
    def close(self) -> None:
        if self.ids:
            time.sleep(FOREVER)


class HangsInCloseOfEachScenario(HangsInClose):
    """Has no reset, so that it is closed after each scenario."""

    reset = property()


class ChangesTheInterpreter(Harmless):
    """Changes what all code in its process uses."""

    def remember(self, memories: Sequence[Memory]) -> Any:
        import decimal
        import locale
        import random

        gc.disable()
        random.seed(0)
        decimal.getcontext().prec = 1
        with suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, "")
        sys.setrecursionlimit(150)
        os.environ.clear()
        return super().remember(memories)


class PatchesTheHarness(Harmless):
    """Replaces functions of the harness and of Python, as far as it can."""

    def remember(self, memories: Sequence[Memory]) -> Any:
        import json

        from mnemoscope.runner.trial_builder import TrialBuilder
        from mnemoscope.systems.builtin.bm25 import Bm25
        from mnemoscope.text import token_estimate

        for place, name in (
            *((TrialBuilder, "_costs_of"), (TrialBuilder, "_costs"), (Bm25, "recall")),
            *((token_estimate, "estimate_tokens"), (builtins, "sorted"), (json, "dumps")),
        ):
            setattr(place, name, None)
        return super().remember(memories)


class FloodsStderr(Harmless):
    def trouble(self, found: list[str]) -> Any:
        import logging

        warnings.warn("once \x1b[2J", stacklevel=1)
        for number in range(1000):
            logging.getLogger("flood").error("line %s", number)
            os.write(2, b"line of a flood\n" * 100)
        return found


class RunsOutOfMemory(Harmless):
    def trouble(self, found: list[str]) -> Any:
        raise MemoryError(errno.ENOMEM, "x" * 600)


# Systems that cannot be built


class HangsInConstructor(Harmless):
    def __init__(self) -> None:
        time.sleep(FOREVER)


class HangsInIdentity(Harmless):
    def identity(self) -> Any:
        time.sleep(FOREVER)


class InterruptsConstructor(Harmless):
    def __init__(self) -> None:
        raise Unheard("not today \ud800 \x1b[2J")


class HasASurrogateIdentity(Harmless):
    def identity(self) -> Any:
        return {"model": "\ud800"}


class HasAHugeIdentity(Harmless):
    def identity(self) -> Any:
        return {"model": "x" * (2 << 20)}


class ForgetsBadly(Harmless):
    def forget(self, selector: Selector) -> None:
        raise Unheard("kept")


class Expected(NamedTuple):
    """The status of the questions that ask for trouble, and a part of their error."""

    status: str
    error: str = ""
    all_questions: bool = False
    """Whether every question has this status."""
    in_child: str = ""
    """The status in a child process, if it is another."""


EXPECTED = {
    RaisesKeyboardInterrupt: Expected("error", "KeyboardInterrupt: "),
    RaisesGeneratorExit: Expected("error", "GeneratorExit: leaving"),
    RaisesStopIteration: Expected("error", "StopIteration: nothing more"),
    RaisesBaseException: Expected("error", "Unheard: not an Exception"),
    RaisesSurrogates: Expected("error", r"half a character: \ud800"),
    RaisesEscapes: Expected("error", r"ValueError: \x1b[2J\x1b]0;owned\x07 # a heading \u202e"),
    RaisesAMegabyte: Expected("error", "ValueError: xxxx"),
    RaisesWithoutMessage: Expected("error", "Wordless: its message cannot be read"),
    RaisesFaceless: Expected("error", "Faceless: who"),
    RaisesInACircle: Expected("error", "ValueError: first"),
    RecursesForever: Expected("error", "RecursionError"),
    InterruptsItsEventLoop: Expected("error", "KeyboardInterrupt"),
    ClaimsToBeLost: Expected("error", r"SystemLost: gone \ud800"),
    RaisesSystemExit: Expected("error", "SystemExit: leaving"),
    RunsOutOfMemory: Expected("error", "MemoryError"),
    ReturnsSurrogateId: Expected("error", r"an id that is not valid Unicode: \udfff"),
    ReturnsSurrogateText: Expected("answered"),
    ReturnsSurrogateSource: Expected("error", "an id that is not valid Unicode"),
    ReturnsAnIdOfAMegabyte: Expected("error", "an id of 1,000,000 characters"),
    ReturnsAMillionHits: Expected("answered"),
    ReturnsWithoutEnd: Expected("answered"),
    ReturnsAGenerator: Expected("timeout", "no answer within 300 s"),
    ReturnsAHugeText: Expected("error", "more than 64 million characters"),
    ReturnsHugeSources: Expected("error", "1,000,001 sources"),
    ReturnsAHugeNumber: Expected("error", "ValueError: Exceeds the limit"),
    ReturnsTouchyIds: Expected("answered"),
    ReturnsTouchyHits: Expected("answered"),
    ReturnsWhatCannotBeShown: Expected("error", "Shapeless whose repr raises Unheard"),
    ReturnsShapelessSources: Expected("error", "a hit that cannot be read"),
    ReturnsNan: Expected("answered"),
    InterruptsReset: Expected("not-indexed", "KeyboardInterrupt", all_questions=True),
    InterruptsRemember: Expected("not-indexed", "Unheard: too much", all_questions=True),
    HangsInReset: Expected("not-indexed", "reset took longer than 400 s", all_questions=True),
    HangsInReady: Expected("not-indexed", "ready took longer than 400 s", all_questions=True),
    RejectsWithSurrogates: Expected("not-indexed", "receipt that cannot be", all_questions=True),
    TruncatesByNan: Expected("not-indexed", "receipt that cannot be read", all_questions=True),
    ReportsAbsurdNumbers: Expected("answered"),
    ReportsHugeNumbers: Expected("answered"),
    ReportsWithoutEnd: Expected("answered"),
    InterruptsItsReport: Expected("answered"),
    ForksInRecall: Expected("answered"),
    ForksInConstructor: Expected("answered"),
    ForksInRemember: Expected("answered"),
    LeavesAProcess: Expected("answered"),
    DiesBehindAProcess: Expected("error", "the process died of SIGKILL"),
    ExitsInRecall: Expected("error", "the process exited with code 0"),
    ClosesFiles: Expected("error", "the system damaged the process that it runs in"),
    ClosesStreams: Expected("answered"),
    WritesToSockets: Expected("error", "the system damaged the process that it runs in"),
    LowersLimits: Expected(
        "error", "the system damaged the process that it runs in", in_child="answered"
    ),
    UsesAllFiles: Expected("answered"),
    ChangesFolder: Expected("answered"),
    LeavesThreads: Expected("answered"),
    HangsAtExit: Expected("answered"),
    HangsInClose: Expected("answered"),
    HangsInCloseOfEachScenario: Expected("answered"),
    ChangesTheInterpreter: Expected("answered"),
    PatchesTheHarness: Expected(
        "error", "the system damaged the process", all_questions=True, in_child="answered"
    ),
    FloodsStderr: Expected("answered"),
}
"""What is true of each system in a run with a limit of 300 s for a recall and 400 s to remember."""

ONLY_IN_WORKER = {ReturnsAGenerator, HangsInReset, HangsInReady, WritesToSockets}
"""Systems that reach into the worker to do their harm, or to exceed a limit without waiting."""

IN_CHILD = [
    *(RaisesBaseException, RaisesWithoutMessage, RaisesFaceless, RaisesAMegabyte),
    *(RaisesSurrogates, InterruptsItsEventLoop, ReturnsSurrogateId, ReturnsWithoutEnd),
    *(ReturnsAMillionHits, ReturnsTouchyIds, ReturnsNan, InterruptsRemember),
    *(RejectsWithSurrogates, TruncatesByNan, ReportsAbsurdNumbers, ReportsWithoutEnd),
    *(ForksInRecall, ForksInConstructor, ForksInRemember, LeavesAProcess),
    *(DiesBehindAProcess, ExitsInRecall, ClosesFiles, ClosesStreams),
    *(LeavesThreads, HangsInClose, ChangesTheInterpreter, FloodsStderr),
]
"""Systems whose harm takes another way behind the stdio connector."""
