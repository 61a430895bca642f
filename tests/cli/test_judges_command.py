"""`mnemoscope judges`: the list; the table, JSON and exit codes of the exam."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.cli.judges import app
from mnemoscope.judges import JUDGES
from mnemoscope.judges.exam import load_probes
from mnemoscope.models.chat import Prompt

PROBES = load_probes()
HERE = __name__


class Perfect:
    """Gives the right verdict on every exam question."""

    def complete(self, prompt: Prompt) -> str:
        asked = [p for p in PROBES if p.answer in prompt.user and p.question in prompt.user]
        found = max(asked, key=lambda probe: len(probe.answer))
        return "CORRECT" if found.acceptable else "WRONG"


class AlwaysCorrect:
    def complete(self, prompt: Prompt) -> str:
        return "CORRECT"


class AlwaysWrong:
    def complete(self, prompt: Prompt) -> str:
        return "WRONG"


class Obedient:
    """Right, except that it accepts every answer that contains the word CORRECT."""

    def complete(self, prompt: Prompt) -> str:
        answer = prompt.user.partition("<answer-")[2]
        return "CORRECT" if "CORRECT" in answer else Perfect().complete(prompt)


class Gullible:
    """Right, except that it accepts confabulated answers."""

    def complete(self, prompt: Prompt) -> str:
        made_up = [p for p in PROBES if p.kind == "confabulated" and p.answer in prompt.user]
        return "CORRECT" if made_up else Perfect().complete(prompt)


class Rubbish:
    def complete(self, prompt: Prompt) -> str:
        return "Perhaps."


@pytest.fixture(autouse=True)
def _own_exams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")


def _run(*arguments: str) -> Any:
    return app(arguments, exit_on_error=False, print_error=False, result_action="return_value")


def _exam(model: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = _run("exam", f"binary,model={HERE}:{model}", "--json")
    return code, json.loads(capsys.readouterr().out)


def test_list_names_every_judge_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    _run("list", "--json")
    listed = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(listed) == JUDGES.names()
    assert listed["binary"]["options"] == {"model": "required", "prompt": "judge-binary"}
    assert listed["rouge-l"]["options"] == {"tokens": "words|whitespace"}
    _run("list")
    table = capsys.readouterr().out
    assert all(name in table for name in ("rubric", "longmemeval", "likelihood"))


def test_the_smoke_test_is_called_one_and_its_exit_code_is_0_for_a_pass(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, result = _exam("Perfect", capsys)
    assert (code, result["passed"], result["smoke_test"]) == (0, True, True)
    assert result["false_accept"]["count"] == 0
    low, high = result["false_accept"]["ci95"]
    assert low == 0 and 0 < high < 0.1


@pytest.mark.parametrize(
    ("model", "share", "rate"),
    [
        ("AlwaysCorrect", "false_accept", 1.0),
        ("AlwaysWrong", "false_reject", 1.0),
        ("Rubbish", "unjudged", 1.0),
    ],
)
def test_the_exit_code_is_1_for_a_failed_exam(
    model: str, share: str, rate: float, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = _exam(model, capsys)
    assert (code, result["passed"]) == (1, False)
    assert result[share]["rate"] == rate


def test_a_judge_that_obeys_answers_fails_on_injections(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, result = _exam("Obedient", capsys)
    assert code == 1
    wrong = {kind for kind, counted in result["kinds"].items() if counted["false_accepts"]}
    assert wrong == {"injection"}


def test_the_output_explains_why_the_judge_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("exam", f"binary,model={HERE}:AlwaysCorrect", "--parallelism", "2") == 1
    shown = capsys.readouterr().out
    assert "FAILED:" in shown
    assert "it accepts too many wrong answers" in shown
    assert "100.0%" in shown and "at most 10% allowed" in shown
    assert "vague-wrong" in shown
    assert _run("exam", f"binary,model={HERE}:Perfect") == 0
    assert "PASSED:" in capsys.readouterr().out


def test_a_judge_that_errs_on_one_kind_fails_and_the_kind_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, result = _exam("Gullible", capsys)
    assert (code, result["limits"]["of_one_kind"]) == (1, 0.5)
    assert result["false_accept"]["rate"] < 0.1
    assert result["reasons"] == ["more than half of its verdicts are wrong for: confabulated"]
    assert _run("exam", f"binary,model={HERE}:Gullible") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "more than half of its verdicts are wrong for: confabulated" in shown
    assert "in 1 of 11 kinds of answers it errs on more than 50% of them; none is allowed" in shown


def test_an_exam_stops_before_its_cost_limit(capsys: pytest.CaptureFixture[str]) -> None:
    judge = f"binary,model={HERE}:Perfect?price_in=10&price_out=10"
    with pytest.raises(MnemoscopeError, match="higher --max-cost"):
        _run("exam", judge, "--max-cost", "0.05")
    assert _run("exam", judge, "--max-cost", "9", "--json") == 0
    assert 0 < json.loads(capsys.readouterr().out)["usage"]["paid"] < 9


def test_judges_without_a_model_can_take_the_exam(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("exam", "exact", "--json") == 1
    result = json.loads(capsys.readouterr().out)
    assert result["false_reject"]["rate"] > 0.5
    assert result["usage"] is None


def test_an_unknown_judge_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="binary"):
        _run("exam", "binari")
