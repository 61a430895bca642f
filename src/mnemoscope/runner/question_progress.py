"""How many questions of a run are done, over all systems, while scenarios are still read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class QuestionProgress:
    """Counts that the runner keeps up to date, before it reports its progress."""

    done: int = 0
    """Those that were recorded before this call included."""
    read: int = 0
    """Questions of the scenarios that were read so far, once for each system."""
    units: int = 0
    """Systems × scenarios that were read so far."""
    is_all_read: bool = False
    """Whether the dataset has no more scenarios, so that `read` is the total."""

    def total(self, units: float | None) -> int | None:
        """How many questions there will be; an estimate until all scenarios are read.

        `units` is the expected number of systems × scenarios; None if it is not known.
        """
        if self.is_all_read:
            return self.read
        if units is None or not self.units:
            return None
        return max(round(self.read / self.units * units), self.read)
