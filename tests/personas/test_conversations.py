"""Pass 2: a conversation for each daily log, or none; never a stub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import StartCommand
from tests.personas.small_persona import (
    fail_a_fifth,
    kill_and_resume,
    reply,
    talk,
    write_small_persona,
    writing,
)
from tests.scripted_server import Request, ScriptedServer, says

from mnemoscope._store.errors import MissingData
from mnemoscope.cli.write_conversations import conversations
from mnemoscope.personas.write.conversations import read_turns
from mnemoscope.personas.write.llm_writer import TRIES, UnusableReply


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply) as running:
        yield running


def test_every_log_becomes_a_conversation_in_markdown(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=14, skip=[5])

    assert conversations(writing=writing(persona.folder, server)) == 0

    files = sorted(path.name for path in persona.beside("conversations").iterdir())
    assert files == [f"conv-{day:04}.md" for day in range(1, 15) if day != 5]
    text = (persona.beside("conversations") / "conv-0003.md").read_text()
    assert text == (
        "**User**:\n\nTurn 1.\n\n**Assistant**:\n\nTurn 2.\n\n"
        "**User**:\n\nTurn 3.\n\n**Assistant**:\n\nTurn 4.\n\n"
    )


def test_json_is_an_array_of_roles_and_contents(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=3)

    assert conversations(writing=writing(persona.folder, server), format="json") == 0

    written = json.loads((persona.beside("conversations") / "conv-0002.json").read_text())
    assert written == json.loads(talk())


def test_each_prompt_contains_its_own_day_only(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=5)

    conversations(writing=writing(persona.folder, server))

    for request in server.seen:
        own = [day for day in range(1, 6) if f"principalword{day:02}" in request.text]
        assert len(own) == 1
        assert persona.date_of(own[0]).isoformat() in request.text
        assert "Robin" in request.system and "Pat Doe" in request.system


def test_no_conversation_contains_text_of_an_isolated_session(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=4)
    persona.log(4).write_text("# session: vault\n\nThe vaultword04 was sold.\n")

    assert conversations(writing=writing(persona.folder, server)) == 0

    assert sum("teamword" in request.text for request in server.seen) == 2
    assert not any("vaultword" in request.text for request in server.seen)
    files = sorted(path.name for path in persona.beside("conversations").iterdir())
    assert files == ["conv-0001.md", "conv-0002.md", "conv-0003.md"], "day 4 has none to tell"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("Hello! How can I help?", "no JSON array"),
        (talk(3), "3 turns"),
        (talk(13), "13 turns"),
        (talk(6)[:-9], "breaks off"),
        (json.dumps([{"role": "assistant", "content": "x"}] * 4), "the user begins"),
        (json.dumps([{"role": "user", "content": " "}] * 4), "not empty"),
        (json.dumps([{"role": "system", "content": "x"}] * 4), '"role"'),
        (json.dumps([{"role": "user", "content": "a\n**Assistant**: b"}] * 4), "one turn"),
    ],
)
def test_an_invalid_conversation_is_retried_with_the_reason(said: str, problem: str) -> None:
    with pytest.raises(UnusableReply, match=problem):
        read_turns(said)


@pytest.mark.parametrize(
    "said", [f"```json\n{talk()}\n```", f"Here it is:\n{talk()}\nEnjoy!", talk(12)]
)
def test_fences_and_text_around_the_array_are_ignored(said: str) -> None:
    assert read_turns(said)[0].role == "user"


def test_a_corrected_reply_is_used(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=1)
    server.at(1, says("Good morning!"))

    assert conversations(writing=writing(persona.folder, server)) == 0

    assert server.requests == 2
    assert "Good morning!" in server.seen[1].text
    assert "no JSON array" in server.seen[1].text


def test_an_unusable_reply_writes_no_file_and_is_requested_again_later(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    persona = write_small_persona(tmp_path, days=3)
    server.when(lambda request: "principalword02" in request.text, says("Hello!"))

    assert conversations(writing=writing(persona.folder, server)) == 1

    assert not (persona.beside("conversations") / "conv-0002.md").exists()
    assert server.requests == 2 + TRIES
    said = capsys.readouterr().err
    assert "day 2 skipped" in said and "the conversation of day 2" in said
    server.reset()
    assert conversations(writing=writing(persona.folder, server)) == 0
    assert server.requests == 1, "the bad replies are cached, yet it was asked anew"
    assert (persona.beside("conversations") / "conv-0002.md").exists()


def test_existing_files_are_kept_unless_overwritten(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=3)
    kept = persona.beside("conversations") / "conv-0001.md"
    kept.parent.mkdir()
    kept.write_text("mine")

    assert conversations(writing=writing(persona.folder, server)) == 0
    assert kept.read_text() == "mine"
    assert server.requests == 2

    assert conversations(writing=writing(persona.folder, server), overwrite=True) == 0
    assert kept.read_text().startswith("**User**")
    assert server.requests == 5, "to overwrite is to ask anew, whatever the cache holds"


def test_a_fifth_failing_leaves_gaps_that_the_next_run_fills(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=40)
    fail_a_fifth(server)

    assert conversations(writing=writing(persona.folder, server)) == 1

    there = len(list(persona.beside("conversations").iterdir()))
    assert 0 < there < 40
    first = server.answered
    server.reset()
    assert conversations(writing=writing(persona.folder, server)) == 0
    assert len(list(persona.beside("conversations").iterdir())) == 40
    assert max((first + server.answered).values()) == 1


def test_after_a_kill_it_continues_and_asks_for_no_reply_twice(
    server: ScriptedServer, tmp_path: Path, start_command: StartCommand
) -> None:
    persona = write_small_persona(tmp_path, days=12)
    command = ["personas", "conversations", "--persona", str(persona.folder), "--parallelism", "3"]
    folder = persona.beside("conversations")

    def finished() -> int:
        return len(list(folder.glob("conv-*.md"))) if folder.exists() else 0

    answered = kill_and_resume(
        start_command, server, [*command, "--model", f"toy@{server.url}"], finished, stops=(1, 4)
    )

    assert finished() == 12
    assert len(answered) == 12 and set(answered.values()) == {1}


def test_without_logs_the_error_names_the_command_to_run_first(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=3, skip=[1, 2, 3])

    with pytest.raises(MissingData, match="mnemoscope personas generate"):
        conversations(writing=writing(persona.folder, server))


def test_a_dry_run_and_an_estimate_ask_and_write_nothing(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    persona = write_small_persona(tmp_path, days=6)

    assert conversations(writing=writing(persona.folder, server, dry_run=True)) == 0
    assert "3 prompts shown" in capsys.readouterr().out
    assert conversations(writing=writing(persona.folder, server, estimate=True)) == 0
    assert "6 requests" in capsys.readouterr().out
    assert server.requests == 0
    assert not persona.beside("conversations").exists()


def test_start_and_end_choose_the_days(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=9)

    assert conversations(writing=writing(persona.folder, server, start=3, end=4)) == 0

    files = sorted(path.name for path in persona.beside("conversations").iterdir())
    assert files == ["conv-0003.md", "conv-0004.md"]


def test_turns_after_reasoning_are_read(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=1)

    @server.reply
    def thinking(request: Request) -> str:
        return f"<think>A list like [{{}}]?</think>\n{talk(6)}"

    assert conversations(writing=writing(persona.folder, server)) == 0
    assert (persona.beside("conversations") / "conv-0001.md").read_text().count("**User**") == 3
