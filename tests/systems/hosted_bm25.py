"""Copies of the built-in bm25 that the tests of hosts run; hosted_bm25:Name."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.types import Hit, Query


class Bm25Copy(Bm25):
    """The built-in one, as a third party would hand it in."""


class DiesOnce(Bm25):
    """Its process is killed in the middle of a scenario, once."""

    def recall(self, query: Query, k: int) -> list[Hit]:
        marker = Path(os.environ["DIES_ONCE"])
        if "q7" in query.text and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().recall(query, k)
