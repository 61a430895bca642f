"""pgmnemo's adapter in a real PostgreSQL, with a stand-in that has its signatures and checks.

The extension is not on a package index. If MNEMOSCOPE_PGMNEMO names a folder with it, the last
tests run it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.needed import need
from tests.integrations.postgres_systems import (
    MEMORIES,
    another_database,
    asked,
    ids,
    opened,
    server,
)
from tests.optional import missing

from mnemoscope._store.spec import Spec
from mnemoscope.cli.app import invoke
from mnemoscope.connectors.stdio import AdapterError
from mnemoscope.runner.conformance import check_system
from mnemoscope.systems.loader import plan
from mnemoscope.types import Memory, Query, Selector

need("postgres")
_VARIABLE = "MNEMOSCOPE_PGMNEMO"
_REAL = os.environ.get(_VARIABLE, "")
_STAND_IN = Path(__file__).with_name("pgmnemo_stand_in.sql")
_QUESTION = Query("Who lost his passport?")
_TWIN = Memory("talk/9", MEMORIES[1].text, MEMORIES[1].at)

# A version that had no ingest, and took vectors and a project only.
_OLD = """
DROP FUNCTION pgmnemo.ingest;
DROP FUNCTION pgmnemo.recall_fast;
DROP FUNCTION pgmnemo.recall_lessons;
CREATE FUNCTION pgmnemo.recall_lessons(embedding vector, project_id int, k int DEFAULT 5)
RETURNS TABLE (lesson_id bigint, score double precision, lesson_text text) LANGUAGE sql STABLE AS
$$ SELECT l.id, 1 - (l.embedding <=> $1), l.lesson_text FROM pgmnemo.agent_lesson l
   WHERE l.project_id = $2 AND l.verified_at IS NOT NULL ORDER BY l.embedding <=> $1 LIMIT k $$;
