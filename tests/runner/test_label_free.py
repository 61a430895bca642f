"""What is sent to a node has no label, and what returns gets the labels of a local run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import mnemoscope as ms
from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.runner.cluster.cluster import Cluster
from mnemoscope.runner.cluster.gateway import Start, check_address
from mnemoscope.runner.cluster.label_free import LabelFreeScenario, LabelJoiner, UnitOrder
from mnemoscope.runner.cluster.node_messages import HELLO, NodeHello
from mnemoscope.runner.cluster.remote_worker import RemoteWorker
from mnemoscope.runner.cluster.resources import Resources, resources_of
from mnemoscope.runner.pipeline import Pipeline, stages
from mnemoscope.runner.spool_lines import RecallReply, SpoolReader, decode_line, hashed, reply_to
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.runner.versions import decisive_versions
from mnemoscope.runner.work_unit import WorkUnit
from mnemoscope.runner.worker import DESCRIBED, Description
from mnemoscope.runner.worker_process import Limits
from mnemoscope.systems.loader import Plan, plan
from mnemoscope.types import (
    AnswerKey,
    Checkpoint,
    Hit,
    Ingestion,
    Memory,
    Question,
    Scenario,
    Timing,
    Trial,
    Verdict,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MEMORIES = tuple(Memory(f"m{n}", f"memory number {n}", part_of=f"d{n // 2}") for n in range(6))
QUESTIONS = tuple(
    Question(
        f"question-{n}_abs",
        f"text {9 - n}?",
        reference=f"the answer {n}",
        category=f"kind-{n}",
        evidence=(f"d{n}", f"d{n + 1}"),
        grades={f"d{n}": 3},
        expects="abstain",
        difficulty="hard",
        cluster=f"cluster-{n}",
        relevant_days=(7001, 7002),
        forbidden=("secret-session",),
        key=AnswerKey((("fact",),), ("outdated",), ("others",), ("secret",)),
    )
    for n in range(2)
)
CHECKPOINTS = (
    Checkpoint("7d", 7, 4, ("question-0_abs",), NOW, eligible={"kind-0": 7003}, new=7004),
    Checkpoint(
        "14d",
        14,
        6,
        ("question-1_abs", "question-0_abs"),
        eligible={"kind-1": 7005},
        forget=("m1",),
    ),
)
SCENARIO = Scenario("s", MEMORIES, QUESTIONS, CHECKPOINTS)
HITS = (
    Hit("m1", 2.0),
    Hit("m1", None, "memory number 1, and more"),
    Hit("m1", 0.1 + 0.2, "another text of the same id"),
    Hit("x", 0.1, "made from two", ("m0", "m2"), ordered=True),
    Hit("nowhere", 0.0),
)


@pytest.mark.parametrize("mixed", [False, True])
def test_nothing_that_is_sent_is_a_label(mixed: bool) -> None:
    joiner = LabelJoiner(WorkUnit(0, 0, SCENARIO, mixed=mixed), Pipeline())
    sent = msgspec.msgpack.encode(joiner.scenario()) + msgspec.msgpack.encode(joiner.order(0))
    for text in ("memory number 3", "text 9?", "7d"):
        assert text.encode() in sent
    labels = (
        *("_abs", "the answer", "kind-", "abstain", "hard", "cluster", "secret", "outdated"),
        *("evidence", "reference", "category", "grades", "eligible", "relevant_days", "key"),
    )
    for label in labels:
        assert label.encode() not in sent, label
    for question in QUESTIONS:
        assert msgspec.msgpack.encode(question.evidence) not in sent
    for number in range(7001, 7006):
        assert msgspec.msgpack.encode(number) not in sent


def test_what_is_sent_has_no_field_for_a_label() -> None:
    """A label that is added to Question later stays here, too: nothing is copied as a whole."""
    fields = set(LabelFreeScenario.__struct_fields__) | set(UnitOrder.__struct_fields__)
    assert fields == {
        *("id", "memories", "queries", "checkpoints"),
        *("run", "order", "ingested", "done", "careful", "mixed", "restarts"),
    }


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("hits", [HITS, HITS[:1], (Hit("m1"), Hit("m2")), ()])
def test_a_trial_of_a_node_is_that_of_a_local_run(hits: tuple[Hit, ...], mixed: bool) -> None:
    unit = WorkUnit(0, 0, SCENARIO, mixed=mixed)
    joiner = LabelJoiner(unit, Pipeline())
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(joiner.scenario()), type=LabelFreeScenario)
    there = sent.scenario()
    here = {(a.checkpoint, a.question.text): (a, s) for s in stages(SCENARIO) for a in s.asks}
    asked = 0
    for stage in stages(there):
        for ask in stage.asks:
            own, place = here[ask.checkpoint, ask.question.text]
            assert ask.question.now == own.question.now
            line = msgspec.json.encode(reply_to("s", ask, hits))
            returned = joiner.line(decode_line(line))
            local = TrialBuilder(SCENARIO).trial(own, hits, seen=place.checkpoint.memories)
            assert isinstance(returned, RecallReply if mixed else Trial)
            assert list(SpoolReader(SCENARIO).labelled([returned])) == [local]
            asked += 1
    assert asked == 3


def test_a_failure_of_a_node_is_that_of_a_local_run() -> None:
    joiner = LabelJoiner(WorkUnit(0, 0, SCENARIO), Pipeline())
    ask = stages(SCENARIO)[0].asks[0]
    builder = TrialBuilder(SCENARIO)
    local = builder.trial(ask, seen=4, error="too slow", timed_out=True)
    assert joiner.line(Trial("s", "0", "timeout", error="too slow", checkpoint="7d")) == local
    unasked = joiner.line(Trial("s", "0", "not-indexed", error="no", checkpoint="14d"))
    assert isinstance(unasked, Trial) and unasked.status == "not-indexed"
    assert joiner.timing(Timing("s", "0", "7d", 1.5)).question == "question-0_abs"
    receipt = Ingestion("s", 4, checkpoint="7d")
    assert joiner.line(receipt) is receipt


@pytest.mark.parametrize(
    "line",
    [
        Verdict("s", "0", checkpoint="7d"),
        Trial("other", "0", "empty", checkpoint="7d"),
        Trial("s", "1", "empty", checkpoint="7d"),
        Trial("s", "question-0_abs", "empty", checkpoint="7d"),
        Trial("s", "-1", "empty", checkpoint="14d"),
        Trial("s", "0", "empty", checkpoint="99d"),
        Trial("s", "0", "answered", ranking=("m1",), checkpoint="7d"),
        RecallReply("s", "0", "empty", checkpoint="7d"),
        RecallReply("s", hashed("question-0_abs"), "empty", checkpoint="7d"),
        RecallReply("s", hashed("1"), "empty", checkpoint="7d"),
        RecallReply("other", hashed("0"), "empty", checkpoint="7d"),
        Ingestion("other", 4, checkpoint="7d"),
    ],
)
def test_a_node_cannot_record_what_it_was_not_asked(line: Any) -> None:
    joiner = LabelJoiner(WorkUnit(0, 0, SCENARIO), Pipeline())
    with pytest.raises(DataError, match="a node"):
        joiner.line(line)


def test_a_node_cannot_record_a_question_twice() -> None:
    joiner = LabelJoiner(WorkUnit(0, 0, SCENARIO), Pipeline())
    line = Trial("s", "0", "empty", checkpoint="7d")
    joiner.line(line)
    with pytest.raises(DataError, match="recall 7d question-0_abs twice"):
        joiner.line(line)


def test_only_what_is_open_is_asked_again() -> None:
    recorded = frozenset({("remember", "7d", ""), ("recall", "7d", "question-0_abs")})
    unit = WorkUnit(3, 5, SCENARIO, recorded=recorded, restarts=1)
    order = LabelJoiner(unit, Pipeline()).order(0)
    assert (order.ingested, order.done, order.restarts) == (("7d",), (("7d", 0),), 1)
    there = order.unit(LabelJoiner(unit, Pipeline()).scenario().scenario(), "folder")
    assert not there.is_complete and ("7d", "0") in there.settled


class FakeGateway:
    """Keeps the inbox of the worker, so that the test is the node."""

    def start(self, worker: int, inbox: Any, setup: bytes, order: Any) -> None:
        self.inbox = inbox


def remote_worker(known: Plan, hello: NodeHello, found: Description) -> RemoteWorker:
    gateway: Any = FakeGateway()
    worker = RemoteWorker(
        *(gateway, Start(1, "setup"), b"", 0, -2, (), (0,), [known], Pipeline()),
        lambda worker, system, isolation: None,
    )
    about = DESCRIBED + msgspec.json.encode(found)
    gateway.inbox([HELLO + msgspec.msgpack.encode(hello), about])
    return worker


def test_a_node_with_other_code_is_refused() -> None:
    """The cheat: a node that runs another version, or another system, under the run's identity."""
    known = Plan(Spec("mine"), lambda: None, {"source_sha256": "a"})
    same = Description({"source_sha256": "a"}, True, False)
    ours = decisive_versions()
    worker = remote_worker(known, NodeHello("n", ours), same)
    assert worker.receive() == b"" and worker.has_started
    with pytest.raises(UsageError, match=r"node n has other versions.*numpy 1\.0 instead of"):
        remote_worker(known, NodeHello("n", {**ours, "numpy": "1.0"}), same).receive()
    other = Description({"source_sha256": "b"}, True, False)
    with pytest.raises(UsageError, match="another mine than the run: its source_sha256 differ"):
        remote_worker(known, NodeHello("n", ours), other).receive()


