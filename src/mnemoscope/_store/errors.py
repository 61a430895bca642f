"""The exceptions of the package: what went wrong, where, and what to do about it.

An error that a user can cause is a `MnemoscopeError` or one of its children. The command line
prints its message without a traceback and exits.
"""

from __future__ import annotations

from pathlib import Path


class MnemoscopeError(Exception):
    """An error that the user can understand and fix."""


class UsageError(MnemoscopeError):
    """A wrong name, option or combination on the command line or in a call."""


class DataError(MnemoscopeError):
    """A file that does not match its format."""

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
    """A run directory that contains another run, or that another process is writing."""


class EditedRun(MnemoscopeError):
    """A file of a run that is not what the run wrote, so that no figure may be read from it."""

    def __init__(
        self,
        file: Path | str,
        problem: str = "was changed after it was written",
        remedy: str = "Restore the file, or delete the run and repeat it",
    ) -> None:
        self.file = str(file)
        self.problem = problem
        super().__init__(f"{self.file} {problem}. {remedy}")


class SystemLost(Exception):
    """The system under test is gone, and its memories may be gone with it.

    A connector raises it. The runner then ingests the scenario again from the start.
    """


class BadReply(Exception):
    """A system returned a value that is not a list of hits, or not of the type asked for."""


def error_text(error: BaseException) -> str:
    """The name of its type, and its message; the class of a foreign exception may refuse both."""
    name = type.__dict__["__name__"].__get__(type(error))  # a metaclass may replace it
    try:
        message = str.__str__(str(error))
    except BaseException:
        message = "its message cannot be read"
    return f"{name[:_LONGEST_NAME]}: {message[:_LONGEST_MESSAGE]}"


_LONGEST_NAME, _LONGEST_MESSAGE = 100, 100_000