"""
_STRANGE = """
DROP FUNCTION pgmnemo.recall_fast;
CREATE FUNCTION pgmnemo.recall_fast(tenant text) RETURNS TABLE (lesson_id bigint) LANGUAGE sql
AS $$ SELECT 1::bigint $$;
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("extension")
    shutil.copy(_STAND_IN, place / "pgmnemo--0.20.0.sql")
    (place / "pgmnemo.control").write_text(
        "default_version = '0.20.0'\nschema = 'pgmnemo'\nrequires = 'vector'\n"
    )
    (place / "pgmnemo--0.20.0--0.1.0.sql").write_text(_OLD)
    (place / "pgmnemo--0.20.0--9.0.0.sql").write_text(_STRANGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(_VARIABLE, str(place))
        yield place


@pytest.fixture(scope="module")
def dsn(folder: Path) -> Iterator[str]:
    """A server that has all versions of it."""
    with server(folder) as running:
        yield running


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[Any]:
    with opened("pgmnemo") as system:
        yield system


@pytest.fixture
def system(shared: Any) -> Any:
    shared.reset("scope")
    return shared


def _identity(system: Any) -> dict[str, Any]:
    identity: dict[str, Any] = system.identity()["hello"]["identity"]
    return identity


def _refuses(system: Any, sentence: str) -> None:
    with pytest.raises(AdapterError, match=sentence):
        system.identity()


# What is kept


def test_a_memory_is_recalled_with_its_id(system: Any) -> None:
    assert system.remember(MEMORIES) == {"rejected": {}, "merged": {}}
    system.ready()
    hits = system.recall(_QUESTION, 3)
    assert len(hits) == 3
    assert hits[0]["id"] == "talk/2"
    assert hits[0]["text"] == MEMORIES[1].text
    assert system.stats()["index_bytes"] > 0


def test_a_short_text_is_rejected_with_the_reason(system: Any) -> None:
    receipt = system.remember([Memory("short", "Yes, sure."), MEMORIES[0]])
    assert receipt["rejected"] == {
        "short": "stand-in: a lesson needs 20 characters, this one has 10"
    }
    assert ids(system.recall(Query("Yes, sure."), 5)) == ["talk/1"]


def test_equal_texts_are_one_lesson_with_both_sources(system: Any) -> None:
    assert system.remember([*MEMORIES, _TWIN])["merged"] == {"talk/9": "talk/2"}
    [hit, *rest] = system.recall(_QUESTION, 5)
    assert hit["sources"] == ["talk/2", "talk/9"]
    assert "talk/9" not in ids(rest)


def test_a_duplicate_stays_when_the_stored_memory_is_forgotten(system: Any) -> None:
    system.remember([*MEMORIES, _TWIN])
    system.forget(Selector((MEMORIES[1],)))
    assert ids(system.recall(_QUESTION, 5))[0] == "talk/9"
    system.forget(Selector((_TWIN,)))
    assert sorted(ids(system.recall(_QUESTION, 5))) == ["talk/1", "talk/3", "talk/4"]


def test_forgetting_a_duplicate_keeps_the_stored_memory(system: Any) -> None:
    system.remember([*MEMORIES, _TWIN])
    system.forget(Selector((_TWIN,)))
    [hit, *_] = system.recall(_QUESTION, 5)
    assert hit["id"] == "talk/2"
    assert "sources" not in hit


def test_remembering_an_id_again_replaces_it(system: Any) -> None:
    system.remember(MEMORIES)
    system.remember([Memory("talk/2", "Umbrecht bought a second accordion in Trieste.")])
    hits = system.recall(Query("accordion"), 10)
    assert sorted(ids(hits)) == [memory.id for memory in MEMORIES]
    assert not any("passport" in hit["text"] for hit in hits)


def test_hits_without_a_match_are_dropped_and_counted(system: Any) -> None:
    system.remember(MEMORIES)
    assert len(system.recall(_QUESTION, 10)) == len(MEMORIES)
    assert system.stats()["hits_without_a_match"] == 0
    # It has no words, and its vector is all zeros.
    assert system.recall(Query(""), 10) == []
    assert system.stats()["hits_without_a_match"] == len(MEMORIES)


# Whose it is


def test_projects_of_one_server_do_not_supersede_each_other(dsn: str) -> None:
    lessons = "SELECT count(*) FROM pgmnemo.agent_lesson"
    other_words = [Memory(memory.id, f"{memory.text[::-1]} {memory.id}") for memory in MEMORIES]
    with opened("pgmnemo", dsn=dsn) as one, opened("pgmnemo", dsn=dsn) as other:
        one.reset("scope")
        other.reset("scope")
        one.remember(MEMORIES)
        # The same ids and topics: without unique hashes they would supersede.
        assert other.remember(other_words) == {"rejected": {}, "merged": {}}
        assert sorted(ids(one.recall(_QUESTION, 9))) == [memory.id for memory in MEMORIES]
        assert len(other.recall(_QUESTION, 9)) == len(MEMORIES)
        stolen = Memory("mine", MEMORIES[0].text, MEMORIES[0].at)
        assert "another project" in other.remember([stolen])["rejected"]["mine"]
        assert "extension_sha256" not in _identity(one)
        assert len(_identity(one)["functions_sha256"]) == 64
        one.reset("next")
        assert one.recall(_QUESTION, 9) == []
        assert asked(dsn, lessons) == [[len(MEMORIES)]]
    assert asked(dsn, lessons) == [[0]]


# How it is called


@pytest.mark.parametrize("path", ["hybrid", "fast"])
def test_all_recall_functions_work(dsn: str, path: str) -> None:
    with opened("pgmnemo", path=path, dsn=dsn) as system:
        system.reset("scope")
        system.remember(MEMORIES)
        assert ids(system.recall(_QUESTION, 2))[0] == "talk/2"
        assert f"recall_{path}" in _identity(system)["calls"]


def test_an_older_version_is_called_by_the_names_it_has(dsn: str) -> None:
    old = another_database(dsn, "old")
    with opened("pgmnemo", version="0.1.0", dsn=old) as system:
        system.reset("scope")
        assert system.remember(MEMORIES) == {"rejected": {}, "merged": {}}
        assert ids(system.recall(_QUESTION, 2))[0] == "talk/2"
        identity = _identity(system)
        assert identity["versions"]["pgmnemo"] == "0.1.0"
        assert identity["calls"] == {
            "ingest": "INSERT",
            "recall_lessons": ["embedding", "project_id", "k"],
        }
    with opened("pgmnemo", path="fast", dsn=old) as system:
        _refuses(system, "pgmnemo 0.1.0 has no recall_fast: choose another")
    with opened("pgmnemo", version="0.20.0", dsn=old) as system:
        _refuses(system, "version=0.20.0: the server has pgmnemo 0.1.0")


def test_the_error_names_what_a_version_cannot_do(dsn: str) -> None:
    strange = another_database(dsn, "strange")
    with opened("pgmnemo", version="7.7.7", dsn=strange) as system:
        _refuses(system, 'pgmnemo 7.7.7 cannot be installed here: extension "pgmnemo" has no')
    with opened("pgmnemo", version="9.0.0", path="fast", dsn=strange) as system:
        system.reset("scope")
        with pytest.raises(AdapterError, match="arguments that are not known here: tenant"):
            system.recall(_QUESTION, 1)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [("", "no package index has.*MNEMOSCOPE_PGMNEMO.*dsn="), ("/nowhere", "contains no pgmnemo--")],
)
def test_the_error_for_a_missing_extension_says_how_to_add_it(
    monkeypatch: pytest.MonkeyPatch, place: str, sentence: str
) -> None:
    monkeypatch.setenv(_VARIABLE, place)
    with opened("pgmnemo") as system:
        _refuses(system, sentence)


