"""Command-line agents as models: one process a prompt, the prompt on stdin, the reply on stdout.

`claude`, `codex` and `copilot` get the words that make them answer once; any other command is run
as it is written, without a shell. None of them tells tokens, or can be held to a length.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.models.chat import Completion, Prompt, Transient, TransientTimeout
from mnemoscope.models.http_errors import EmptyReply, without_keys

_FAREWELL = 5.0
"""Seconds that a killed process gets to be gone."""
_SHOWN = 300
"""Characters of a complaint that are passed on."""
_READ = 1 << 16
"""Bytes at the end of all complaints among which the last one is looked for."""


class Agent(NamedTuple):
    """How a known agent is asked for one answer, and where it comes from."""

    words: tuple[str, ...]
    install: str


# Each takes the prompt from stdin and prints nothing but its last message.
AGENTS = {
    "claude": Agent(("-p", "--output-format", "text"), "npm install -g @anthropic-ai/claude-code"),
    "codex": Agent(("exec", "--skip-git-repo-check", "-"), "npm install -g @openai/codex"),
    "copilot": Agent(("-s",), "npm install -g @github/copilot"),
}


class CommandProvider:
    """The agent or command behind `command`, given `timeout` seconds for each reply."""

    def __init__(self, command: str, timeout: float = 300.0) -> None:
        self._words = _words(command)
        self._name = self._words[0]
        self._program = _find(self._name)
        self._timeout = timeout

    def identity(self) -> dict[str, Any]:
        return {"command": list(self._words), "program": Path(self._program).name}

    def complete(self, prompt: Prompt) -> Completion:
        asked = "\n\n".join(part for part in (prompt.system, prompt.user) if part)
        # Files rather than pipes: what a command leaves running would keep a pipe open.
        with (
            tempfile.TemporaryFile() as said,
            tempfile.TemporaryFile() as complaint,
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as nowhere,
        ):
            # Agents look around where they are started, and the answers may lie there.
            folder = nowhere if self._name in AGENTS else None
            code = self._run(printable(asked).encode(), said, complaint, folder)
            said.seek(0)
            return self._read(code, said.read(), _tail(complaint))

    def _run(self, asked: bytes, said: IO[bytes], complaint: IO[bytes], folder: str | None) -> int:
        try:
            # A session of its own, so that whatever the command starts can be ended with it.
            process = subprocess.Popen(
                [self._program, *self._words[1:]],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=complaint,
                start_new_session=True,
                cwd=folder,
            )
        except OSError as error:
            raise UsageError(
                without_keys(f"{self._program} cannot be started: {error.strerror}")
            ) from None
        try:
            process.communicate(asked, self._timeout)
        except subprocess.TimeoutExpired:
            raise TransientTimeout(
                without_keys(f"{self._name} gave no answer within {self._timeout:g} s")
            ) from None
        finally:
            _end(process)
        return process.returncode

    def _read(self, code: int, said: bytes, complaint: bytes) -> Completion:
        if code:
            ended = f"died of {_signal(-code)}" if code < 0 else f"ended with exit code {code}"
            raise Transient(without_keys(f"{self._name} {ended}{_last_line(complaint)}"))
        text = said.decode("utf-8", "replace").strip()
        if not text:
            nothing = without_keys(f"{self._name} said nothing{_last_line(complaint)}")
            raise EmptyReply(nothing, Completion("", finish="stop"))
        return Completion(text, finish="stop")


def _words(command: str) -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(without_keys(f"the command {command!r} cannot be read: {error}")) from None
    if not words:
        raise UsageError("an empty command; write for example claude, or 'my-agent --print'")
    agent = AGENTS.get(words[0])
    if agent is None or agent.words[0] in words:
        return tuple(words)
    return (*words, *agent.words)


def _find(program: str) -> str:
    found = shutil.which(program)
    if found is not None:
        return str(Path(found).absolute())
    if program in AGENTS:
        raise UsageError(f"{program} is not installed; run: {AGENTS[program].install}")
    raise UsageError(
        without_keys(f"there is no program {program!r} on the PATH; install it, or give its path")
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End all of its process group; what it started may outlive it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        with suppress(OSError):  # what was left to write finds nobody
            process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_FAREWELL)


def _tail(complaint: IO[bytes]) -> bytes:
    complaint.seek(max(0, complaint.seek(0, os.SEEK_END) - _READ))
    return complaint.read()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(complaint: bytes) -> str:
    # Before it is cut: half a key is still something to go by.
    lines = without_keys(complaint.decode("utf-8", "replace")).split("\n")
    line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {line[-_SHOWN:]}" if line else ""
