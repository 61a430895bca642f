"""Durability tests find what a store acknowledged and lost, and blame no store that kept it."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest
from tests.integrations.needed import need

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.app import invoke
from mnemoscope.durability import DurabilityResult
from mnemoscope.durability.durability_report import sentence

STORES = Path(__file__).with_name("stores.py")
SMALL = {"kills": 1, "memories": 10, "batch": 2, "settle": 0.0}


def durability_of(kind: str, out: Path) -> DurabilityResult:
    # -S: the stores use no packages, and a process without them starts in half the time.
    system = f"{kind}=stdio:{sys.executable} -S -E {STORES} {kind} {{storage}}"
    return ms.durability_test(system, out=out, **SMALL)  # type: ignore[arg-type]


def test_a_lost_write_is_found_in_a_store_that_acknowledges_before_writing(tmp_path: Path) -> None:
    result = durability_of("AcknowledgesBeforeWriting", tmp_path)

    assert result.verdict == "lost"
    clean, after, during = result.rounds
    assert clean.acknowledged == 10
    assert clean.missing == []
    assert after.missing == [f"a2-{number:04}" for number in range(10)]
    assert during.acknowledged > 0
    assert len(during.missing) == during.acknowledged
    assert all(one.usable_again and one.writes_again for one in result.rounds)
    assert "lost" in (tmp_path / "durability.md").read_text()
    assert json.loads((tmp_path / "durability.json").read_bytes())["verdict"] == "lost"
    # The files of a round that lost something stay for those who look for the reason.
    assert {place.name for place in (tmp_path / "storage").iterdir()} == {"after-2", "during-3"}


def test_nothing_is_lost_in_sqlite_with_full_synchronisation(tmp_path: Path) -> None:
    result = durability_of("FullySynchronised", tmp_path)

    assert result.verdict == "kept"
    assert [one.kind for one in result.rounds] == ["clean", "after", "during"]
    assert all(one.acknowledged > 0 for one in result.rounds)
    assert all(one.missing == one.came_back == [] for one in result.rounds)
    assert [one.forgotten for one in result.rounds] == [2, 2, 0]
    # A write that the kill interrupted is one transaction: all of it is there, or nothing.
    assert result.rounds[-1].appeared in (0, 2)
    # Two kills without a loss prove little, and the sentence says so.
    assert "at most 66 % of such kills" in sentence(result)
    assert list((tmp_path / "storage").iterdir()) == []


def test_a_forgotten_memory_that_comes_back_is_found(tmp_path: Path) -> None:
    result = durability_of("ForgetsOnlyInMemory", tmp_path)

    assert result.verdict == "lost"
    assert result.rounds[1].came_back == ["a2-0000", "a2-0001"]
    assert all(one.missing == [] for one in result.rounds)


def test_a_system_that_keeps_nothing_is_not_durable_by_design(tmp_path: Path) -> None:
    result = durability_of("KeepsNothing", tmp_path)

    assert result.verdict == "not durable by design"
    assert [one.kind for one in result.rounds] == ["clean"]


@pytest.mark.parametrize("system", ["bm25", "langgraph"])
def test_a_system_in_memory_is_not_started(
    system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["durability", "--system", system, "--out", str(tmp_path)]) == 0
    assert "not durable by design" in capsys.readouterr().out


def test_a_server_is_started_killed_and_started_again(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = f"{sys.executable} -S -E {STORES} AcknowledgesBeforeWriting {{storage}} {port}"
    result = ms.durability_test(
        f"http:http://127.0.0.1:{port},patience=5",
        command=command,
        out=tmp_path,
        **SMALL,  # type: ignore[arg-type]
    )

    clean, after, _ = result.rounds
    assert (clean.acknowledged, clean.missing) == (10, [])
    assert len(after.missing) == 10
    assert result.verdict == "lost"
    with pytest.raises(OSError, match="refused"):  # it is ended with the test
        socket.create_connection(("127.0.0.1", port)).close()


def test_only_servers_that_are_started_here_are_killed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not ours to kill"):
        ms.durability_test("http:http://127.0.0.1:9", out=tmp_path)
    with pytest.raises(UsageError, match="not a loopback address"):
        ms.durability_test("http:http://192.0.2.1:80", command="true", out=tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match="listens at"):
            ms.durability_test(f"http:http://127.0.0.1:{port}", command="true", out=tmp_path)


def test_an_integration_that_cannot_be_started_again_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="those of qdrant, sqlite-vec, chroma, lancedb, mem0, postgres can"
    ):
        ms.durability_test("graphiti", out=tmp_path)


@pytest.mark.parametrize("name", ["sqlite-vec"])
def test_an_integration_opens_its_storage_again(name: str, tmp_path: Path) -> None:
    need(name)
    result = ms.durability_test(name, out=tmp_path, **SMALL)  # type: ignore[arg-type]
    assert result.verdict == "kept"
