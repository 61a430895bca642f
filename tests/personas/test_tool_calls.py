"""Pass 3: what an agent would have saved, day by day, in one voice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest
from tests.conftest import StartCommand
from tests.personas.small_persona import (
    calls,
    fail_a_fifth,
    kill_and_resume,
    reply,
    write_small_persona,
    writing,
)
from tests.scripted_server import Request, ScriptedServer, says

from mnemoscope._store.yaml import load_yaml
from mnemoscope.cli.write_tool_calls import tool_calls
from mnemoscope.models.model_loader import load_model
from mnemoscope.personas.write.llm_writer import LlmWriter, Task, UnusableReply, Written, account_of
from mnemoscope.personas.write.tool_calls import read_calls, tool_file, write_tool_calls

T = TypeVar("T")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply) as running:
        yield running


def day_of(request: Request) -> int:
    log = request.text.partition("<log>")[2]
    return next(day for day in range(1, 1000) if f"principalword{day:02}" in log)


def voice_of(request: Request) -> str:
    return request.text.partition("<earlier>")[2].partition("</earlier>")[0]


def test_a_days_calls_are_yaml_in_the_known_format(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=14)

    assert tool_calls(writing=writing(persona.folder, server)) == 0

    files = sorted(path.name for path in persona.beside("tools").iterdir())
    assert files == [f"day-{day:04}.yaml" for day in range(1, 15)]
    assert tool_file(persona, 12).read_text().startswith("# 2026-01-16: ")
    assert "date: '2026-01-16'" in tool_file(persona, 12).read_text()
    assert load_yaml(tool_file(persona, 12)) == {
        "day": 12,
        "date": "2026-01-16",
        "day_of_week": "Friday",
        "persona": "tester",
        "calls": [
            {"session": "principal", "tool": "memorySave", "content": "I keep principalword12."},
            {"session": "vault", "tool": "memorySave", "content": "I keep vaultword12."},
        ],
    }


def test_each_day_sees_the_voice_of_the_day_before(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=8)

    tool_calls(writing=writing(persona.folder, server))

    voices = {day_of(request): voice_of(request) for request in server.seen}
    assert "this is the first day" in voices[1]
    for day in range(2, 9):
        assert f"I keep principalword{day - 1:02}." in voices[day]


class Waves(LlmWriter):
    """A desk that notes how many tasks it is given at once."""

    sizes: ClassVar[list[int]] = []

    def write_all(self, tasks: Iterable[Task[T]]) -> Iterator[Written[T]]:
        together = list(tasks)
        self.sizes.append(len(together))
        return super().write_all(together)


def test_stretches_run_in_parallel_and_begin_with_the_first_voice(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=65)
    with account_of(persona.folder) as account:
        desk = Waves(load_model(f"toy@{server.url}"), account, "tool-calls", parallelism=3)

        assert sorted(write_tool_calls(persona, desk, range(1, 66))) == list(range(1, 66))

    voices = {day_of(request): voice_of(request) for request in server.seen}
    assert "principalword01" in voices[31] and "principalword01" in voices[61]
    assert "principalword32" in voices[33]
    assert desk.sizes == [1, *[3] * 5, *[2] * 24, 1]


def test_prompts_do_not_depend_on_parallelism(server: ScriptedServer, tmp_path: Path) -> None:
    prompts = []
    for parallelism in (1, 4):
        persona = write_small_persona(tmp_path / str(parallelism), days=64)
        options = writing(persona.folder, server, parallelism=parallelism, start=25)
        assert tool_calls(writing=options) == 0
        prompts.append({path.read_text() for path in persona.beside("tools").iterdir()})
    assert prompts[0] == prompts[1]
    assert set(server.answered.values()) == {1}, "the second was served by the cache"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("I would save a lot.", "no JSON array"),
        ("[]", "empty"),
        ('[{"session": "board", "content": "x"}]', "'board'; on this day there is principal"),
        ('[{"session": "principal", "content": ""}]', "not empty"),
        ('[{"session": "principal", "tool": "delete", "content": "x"}]', "only memorySave"),
        ('[{"session": "principal", "content": "x"}, {"session": "princ', "breaks off"),
        ('[{"session": "principal", "content": "x"}, {"session": }]', "no JSON"),
    ],
)
def test_an_unusable_reply_is_retried_with_the_reason(said: str, problem: str) -> None:
    with pytest.raises(UnusableReply, match=problem):
        read_calls(said, ["principal", "team"])


def test_the_only_tool_need_not_be_named() -> None:
    [call] = read_calls('[{"session": "team", "content": " kept "}]', ["team"])

    assert (call.tool, call.content) == ("memorySave", "kept")


def test_a_session_of_another_day_is_retried(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=1)
    server.at(1, says(json.dumps([{"session": "vault", "content": "x"}])))

    assert tool_calls(writing=writing(persona.folder, server)) == 0

    assert "on this day there is principal, team" in server.seen[1].text
    assert "vault" not in tool_file(persona, 1).read_text()


@pytest.mark.parametrize(
    ("session", "content", "refused"),
    [
        ("principal", "I sold it for 502 francs.", True),
        ("vault", "I sold it for 502 francs.", False),
        ("principal", "thing02 weighs 102 crates since 6 January 2026.", False),
        ("vault", "thing02 weighs 102 crates.", False),
    ],
)
def test_a_value_of_an_isolated_session_is_filed_nowhere_else(
    server: ScriptedServer, tmp_path: Path, session: str, content: str, refused: bool
) -> None:
    persona = write_small_persona(tmp_path, days=2)
    with persona.log(2).open("a") as log:
        log.write("That was on 6 January 2026.\n")
    server.at(1, says(json.dumps([{"session": session, "content": content}])))

    assert tool_calls(writing=writing(persona.folder, server, start=2)) == 0

    assert server.requests == 1 + refused
    assert not refused or "in vault alone: 502" in server.seen[1].text


def test_after_a_failed_day_the_nearest_earlier_voice_is_shown(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=4)

    @server.reply
    def stubborn(request: Request) -> str:
        return "no" if day_of(request) == 2 else calls(request)

    assert tool_calls(writing=writing(persona.folder, server)) == 1

    assert not tool_file(persona, 2).exists()
    voices = {day_of(request): voice_of(request) for request in server.seen}
    assert "principalword01" in voices[3]


def test_existing_files_are_kept_unless_overwritten(server: ScriptedServer, tmp_path: Path) -> None:
    persona = write_small_persona(tmp_path, days=3)
    tool_file(persona, 1).parent.mkdir()
    tool_file(persona, 1).write_text("mine: true\n")

    assert tool_calls(writing=writing(persona.folder, server)) == 0
    assert tool_file(persona, 1).read_text() == "mine: true\n"
    assert "mine: true" in voice_of(server.seen[0])

    assert tool_calls(writing=writing(persona.folder, server), overwrite=True) == 0
    assert load_yaml(tool_file(persona, 1))["day"] == 1


def test_a_fifth_failing_leaves_gaps_that_the_next_run_fills(
    server: ScriptedServer, tmp_path: Path
) -> None:
    persona = write_small_persona(tmp_path, days=40)
    fail_a_fifth(server)

    assert tool_calls(writing=writing(persona.folder, server)) == 1

    there = len(list(persona.beside("tools").iterdir()))
    assert 0 < there < 40
    server.reset()
    assert tool_calls(writing=writing(persona.folder, server)) == 0
    assert len(list(persona.beside("tools").iterdir())) == 40
    assert server.delivered == 40 - there


def test_after_a_kill_it_continues_and_asks_for_no_reply_twice(
    server: ScriptedServer, tmp_path: Path, start_command: StartCommand
) -> None:
    persona = write_small_persona(tmp_path, days=34)
    command = ["personas", "tool-calls", "--persona", str(persona.folder), "--parallelism", "2"]
    folder = persona.beside("tools")

    def finished() -> int:
        return len(list(folder.glob("day-*.yaml"))) if folder.exists() else 0

    answered = kill_and_resume(
        start_command, server, [*command, "--model", f"toy@{server.url}"], finished, stops=(2, 5)
    )

    assert finished() == 34
    assert len(answered) == 34 and set(answered.values()) == {1}