def test_resources() -> None:
    given = resources_of(["a", "b", "c"], ["a:cpus=2,gpus=0.5", "memory=1.5GB"])
    rest = Resources(1.0, 0.0, 1_500_000_000)
    assert given == [Resources(2.0, 0.5, 0), rest, rest]
    assert resources_of(["a"], []) == [Resources()]


@pytest.mark.parametrize(
    "text", ["d:cpus=1", "cpus=many", "disks=1", "cpus=2GB", "cpus", "cpus=0", "cpus=-1", ""]
)
def test_wrong_resources_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--resources"):
        resources_of(["a", "b"], [text])


def test_resources_without_a_cluster_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--resources is for workers on a cluster"):
        ms.run("locomo", systems="bm25", resources="cpus=many", out=tmp_path, progress=False)


@pytest.mark.parametrize(
    "executor",
    ["rays", "ray:/x", "ray://host", "host:port", "host:²", "host:65536", "host:0", ":1", ""],
)
def test_a_wrong_executor_is_refused(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemoscope.runner.cluster.gateway.find_spec", lambda name: name)
    with pytest.raises(UsageError, match="--executor"):
        check_address(executor)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemoscope.runner.cluster.gateway.find_spec", lambda name: None)
    with pytest.raises(MnemoscopeError, match=r"mnemoscope\[ray\]"):
        check_address("ray")


def test_a_class_that_no_node_can_import_is_refused(tmp_path: Path) -> None:
    class Mine:
        def remember(self, memories: Any) -> None: ...
        def recall(self, query: Any, k: int) -> list[str]:
            return []

    with pytest.raises(UsageError, match="a node cannot import it"):
        Cluster(
            *("ray", [plan(Spec("here:Mine"), Mine)], [Resources()], Pipeline(), Limits(), 0),
            lambda worker, system, isolation: None,
            benchmark="b",
            hidden=(),
            out=tmp_path,
            isolation=None,
        )
