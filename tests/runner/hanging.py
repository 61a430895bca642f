"""Hanging without waiting for it: what hangs is at once as old as the longest limit.

A worker notes in its heartbeat since when a question is in flight. A system, reader or judge of
these tests that hangs makes that an hour ago, so that the parent acts at its next look.
"""

from __future__ import annotations

import threading
import time

from mnemoscope.runner.heartbeat import RECALLING, InFlight

_FOREVER = 3600.0
_here = threading.local()
_start = InFlight.start


def note_start(slot: InFlight, position: int, phase: int = RECALLING) -> None:
    """Takes the place of `InFlight.start`, and remembers what this thread is doing."""
    _start(slot, position, phase)
    _here.slot = slot


def hang(seconds: float = _FOREVER) -> None:
    """Never return, and seem to have begun so long ago; or sleep, where nothing is in flight."""
    if (slot := getattr(_here, "slot", None)) is not None:
        slot.since -= seconds
    time.sleep(_FOREVER)


def seem_slow(seconds: float) -> None:
    """Seem to have taken so long, let the parent look at it a few times, and go on."""
    _here.slot.since -= seconds
    time.sleep(0.35)