# What is written down


def test_the_identity_contains_what_determines_results(shared: Any, folder: Path) -> None:
    identity = _identity(shared)
    assert identity["versions"]["pgmnemo"] == "0.20.0"
    assert identity["extension_sha256"].keys() == {"pgmnemo--0.20.0.sql"}
    assert identity["settings"] == {
        "pgmnemo.gate_strict": "warn",
        "pgmnemo.recency_weight": "0.1",
        "pgmnemo.tenant_id": "",
    }
    assert identity["dimensions"] == 1024


# The real one


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    if not _REAL:
        missing(f"{_VARIABLE} names no folder with the extension", required=False)
    monkeypatch.setenv(_VARIABLE, _REAL)


def test_the_real_extension_passes_the_conformance_checks(real: None) -> None:
    results = check_system(plan(Spec.parse("pgmnemo")), timeout=60.0)
    assert [result for result in results if result.verdict == "failed"] == []


def test_the_real_extension_recalls_two_conversations(
    real: None, write_locomo: Callable[..., Path], tmp_path: Path
) -> None:
    data = write_locomo(tmp_path / "locomo10.json", conversations=2)
    words = ["run", "locomo", "--data", data, "--system", "pgmnemo", "--out", tmp_path / "runs"]
    assert invoke([str(word) for word in words]) == 0
    manifest = json.loads((tmp_path / "runs/pgmnemo/manifest.json").read_bytes())
    identity = manifest["identity"]["system"]["hello"]["identity"]
    assert re.fullmatch(r"\d+\.\d+[.\d]*", identity["versions"]["pgmnemo"])
    assert identity["extension_sha256"]
    assert identity["settings"]["pgmnemo.gate_strict"] == "warn"
    metrics = json.loads((tmp_path / "runs/pgmnemo/metrics.json").read_bytes())
    assert metrics["overall"]["recall@10"]["mean"] > metrics["overall"]["recall@5"]["mean"] > 0
