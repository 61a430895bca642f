"""The simulator: a story rolled out over so many days, with everything that can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from mnemoscope._store.errors import UsageError
from mnemoscope.personas.simulate.calendar import make_calendar
from mnemoscope.personas.simulate.daily_logs import DailyLogs
from mnemoscope.personas.simulate.known_facts import KnownFacts
from mnemoscope.personas.simulate.plots import Plot, Subjects, plan_plots
from mnemoscope.personas.simulate.question_mix import make_questions
from mnemoscope.personas.simulate.rng import Rng
from mnemoscope.personas.simulate.story import Story
from mnemoscope.personas.simulate.timeline import Timeline
from mnemoscope.text.fact_ledger import LedgerFact

MOST_DAYS = 100_000


@dataclass(frozen=True)
class SimulatedLife:
    """What a persona lived through; equal for equal story, length and seed."""

    story: Story
    days: int
    seed: int
    epoch: date
    plots: tuple[Plot, ...]
    facts: tuple[LedgerFact, ...]
    daily_logs: tuple[str, ...]
    """The log of each day, from the first."""
    questions: tuple[dict[str, Any], ...]


def simulate(story: Story, days: int, seed: int) -> SimulatedLife:
    if not 1 <= days <= MOST_DAYS:
        raise UsageError(f"{days} days: give a number between 1 and {MOST_DAYS:,}")
    chance = Rng(seed, story.persona.id)
    calendar = make_calendar(story, days, chance.stream("almanac"))
    subjects = Subjects(story, chance)
    plots = plan_plots(story, calendar, subjects, chance)
    record = Timeline(story, calendar, chance).tell(plots)
    daily_logs = tuple(DailyLogs(story, calendar, plots, record, chance).write())
    known = KnownFacts(story, calendar, subjects, plots, record, chance)
    return SimulatedLife(
        story,
        days,
        seed,
        calendar.epoch,
        tuple(plots),
        tuple(record.facts),
        daily_logs,
        tuple(make_questions(known)),
    )
