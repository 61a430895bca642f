"""Forgotten texts are removed from the files of the integrations too."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.integrations.needed import need
from tests.integrations.scripted_model import MEMORIES

from mnemoscope._store.spec import Spec
from mnemoscope.systems.loader import plan
from mnemoscope.types import Query, Selector

STORES = ("sqlite-vec", "chroma", "mem0", "lancedb", "lancedb,legs=hybrid")


@pytest.mark.parametrize("spec", STORES)
def test_a_forgotten_text_is_in_no_file(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(Spec.parse(spec).name)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    system = plan(Spec.parse(spec)).build()
    try:
        system.reset("scope")
        system.remember(MEMORIES)
        if hasattr(system, "ready"):
            system.ready()
        assert system.recall(Query("Who lost a passport?"), 1)[0]["id"] == MEMORIES[1].id
        assert b"accordion case" in _written(tmp_path)

        system.forget(Selector((MEMORIES[1],)))
        found = system.recall(Query("Who lost a passport inside an accordion case?"), 10)
        assert MEMORIES[1].id not in [hit["id"] for hit in found]
        assert b"accordion case" not in _written(tmp_path)
        assert b"peacock feather" in _written(tmp_path)
    finally:
        system.close()


def _written(place: Path) -> bytes:
    return b"\n".join(file.read_bytes() for file in place.rglob("*") if file.is_file())
