"""Systems that misbehave, each in one way; the tests select them as hostile_systems:Name.

Most do so only when a question has the word "trouble" in it, and answer all others alike: a
question names the memory that holds its answer, and they recall it first.
"""

from __future__ import annotations

import errno
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope.types import Hit, Memory, Query, Receipt, Selector

if TYPE_CHECKING:
    from nowhere import Client  # type: ignore[import-not-found]

FOREVER = 3600.0


def ranking(text: str, ids: Sequence[str], k: int) -> list[str]:
    """The ids, beginning with the one that is the last word of the text."""
    wanted = text.split()[-1]
    start = ids.index(wanted) if wanted in ids else 0
    return [*ids[start:], *ids[:start]][:k]


class Plain:
    """A correct system."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        self.ids.extend(memory.id for memory in memories)
        return None

    def recall(self, query: Query, k: int) -> Any:
        found = ranking(query.text, self.ids, k)
        return self.trouble(found) if "trouble" in query.text else found

    def trouble(self, found: list[str]) -> Any:
        return found


class Slow(Plain):
    """Takes $SLOW_SECONDS for a question, and writes every question to the file in $SLOW_LOG.

    It answers none before the file in $SLOW_GATE is there, if one is named.
    """

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        time.sleep(0.01)
        return super().remember(memories)

    def recall(self, query: Query, k: int) -> list[tuple[str, float]]:
        if log := os.environ.get("SLOW_LOG"):
            with Path(log).open("a") as file:
                file.write(f"{query.text}\n")
        time.sleep(float(os.environ.get("SLOW_SECONDS", "0.005")))
        if query.text != "warm-up" and (gate := os.environ.get("SLOW_GATE")):
            while not Path(gate).exists():
                time.sleep(0.01)
        start = len(query.text) % len(self.ids)
        turned = self.ids[start:] + self.ids[:start]
        return [(id, 1 / rank) for rank, id in enumerate(turned[:k], 1)]


# Statuses of a recall


class Raises(Plain):
    def trouble(self, found: list[str]) -> Any:
        raise ValueError("no idea")


class RaisesAlways(Plain):
    def recall(self, query: Query, k: int) -> Any:
        raise ValueError("no idea")


class RaisesWhatCannotBeWritten(Plain):
    def trouble(self, found: list[str]) -> Any:
        raise ValueError("half a character: \ud800")


class RaisesLate(Plain):
    """A generator, which raises only when it is read."""

    def trouble(self, found: list[str]) -> Iterator[str]:
        yield found[0]
        raise ValueError("after the first hit")


class LeavesWithSystemExit(Plain):
    def trouble(self, found: list[str]) -> Any:
        sys.exit(3)


class Hangs(Plain):
    def trouble(self, found: list[str]) -> Any:
        from tests.runner.hanging import hang  # absent where a test starts the command

        hang()


class Exits(Plain):
    def trouble(self, found: list[str]) -> Any:
        os._exit(3)


class Segfaults(Plain):
    def trouble(self, found: list[str]) -> Any:
        faulthandler.disable()  # pytest's would print pages
        os.kill(os.getpid(), signal.SIGSEGV)


class LeavesDuringWarmUp(Plain):
    def recall(self, query: Query, k: int) -> Any:
        if query.text == "warm-up":
            sys.exit(3)
        return super().recall(query, k)


# Shapes of a reply


class ReturnsNothing(Plain):
    def trouble(self, found: list[str]) -> Any:
        return []


class ReturnsNone(Plain):
    def trouble(self, found: list[str]) -> Any:
        return None


class ReturnsString(Plain):
    def trouble(self, found: list[str]) -> Any:
        return found[0]


class ReturnsInt(Plain):
    def trouble(self, found: list[str]) -> Any:
        return int(found[0])


class ReturnsDict(Plain):
    def trouble(self, found: list[str]) -> Any:
        return {"id": found[0]}


class ReturnsNestedLists(Plain):
    def trouble(self, found: list[str]) -> Any:
        return [found]


class UnknownIds(Plain):
    def trouble(self, found: list[str]) -> Any:
        return ["elsewhere", found[0], "nowhere"]


class Duplicates(Plain):
    def trouble(self, found: list[str]) -> Any:
        return [found[1], found[1], found[0]]


class Pairs(Plain):
    def trouble(self, found: list[str]) -> Any:
        return [(found[0], 0.5), (found[1], None), (found[2], 1)]


class NumpyPairs(Plain):
    def trouble(self, found: list[str]) -> Any:
        import numpy as np  # most systems of this module do without, and each host imports it

        scores = np.array([0.5, 0.25, 0.125], dtype=np.float32)
        return list(zip(np.array(found, dtype=np.int64), scores, strict=True))


class Dicts(Plain):
    def trouble(self, found: list[str]) -> Any:
        return [{"id": found[0], "score": 0.5, "text": "x" * 40}, {"id": int(found[1])}]


class BadDicts(Plain):
    def trouble(self, found: list[str]) -> Any:
        return [{"id": found[0], "score": "high"}]


class Ints(Plain):
    def trouble(self, found: list[str]) -> Any:
        return [int(id) for id in found]


class Bools(Plain):
    def trouble(self, found: list[str]) -> Any:
        return [True, False]


class MoreThanAsked(Plain):
    def recall(self, query: Query, k: int) -> Any:
        return ranking(query.text, self.ids, len(self.ids))


class Hits(Plain):
    def trouble(self, found: list[str]) -> Any:
        return [Hit(found[1], 0.5), Hit(found[0], 0.25)]


class MergedHits(Plain):
    """New facts made from memories; the second from the memory that was asked for."""

    def trouble(self, found: list[str]) -> Any:
        return [
            Hit("fact 1", sources=(found[1], found[2])),
            Hit("fact 2", sources=(found[0],)),
            Hit("fact 3", sources=("nowhere",)),
        ]


class LooselyTypedHits(Plain):
    """Hits of wrong types that can still be read."""

    def trouble(self, found: list[str]) -> Any:
        import numpy as np

        first: Any = int(found[0])
        score: Any = np.float32(0.5)
        sources: Any = [found[1]]
        return [Hit(first, score), Hit("fact", sources=sources)]


class WronglyTypedHits(Plain):
    """Hits of types that the journal could not read back."""

    def trouble(self, found: list[str]) -> Any:
        score: Any = "high"
        return [Hit(found[0], score)]


# Remembering


class _TroubleInScenario1(Plain):
    """Answers every question, but fails at the scenario that begins with memory 6."""

    def recall(self, query: Query, k: int) -> Any:
        return ranking(query.text, self.ids, k)

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        if memories[0].id == "6":
            self.refuse()
        return super().remember(memories)

    def refuse(self) -> None: ...


class RaisesInRemember(_TroubleInScenario1):
    def refuse(self) -> None:
        raise ValueError("too much")


class LeavesInRemember(_TroubleInScenario1):
    def refuse(self) -> None:
        sys.exit(3)


class ExitsInRemember(_TroubleInScenario1):
    def refuse(self) -> None:
        os._exit(3)


class HangsInRemember(_TroubleInScenario1):
    def refuse(self) -> None:
        time.sleep(FOREVER)


class IngestsUntilTold(Plain):
    """Takes until the file $GATE is there to remember."""

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        while not Path(os.environ["GATE"]).exists():
            time.sleep(0.01)
        return super().remember(memories)


class RaisesInReady(_TroubleInScenario1):
    def ready(self) -> None:
        if self.ids[0] == "6":
            raise ValueError("never ready")


class RaisesInReset(_TroubleInScenario1):
    def reset(self, scope: str) -> None:
        self.ids = []
        if scope == "s1":
            raise ValueError("no new space")


class ExitsAndThenForgets(_TroubleInScenario1):
    """Dies at a question, and the next process cannot remember."""

    def recall(self, query: Query, k: int) -> Any:
        if "trouble" in query.text and self.ids[0] == "6":
            Path(os.environ["DIED"]).touch()
            os._exit(3)
        return super().recall(query, k)

    def refuse(self) -> None:
        if Path(os.environ["DIED"]).exists():
            raise ValueError("too much")


class Rejects(Plain):
    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        super().remember(memories)
        return Receipt(rejected={memories[0].id: "too long"}, truncated={memories[1].id: 0.5})


class WronglyTypedReceipt(_TroubleInScenario1):
    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        super().remember(memories)
        rejected: Any = [memories[0].id]
        return Receipt(rejected=rejected) if memories[0].id == "6" else None


class LeavesInStats(Plain):
    def stats(self) -> dict[str, int]:
        sys.exit(3)


class WrongStats(Plain):
    def stats(self) -> Any:
        return {"index_bytes": "many", "texts": 0.5, "unit": None}


class ExitsInStats(_TroubleInScenario1):
    def stats(self) -> dict[str, int]:
        if self.ids[0] == "6":
            os._exit(3)
        return {}


class HangsInStats(_TroubleInScenario1):
    def stats(self) -> dict[str, int]:
        if self.ids[0] == "6":
            from tests.runner.hanging import hang

            hang()
        return {}


class RaisesInClose(Plain):
    def close(self) -> None:
        if self.ids:
            raise ValueError("cannot let go")


class ClosesThePipe(Plain):
    """Closes the files of its worker and runs on; writes its process id to $ALIVE."""

    def trouble(self, found: list[str]) -> None:
        Path(os.environ["ALIVE"]).write_text(str(os.getpid()))
        os.closerange(3, 4096)
        time.sleep(600)


class HoldsAConnection(Plain):
    """Tells $CONNECTIONS when it is built and when it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tell("opened")

    def close(self) -> None:
        self.tell("closed")

    def tell(self, what: str) -> None:
        with Path(os.environ["CONNECTIONS"]).open("a") as file:
            file.write(f"{what}\n")


