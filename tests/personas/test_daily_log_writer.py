"""Pass 1 with a model on a socket: what is written, what is asked again, what is found missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.personas.written_persona import (
    CANARIES,
    date_of,
    entry_for,
    session_of,
    write_persona_files,
)
from tests.scripted_server import Request, ScriptedServer, failing, says
from tests.waiting import eventually, is_gone

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.write_days import generate
from mnemoscope.cli.writing import Writing
from mnemoscope.datasets.day_logs import day_files, pieces, read_day
from mnemoscope.personas.simulate.calendar import long_date
from mnemoscope.personas.write.daily_log_writer import Gap, clean, gaps
from mnemoscope.personas.write.llm_writer import UnusableReply
from mnemoscope.personas.write.persona_files import PersonaFiles
from mnemoscope.personas.write.session_schedule import SessionSchedule

LEGS = """
import os, sys
from pathlib import Path
import mnemoscope.models.http_client
from mnemoscope.cli.write_days import generate
from mnemoscope.cli.writing import Writing

for _ in sys.stdin:
    leg = os.fork()
    if leg == 0:
        os._exit(generate(writing=Writing(persona=Path(sys.argv[1]), model=sys.argv[2],
                                          parallelism=1)))
    os.write(1, b"%d\\n" % leg)
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(leg, 0)[1]))
"""
"""A run for each line on stdin, forked off what is imported once: its process id, its exit code."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "cache"))
    with ScriptedServer(entry_for) as server:
        yield server


@pytest.fixture
def persona(tmp_path: Path) -> PersonaFiles:
    return write_persona_files(tmp_path / "planner")


def options(persona: PersonaFiles, server: ScriptedServer, **more: Any) -> Writing:
    return Writing(persona=persona.folder, model=f"toy@{server.url}", **more)


def sessions_on_disk(persona: PersonaFiles, day: int) -> list[str]:
    return [piece.session for piece in pieces(read_day(persona.log(day)), "session")]


def contents(persona: PersonaFiles) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in persona.beside("memories").iterdir()}


def test_a_day_holds_its_sessions_in_order_under_plain_frontmatter(
    persona: PersonaFiles, server: ScriptedServer
) -> None:
    assert generate(writing=options(persona, server, end=8)) == 0
    planned = SessionSchedule.of(persona)
    for day, path in day_files(persona.beside("memories")).items():
        assert path.read_text().startswith("---\ntype: daily\n---\n\n# session: ")
        assert sessions_on_disk(persona, day) == planned.sessions(day)
    assert len(sessions_on_disk(persona, 6)) > 1


