"""What a run would cost: requests, tokens and dollars by phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mnemoscope.results.frames import frame_of

if TYPE_CHECKING:
    from mnemoscope.results.frames import DataFrame


class PhaseEstimate(NamedTuple):
    """The estimated requests, tokens and cost of one phase for one system."""

    system: str
    phase: str
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float


class RunEstimate(msgspec.Struct, frozen=True):
    """The estimated requests, tokens and cost in US dollars of a run, by phase."""

    phases: list[PhaseEstimate]
    unpriced: dict[str, str]
    """Models of unknown price, which count as 0, to the spec that gives them a price."""

    @property
    def cost(self) -> float:
        return sum(phase.cost for phase in self.phases)

    def to_frame(self) -> DataFrame:
        return frame_of(PhaseEstimate, self.phases)
