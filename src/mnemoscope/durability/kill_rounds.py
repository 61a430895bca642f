"""One round: write, end or kill the system, start it again, and count what it still has."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.durability.planted_memories import planted, present
from mnemoscope.durability.restartable import Restartable
from mnemoscope.runner.failures import error_line
from mnemoscope.systems.loader import Driver
from mnemoscope.types import Memory, Selector

Kind = Literal["clean", "after", "during"]
"""How the system ends: in the usual way, killed after acknowledged writes, killed in a write."""
_JOIN_SECONDS = 1.0


class RoundOptions(Struct, frozen=True, kw_only=True):
    """The size of a round."""

    memories: int
    batch: int
    """Memories of one write."""
    settle: float
    """Seconds after which missing memories are asked for once more."""
    timeout: float
    seed: int


class RoundOutcome(Struct, kw_only=True, omit_defaults=True):
    """What one round found."""

    kind: Kind
    number: int
    acknowledged: int = 0
    """Memories whose write was acknowledged, and that could be found before the end if asked."""
    missing: list[str] = field(default_factory=list)
    """Acknowledged memories that are gone."""
    never_found: int = 0
    """Acknowledged memories that could not be found before the end either; they do not count."""
    not_stored: int = 0
    """Memories that the system rejected or merged."""
    unacknowledged: int = 0
    """Memories of the write that the kill interrupted."""
    appeared: int = 0
    """Those of them that are there; that is not an error."""
    forgotten: int = 0
    came_back: list[str] = field(default_factory=list)
    """Memories that were forgotten, could not be found, and are there again."""
    still_found: int = 0
    """Memories that could be found after `forget` returned; they do not count as come back."""
    usable_again: bool = True
    """Whether it started again and answered; if not, all acknowledged memories count as gone."""
    writes_again: bool | None = None
    """Whether a memory that is written after the restart can be found."""
    error: str = ""

    @property
    def kept(self) -> int:
        return self.acknowledged - len(self.missing)


def play(target: Restartable, kind: Kind, number: int, options: RoundOptions) -> RoundOutcome:
    """Play one round; an error before the kill is raised, one after it is a finding."""
    outcome = RoundOutcome(kind=kind, number=number)
    memories = planted(f"{kind[0]}{number}", options.memories, options.seed)
    forgotten: list[Memory] = []
    interrupted: list[Memory] = []
    try:
        driver = _driver(target)
        driver.begin(f"durability-{kind}-{number}")
        if kind == "during":
            writes = _write_until_killed(target, driver, memories, options, outcome)
            acknowledged, interrupted = writes
        else:
            acknowledged, forgotten = _write_and_forget(driver, memories, options, outcome)
    except MnemoscopeError:
        raise
    except Exception as error:
        problem = f"the system failed before it was killed: {error_line(error)}"
        raise MnemoscopeError(problem) from error
    if kind == "clean":
        target.stop()
    elif kind == "after":
        target.kill()
    outcome.acknowledged = len(acknowledged)
    try:
        driver = _driver(target)
        _count(driver, acknowledged, forgotten, options.settle, outcome)
        outcome.appeared = len(present(driver, interrupted))
        _write_again(driver, options.seed, outcome)
    except Exception as error:
        outcome.error = error_line(error)
        outcome.usable_again = False
        outcome.missing = [memory.id for memory in acknowledged]
    return outcome


def _driver(target: Restartable) -> Driver:
    system = target.start()
    return Driver(lambda: system, system)


def _write_and_forget(
    driver: Driver, memories: Sequence[Memory], options: RoundOptions, outcome: RoundOutcome
) -> tuple[list[Memory], list[Memory]]:
    """Write all memories and forget a fifth; return what must be there, and what must not."""
    stored: list[Memory] = []
    for batch in _batches(memories, options.batch):
        stored += _acknowledged(driver, batch, outcome)
    found = present(driver, stored)
    outcome.never_found = len(stored) - len(found)
    stored = [memory for memory in stored if memory.id in found]
    if not driver.can("forget") or len(stored) < 2:
        return stored, []
    cut = max(1, len(stored) // 5)
    forgotten, stored = stored[:cut], stored[cut:]
    driver.forget(Selector(tuple(forgotten)))
    outcome.forgotten = len(forgotten)
    left = present(driver, forgotten)
    outcome.still_found = len(left)
    return stored, [memory for memory in forgotten if memory.id not in left]


def _write_until_killed(
    target: Restartable,
    driver: Driver,
    memories: Sequence[Memory],
    options: RoundOptions,
    outcome: RoundOutcome,
) -> tuple[list[Memory], list[Memory]]:
    """Write in a thread, and kill the system in one of the writes.

    Return what it acknowledged, and the write that was interrupted.
    """
    batches = _batches(memories, options.batch)
    stored: list[Memory] = []
    done = threading.Semaphore(0)
    interrupted: list[Memory] = []

    def write() -> None:
        for batch in batches:
            try:
                acknowledged = _acknowledged(driver, batch, outcome)
            except Exception:  # the kill is meant to make this write fail
                interrupted.extend(batch)
                break
            stored.extend(acknowledged)
            done.release()

    rng = random.Random(f"{options.seed}/{outcome.number}")
    kill_after = rng.randrange(1, max(2, len(batches)))
    writer = threading.Thread(target=write, daemon=True)
    began = time.perf_counter()
    writer.start()
    for _ in range(kill_after):
        while not done.acquire(timeout=_JOIN_SECONDS):
            if not writer.is_alive():
                break
    # At a random moment of the next write: each takes about as long as the earlier ones.
    time.sleep(rng.random() * (time.perf_counter() - began) / kill_after)
    target.kill()
    writer.join(_JOIN_SECONDS)
    if writer.is_alive():
        # A client that waits for its server: the write ends once the server is there again.
        target.start()
        writer.join(options.timeout)
        target.kill()
    outcome.unacknowledged = len(interrupted)
    return stored, interrupted


def _count(
    driver: Driver,
    acknowledged: Sequence[Memory],
    forgotten: Sequence[Memory],
    settle: float,
    outcome: RoundOutcome,
) -> None:
    """Ask the restarted system for every memory that it acknowledged or forgot."""
    found = present(driver, acknowledged)
    if len(found) < len(acknowledged) and settle:
        time.sleep(settle)
        found |= present(driver, [memory for memory in acknowledged if memory.id not in found])
    outcome.missing = [memory.id for memory in acknowledged if memory.id not in found]
    back = present(driver, forgotten)
    outcome.came_back = [memory.id for memory in forgotten if memory.id in back]


def _write_again(driver: Driver, seed: int, outcome: RoundOutcome) -> None:
    """Whether the restarted system still takes a memory."""
    [another] = planted(f"w{outcome.kind[0]}{outcome.number}", 1, seed)
    try:
        driver.remember([another])
        outcome.writes_again = bool(present(driver, [another]))
    except Exception as error:
        outcome.writes_again, outcome.error = False, error_line(error)


def _acknowledged(driver: Driver, batch: Sequence[Memory], outcome: RoundOutcome) -> list[Memory]:
    """Write a batch; return what the system says it stored, once it is searchable."""
    receipt = driver.remember(batch)
    left_out = receipt.rejected.keys() | receipt.merged.keys()
    outcome.not_stored += len(left_out)
    return [memory for memory in batch if memory.id not in left_out]


def _batches(memories: Sequence[Memory], size: int) -> list[Sequence[Memory]]:
    return [memories[start : start + size] for start in range(0, len(memories), size)]
