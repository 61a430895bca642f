"""Lets Python look for cycles of objects seldom while a run loads, asks, merges and measures.

Scenarios and journals are many objects without cycles. After a fork, each memory page that a
collection visits is copied, in the parent and again in each worker.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 100_000
_NEW_OBJECTS_OF_WORKER = 20_000
"""Fewer, because a system's objects may be large."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look after many new objects, and not among those that exist already, while the block runs."""
    before, frozen_before = gc.get_threshold(), is_frozen()
    if 0 < before[0] < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *before[1:])
    if not frozen_before:
        gc.freeze()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not frozen_before:
            gc.unfreeze()


def is_frozen() -> bool:
    """Whether the caller froze objects; Python counts them one by one."""
    return gc.get_freeze_count() > 0


def rare_collections_in_worker() -> None:
    """The same for the rest of a process that was forked in such a block."""
    gc.freeze()
    if gc.get_threshold()[0] > _NEW_OBJECTS_OF_WORKER:
        gc.set_threshold(_NEW_OBJECTS_OF_WORKER, *gc.get_threshold()[1:])
