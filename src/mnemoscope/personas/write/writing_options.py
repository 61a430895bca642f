"""The options of the writing passes, in a module that is fast to import for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mnemoscope._store.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class WritingOptions:
    """The options of every pass.

    Parameters
    ----------
    persona
        The persona's folder, with persona.yaml and an arcs file.
    model
        The model: `openai:gpt-4o-mini`, `anthropic:…`, `NAME@http://host/v1`, `claude`, `codex`.
    arcs
        The arcs file, if the folder has several: arcs-180d.yaml.
    start
        The first day.
    end
        The last day; the last of the history by default.
    parallelism
        Requests in flight at once.
    timeout
        Seconds that one request may take; then an agent's process group is killed.
    max_cost
        The limit of what this folder costs in US dollars, earlier passes included.
    """

    persona: Path
    model: str
    arcs: str = ""
    start: int = 1
    end: int | None = None
    parallelism: int = 4
    timeout: float = 600.0
    max_cost: float | None = None

    def days(self, length: int) -> range:
        """The days from `start` to `end` of a history of this length."""
        last = length if self.end is None else self.end
        if 1 <= last < self.start <= length:
            raise UsageError(
                f"--start {self.start} is after --end {last}: days of this history go from 1 to "
                f"{length}"
            )
        if not 1 <= self.start <= last <= length:
            raise UsageError(
                f"--start {self.start} --end {last}: days of this history go from 1 to {length}"
            )
        return range(self.start, last + 1)
