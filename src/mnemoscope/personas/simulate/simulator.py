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
from mnemoscope.personas.simulate.scene_book import SceneBook, find_scenes
from mnemoscope.personas.simulate.scene_logs import SceneLogs
from mnemoscope.personas.simulate.scene_questions import scene_questions
from mnemoscope.personas.simulate.scene_timeline import SceneTimeline
from mnemoscope.personas.simulate.story import Story, find_story
from mnemoscope.personas.simulate.timeline import Timeline

MOST_DAYS = 100_000
DENSITY = 1000
"""Words of a working day of the second edition."""
_DENSITIES = (200, 6000)
EDITIONS = (1, 2)


class WrittenHistory(NamedTuple):
    """A simulated history on disk."""

    folder: Path
    days: int
    questions: int
    facts: int


def simulate(
    story: Story,
    days: int,
    seed: int,
    *,
    scenes: SceneBook | None = None,
    density: int = DENSITY,
) -> SimulatedHistory:
    """Simulate a history in memory; the same arguments give the same history.

    With a scene book it is the second edition, whose working days have about `density` words.
    """
    if not 1 <= days <= MOST_DAYS:
        raise UsageError(f"--days {days}: give a number between 1 and {MOST_DAYS:,}")
    low, high = _DENSITIES
    if not low <= density <= high:
        raise UsageError(f"--density {density}: give a number of words from {low} to {high:,}")
    rng = Rng(seed, story.persona.id)
    calendar = make_calendar(story, days, rng.stream("almanac"))
    subjects = SubjectPool(story, rng)
    arcs = plan_arcs(story, calendar, subjects, rng)
    logs: DailyLogs | SceneLogs
    if scenes is None:
        record = Timeline(story, calendar, rng).build(arcs)
        logs = DailyLogs(story, calendar, arcs, record, rng)
        questions = make_questions(KnownFacts(story, calendar, subjects, arcs, record, rng))
    else:
        record = told = SceneTimeline(story, scenes, calendar, rng).build(arcs)
        logs = SceneLogs(story, scenes, calendar, arcs, told, rng, density)
        known = KnownFacts(story, calendar, subjects, arcs, told, rng)
        questions = scene_questions(known, told, scenes)
    return SimulatedHistory(
        story,
        days,
        seed,
        calendar.epoch,
        tuple(arcs),
        tuple(record.facts),
        tuple(logs.write()),
        questions,
    )


def simulate_persona(
    persona: Story | str | Path,
    out: Path,
    *,
    days: int = 1000,
    seed: int = 42,
    edition: int = 1,
    density: int = DENSITY,
    force: bool = False,
) -> WrittenHistory:
    """Simulate a persona and write its folder into `out`.

    `persona` is a story, the id of a shipped one or the path of a file; the second edition needs
    an id or a path, as it has a scene book beside the story. Files that exist and differ are an
    error, unless `force` is given.
    """
    if edition not in EDITIONS:
        raise UsageError(f"--edition {edition}: give 1 or 2")
    if edition == 1 and density != DENSITY:
        raise UsageError("--density is an option of the second edition: add --edition 2")
    story = persona if isinstance(persona, Story) else find_story(str(persona))
    name = story.persona.id if isinstance(persona, Story) else str(persona)
    scenes = find_scenes(name, story) if edition == 2 else None
    history = simulate(story, days, seed, scenes=scenes, density=density)
    folder = write_history(history, out, force=force)
    return WrittenHistory(folder, days, len(history.questions), len(history.facts))


def simulate_personas(
    personas: Sequence[Story | str],
    out: Path,
    *,
    days: int = 1000,
    seed: int = 42,
    edition: int = 1,
    density: int = DENSITY,
    jobs: int = 1,
    force: bool = False,
) -> Iterator[WrittenHistory]:
    """Simulate several personas, `jobs` at a time; yields each as soon as it is written."""
    if jobs < 1:
        raise UsageError(f"--jobs {jobs}: give 1 or more")
    stories = [one if isinstance(one, Story) else find_story(one) for one in personas]
    if len({story.persona.id for story in stories}) < len(stories):
        raise UsageError("two stories have the same persona id: give each its own")
    write = partial(
        simulate_persona,
        out=out,
        days=days,
        seed=seed,
        edition=edition,
        density=density,
        force=force,
    )
    if jobs == 1 or len(personas) == 1:
        return map(write, personas)
    return _in_processes(write, personas, jobs)


def _in_processes(
    write: partial[WrittenHistory], personas: Sequence[Story | str], jobs: int
) -> Iterator[WrittenHistory]:
    from concurrent.futures import ProcessPoolExecutor, as_completed  # slow to import

    with ProcessPoolExecutor(min(jobs, len(personas))) as pool:
        for done in as_completed([pool.submit(write, persona) for persona in personas]):
            yield done.result()
