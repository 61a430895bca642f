"""A run leaves Python's garbage collector as it found it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from mnemoscope.runner import rare_collections as module
from mnemoscope.runner.rare_collections import is_frozen, rare_collections


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "is_frozen", is_frozen)  # conftest.py has another one
    before, frozen_before = gc.get_threshold(), is_frozen()
    gc.unfreeze()
    yield
    gc.unfreeze()
    if frozen_before:  # conftest.py has frozen the modules
        gc.freeze()
    gc.set_threshold(*before)


def test_objects_from_before_are_not_visited_inside_and_are_again_afterwards() -> None:
    gc.set_threshold(700, 10, 10)
    with rare_collections():
        assert gc.get_threshold()[0] > 700
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == (700, 10, 10)
    assert gc.get_freeze_count() == 0


def test_an_error_restores_the_settings_too() -> None:
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), rare_collections():
        _ = 1 / 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_what_the_caller_has_frozen_stays_frozen() -> None:
    gc.freeze()
    with rare_collections():
        pass
    assert gc.get_freeze_count() > 0


def test_a_caller_that_collects_by_hand_keeps_that() -> None:
    gc.set_threshold(0)
    with rare_collections():
        assert gc.get_threshold()[0] == 0
