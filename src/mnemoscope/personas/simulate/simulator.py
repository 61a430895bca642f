"""The simulator: generates the history of a story over a number of days, with its questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope.personas.simulate.arc_plan import SubjectPool, plan_arcs
from mnemoscope.personas.simulate.calendar import make_calendar
from mnemoscope.personas.simulate.daily_logs import DailyLogs
from mnemoscope.personas.simulate.history_files import SimulatedHistory, write_history
from mnemoscope.personas.simulate.known_facts import KnownFacts
from mnemoscope.personas.simulate.question_mix import make_questions
from mnemoscope.personas.simulate.rng import Rng
from mnemoscope.personas.simulate.story import Story, find_story
from mnemoscope.personas.simulate.timeline import Timeline

MOST_DAYS = 100_000


class WrittenHistory(NamedTuple):
    """A simulated history on disk."""

    folder: Path
    days: int
    questions: int
    facts: int


def simulate(story: Story, days: int, seed: int) -> SimulatedHistory:
    """Simulate a history in memory; the same story, days and seed give the same history."""
    if not 1 <= days <= MOST_DAYS:
        raise UsageError(f"--days {days}: give a number between 1 and {MOST_DAYS:,}")
    rng = Rng(seed, story.persona.id)
    calendar = make_calendar(story, days, rng.stream("almanac"))
    subjects = SubjectPool(story, rng)
    arcs = plan_arcs(story, calendar, subjects, rng)
    record = Timeline(story, calendar, rng).build(arcs)
    return SimulatedHistory(
        story,
        days,
        seed,
        calendar.epoch,
        tuple(arcs),
        tuple(record.facts),
        tuple(DailyLogs(story, calendar, arcs, record, rng).write()),
        make_questions(KnownFacts(story, calendar, subjects, arcs, record, rng)),
    )


def simulate_persona(
    story: Story | str | Path, out: Path, *, days: int = 1000, seed: int = 42, force: bool = False
) -> WrittenHistory:
    """Simulate a persona and write its folder into `out`.

    `story` is a story, the id of a shipped one or the path of a file. Files that exist and differ
    are an error, unless `force` is given.
    """
    if not isinstance(story, Story):
        story = find_story(str(story))
    history = simulate(story, days, seed)
    folder = write_history(history, out, force=force)
    return WrittenHistory(folder, days, len(history.questions), len(history.facts))


def simulate_personas(
    stories: Sequence[Story],
    out: Path,
    *,
    days: int = 1000,
    seed: int = 42,
    jobs: int = 1,
    force: bool = False,
) -> Iterator[WrittenHistory]:
    """Simulate several stories, `jobs` at a time; yields each as soon as it is written."""
    if jobs < 1:
        raise UsageError(f"--jobs {jobs}: give 1 or more")
    if len({story.persona.id for story in stories}) < len(stories):
        raise UsageError("two stories have the same persona id: give each its own")
    write = partial(simulate_persona, out=out, days=days, seed=seed, force=force)
    if jobs == 1 or len(stories) == 1:
        return map(write, stories)
    return _in_processes(write, stories, jobs)


def _in_processes(
    write: partial[WrittenHistory], stories: Sequence[Story], jobs: int
) -> Iterator[WrittenHistory]:
    from concurrent.futures import ProcessPoolExecutor, as_completed  # slow to import

    with ProcessPoolExecutor(min(jobs, len(stories))) as pool:
        for done in as_completed([pool.submit(write, story) for story in stories]):
            yield done.result()
