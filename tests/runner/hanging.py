"""Simulates hangs without waiting: a call that hangs exceeds the longest limit at once.

A worker notes in its heartbeat since when a question is in flight. A system, reader or judge that
hangs in these tests sets that to an hour ago, so that the parent acts at its next check.
"""

from __future__ import annotations

import threading
import time

from mnemoscope.runner.heartbeat import RECALLING, InFlight

_FOREVER = 3600.0
_here = threading.local()
_start = InFlight.start


def note_start(slot: InFlight, position: int, phase: int = RECALLING) -> None:
    """Replaces `InFlight.start`, and remembers the slot of this thread."""
    _start(slot, position, phase)
    _here.slot = slot


def hang(seconds: float = _FOREVER) -> None:
    """Never return, and seem to have begun so long ago; only sleep if nothing is in flight."""
    if (slot := getattr(_here, "slot", None)) is not None:
        slot.since -= seconds
    time.sleep(_FOREVER)


def seem_slow(seconds: float) -> None:
    """Seem to have taken so long, wait for a few checks of the parent, and return."""
    _here.slot.since -= seconds
    time.sleep(0.35)
