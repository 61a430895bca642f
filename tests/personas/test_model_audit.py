"""The audit by a model: what replies make of a question, what is asked again, what it may cost."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing
from tests.scripted_server import Request, ScriptedServer, failing

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.cli.audit_persona import audit
from mnemoscope.personas.audit.audited_history import AuditedHistory
from mnemoscope.personas.audit.model_audit import LogPassages, agrees
from mnemoscope.personas.write.persona_files import open_persona_files

if importlib.util.find_spec("openai") is None:
    missing("openai is not installed")

FINE = {
    "answerable": {"why": "it says so", "answerable": True, "days": []},
    "without-evidence": {"answer": "", "known": False},
    "superseded": {"why": "nothing new", "superseded": False, "day": 0, "answer": ""},
}


def check_of(request: Request) -> str:
    """Which of the checks a request belongs to."""
    if "<passages>" in request.text:
        return "superseded"
    return "answerable" if "<logs>" in request.text else "without-evidence"


class Auditor:
    """Replies that all is well, but for what a test says of a question's thing."""

    def __init__(self) -> None:
        self.said: dict[tuple[str, str], Any] = {}

    def __call__(self, request: Request) -> str:
        check = check_of(request)
        for (name, thing), reply in self.said.items():
            if name == check and f"What does {thing} weigh?" in request.text:
                return reply if isinstance(reply, str) else json.dumps(reply)
        return json.dumps(FINE[check])


@pytest.fixture
def auditor() -> Auditor:
    return Auditor()


@pytest.fixture
def server(auditor: Auditor) -> Iterator[ScriptedServer]:
    with ScriptedServer(auditor) as running:
        yield running


@pytest.fixture
def folder(write_persona: Callable[..., Path], tmp_path: Path) -> Path:
    """Twelve days with a question each; on day 8 thing05 is weighed again."""
    folder = write_persona(tmp_path) / "tester"
    (folder / "qa-12d" / "ledger.jsonl").unlink()
    path = folder / "qa-12d" / "questions.yaml"
    kept = load_yaml(path)[::2]
    for day, entry in enumerate(kept, 1):
        entry |= {"question": f"What does thing{day:02} weigh?", "category": "factual-recall"}
        entry["key"] = []
    path.write_text(dump_yaml(kept))
    log = folder / "memories-12d" / "day-0008.md"
    log.write_text(log.read_text() + "\n### thing05\n\nHow much does thing05 weigh? 300 crates.\n")
    return folder


