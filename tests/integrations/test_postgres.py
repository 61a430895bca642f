"""The postgres integration: its rankings, other servers, and its end with the worker."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.needed import need
from tests.integrations.postgres_systems import MEMORIES, asked, ids, opened, server

from mnemoscope.connectors.child_process import AdapterDied
from mnemoscope.connectors.stdio import AdapterError
from mnemoscope.types import Memory, Query, Selector

need("postgres")
_QUESTION = Query("Who lost his passport?")


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with server() as running:
        yield running


def _ingest(system: Any, scope: str = "scope") -> None:
    system.reset(scope)
    system.remember(MEMORIES)
    system.ready()


@pytest.mark.parametrize("options", [{}, {"legs": "vector"}, {"hnsw": True}])
def test_vectors_rank_all_memories(dsn: str, options: dict[str, Any]) -> None:
    with opened("postgres", dsn=dsn, **options) as system:
        _ingest(system)
        found = ids(system.recall(_QUESTION, 10))
        assert found[0] == "talk/2"
        assert sorted(found) == [memory.id for memory in MEMORIES]
        system.forget(Selector((MEMORIES[1],)))
        assert sorted(ids(system.recall(_QUESTION, 10))) == ["talk/1", "talk/3", "talk/4"]
        identity = system.identity()["hello"]["identity"]
        assert identity["versions"].keys() == {"postgresql", "pgvector", "psycopg"}
        assert (identity["nearest"] == "exact") == ("hnsw" not in options)


def test_text_search_finds_only_memories_with_a_matching_word(dsn: str) -> None:
    with opened("postgres", dsn=dsn, legs="text") as system:
        _ingest(system)
        assert ids(system.recall(Query("Is there a roof, or a passport?"), 10)) == [
            "talk/2",
            "talk/4",
        ]
        assert system.recall(Query("zeppelin"), 10) == []
        system.remember([Memory("nul", "a zeppelin\0 — half a character \ud800")])
        assert ids(system.recall(Query("zeppelin"), 10)) == ["nul"]
        system.remember([Memory("signs", "Gulliver’s balloon—green…")])
        assert ids(system.recall(Query("balloon"), 10)) == ["signs"]


def test_it_removes_its_schemas_from_a_server_of_the_user(dsn: str) -> None:
    schemas = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'mnemoscope%'"
    with opened("postgres", dsn=dsn) as one, opened("postgres", dsn=dsn) as other:
        _ingest(one)
        other.reset("scope")
        assert other.recall(_QUESTION, 10) == []
        assert ids(one.recall(_QUESTION, 1)) == ["talk/2"]
        one.reset("next")
        assert one.recall(_QUESTION, 10) == []
        assert len(asked(dsn, schemas)) == 2
    assert asked(dsn, schemas) == []


def test_a_password_in_the_dsn_is_refused_and_not_shown() -> None:
    with opened("postgres", dsn="postgresql://me:secret@127.0.0.1:9/x") as system:
        with pytest.raises(AdapterError, match="PGPASSWORD") as caught:
            system.identity()
        assert "secret" not in str(caught.value)


def test_the_server_ends_with_a_worker_that_is_killed() -> None:
    with opened("postgres") as system:
        _ingest(system)
        worker = system._child._process.pid
        servers = _postgres_of(worker)
        assert servers
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(AdapterDied, match="SIGKILL"):
            system.recall(_QUESTION, 1)
        until = time.monotonic() + 60
        while any(Path(f"/proc/{pid}/exe").exists() for pid in servers):
            assert time.monotonic() < until, "PostgreSQL outlived its worker"
            time.sleep(0.05)
        _ingest(system)
        assert ids(system.recall(_QUESTION, 1)) == ["talk/2"]


def _postgres_of(worker: int) -> list[int]:
    """The server and its processes, below the worker."""
    family, found = {worker}, []
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda place: int(place.name)):
        try:
            name, parent = _name_and_parent(process)
        except OSError:
            continue
        if parent in family:
            family.add(int(process.name))
            found += [int(process.name)] if name == "postgres" else []
    return found


def _name_and_parent(process: Path) -> tuple[str, int]:
    before, _, after = (process / "stat").read_text().rpartition(")")
    return before.partition("(")[2], int(after.split()[1])
