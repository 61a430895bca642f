"""Every way in which a model's server can fail ends in a true status, and the counts add up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_server import (
    Fault,
    ScriptedServer,
    dropped,
    empty,
    failing,
    rate_limited,
    replies_json,
    says,
    slow,
    torn,
    truncated,
)

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.analysis.answers import answer_figures
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.models.model import RequestPacer
from mnemoscope.runner.answer_and_judge import AnswerAndJudge
from mnemoscope.runner.answer_setup import pipeline_for
from mnemoscope.runner.pipeline import stages
from mnemoscope.types import Answer, Memory, Question, Scenario, Trial, Verdict

SPOILT = "What does Eve repair?"
SCENARIO = Scenario(
    "c",
    (Memory("m", "Eve repairs clocks in Oslo."),),
    tuple(
        Question(f"q{n}", text, reference="clocks", category="4", evidence=("m",))
        for n, text in enumerate(["Where does Eve live?", SPOILT, "Who is Rex?"])
    ),
)


def completion(message: dict[str, Any], finish: str = "stop") -> Fault:
    return replies_json({"choices": [{"message": message, "finish_reason": finish}]})


MODES: dict[str, tuple[list[Fault], str, str]] = {
    # name: faults of the spoilt question (the last one stays), its status, part of its error
    "a rate limit once": ([rate_limited(0), says("clocks")], "answered", ""),
    "a rate limit without a time": ([rate_limited(None), says("clocks")], "answered", ""),
    "a server error once": ([failing(500), says("clocks")], "answered", ""),
    "overloaded once": ([failing(529), says("clocks")], "answered", ""),
    "a lost connection once": ([dropped(), says("clocks")], "answered", ""),
    "half a reply once": ([torn(), says("clocks")], "answered", ""),
    "half of the JSON once": ([truncated(), says("clocks")], "answered", ""),
    "an empty reply once": ([empty(), says("clocks")], "answered", ""),
    "server errors": ([failing(503)], "error", "503"),
    "lost connections": ([dropped()], "error", ""),
    "half replies": ([torn()], "error", ""),
    "half of the JSON": ([truncated()], "error", ""),
    "empty replies": ([empty()], "error", "empty reply"),
    "empty replies at the limit": ([says("", finish="length")], "error", "max_tokens"),
    "no content at all": ([says(None)], "error", "empty reply"),
    "one byte at a time": ([slow(0.2)], "timeout", ""),
    "no completion": ([replies_json({"ok": True})], "error", ""),
    "no choices": ([replies_json({"choices": []})], "error", ""),
    "a list in place of an object": ([replies_json([1, 2])], "error", ""),
    "a prompt that is too long": (
        [failing(400, "maximum context length is 10 tokens")],
        "error",
        "context length",
    ),
    "a bad request": ([failing(400, "cannot do that")], "error", "cannot do that"),
    "a filtered reply": ([completion({"content": ""}, "content_filter")], "error", "withheld"),
    "a reply cut at the limit": ([says("clocks and", finish="length")], "truncated", ""),
    "a refusal in its own field": (
        [completion({"content": None, "refusal": "I cannot help with that."})],
        "abstained",
        "",
    ),
    "a refusal as the reason of the end": ([says("", finish="refusal")], "abstained", ""),
    "text that says that nothing is known": ([says("I don't know.")], "abstained", ""),
    "content in parts": (
        [completion({"content": [{"type": "text", "text": "clocks"}]})],
        "answered",
        "",
    ),
}
STOPS: dict[str, Fault] = {
    "no key": failing(401),
    "no money": failing(402),
    "not allowed": failing(403),
    "no such model": failing(404),
    "a quota that is used up": rate_limited(None, code="insufficient_quota"),
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(RequestPacer, "pause", lambda self, failures: None)
    with ScriptedServer(lambda request: "clocks") as found:
        yield found


def run(server: ScriptedServer) -> list[QuestionRecord]:
    """Answer and judge all questions, as a worker does."""
    pipeline = pipeline_for("locomo", reader=f"m@{server.url}?tries=2&timeout=1", judges=["f1"])
    worker = AnswerAndJudge(pipeline)
    worker.begin(SCENARIO)
    [stage] = stages(SCENARIO)
    records = []
    for ask in stage.asks:
        trial = Trial("c", ask.question.id, "answered", evidence=("m",), ranking=("m",))
        answer = worker.answer(ask, trial, None, 1)
        verdict = None
        if not pipeline.settles(answer):
            verdict = worker.judge(ask, trial, answer, 1)
        records.append(QuestionRecord(ask.question, trial, answer, verdict, "c"))
    return records


def spoil(server: ScriptedServer, faults: list[Fault]) -> None:
    for fault in faults[:-1]:
        server.when(lambda request: SPOILT in request.text, fault, times=1)
    server.when(lambda request: SPOILT in request.text, faults[-1])


@pytest.mark.parametrize("mode", MODES)
def test_a_faulty_server_ends_in_a_true_status(server: ScriptedServer, mode: str) -> None:
    faults, status, error = MODES[mode]
    spoil(server, faults)

    records = run(server)

    answers = [one.answer for one in records]
    assert all(isinstance(one, Answer) for one in answers)
    first, spoilt, last = answers
    assert first and spoilt and last
    assert (first.status, last.status) == ("answered", "answered")
    assert spoilt.status == status
    assert error in spoilt.error
    assert bool(spoilt.error) == (status in ("error", "timeout"))
    figures = answer_figures(records)
    counts = figures["counts"]
    replied = counts["answered"] + counts.get("truncated", 0) + counts["abstained"]
    failed = sum(counts["failed"].values())
    assert replied + counts["empty"] + failed + counts["unanswered"] == counts["asked"] == 3
    assert counts["judged"] + counts["unjudged"] == 3 - failed
    assert figures["all"]["n"] + figures["all"].get("missing", 0) == 3
    if failed:
        low, high = figures["all"]["bounds"]
        mean = figures["all"]["mean"]
        assert mean is not None
        assert low == pytest.approx(2 * mean / 3)
        assert high == pytest.approx((2 * mean + 1) / 3)


@pytest.mark.parametrize("mode", STOPS)
def test_what_no_question_can_be_blamed_for_stops_the_run(
    server: ScriptedServer, mode: str
) -> None:
    server.when(lambda request: SPOILT in request.text, STOPS[mode])
    with pytest.raises(MnemoscopeError):
        run(server)


def test_there_are_at_least_twenty_modes() -> None:
    assert len(MODES) >= 20
    assert {status for _, status, _ in MODES.values()} == {
        "answered",
        "error",
        "timeout",
        "truncated",
        "abstained",
    }


def test_a_judge_whose_model_refuses_gives_no_verdict(server: ScriptedServer) -> None:
    server.when(lambda request: True, completion({"content": None, "refusal": "No."}))
    pipeline = pipeline_for("locomo", reader="extractive", judges=[f"m@{server.url}?tries=1"])
    worker = AnswerAndJudge(pipeline)
    worker.begin(SCENARIO)
    [stage] = stages(SCENARIO)
    verdict = worker.judge(stage.asks[0], None, Answer("c", "q0", "answered", "clocks"), 1)
    assert isinstance(verdict, Verdict)
    assert verdict.final is None and "no verdict" in verdict.error