def trail(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "qa-12d" / "model-audit.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def found(folder: Path) -> dict[str, dict[str, Any]]:
    """Question to its verdict, where something is wrong with it."""
    return {line["question"]: line for line in trail(folder) if line.get("code")}


def test_questions_without_errors_have_no_findings(folder: Path, server: ScriptedServer) -> None:
    assert audit(persona=folder, model=f"toy@{server.url}", strict=True) == 0
    checks = [line["check"] for line in trail(folder)]
    assert checks.count("answerable") == checks.count("without-evidence") == 12
    assert 1 <= checks.count("superseded") < 12
    assert load_yaml(folder / "qa-12d" / "proposals.yaml") == []


def test_not_answerable_from_its_evidence(
    folder: Path, server: ScriptedServer, auditor: Auditor
) -> None:
    auditor.said["answerable", "thing03"] = {"why": "no weight", "answerable": False, "days": []}
    assert audit(persona=folder, model=f"toy@{server.url}", strict=True) == 1
    verdict = found(folder)["tester-q005"]
    assert (verdict["code"], verdict["why"]) == ("not-answerable", "no weight")
    [proposed] = load_yaml(folder / "qa-12d" / "proposals.yaml")
    assert proposed["proposals"][0]["drop"] is True


def test_loose_evidence_is_narrowed_to_the_days_that_are_needed(
    folder: Path, server: ScriptedServer, auditor: Auditor
) -> None:
    path = folder / "qa-12d" / "questions.yaml"
    written = load_yaml(path)
    written[2]["relevant_days"] = [2, 3, 4]
    path.write_text(dump_yaml(written))
    auditor.said["answerable", "thing03"] = {"why": "w", "answerable": True, "days": [3]}
    audit(persona=folder, model=f"toy@{server.url}")
    verdict = found(folder)["tester-q005"]
    assert (verdict["code"], verdict["proposal"]) == ("loose-evidence", {"relevant_days": [3]})


def test_a_correct_answer_without_evidence_is_a_leak(
    folder: Path, server: ScriptedServer, auditor: Auditor
) -> None:
    auditor.said["without-evidence", "thing03"] = {"answer": "103 crates.", "known": True}
    auditor.said["without-evidence", "thing04"] = {"answer": "90 crates.", "known": True}
    audit(persona=folder, model=f"toy@{server.url}", check=["without-evidence"])
    assert {id: line["code"] for id, line in found(folder).items()} == {"tester-q005": "leaks"}
    assert {line["check"] for line in trail(folder)} == {"without-evidence"}


def test_the_prompt_without_evidence_contains_none(folder: Path, server: ScriptedServer) -> None:
    audit(persona=folder, model=f"toy@{server.url}", check=["without-evidence"])
    for request in server.seen:
        assert "crates" not in request.text + request.system
        assert "2026" not in request.text + request.system


def test_superseded_proposes_the_day_before(
    folder: Path, server: ScriptedServer, auditor: Auditor
) -> None:
    changed = {"why": "weighed again", "superseded": True, "day": 8, "answer": "300 crates"}
    auditor.said["superseded", "thing05"] = changed
    audit(persona=folder, model=f"toy@{server.url}", check=["superseded"])
    verdict = found(folder)["tester-q009"]
    assert verdict["code"] == "superseded"
    assert verdict["proposal"] == {"irrelevant_after": 7}
    [request] = [r for r in server.seen if "What does thing05 weigh?" in r.text]
    assert "## day 8, 2026-01-12" in request.text
    assert "300 crates" in request.text


def test_later_passages_are_about_the_same_and_after_the_evidence(folder: Path) -> None:
    history = AuditedHistory(open_persona_files(folder))
    passages = LogPassages(history)
    later = {entry.id: passages.after(entry) for entry in history.entries}
    assert any("300 crates" in passage.text for passage in later["tester-q009"])
    for entry in history.entries:
        assert all(passage.day > max(entry.relevant_days) for passage in later[entry.id])


@pytest.mark.parametrize(
    "reply",
    [
        "It looks fine to me.",
        '{"why": "w", "answerable": "perhaps", "days": []}',
        '{"why": "w", "answerable": true, "days": [11]}',
        '{"why": "w", "answerable": true, "days": "3"}',
    ],
)
def test_an_unusable_reply_is_unjudged_and_not_a_finding(
    folder: Path,
    server: ScriptedServer,
    auditor: Auditor,
    reply: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    auditor.said["answerable", "thing03"] = reply
    arguments: dict[str, Any] = {"persona": folder, "model": f"toy@{server.url}"}
    assert audit(**arguments, check=["answerable"], strict=True, json=True) == 0
    assert json.loads(capsys.readouterr().out)["unjudged"] == 1
    [unjudged] = [line for line in trail(folder) if not line["judged"]]
    assert unjudged["question"] == "tester-q005"
    asked = [r for r in server.seen if "What does thing03 weigh?" in r.text]
    assert len(asked) == 3
    assert "That cannot be used" in asked[-1].text
    audit(**arguments, check=["answerable"])
    assert server.requests == 11 + 3


def test_verdicts_are_not_requested_again_even_without_the_cache(
    folder: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    audit(persona=folder, model=f"toy@{server.url}")
    before = server.requests
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "another"))
    audit(persona=folder, model=f"toy@{server.url}")
    assert server.requests == before
    log = folder / "memories-12d" / "day-0003.md"
    log.write_text(log.read_text() + "\nIt rained.\n")
    audit(persona=folder, model=f"toy@{server.url}", check=["answerable"])
    assert server.requests == before + 1
    audit(persona=folder, model=f"toy@{server.url}", check=["answerable"], overwrite=True)
    assert server.requests == before + 1 + 12


def test_a_failed_request_is_repeated_by_the_next_audit(
    folder: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoilt(request: Request) -> bool:
        return "What does thing03 weigh?" in request.text

    server.when(spoilt, failing(400, "no"), times=1)
    model = f"toy@{server.url}"
    assert audit(persona=folder, model=model, check=["answerable"]) == 0
    assert "1 checks got no reply" in capsys.readouterr().err
    assert len(trail(folder)) == 11
    audit(persona=folder, model=model, check=["answerable"])
    assert len(trail(folder)) == 12


def test_earlier_verdicts_count_until_the_question_is_changed(
    folder: Path, server: ScriptedServer, auditor: Auditor, capsys: pytest.CaptureFixture[str]
) -> None:
    auditor.said["without-evidence", "thing03"] = {"answer": "103 crates.", "known": True}
    audit(persona=folder, model=f"toy@{server.url}", check=["without-evidence"])
    capsys.readouterr()
    audit(persona=folder, json=True)
    assert json.loads(capsys.readouterr().out)["codes"]["leaks"]["questions"] == 1
    path = folder / "qa-12d" / "questions.yaml"
    path.write_text(path.read_text().replace("What does thing03 weigh?", "And thing03?"))
    audit(persona=folder, json=True)
    assert "leaks" not in json.loads(capsys.readouterr().out)["codes"]


def test_the_cost_has_a_limit_and_an_estimate(
    folder: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    model = f"toy@{server.url}?price_in=1000&price_out=1000"
    assert audit(persona=folder, model=model, estimate=True) == 0
    assert "requests" in capsys.readouterr().out
    assert server.requests == 0
    with pytest.raises(MnemoscopeError, match="--max-cost"):
        audit(persona=folder, model=model, max_cost=3.0, parallelism=1)
    asked = server.requests
    assert 0 < asked < 24
    assert len(trail(folder)) == asked
    audit(persona=folder, model=model, max_cost=1000.0)
    assert all(count == 1 for count in server.answered.values())


def test_a_dry_run_shows_prompts_and_makes_no_request(
    folder: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(persona=folder, model=f"toy@{server.url}", dry_run=True) == 0
    assert "What does thing01 weigh?" in capsys.readouterr().out
    assert server.requests == 0
    assert not (folder / "qa-12d" / "model-audit.jsonl").exists()


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("It was $240,000.", True),
        ("About $250k", False),
        ("I would say $240k or so", True),
    ],
)
def test_an_answer_agrees_by_its_values(answer: str, right: bool) -> None:
    assert agrees(answer, "The budget was $240k.", "What was the budget?") is right


def test_an_answer_without_values_agrees_by_its_words() -> None:
    question = "Why was the launch moved?"
    reference = "It was moved because the cooling failed in the tests."
    assert agrees("The cooling had failed during tests.", reference, question)
    assert not agrees("The launch was moved.", reference, question)
    assert not agrees("Probably for money.", reference, question)


def test_only_what_was_judged_counts_as_audited(
    folder: Path, server: ScriptedServer, auditor: Auditor, capsys: pytest.CaptureFixture[str]
) -> None:
    auditor.said["answerable", "thing03"] = "It looks fine to me."
    audit(persona=folder, model=f"toy@{server.url}", check=["answerable"], parallelism=1)
    said = capsys.readouterr()
    progress = [line for line in said.err.splitlines() if line.startswith("audited")]
    assert progress[1:4] == ["audited 2/12", "audited 2/12, 1 skipped", "audited 3/12, 1 skipped"]
    assert progress[-1] == "audited 11/12, 1 skipped"
    assert "of 12 checks by a model 11 have a verdict; 1 were skipped" in " ".join(said.out.split())
