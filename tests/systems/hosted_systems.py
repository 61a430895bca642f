"""Systems that the tests of hosts run; hosted_systems:Name."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mnemoscope.types import Hit, Memory, Query


class Plain:
    """Ranks by the last word of the question; no reset, so it is built for each scenario."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []

    def remember(self, memories: Sequence[Memory]) -> Any:
        self.memories += memories

    def recall(self, query: Query, k: int) -> Any:
        last = query.text.split()[-1]
        ids = sorted((m.id for m in self.memories), key=lambda id: id != last)
        return self.returned(ids[:k])

    def returned(self, ids: list[str]) -> Any:
        return ids


class NeverReturns(Plain):
    """Writes its process id to $HOST_PIDS, and does not return from recall."""

    def recall(self, query: Query, k: int) -> Any:
        (Path(os.environ["HOST_PIDS"]) / str(os.getpid())).touch()
        time.sleep(3600)


class NeverBuilt(Plain):
    def __init__(self) -> None:
        time.sleep(3600)


class OtherNames:
    def remeber(self, memories: Sequence[Memory]) -> None: ...

    def recall(self, query: Query, k: int) -> list[str]:
        return []


class Together(Plain):
    """Each recall waits for another one, which must be in flight at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self._both = threading.Barrier(2, timeout=30)

    def recall(self, query: Query, k: int) -> Any:
        if query.text != "warm-up":  # each scenario has an even number of questions
            self._both.wait()
        return super().recall(query, k)


class Raises(Plain):
    """Raises what its option names if the question has the word trouble."""

    def __init__(self, what: str = "base") -> None:
        super().__init__()
        self.what = what

    def recall(self, query: Query, k: int) -> Any:
        if "trouble" not in query.text:
            return super().recall(query, k)
        if self.what == "fork":
            os.fork()
            return super().recall(query, k)
        if self.what == "gigabytes":
            return [Hit("1", text="x" * (65 << 20))]
        raise {
            "base": BaseException("as bare as it gets"),
            "interrupt": KeyboardInterrupt(),
            "exit": SystemExit(3),
            "late": TimeoutError("took too long"),
            "text": ValueError("half \ud800 and " + "long " * 1000),
        }[self.what]


def _pair(id: str) -> Any:
    import numpy as np  # the hosts of the other systems start faster without

    return id, np.float32(0.5)


def _dict(id: str) -> Any:
    import numpy as np

    return {"id": np.int64(id), "score": np.float64(0.25), "text": "a text"}


_SHAPES: dict[str, Callable[[str], Any]] = {
    "pair": _pair,
    "dict": _dict,
    "sources": lambda id: Hit(f"fact {id}", sources=(id,)),
    "surrogate": lambda id: {"id": id, "text": "half \ud800"},
    "surrogate id": lambda id: "\ud800" if id.endswith("3") else id,
}


class Shapes(Plain):
    """Returns its hits in one of several shapes."""

    def __init__(self, shape: str = "pair") -> None:
        super().__init__()
        self.shape = shape

    def returned(self, ids: list[str]) -> Any:
        return (_SHAPES[self.shape](id) for id in ids)


class Retriever:
    def build_index(self, corpus: Sequence[Memory]) -> None:
        self.ids = [memory.id for memory in corpus]

    def index_size_bytes(self) -> int:
        return 1234

    async def retrieve(self, query: str, k: int) -> list[str]:
        return sorted(self.ids, key=lambda id: id != query.split()[-1])[:k]


def bare_function(query: Query, k: int) -> list[int]:
    return [int(query.text.split()[-1])] if query.text[-1].isdigit() else []


one_object = Shapes("pair")
one_object.reset = lambda scope: one_object.memories.clear()  # type: ignore[attr-defined]
