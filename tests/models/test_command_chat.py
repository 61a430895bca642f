"""Commands as models, with real processes: their replies and all their failures."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path

import pytest
from tests.waiting import eventually, is_gone

from mnemoscope._store.errors import UsageError
from mnemoscope.models.chat import Prompt, Transient, TransientTimeout
from mnemoscope.models.http_errors import EmptyReply
from mnemoscope.models.providers.command_chat import AGENTS, CommandProvider

LONG = "word " * 100_000
"""More than a pipe holds."""


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


def ask(code: str, user: str = "Where is Rex?", timeout: float = 30.0) -> str:
    return CommandProvider(python(code), timeout).complete(Prompt("", user)).text


def program(folder: Path, name: str, code: str) -> Path:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_prompt_goes_in_on_stdin_and_the_reply_comes_back_trimmed() -> None:
    provider = CommandProvider(python("import sys; print(sys.stdin.read().upper(), '\\n')"))
    reply = provider.complete(Prompt("Be brief.", "Where is Rex? ä"))
    assert reply.text == "BE BRIEF.\n\nWHERE IS REX? Ä"
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


def test_a_lone_surrogate_in_the_prompt_is_escaped() -> None:
    assert ask("import sys; print(sys.stdin.read())", "a \ud800 b") == r"a \ud800 b"


def test_words_of_a_command_are_split_without_a_shell(tmp_path: Path) -> None:
    path = program(tmp_path, "my agent", "import sys; print(sys.argv[1:])")
    command = f"{shlex.quote(str(path))} --say '$HOME; ls'"
    assert CommandProvider(command).complete(Prompt("", "Hi")).text == "['--say', '$HOME; ls']"


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_a_known_agent_is_asked_for_one_answer_in_an_empty_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = "import os, sys; print(sys.argv[1:], os.listdir(), sys.stdin.read())"
    program(tmp_path, name, look)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    words = list(AGENTS[name].words)
    reply = CommandProvider(f"{name} --model small").complete(Prompt("Be brief.", "Hi"))
    assert reply.text == f"{['--model', 'small', *words]} [] Be brief.\n\nHi"
    spelt_out = f"{name} {words[0]}"
    assert CommandProvider(spelt_out).identity()["command"] == [name, words[0]]


def test_identity_is_the_words_and_the_program_and_starts_nothing(tmp_path: Path) -> None:
    path = program(tmp_path, "agent", "open('started', 'w')")
    identity = CommandProvider(f"{path} --fast").identity()
    assert identity == {"command": [str(path), "--fast"], "program": "agent"}
    assert [file.name for file in tmp_path.iterdir()] == ["agent"]


def test_a_missing_command_is_refused_before_the_first_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="claude is not installed; run: npm install"):
        CommandProvider("claude")
    with pytest.raises(UsageError, match="no program 'no-such-agent' on the PATH"):
        CommandProvider("no-such-agent --print")
    for unreadable in ("", "'half a quote"):
        with pytest.raises(UsageError, match="command"):
            CommandProvider(unreadable)


def test_a_file_that_cannot_be_run_is_a_usage_error(tmp_path: Path) -> None:
    path = program(tmp_path, "agent", "")
    path.write_bytes(b"\x00\x01 no program")
    with pytest.raises(UsageError, match="cannot be started"):
        CommandProvider(str(path)).complete(Prompt("", "Hi"))


def test_after_the_timeout_the_command_and_its_children_are_killed(tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    code = f"""
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
noted = pathlib.Path({str(noted)!r})
noted.with_suffix(".new").write_text(f"{{os.getpid()}} {{child.pid}}")
noted.with_suffix(".new").rename(noted)
print("half an answer", flush=True)
time.sleep(600)
"""
    for seconds in (1.0, 8.0):  # the second on a machine too busy to start it in one
        with pytest.raises(TransientTimeout, match=f"no answer within {seconds:g} s") as caught:
            ask(code, timeout=seconds)
        assert caught.value.timed_out
        if noted.exists():
            break
    pids = [int(pid) for pid in noted.read_text().split()]
    assert eventually(lambda: all(map(is_gone, pids)))


def test_a_background_child_neither_delays_the_reply_nor_survives_it(tmp_path: Path) -> None:
    code = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid)
"""
    pid = int(ask(code))
    assert eventually(lambda: is_gone(pid))


def test_a_command_killed_by_a_signal_is_retried_and_the_signal_is_named() -> None:
    with pytest.raises(Transient, match="died of SIGKILL"):
        ask("import os; os.kill(os.getpid(), 9)")


def test_a_failure_shows_the_last_line_of_a_long_stderr() -> None:
    flood = (
        "import sys; sys.stderr.write('noise\\n' * 400_000 + 'quota used up\\n\\n'); sys.exit(3)"
    )
    with pytest.raises(Transient) as caught:
        ask(flood)
    assert str(caught.value).endswith("ended with exit code 3: quota used up")


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "GITHUB_TOKEN"])
@pytest.mark.parametrize("ending", ["sys.exit(3)", "print('')"])
def test_a_key_in_stderr_is_removed_before_the_line_is_cut(
    variable: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-" + "hunter2" * 5
    monkeypatch.setenv(variable, key)
    # Behind it 280 characters, of the 300 that are shown.
    with pytest.raises(Transient) as caught:
        ask(f"import os, sys; sys.stderr.write(os.environ[{variable!r}] + 'x' * 280); {ending}")
    assert "…" + "x" * 280 in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_stderr_does_not_affect_the_reply() -> None:
    assert ask("import sys; sys.stderr.write('x' * 1_000_000); print('in the garden')") == (
        "in the garden"
    )


def test_an_empty_reply_is_an_error() -> None:
    with pytest.raises(EmptyReply, match="printed no reply: not logged in"):
        ask("import sys; print('  '); print('not logged in', file=sys.stderr)")


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert ask("import sys; sys.stdout.buffer.write(b'Rex \\xff is here')") == "Rex � is here"


def test_a_command_that_reads_no_prompt_still_answers() -> None:
    assert ask("print('whatever you say')", LONG) == "whatever you say"
    assert ask("import os; os.close(0); print('whatever you say')", LONG) == "whatever you say"


def test_a_long_prompt_arrives_whole() -> None:
    assert ask("import sys; print(len(sys.stdin.read()))", LONG) == str(len(LONG))