def test_each_prompt_has_its_own_date_across_a_clock_change(
    persona: PersonaFiles, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    generate(writing=options(persona, server, end=14))
    planned = SessionSchedule.of(persona)
    told = {(date_of(one.text), session_of(one.text)) for one in server.seen}
    assert told == {
        (long_date(persona.date_of(day)), session)
        for day in range(1, 15)
        for session in planned.sessions(day)
    }
    assert "Monday, 9 March 2026" in {day for day, _ in told}


def test_progress_names_the_day_and_how_many_there_are(
    persona: PersonaFiles, server: ScriptedServer, capfd: pytest.CaptureFixture[str]
) -> None:
    generate(writing=options(persona, server, start=3, end=3))
    assert "Generated day 3/60 (1 unique)" in capfd.readouterr().err


def test_existing_days_are_not_requested_again(
    persona: PersonaFiles, server: ScriptedServer
) -> None:
    generate(writing=options(persona, server, end=5))
    asked, before = server.requests, contents(persona)
    assert generate(writing=options(persona, server, end=5)) == 0
    assert server.requests == asked and contents(persona) == before


def test_overwriting_makes_new_requests(persona: PersonaFiles, server: ScriptedServer) -> None:
    generate(writing=options(persona, server, end=3))
    asked = server.requests
    server.reply(lambda request: "### New\n\nOther words.")
    generate(writing=options(persona, server, end=3), overwrite=True)
    assert server.requests == 2 * asked
    assert all(b"Other words." in text for text in contents(persona).values())


def test_overwriting_keeps_the_old_entry_if_the_request_fails(
    persona: PersonaFiles, server: ScriptedServer
) -> None:
    generate(writing=options(persona, server, start=6, end=6))
    server.reply(lambda request: "### New\n\nOther words.")
    server.when(lambda request: session_of(request.text) == "crew", failing(400))
    generate(writing=options(persona, server, start=6, end=6), overwrite=True)
    texts = {piece.session: piece.text for piece in pieces(read_day(persona.log(6)), "session")}
    assert CANARIES["crew"] in texts["crew"] and "Other words." in texts["principal"]


def test_a_failed_session_is_left_out_and_reported_as_missing(
    persona: PersonaFiles, server: ScriptedServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.when(lambda request: session_of(request.text) == "crew", failing(400))
    assert generate(writing=options(persona, server, start=6, end=6)) == 1
    assert "crew" not in sessions_on_disk(persona, 6)
    assert gaps(persona, [6]) == [Gap(6, "crew")]
    said = capfd.readouterr().err
    assert "day 6, session crew skipped" in said and "--missing" in said


def test_missing_adds_a_session_and_keeps_the_others(
    persona: PersonaFiles, server: ScriptedServer
) -> None:
    server.when(lambda request: session_of(request.text) == "crew", failing(400))
    generate(writing=options(persona, server, start=6, end=6))
    before = {piece.session: piece.text for piece in pieces(read_day(persona.log(6)), "session")}
    server.reset()
    assert generate(writing=options(persona, server, start=6, end=6), missing=True) == 0
    assert [session_of(one.text) for one in server.seen] == ["crew"]
    after = {piece.session: piece.text for piece in pieces(read_day(persona.log(6)), "session")}
    assert before.items() < after.items()
    assert sessions_on_disk(persona, 6) == SessionSchedule.of(persona).sessions(6)


def test_a_day_without_any_session_is_not_written(
    persona: PersonaFiles, server: ScriptedServer
) -> None:
    server.when(lambda request: True, failing(400))
    assert generate(writing=options(persona, server, start=3, end=3)) == 1
    assert not persona.log(3).exists()


def test_with_a_fifth_of_the_calls_failing_missing_completes_the_set(
    persona: PersonaFiles, server: ScriptedServer
) -> None:
    server.when(lambda request: zlib.crc32(request.text.encode()) % 5 == 0, failing(400))
    assert generate(writing=options(persona, server)) == 1
    lost = gaps(persona)
    assert len(lost) > server.requests / 10
    server.reset()
    assert generate(writing=options(persona, server), missing=True) == 0
    assert gaps(persona) == []
    refilled = sorted((date_of(one.text), session_of(one.text)) for one in server.seen)
    assert refilled == sorted((long_date(persona.date_of(gap.day)), gap.session) for gap in lost)


def test_a_resumed_history_equals_an_uninterrupted_one(
    persona: PersonaFiles, server: ScriptedServer, tmp_path: Path
) -> None:
    other = write_persona_files(tmp_path / "other" / "planner")
    generate(writing=options(persona, server, end=30))
    assert server.requests > 30
    server.reset()
    for last in (4, 11, 12, 30):
        generate(writing=options(other, server, end=last))
    assert server.requests == 0, "some prompt differed, and was not in the cache"
    assert contents(other) == contents(persona)


def test_a_session_sees_its_own_last_three_entries(
    persona: PersonaFiles, server: ScriptedServer
) -> None:
    generate(writing=options(persona, server, end=20))
    scheduler = [one.text for one in server.seen if session_of(one.text) == "crew"]
    told = [text.count("we spoke of " + CANARIES["crew"]) for text in scheduler]
    assert told == [0, 1, 2, *[3] * (len(scheduler) - 3)] and len(scheduler) > 5
    dates = [date_of(text) for text in scheduler]
    assert all(f"[{day}]" in scheduler[5] for day in dates[2:5])
    assert f"[{dates[1]}]" not in scheduler[5]


def test_a_killed_pass_pays_for_no_reply_twice(
    persona: PersonaFiles, server: ScriptedServer
) -> None:
    left = 0

    def hold_after_some(request: Request) -> str:
        nonlocal left
        left -= 1
        if left == 0:
            server.hold()
        return entry_for(request)

    server.reply(hold_after_some)
    words = [sys.executable, "-c", LEGS, str(persona.folder), f"toy@{server.url}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as legs:
        assert legs.stdin is not None and legs.stdout is not None
        for replies in (1, 2, 9, 14):
            left, last = replies, server.requests + replies + 1
            leg = started(legs)
            # One at a time: when the next request waits, the last reply is in the cache.
            assert server.wait_for(partial(waits, last=last))
            os.kill(leg, signal.SIGKILL)
            assert int(legs.stdout.readline()) == -signal.SIGKILL
            assert server.everybody_left()
            server.release()
        started(legs)
        legs.stdin.close()
        assert legs.stdout.read().split()[-1:] == ["0"]
    assert gaps(persona) == []
    assert set(server.answered.values()) == {1}
    planned = SessionSchedule.of(persona)
    assert len(server.answered) == sum(len(planned.sessions(day)) for day in range(1, 61))
    assert server.requests == len(server.answered) + 4


def waits(server: ScriptedServer, last: int) -> bool:
    return server.requests == last and server.running == 1


def started(legs: subprocess.Popen[str]) -> int:
    assert legs.stdin is not None and legs.stdout is not None
    legs.stdin.write("go\n")
    legs.stdin.flush()
    while not (line := legs.stdout.readline()).strip().isdecimal():
        assert line, "it is gone"
    return int(line)


def test_an_agent_that_hangs_is_ended_with_all_that_it_started(
    persona: PersonaFiles, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    agent, child = tmp_path / "agent.sh", tmp_path / "child.pid"
    agent.write_text(
        'asked=$(cat)\ncase "$asked" in\n*"of the session crew "*)\n'
        f"sleep 600 & echo $! > {child}; wait;;\n*) echo '### Fine';;\nesac\n"
    )
    model = f"command:sh {agent}?tries=1"
    writing = Writing(persona=persona.folder, model=model, start=6, end=6, timeout=3)
    assert generate(writing=writing) == 1
    assert "session crew skipped: sh gave no answer within 3 s" in capfd.readouterr().err
    assert sessions_on_disk(persona, 6) == ["principal", "family"]
    assert eventually(lambda: is_gone(int(child.read_text())))


def test_an_estimate_and_a_dry_run_ask_and_write_nothing(
    persona: PersonaFiles, server: ScriptedServer, capfd: pytest.CaptureFixture[str]
) -> None:
    generate(writing=options(persona, server, end=10))
    asked, files = server.requests, sorted(persona.folder.iterdir())
    before = contents(persona)
    assert generate(writing=options(persona, server, estimate=True)) == 0
    planned = SessionSchedule.of(persona)
    left = sum(len(planned.sessions(day)) for day in range(11, 61))
    assert f"{left:,} requests" in capfd.readouterr().out
    assert generate(writing=options(persona, server, start=11, dry_run=True)) == 0
    shown = capfd.readouterr().out
    assert "Write the entry of the session" in shown and "3 prompts shown" in shown
    assert server.requests == asked and contents(persona) == before
    assert sorted(persona.folder.iterdir()) == files


@pytest.mark.parametrize(("start", "end"), [(0, 5), (6, 5), (1, 61)])
def test_days_outside_the_history_are_errors(
    persona: PersonaFiles, server: ScriptedServer, start: int, end: int
) -> None:
    with pytest.raises(UsageError, match="from 1 to 60"):
        generate(writing=options(persona, server, start=start, end=end))


def test_missing_and_overwrite_exclude_each_other(
    persona: PersonaFiles, server: ScriptedServer
) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        generate(writing=options(persona, server), missing=True, overwrite=True)


def test_from_ledger_and_out_need_each_other(persona: PersonaFiles, server: ScriptedServer) -> None:
    with pytest.raises(UsageError, match="--from-ledger needs --out"):
        generate(writing=options(persona, server), from_ledger=True)
    with pytest.raises(UsageError, match="--from-ledger needs --out"):
        generate(writing=options(persona, server), out=persona.folder / "new")
    assert server.requests == 0


def test_from_ledger_takes_a_simulated_history(
    server: ScriptedServer, write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    source, new = write_persona(tmp_path / "personas", days=3) / "tester", tmp_path / "retold"
    writing = Writing(persona=source, model=f"toy@{server.url}", dry_run=True)
    assert generate(writing=writing, from_ledger=True, out=new) == 0
    assert server.requests == 0 and not new.exists()


@pytest.mark.parametrize(
    ("reply", "entry"),
    [
        ("---\ntype: daily\n---\n\n### A\n\ntext", "### A\n\ntext"),
        ("# Monday\n\n### A", "### A"),
        ("# session: principal\r\n### A\r\n", "### A"),
        ("### A\r# session: family\rtext", "### A\ntext"),
        ("```markdown\n### A\n```", "### A"),
        ("<think># session: x</think>### A", "### A"),
        ("### A\n```\n# a comment\n# session: family\n```", "### A\n```\n# a comment\n```"),
        ("## B\n#tag", "## B\n#tag"),
    ],
)
def test_an_entry_is_cleaned_of_what_belongs_to_the_file(reply: str, entry: str) -> None:
    assert clean(reply) == entry


@pytest.mark.parametrize("reply", ["", "# Monday", "---\ntype: daily\n---\n", "```\n```"])
def test_an_empty_entry_is_not_usable(reply: str) -> None:
    with pytest.raises(UnusableReply):
        clean(reply)


def test_an_excuse_is_retried(persona: PersonaFiles, server: ScriptedServer) -> None:
    server.at(1, says("I am sorry, but I cannot help with writing this log."))

    assert generate(writing=options(persona, server, end=1)) == 0

    assert sum("it has no topics" in request.text for request in server.seen) == 1
    assert "sorry" not in persona.log(1).read_text()


@pytest.mark.parametrize("how", ["", "missing", "overwrite", "estimate", "dry_run"])
def test_the_logs_of_a_simulated_history_are_not_changed(
    server: ScriptedServer, write_persona: Callable[..., Path], tmp_path: Path, how: str
) -> None:
    source = write_persona(tmp_path / "personas", days=3) / "tester"
    before = {path: path.is_file() and path.read_bytes() for path in source.rglob("*")}
    writing = Writing(
        persona=source,
        model=f"toy@{server.url}",
        estimate=how == "estimate",
        dry_run=how == "dry_run",
    )
    with pytest.raises(UsageError, match=r"was simulated.*--from-ledger --out"):
        generate(writing=writing, missing=how == "missing", overwrite=how == "overwrite")
    assert {path: path.is_file() and path.read_bytes() for path in source.rglob("*")} == before


def test_a_start_after_the_end_is_named(persona: PersonaFiles, server: ScriptedServer) -> None:
    with pytest.raises(UsageError, match="--start 6 is after --end 5"):
        generate(writing=options(persona, server, start=6, end=5))
