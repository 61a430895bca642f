"""Who may be named where: a family does not sit in meetings, an agent is nobody's reviewer."""

from __future__ import annotations

from mnemoscope.personas.simulate.story import Story, StorySession


def colleagues(story: Story) -> list[str]:
    """People who may be named anywhere: those who sit only behind closed doors are left out."""
    humans = [person.name for person in story.persona.cast if person.kind == "human"]
    hidden: set[str] = set()
    seen: set[str] = set()
    for room in story.persona.sessions:
        (hidden if room.isolated else seen).update(room.participants)
    found = [name for name in humans if name in seen or name not in hidden]
    return found if len(found) >= 6 else humans


def speakers(story: Story, room: StorySession) -> list[str]:
    """Who speaks in a session; to one person the agent reports what anybody says."""
    if room.kind == "1to1":
        return colleagues(story)
    humans = {person.name for person in story.persona.cast if person.kind == "human"}
    here = [name for name in room.participants if name in humans]
    return here if len(here) >= 2 else colleagues(story)
