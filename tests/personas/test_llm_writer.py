"""The desk: what stops a pass loses nothing that was paid for, and what a folder can be."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from tests.personas.written_persona import write_persona_files

from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope.models.chat import Prompt, note
from mnemoscope.personas.write.llm_writer import (
    KEPT_REJECTED,
    LlmWriter,
    RejectedReplies,
    Task,
    UnusableReply,
    account_of,
    remove_drafts,
)
from mnemoscope.personas.write.persona_files import open_persona_files
from mnemoscope.types import Usage


def task(name: str) -> Task[str]:
    return Task(name, Prompt("", name), lambda reply: reply)


class Down:
    """Replies to all that were asked together, once one of them has found it down."""

    name = "down"

    def __init__(self) -> None:
        self._gone = threading.Event()

    def ask(self, prompt: Prompt) -> str:
        if prompt.user == "b":
            self._gone.set()
            raise MnemoscopeError("it is down")
        assert prompt.user in "abc", "asked for more although the pass has stopped"
        assert self._gone.wait(60)
        return prompt.user


def test_running_tasks_are_yielded_when_a_pass_stops(tmp_path: Path) -> None:
    got: list[str | None] = []
    with account_of(tmp_path) as account, pytest.raises(MnemoscopeError, match="it is down"):
        for written in LlmWriter(Down(), account, "p", parallelism=3).write_all(
            map(task, "abcdef")
        ):
            got.append(written.result)

    assert sorted(filter(None, got)) == ["a", "c"]


class Broke:
    """One reply of no use, then no money; after that, who asks is written down."""

    name = "broke"

    def __init__(self) -> None:
        self.attempts: list[int] = []

    def ask(self, prompt: Prompt) -> str:
        self.attempts.append(prompt.attempt)
        note(Usage(requests=1))
        if prompt.attempt == 2 and len(self.attempts) == 2:
            raise MnemoscopeError("the purse is empty")
        return "good" if prompt.attempt == 2 else "bad"


def read(reply: str) -> str:
    if reply == "bad":
        raise UnusableReply("it is bad")
    return reply


def test_a_pass_that_stopped_between_two_tries_continues_with_the_second(tmp_path: Path) -> None:
    model, asked = Broke(), Task("one", Prompt("", "u"), read)
    with account_of(tmp_path) as account, pytest.raises(MnemoscopeError, match="purse"):
        LlmWriter(model, account, "p").write(asked)
    with account_of(tmp_path) as account:
        assert LlmWriter(model, account, "p").write(asked).result == "good"

    assert model.attempts == [1, 2, 1, 2], "the first reply is in a real model's cache"


def test_only_drafts_of_ended_processes_are_removed(tmp_path: Path) -> None:
    gone, running = f".a.md.{2**22 + 1}.draft", f".a.md.{os.getpid()}.draft"
    kept = {".notes.draft", "b.1.draft", running}
    (tmp_path / "memories").mkdir()
    for name in (gone, f".a.md.{10**30}.draft", *kept):
        (tmp_path / "memories" / name).touch()

    remove_drafts(tmp_path)

    assert {path.name for path in (tmp_path / "memories").iterdir()} == kept


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="is a file: give a folder"):
            account_of(place)


@pytest.mark.parametrize(
    ("name", "arcs", "problem"),
    [
        ("arcs.yaml", {"arcs": []}, "a history of 0 days"),
        ("arcs-99999999999d.yaml", {"arcs": []}, "a history of 99999999999 days"),
        ("arcs-60d.yaml", {"arcs": [], "epoch": "soon"}, "epoch"),
        ("arcs-60d.yaml", {"arcs": [], "epoch": "9999-12-01"}, "epoch"),
    ],
)
def test_a_history_with_impossible_dates_is_an_error(
    tmp_path: Path, name: str, arcs: object, problem: str
) -> None:
    folder = write_persona_files(tmp_path / "planner").folder
    (folder / "arcs-60d.yaml").unlink()
    (folder / name).write_text(json.dumps(arcs))

    with pytest.raises(DataError, match=problem):
        open_persona_files(folder)


class Says:
    """Always the same."""

    name = "says"

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.asked: list[str] = []

    def ask(self, prompt: Prompt) -> str:
        self.asked.append(prompt.user)
        return self.reply


def refuse(reply: str) -> str:
    if reply == "bad":
        raise UnusableReply("it is bad", "reply with something good")
    return reply


def test_a_skipped_task_is_logged_and_its_last_reply_kept(tmp_path: Path) -> None:
    told: list[str] = []
    model, asked = Says("bad"), Task("day 3, session a/b", Prompt("", "u"), refuse)
    with account_of(tmp_path) as account:
        [written] = LlmWriter(model, account, "p", log=told.append).write_all([asked])

    kept = tmp_path / "rejected" / "p" / "day-3-session-a-b.txt"
    assert told == [
        "p: day 3, session a/b skipped: tried 3 times; the last reply, kept in "
        f"{kept}, cannot be used: it is bad"
    ]
    assert kept.read_text() == "bad" and written.problem == "it is bad"
    assert "it is bad; reply with something good" in model.asked[-1]

    model.reply = "good"
    with account_of(tmp_path) as account:
        assert LlmWriter(model, account, "p").write(asked).result == "good"
    assert not kept.exists()


def test_only_the_newest_rejected_replies_are_kept(tmp_path: Path) -> None:
    rejected = RejectedReplies(tmp_path, "p")
    for number in range(KEPT_REJECTED + 5):
        path = rejected.keep(f"day {number} {'x' * 300}", "bad")
        os.utime(path, ns=(number, number))

    left = {path.name.split("-")[1] for path in path.parent.iterdir()}
    assert left == {str(number) for number in range(5, KEPT_REJECTED + 5)}