# Other kinds of system


class Async:
    async def reset(self, scope: str) -> None:
        self.ids: list[str] = []

    async def remember(self, memories: Sequence[Memory]) -> None:
        self.ids.extend(memory.id for memory in memories)

    async def ready(self) -> None:
        pass

    async def recall(self, query: Query, k: int) -> list[str]:
        return ranking(query.text, self.ids, k)


def bare_function(query: Query, k: int) -> list[int]:
    return [int(query.text.split()[-1])] if query.text[-1].isdigit() else []


async def async_function(query: Query, k: int) -> list[int]:
    return bare_function(query, k)


class Retriever:
    """A retriever in the style of the strata project: it gets only the text of a question."""

    def build_index(self, corpus: Sequence[Memory]) -> None:
        self.ids = [memory.id for memory in corpus]

    def index_size_bytes(self) -> int:
        return 1234

    def retrieve(self, query: str, k: int) -> list[int]:
        return [int(id) for id in ranking(query, self.ids, k)]


class Talks(Plain):
    def recall(self, query: Query, k: int) -> Any:
        print("TALK by print", flush=True)  # noqa: T201
        os.write(1, b"TALK by write\n")
        return super().recall(query, k)


class NotForTheShell(Plain):
    """Annotations that cannot be resolved, a default that is not a scalar."""

    def __init__(self, client: Client = None, folder: Path = Path("data")) -> None:
        super().__init__()
        self.client, self.folder = client, folder


class HasNoRecall:
    def remember(self, memories: Sequence[Memory]) -> None: ...


class Unhurried(Plain):
    """Waits for a few checks of the heartbeat by the parent."""

    def recall(self, query: Query, k: int) -> Any:
        time.sleep(0.1)
        return super().recall(query, k)


class OutOfSpace(Plain):
    """Stores its memories on a disk that is full while the file in $DISK_FULL exists."""

    def trouble(self, found: list[str]) -> Any:
        if Path(os.environ["DISK_FULL"]).exists():
            try:
                raise OSError(errno.ENOSPC, "No space left on device")
            except OSError as error:
                raise RuntimeError("cannot page in") from error
        return found


class ForgetsNothing:
    """Finds memories that contain the question, and ignores forget."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self.memories.extend(memories)

    def recall(self, query: Query, k: int) -> list[str]:
        return [memory.id for memory in self.memories if query.text in memory.text][:k]

    def forget(self, selector: Selector) -> None:
        pass
