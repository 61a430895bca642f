"""Command-line agents as models: one process a prompt, the prompt on stdin, the reply on stdout.

`claude`, `codex` and `copilot` get the arguments that make them answer once. Any other command is
run as given, without a shell. Commands report no tokens, and their replies have no length limit.
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

_EXIT_SECONDS = 5.0
"""How long to wait for a killed process to exit."""
_SHOWN = 300
"""Characters of stderr's last line that an error shows."""
_READ = 1 << 16
"""Bytes at the end of stderr that are searched for its last line."""


class Agent(NamedTuple):
    """The arguments that make a known agent answer once, and how to install it."""

    words: tuple[str, ...]
    install: str


# Each takes the prompt from stdin and prints nothing but its last message.
AGENTS = {
    "claude": Agent(("-p", "--output-format", "text"), "npm install -g @anthropic-ai/claude-code"),
    "codex": Agent(("exec", "--skip-git-repo-check", "-"), "npm install -g @openai/codex"),
    "copilot": Agent(("-s",), "npm install -g @github/copilot"),
}


class CommandProvider:
    """The agent or command `command`, with `timeout` seconds for each reply."""

    def __init__(self, command: str, timeout: float = 300.0) -> None:
        self._words = _words(command)
        self._name = self._words[0]
        self._program = _find(self._name)
        self._timeout = timeout

    def identity(self) -> dict[str, Any]:
        return {"command": list(self._words), "program": Path(self._program).name}

    def complete(self, prompt: Prompt) -> Completion:
        asked = "\n\n".join(part for part in (prompt.system, prompt.user) if part)
        # Files, not pipes: a process that the command leaves running would keep a pipe open.
        with (
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty,
        ):
            # Agents read the folder in which they are started, and it may contain the answers.
            folder = empty if self._name in AGENTS else None
            code = self._run(printable(asked).encode(), stdout, stderr, folder)
            stdout.seek(0)
            stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _READ))
            return self._read(code, stdout.read(), stderr.read())

    def _run(self, asked: bytes, stdout: IO[bytes], stderr: IO[bytes], folder: str | None) -> int:
        try:
            # In its own session, so that the processes that the command starts can be killed too.
            process = subprocess.Popen(
                [self._program, *self._words[1:]],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
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

    def _read(self, code: int, stdout: bytes, stderr: bytes) -> Completion:
        if code:
            ended = f"died of {_signal(-code)}" if code < 0 else f"ended with exit code {code}"
            raise Transient(without_keys(f"{self._name} {ended}{_last_line(stderr)}"))
        text = stdout.decode("utf-8", "replace").strip()
        if not text:
            problem = without_keys(f"{self._name} printed no reply{_last_line(stderr)}")
            raise EmptyReply(problem, Completion("", finish="stop"))
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
    """Kill the whole process group: processes that it started may outlive it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        with suppress(OSError):  # the rest of the prompt cannot be written any more
            process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_EXIT_SECONDS)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(stderr: bytes) -> str:
    # Keys are removed before the line is cut, because half a key is a secret too.
    lines = without_keys(stderr.decode("utf-8", "replace")).split("\n")
    line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {line[-_SHOWN:]}" if line else ""
