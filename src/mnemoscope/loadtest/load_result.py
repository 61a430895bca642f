"""The options and the result of a load test."""

from __future__ import annotations

from typing import Any

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope.loadtest.load_figures import LoadStep
from mnemoscope.loadtest.load_generator import Arrivals, Pattern
from mnemoscope.types import Scalar

_MOST_CLIENTS = 1024
_MOST_REQUESTS = 1_000_000
_MOST_SECONDS = 3600.0


class LoadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How much load a test sends, and for how long; each step ends by count or by time."""

    clients: tuple[int, ...] = ()
    """A closed loop for each: so many clients, each sends when its last request has returned."""
    rates: tuple[float, ...] = ()
    """An open loop for each: so many requests are due each second."""
    arrivals: Arrivals = "poisson"
    connections: int = 64
    """How many requests of an open loop may be in flight at a time; the others wait."""
    duration: float = 10.0
    """Seconds of each step."""
    requests: int = 10_000
    """The most requests of each step."""
    writers: int = 0
    """Clients that write memories meanwhile."""
    write_rate: float | None = None
    """Memories written each second; default: the second half of the histories in the duration."""
    scenarios: int = 1
    """How many histories of the benchmark are ingested, all in one space."""
    k: int = 10
    timeout: float = 30.0
    """Seconds that a recall may take."""
    seed: int = 42

    def patterns(self) -> list[Pattern]:
        closed = [Pattern(clients) for clients in self.clients]
        opened = [Pattern(self.connections, rate, self.arrivals) for rate in self.rates]
        return [*closed, *opened] or [Pattern(1), Pattern(8)]

    def check(self) -> None:
        """Refuse a load without a limit."""
        for name, value, most in (
            *(("clients", clients, _MOST_CLIENTS) for clients in self.clients),
            ("connections", self.connections, _MOST_CLIENTS),
            ("requests", self.requests, _MOST_REQUESTS),
            ("duration", self.duration, _MOST_SECONDS),
            ("timeout", self.timeout, _MOST_SECONDS),
            ("scenarios", self.scenarios, _MOST_REQUESTS),
            ("k", self.k, _MOST_REQUESTS),
        ):
            if not 0 < value <= most:
                raise UsageError(f"--{name} {value:g}: give more than 0 and at most {most:,g}")
        if not 0 <= self.writers <= _MOST_CLIENTS:
            raise UsageError(f"--writers {self.writers}: give 0 to {_MOST_CLIENTS:,}")
        for rate in (*self.rates, *((self.write_rate,) if self.write_rate is not None else ())):
            if not 0 < rate <= _MOST_REQUESTS:
                raise UsageError(f"a rate of {rate:g}: give more than 0 and at most 1,000,000")


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of all steps, as load.json has them."""

    format: int
    benchmark: str
    dataset_options: dict[str, Scalar]
    options: LoadOptions
    memories: int
    """Memories that were ingested before each step."""
    questions: int
    steps: list[LoadStep]
    is_complete: bool
    """False after Ctrl-C."""

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each step, for a data frame; intervals are `NAME_low`, `NAME_high`."""
        return [step.row() for step in self.steps]
