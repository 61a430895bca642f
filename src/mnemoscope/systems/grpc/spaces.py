"""The lives that a server leads for its clients: each one a system of its own in its own thread.

One thread a life, because few systems expect to be called from several; a copy shares the thread
of what it was copied from. A life whose client never came back is let go when there are too many.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from uuid import uuid4

from mnemoscope.systems.python import Driver

T = TypeVar("T")

_MOST = 256
"""Lives at once; more are those of clients that were killed."""


class NoSuchSpace(LookupError):
    """A space that was never made here, or is gone."""


class Space:
    """One life of a system."""

    def __init__(self, driver: Driver, thread: ThreadPoolExecutor, *, is_copy: bool) -> None:
        self.driver = driver
        self._thread = thread
        self._is_copy = is_copy
        self._counted: Counter[str] = Counter()

    def do(self, act: Callable[[Driver], T]) -> T:
        """Act in the space's own thread, after whatever was asked before."""
        return self._thread.submit(act, self.driver).result()

    def fork(self) -> Space:
        return Space(self.do(lambda driver: driver.fork()), self._thread, is_copy=True)

    def stats(self) -> dict[str, int]:
        """Totals since the space was made; the size as it is."""
        size, grown = self.do(lambda driver: driver.counted())
        self._counted.update(grown)
        return {**self._counted, **({} if size is None else {"index_bytes": size})}

    def close(self) -> None:
        """Let the system go, once it has done what it is doing."""
        self._thread.submit(self.driver.close)
        if not self._is_copy:
            self._thread.shutdown(wait=False)


class Spaces:
    """All lives of one server, by the names it gave them."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build
        self._spaces: OrderedDict[str, Space] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, name: str) -> Space:
        with self._turn:
            if name not in self._spaces:
                raise NoSuchSpace(f"there is no space {name!r} here (any more): Reset makes one")
            self._spaces.move_to_end(name)
            return self._spaces[name]

    def reset(self, scope: str, name: str = "") -> str:
        """A fresh life, in a space that is already there or in a new one; the space's name."""
        try:
            space = self.get(name)
        except NoSuchSpace:
            thread = ThreadPoolExecutor(1, thread_name_prefix="space")
            space = Space(Driver(self._build), thread, is_copy=False)
            name = self._keep(space)
        space.do(lambda driver: driver.begin(scope))
        return name

    def fork(self, name: str) -> str:
        return self._keep(self.get(name).fork())

    def drop(self, name: str) -> None:
        with self._turn:
            space = self._spaces.pop(name, None)
        if space is not None:
            space.close()

    def close(self) -> None:
        for name in list(self._spaces):
            self.drop(name)

    def _keep(self, space: Space) -> str:
        # Random: a client of a server that was here before must not find somebody else's.
        name = uuid4().hex
        with self._turn:
            self._spaces[name] = space
            oldest = next(iter(self._spaces)) if len(self._spaces) > _MOST else ""
        if oldest:
            self.drop(oldest)
        return name
