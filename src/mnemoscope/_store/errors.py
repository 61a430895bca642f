"""Errors meant for people: what went wrong, where, and what to do about it.

Anything that a user can cause raises `MnemoscopeError` or one of its few children;
the command line prints the message and exits, with no traceback.
"""

from __future__ import annotations

from pathlib import Path


class MnemoscopeError(Exception):
    """Something a user can understand and mend."""


class UsageError(MnemoscopeError):
    """A wrong name, option or combination on the command line or in a call."""


class DataError(MnemoscopeError):
    """A file that does not say what its format demands."""

    def __init__(self, problem: str, *, file: Path | str, line: int | None = None) -> None:
        self.file = str(file)
        self.line = line
        place = self.file if line is None else f"{self.file}, line {line}"
        super().__init__(f"{place}: {problem}")


class MissingData(MnemoscopeError):
    """A dataset that is not on this machine."""


class MissingExtra(MnemoscopeError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, install: str) -> None:
        super().__init__(f"{feature} needs a package that is not installed; run: {install}")


class RunConflict(MnemoscopeError):
    """A run directory that holds, or is being written by, another run."""


class SystemLost(Exception):
    """The system under test is gone, and what it remembered may be gone with it.

    No user error: a door raises it, and the engine lets the system live the scenario again.
    """


class BadReply(Exception):
    """A system returned something that is no list of hits."""
