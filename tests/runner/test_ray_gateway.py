"""The process that is connected to Ray, with a stand-in that refuses as a client server does."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from mnemoscope.runner.cluster import ray_gateway


class Refusing:
    """Refuses the first connections, as a client server whose process for a client has died."""

    def __init__(self, refusals: int) -> None:
        self._refusals = refusals
        self.asked: list[str] = []

    def init(self, address: str, **options: object) -> None:
        self.asked.append(address)
        if len(self.asked) <= self._refusals:
            raise ConnectionAbortedError("Starting Ray client server failed.")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_gateway, "time", SimpleNamespace(sleep=lambda seconds: None))


def connect(refusals: int, monkeypatch: pytest.MonkeyPatch) -> Refusing:
    ray = Refusing(refusals)
    monkeypatch.setitem(sys.modules, "ray", ray)
    ray_gateway._connected("ray://head:10001")
    return ray


@pytest.mark.parametrize("refusals", [0, 1, 4])
def test_a_client_server_that_lost_the_process_of_a_client_is_asked_again(
    refusals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connect(refusals, monkeypatch).asked == ["ray://head:10001"] * (refusals + 1)


def test_it_is_not_asked_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionAbortedError, match="failed"):
        connect(5, monkeypatch)
