"""What every dataset offers: scenarios, one by one, and an account of what it found on the way.

A loader repairs or drops nothing silently: each repair and loss becomes a Finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mnemoscope.types import Scalar, Scenario

EXAMPLES_KEPT = 10


@dataclass
class Findings:
    """Repairs and losses by kind, with the first few places of each."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, place: str) -> None:
        self.counts[kind] += 1
        kept = self.examples.setdefault(kind, [])
        if len(kept) < EXAMPLES_KEPT:
            kept.append(place)


@dataclass(frozen=True)
class DataFile:
    """A file that was read: its content's hash (unpacked, if it was compressed) and the pin."""

    path: Path
    sha256: str
    pinned: str | None = None

    @property
    def matches_pin(self) -> bool | None:
        """None where there is no pin to match."""
        return None if self.pinned is None else self.sha256 == self.pinned


class Dataset(Protocol):
    """A source of scenarios. Reading it twice gives the same scenarios in the same order."""

    name: str
    findings: Findings
    pool_known: bool
    """Whether the scenarios hold every memory there is; judgments alone do not."""
    expected_scenarios: int | None
    """How many there will be, for progress; None if that is not known before reading."""

    @property
    def category_names(self) -> Mapping[str, str]:
        """Category key to the name people use, where the two differ."""
        ...

    @property
    def original_ids(self) -> Mapping[tuple[str, str], str]:
        """(scenario, the source's own id) to memory id, where the two differ."""
        ...

    @property
    def options(self) -> dict[str, Scalar]:
        """Every option that can change a number, given and defaulted."""
        ...

    def files(self) -> list[DataFile]:
        """What was read, hashed. May have to read the files once more."""
        ...

    def scenarios(self) -> Iterator[Scenario]: ...

    def counts(self) -> Mapping[str, int]:
        """What the last complete reading counted, for people to check against the source."""
        ...
