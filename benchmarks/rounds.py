"""Costs of work in several rounds, by CPU time of all processes and threads."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable

ROUNDS = 3


class Cost(float):
    """The cost of the cheapest round; `rounds` has those of all rounds."""

    rounds: tuple[float, ...]

    def __new__(cls, rounds: Iterable[float]) -> Cost:
        every = tuple(rounds)
        self = super().__new__(cls, min(every))
        self.rounds = every
        return self


def cpu_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def in_turns(*works: Callable[[], object], rounds: int = ROUNDS) -> list[Cost]:
    """CPU seconds of each work; all are done once in each round, so that their rounds compare."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for place, work in enumerate(works):
            started = cpu_seconds()
            work()
            taken[place].append(cpu_seconds() - started)
    return list(map(Cost, taken))
