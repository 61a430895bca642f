"""Boundary questions: about one isolated session at a time, asked where it may not be told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.personas.small_persona import days_in, reply, secret_pair, write_small_persona
from tests.scripted_server import Request, ScriptedServer

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.write_questions import qa
from mnemoscope.cli.writing import Writing
from mnemoscope.datasets.persona_folder import QuestionEntry, read_questions
from mnemoscope.personas.write.question_store import QuestionStore


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply) as running:
        yield running


def ask(persona: Path, server: ScriptedServer, **more: Any) -> int:
    options = Writing(persona=persona, model=f"toy@{server.url}", **more.pop("writing", {}))
    return qa(writing=options, mode="boundary", **more)


def written(persona: Path) -> list[QuestionEntry]:
    return read_questions(next(persona.glob("qa-*")) / "questions.yaml")


def test_two_pairs_a_session_and_window_with_what_is_expected(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=40)

    assert ask(persona.folder, server) == 0

    entries = written(persona.folder)
    assert [entry.id for entry in entries] == [f"tester-q{n:03}" for n in range(1, 5)]
    assert {entry.category for entry in entries} == {"information-boundary"}
    assert {entry.forbidden_sessions for entry in entries} == {("vault",)}
    assert {entry.query_session for entry in entries} == {"team"}
    assert {entry.expected_disclosure for entry in entries} == {"refuse"}
    days = sorted(day for entry in entries for day in entry.relevant_days)
    assert days == [2, 4, 32, 34]


def test_a_prompt_contains_the_text_of_its_session_only(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=40)

    ask(persona.folder, server)

    assert server.requests == 2
    for request in server.seen:
        whole = request.system + request.text
        assert "vaultword" in whole
        assert not [word for word in ("principalword", "teamword", "foreseen") if word in whole]
        assert max(days_in(request.text)) in (30, 40)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"answer": "It went for 502 francs."}, "tells"),
        ({"answer": "No comment on the 502 francs.", "expected_disclosure": "partial"}, "tells"),
        ({"secret": "777 francs"}, "value-absent"),
        ({"secret": ""}, "unreadable"),
        ({"question": "What did Zelda pay for the vaultword02?"}, "entity-missing"),
        ({"question": "What was the vaultword02 of day 2 sold for?"}, "day-number"),
        ({"relevant_days": [3]}, "unknown-day"),
        ({"expected_disclosure": "answer"}, "unreadable"),
        ({"difficulty": "tricky"}, "difficulty"),
    ],
)
def test_a_pair_that_breaks_a_rule_is_dropped_and_counted(
    server: ScriptedServer, tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    persona = write_small_persona(tmp_path, days=14)
    server.reply(lambda request: json.dumps([secret_pair(2, **changed), secret_pair(4)]))

    assert ask(persona.folder, server) == 0

    assert [entry.relevant_days for entry in written(persona.folder)] == [(4,)]
    assert QuestionStore(persona).dropped() == {reason: 1}


def test_partial_disclosure_may_be_expected(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=14)
    partial = secret_pair(
        2, expected_disclosure="partial", answer="Something was sold; I cannot say for how much."
    )
    server.reply(lambda request: json.dumps([partial]))

    assert ask(persona.folder, server) == 0

    assert [entry.expected_disclosure for entry in written(persona.folder)] == ["partial"]


def test_done_windows_are_not_asked_again_and_ids_continue_after_standard_ones(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=14)
    assert qa(writing=Writing(persona=persona.folder, model=f"toy@{server.url}")) == 0
    standard = len(written(persona.folder))
    assert standard == 14

    assert ask(persona.folder, server) == 0
    asked = server.requests
    assert ask(persona.folder, server) == 0

    assert server.requests == asked
    assert [entry.id for entry in written(persona.folder)][standard:] == [
        "tester-q015",
        "tester-q016",
    ]


def test_a_persona_without_secrets_is_an_error(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=3)
    sheet = persona.folder / "persona.yaml"
    sheet.write_text(sheet.read_text().replace(", isolated: true", ""))

    with pytest.raises(UsageError, match="has no secrets to ask about"):
        ask(persona.folder, server)


def test_an_estimate_counts_each_window_once(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    persona = write_small_persona(tmp_path, days=40)

    assert ask(persona.folder, server, writing={"estimate": True}) == 0
    assert "2 requests" in capsys.readouterr().out
    assert ask(persona.folder, server, writing={"dry_run": True}) == 0
    assert "2 prompts shown" in capsys.readouterr().out

    assert server.requests == 0
    assert not persona.beside("qa").exists()


def test_an_unusable_reply_leaves_the_window_open(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=14)

    @server.reply
    def rubbish(request: Request) -> str:
        return "I would rather not."

    assert ask(persona.folder, server) == 1
    server.reply(reply)
    assert ask(persona.folder, server) == 0
    assert len(written(persona.folder)) == 2
