"""Fixtures of the runner's tests."""

from __future__ import annotations

import pytest
from tests.runner.hanging import note_start

from mnemoscope.runner.heartbeat import InFlight


@pytest.fixture(autouse=True)
def _hangs_are_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers note which slot each thread uses: see `hanging`."""
    monkeypatch.setattr(InFlight, "start", note_start)
