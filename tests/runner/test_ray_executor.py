"""Runs on a real Ray cluster of two nodes end with the bytes of a local run.

A node is killed in the middle of a run, a run goes from local to Ray and back, and the head dies.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.optional import missing
from tests.runner.ray_nodes import TwoNodes
from tests.waiting import eventually

import mnemoscope as ms
from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.run_directory import RunDirectory, read_journal
from mnemoscope.runner.cluster.gateway import Gateway, Order

if find_spec("ray") is None:
    missing("Ray is not installed: pip install 'mnemoscope[ray]'")
if sys.platform != "linux":
    missing("only Linux has several loopback addresses", required=False)

if TYPE_CHECKING:
    from tests.conftest import CommandProcess, StartCommand

HERE = Path(__file__).parent
SLOW, SLOW_FOLDER = "hostile_systems:Slow", "hostile_systems-Slow"


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without this file the slow system answers nothing on the cluster."""
    place = tmp_path_factory.mktemp("gate") / "open"
    place.touch()
    return place


@pytest.fixture(scope="module")
def cluster(gate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    variables = {"PYTHONPATH": str(HERE), "SLOW_SECONDS": "0.1", "SLOW_GATE": str(gate)}
    home = str(tmp_path_factory.mktemp("nodes"))
    nodes = TwoNodes({**variables, "MNEMOSCOPE_DATA_HOME": home, "OPENBLAS_NUM_THREADS": "1"})
    yield nodes
    nodes.end()


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_locomo(tmp_path_factory.mktemp("data") / "locomo10.json")


@pytest.fixture(scope="module")
def personas(write_persona: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("personas")
    return write_persona(write_persona(folder, id="one"), id="two")


def on_locomo(data: Path, out: Path, *more: object) -> list[object]:
    systems = ("--system", SLOW, "--system", "bm25")
    return ["run", "locomo", "--data", data, "--out", out, *systems, *more]


def finished(command: CommandProcess) -> None:
    assert command.wait() == 0, command.output


def spooled(out: Path) -> int:
    """Lines in the spools of unfinished units."""
    return sum(file.read_bytes().count(b"\n") for file in out.glob("*/units/*.trials.jsonl"))


def merged(out: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in out.glob("*/trials.jsonl"))


def assert_same_bytes(one: Path, other: Path) -> None:
    names = sorted(file.parent.name for file in one.glob("*/trials.jsonl"))
    assert names == sorted(file.parent.name for file in other.glob("*/trials.jsonl"))
    for name in names:
        for file in ("trials.jsonl", "metrics.json"):
            assert (one / name / file).read_bytes() == (other / name / file).read_bytes(), name
        prints = {RunDirectory(out / name).manifest().fingerprint for out in (one, other)}
        assert len(prints) == 1


def test_labels_do_not_reach_the_cluster(
    cluster: TwoNodes, personas: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep with a reader and a judge, from Python, over the client: all orders are read."""
    sent: list[bytes] = []
    send = Gateway._send

    def spy(self: Gateway, order: Order) -> None:
        sent.append(msgspec.msgpack.encode(order))
        send(self, order)

    options: dict[str, Any] = {"ranges": "4,8,12", "reader": "extractive", "judge": "ledger"}
    here = ms.run("personas", data=personas, systems="bm25", out=tmp_path / "here", **options)
    with monkeypatch.context() as patch:
        patch.setattr(Gateway, "_send", spy)
        for name, value in cluster.access.items():
            patch.setenv(name, value)
        options |= {"executor": cluster.client, "resources": "cpus=0.5"}
        there = ms.run("personas", data=personas, systems="bm25", out=tmp_path / "there", **options)
    assert_same_bytes(tmp_path / "here", tmp_path / "there")
    assert len(here) == len(there)
    orders = b"".join(sent)
    assert b"weighs 101 crates" in orders  # the memories are sent, and the questions
    assert b"What does thing01 weigh?" in orders
    assert b"No evidence found." not in orders
    trials = list(read_journal(tmp_path / "here" / "bm25" / "trials.jsonl"))
    labelled = [line for line in trials if getattr(line, "evidence", ())]
    assert labelled
    for line in labelled:
        assert isinstance(line, ms.types.Trial)
        assert msgspec.msgpack.encode(line.evidence) not in orders
        assert line.category.encode() not in orders
        assert msgspec.msgpack.encode(line.question) not in orders
    for label in (b"evidence", b"reference", b"category", b"relevant_days", b"grades"):
        assert label not in orders


def test_local_then_ray_then_local(
    cluster: TwoNodes, locomo: Path, tmp_path: Path, start_command: StartCommand
) -> None:
    """Each of the first two is interrupted; nothing is lost, and the end has the same bytes."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    finished(start_command(on_locomo(locomo, whole)))
    first = start_command(on_locomo(locomo, parts, "--workers", 1), SLOW_SECONDS=0.03)
    assert eventually(lambda: spooled(parts) > 5 or first.gone, 180)
    first.kill(with_workers=True)
    kept = spooled(parts) + merged(parts)
    assert kept > 5
    second = start_command(
        on_locomo(locomo, parts, "--executor", cluster.address), **cluster.access
    )
    assert eventually(lambda: spooled(parts) + merged(parts) > kept + 10 or second.gone, 180)
    assert not second.gone, second.output
    os.kill(second.pid, signal.SIGINT)
    assert second.wait() == 130, second.output
    assert RunDirectory(parts / SLOW_FOLDER).manifest().state == "interrupted"
    assert spooled(parts) + merged(parts) > kept + 10
    finished(start_command(on_locomo(locomo, parts)))
    assert_same_bytes(whole, parts)


def test_a_node_is_killed_in_the_middle_and_then_the_head(
    cluster: TwoNodes, gate: Path, locomo: Path, tmp_path: Path, start_command: StartCommand
) -> None:
    whole, out, after = tmp_path / "whole", tmp_path / "out", tmp_path / "after"
    finished(start_command(on_locomo(locomo, whole)))
    gate.unlink()
    run = start_command(on_locomo(locomo, out, "--executor", cluster.address), **cluster.access)
    slow = f"{SLOW_FOLDER}/units/*.trials.jsonl"
    assert eventually(
        lambda: len(list(out.glob(slow))) == 2 or run.gone, 180
    )  # both nodes have one
    gate.touch()
    assert eventually(lambda: spooled(out) > 4 or run.gone, 180)
    assert not run.gone, run.output
    cluster.kill_second()
    finished(run)
    assert_same_bytes(whole, out)
    assert "the system was lost (lost with its worker" in run.output
    timing = RunDirectory(out / SLOW_FOLDER).read_json("timing.json")
    assert timing["counters"]["restarts"] >= 1
    isolation = RunDirectory(out / SLOW_FOLDER).manifest().isolation
    assert isolation is not None and isolation.hosting == "child"
    assert isolation.level in (1, 2)
    if isolation.level == 2:
        assert isolation.starts == isolation.passed > 0

    run = start_command(on_locomo(locomo, after, "--executor", cluster.address), **cluster.access)
    assert eventually(lambda: spooled(after) > 5 or run.gone, 180)
    assert not run.gone, run.output
    cluster.kill_head()
    assert run.wait() == 1, run.output
    assert "the cluster is gone" in run.output and "the same command continues" in run.output
    finished(start_command(on_locomo(locomo, after)))
    assert_same_bytes(whole, after)


def test_nobody_answers_at_the_address(locomo: Path, tmp_path: Path) -> None:
    with pytest.raises(MnemoscopeError, match="no cluster answers there"):
        ms.run("locomo", data=locomo, systems="bm25", out=tmp_path, executor="127.0.0.9:9")
