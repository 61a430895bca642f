"""The simulator: a story rolled out over so many days, with everything that can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from mnemoscope.core.errors import UsageError
from mnemoscope.core.ledger import LedgerFact
from mnemoscope.personas.almanac import make_almanac
from mnemoscope.personas.days import Diary
from mnemoscope.personas.draw import Chance
from mnemoscope.personas.known import Known
from mnemoscope.personas.plots import Plot, Subjects, plan_plots
from mnemoscope.personas.questions import make_questions
from mnemoscope.personas.story import Story
from mnemoscope.personas.telling import Teller

MOST_DAYS = 100_000


@dataclass(frozen=True)
class Life:
    """What a persona lived through; equal for equal story, length and seed."""

    story: Story
    days: int
    seed: int
    epoch: date
    plots: tuple[Plot, ...]
    facts: tuple[LedgerFact, ...]
    diary: tuple[str, ...]
    """The log of each day, from the first."""
    questions: tuple[dict[str, Any], ...]


def simulate(story: Story, days: int, seed: int) -> Life:
    if not 1 <= days <= MOST_DAYS:
        raise UsageError(f"{days} days: give a number between 1 and {MOST_DAYS:,}")
    chance = Chance(seed, story.persona.id)
    almanac = make_almanac(story, days, chance.stream("almanac"))
    subjects = Subjects(story, chance)
    plots = plan_plots(story, almanac, subjects, chance)
    record = Teller(story, almanac, chance).tell(plots)
    diary = tuple(Diary(story, almanac, plots, record, chance).write())
    known = Known(story, almanac, subjects, plots, record, chance)
    return Life(
        story,
        days,
        seed,
        almanac.epoch,
        tuple(plots),
        tuple(record.facts),
        diary,
        tuple(make_questions(known)),
    )
