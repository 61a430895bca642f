"""The result of a durability test, and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from mnemoscope.durability.kill_rounds import RoundOutcome
from mnemoscope.stats import wilson

DurabilityVerdict = Literal["kept", "lost", "not durable by design", "unknown"]


class DurabilityResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted, as durability.json has it."""

    format: int
    system: str
    command: str
    verdict: DurabilityVerdict
    reason: str
    """Why the system was not started, if it was not."""
    rounds: list[RoundOutcome]
    is_complete: bool
    """False after Ctrl-C."""

    @property
    def kills(self) -> list[RoundOutcome]:
        return [one for one in self.rounds if one.kind != "clean"]

    @property
    def most_losing_kills(self) -> float:
        """The upper end of the 95 % interval of the share of kills that lose something."""
        kills = self.kills
        return wilson(sum(map(is_loss, kills)), len(kills)).high


def is_loss(outcome: RoundOutcome) -> bool:
    """Whether a round lost what was acknowledged: a memory, a deletion, or the whole store."""
    return bool(outcome.missing or outcome.came_back or not outcome.usable_again)


def judged(rounds: Sequence[RoundOutcome], reason: str) -> DurabilityVerdict:
    """The verdict of all rounds.

    A system that has nothing after it ended in the usual way keeps nothing on disk, or does not
    open what it kept: that is its design, and a kill proves nothing.
    """
    if reason:
        return "not durable by design"
    if not rounds or not any(one.acknowledged for one in rounds):
        return "unknown"
    clean = [one for one in rounds if one.kind == "clean"]
    if clean and clean[0].usable_again and not any(one.kept for one in clean):
        return "not durable by design"
    return "lost" if any(map(is_loss, rounds)) else "kept"
