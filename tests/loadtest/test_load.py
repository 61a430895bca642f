"""Load tests show how long clients wait, also what a closed loop hides, and keep to limits."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import REPOSITORY
from tests.loadtest.timed_systems import Fails, Hangs, SimulatedClock, TakesTurns, Timed

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.cli.app import invoke
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.base import Dataset
from mnemoscope.loadtest import LoadOptions, LoadResult, LoadUpdate, run_load
from mnemoscope.loadtest.load_generator import Pattern, Request, StepLimits, due_times
from mnemoscope.loadtest.workload import Workload
from mnemoscope.systems.loader import plan
from mnemoscope.types import Query

STRATA = REPOSITORY / "examples" / "strata"


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return open_dataset("strata", STRATA)


def under_load(
    dataset: Dataset, system: Any, out: Path, clock: SimulatedClock | None = None, **options: Any
) -> LoadResult:
    planned = plan(Spec("tests:system", label="mine"), system)
    return run_load(dataset, [planned], out, LoadOptions(**options), clock=clock)


def test_an_open_loop_shows_a_stall_in_p99_that_a_closed_loop_hides(
    dataset: Dataset, tmp_path: Path
) -> None:
    steps = []
    for pattern in ({"clients": (1,)}, {"rates": (100.0,), "connections": 1}):
        clock = SimulatedClock()
        system = Timed(clock, stalled=50)
        settings = {**pattern, "arrivals": "fixed", "requests": 200}
        result = under_load(dataset, system, tmp_path, clock, **settings)
        steps.append(result.steps[0])

    closed, opened = steps
    assert closed.requests == opened.requests == 200
    assert closed.latency_ms["max"].value == pytest.approx(1000)
    assert closed.latency_ms["p99"].value == pytest.approx(1)
    # The stall lasts as long as a hundred requests are apart: they wait, the first for a second.
    assert opened.latency_ms["p99"].value == pytest.approx(982, abs=10)
    assert opened.sent_to_reply_ms["p99"] == pytest.approx(1)
    interval = opened.latency_ms["p95"].ci95
    assert interval is not None
    assert interval[1] > 500


class Contract(BaseHTTPRequestHandler):
    """A server of the HTTP contract whose tenth recall takes 0.3 seconds."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # a reply in one packet: two would wait for an acknowledgement in between
    recalls = 0

    def do_GET(self) -> None:
        self._reply({"name": "s", "version": "1", "methods": ["reset", "remember", "recall"]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("recall"):
            Contract.recalls += 1
            if Contract.recalls == 10:
                time.sleep(0.3)
        self._reply({"hits": []})

    def _reply(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    Contract.recalls = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Contract) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http:http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(("loop", "delayed"), [("closed", 1), ("open", 32)])
def test_a_stall_of_a_server_delays_every_request_that_is_due_before_it_ends(
    loop: str, delayed: int, address: str, tmp_path: Path
) -> None:
    result = ms.load_test(
        "strata",
        systems=[address],
        data=STRATA,
        out=tmp_path,
        clients=[1] if loop == "closed" else [],
        rate=[200] if loop == "open" else [],
        arrivals="fixed",
        connections=1,
        requests=40,
    )

    lines = (tmp_path / "requests.jsonl").read_bytes().splitlines()
    requests = [msgspec.json.decode(line, type=Request) for line in lines]
    [step] = result.steps
    assert (len(requests), step.requests, step.errors.value) == (40, 40, 0)
    stalled = requests[8]  # the warm-up was the first recall
    # By count: of 40 requests that are due within 0.2 s, all after the stalled one wait for it.
    waited = [one for one in requests[8:] if one.due < stalled.done]
    assert len(waited) == delayed
    p50 = step.latency_ms["p50"].value
    assert p50 is not None
    assert p50 > 100 or loop == "closed"


def test_requests_that_an_overloaded_system_never_got_count_as_late(
    dataset: Dataset, tmp_path: Path
) -> None:
    clock = SimulatedClock()
    system = Timed(clock, each=0.1)
    options: dict[str, Any] = {"rates": (100.0,), "arrivals": "fixed", "connections": 1}
    result = under_load(dataset, system, tmp_path, clock, **options, duration=1.0, timeout=1.0)

    [step] = result.steps
    # Ten requests a second are answered, in the second of the step and the second after it.
    assert step.requests == 100
    assert step.unsent == pytest.approx(80, abs=1)
    assert step.errors.value == pytest.approx(0.8, abs=0.01)
    assert "lower limits" in (tmp_path / "load.md").read_text()


def test_the_system_receives_queries_without_labels(dataset: Dataset, tmp_path: Path) -> None:
    clock = SimulatedClock()
    system = Timed(clock)
    under_load(dataset, system, tmp_path, clock, clients=(1,), requests=20)

    assert len(system.received) == 21
    assert {type(query) for query in system.received} == {Query}


def test_recall_under_load_is_that_of_the_evidence(tmp_path: Path) -> None:
    result = ms.load_test(
        *("strata",),
        systems=["oracle", "none"],
        data=STRATA,
        out=tmp_path,
        clients=[2],
        requests=60,
    )

    oracle, none = result.steps
    assert (oracle.metric, oracle.recall.value, none.recall.value) == ("recall@10", 1.0, 0.0)
    assert oracle.recall.ci95 is not None
    assert result.rows()[0]["recall@10"] == 1.0
    assert (tmp_path / "load.png").read_bytes().startswith(b"\x89PNG")


def test_failed_requests_are_errors_and_no_latencies(dataset: Dataset, tmp_path: Path) -> None:
    clock = SimulatedClock()
    system = Fails(clock)
    [step] = under_load(dataset, system, tmp_path, clock, clients=(1,), requests=200).steps

    assert step.errors.value == 0.25
    assert step.error_texts == {"ValueError: no index": 50}
    # 150 answered requests in 0.2 simulated seconds.
    assert step.throughput.value == pytest.approx(750)


def test_writers_go_on_and_take_turns_with_the_recalls_of_a_library(
    dataset: Dataset, tmp_path: Path
) -> None:
    system = TakesTurns(SimulatedClock())
    options: dict[str, Any] = {"clients": (4,), "requests": 400, "writers": 2}
    result = under_load(dataset, system, tmp_path, **options, write_rate=1000.0)

    [step] = result.steps
    assert step.written is not None
    assert step.written.memories > 0
    assert len(system.ingested) == result.memories + step.written.memories
    assert system.overlaps == 0


def test_with_writers_only_questions_whose_evidence_is_there_are_asked(dataset: Dataset) -> None:
    workload = Workload(dataset, scenarios=1, k=10, seed=1, writing=True)

    before = {memory.id for memory in workload.before}
    assert abs(len(workload.before) - len(workload.later)) <= 1
    assert all(before.issuperset(question.evidence) for question in workload.questions)


def test_ctrl_c_keeps_what_was_measured(dataset: Dataset, tmp_path: Path) -> None:
    system = Hangs()

    def interrupt(at: LoadUpdate) -> None:
        if at.requests:
            raise KeyboardInterrupt

    planned = plan(Spec("tests:system", label="mine"), system)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_load(dataset, [planned], tmp_path, LoadOptions(clients=(1,)), update=interrupt)
    finally:
        system.end.set()

    kept = json.loads((tmp_path / "load.json").read_bytes())
    # The warm-up and four requests were answered, the fifth was in flight.
    assert (kept["is_complete"], kept["steps"][0]["requests"]) == (False, 5)
    assert "interrupted" in (tmp_path / "load.md").read_text()


def test_arrivals_are_random_or_even_and_end_by_count_and_by_time() -> None:
    bounds = StepLimits(requests=1000, seconds=2.0, timeout=1.0)
    even = list(due_times(Pattern(1, 100.0, "fixed"), bounds, seed=0))
    assert len(even) == 200
    assert even[:3] == [0, 0.01, 0.02]
    assert len(list(due_times(Pattern(1, 1e6, "fixed"), bounds, seed=0))) == 1000

    drawn = list(due_times(Pattern(1, 100.0), StepLimits(20_000, 1e9, 1.0), seed=7))
    gaps = [later - earlier for earlier, later in pairwise(drawn)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(0.01, rel=0.03)
    # Exponential gaps: their standard deviation is their mean.
    assert (sum(gap * gap for gap in gaps) / len(gaps)) ** 0.5 == pytest.approx(
        2**0.5 * mean, rel=0.05
    )
    again = due_times(Pattern(1, 100.0), StepLimits(20_000, 1e9, 1.0), seed=7)
    assert list(islice(again, 5)) == drawn[:5]


@pytest.mark.parametrize(
    "wrong", [{"requests": 0}, {"duration": 1e9}, {"clients": (0,)}, {"rates": (0.0,)}]
)
def test_a_load_without_a_limit_is_refused(
    wrong: dict[str, Any], dataset: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="give more than 0"):
        under_load(dataset, Timed(SimulatedClock()), tmp_path, **wrong)


def test_the_command_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"load strata --data {STRATA} --system random --clients 1,2 --requests 20"
    assert invoke([*words.split(), "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "closed, 2" in shown
    assert "recall@10" in shown
    assert "fewer than 100 requests" in shown
