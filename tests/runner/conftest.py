"""What the runner's tests share."""

from __future__ import annotations

import os

import pytest
from tests.runner.hanging import note_start

from mnemoscope.runner.heartbeat import InFlight


@pytest.fixture(autouse=True)
def _hangs_are_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers that a test forks know what they are doing: see `hanging`."""
    monkeypatch.setattr(InFlight, "start", note_start)


@pytest.fixture(autouse=True)
def _no_test_has_to_outlive_a_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the disk is most of what a small run takes; a killed process loses nothing."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
