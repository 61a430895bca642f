"""How every `mnemoscope serve …` ends: at Ctrl-C or SIGTERM, with nothing left running."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from rich.console import Console

from mnemoscope.cli.console import say


def until_ended(serve: Callable[[], None], close: Callable[[], None], console: Console) -> None:
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        serve()
    except KeyboardInterrupt:
        # Who asks twice would only break the farewell.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say(console, "ended")
    finally:
        close()


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
