"""Who may be told what: the rooms of several users, and the policy that follows from them.

A room is a session of one user. What was said in an open room may be told in every room of its
user. What was said in a closed room (`isolated`) may be told there, and where everyone present was
in that room. Nothing of one user may be told to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mnemoscope._store.errors import DataError
from mnemoscope.datasets.persona_folder import PersonaFolder

SEPARATOR = ","
_HEAD = (
    "Several users share one memory. Everything in it was said in a room of one of them, and every "
    "question is asked in a room. A room is written USER/ROOM. What was said in a room may be told "
    "only in the rooms that are listed for it. Anywhere else, do not tell it, hint at it or "
    "confirm it: reply that you cannot share it here."
)


class Room(NamedTuple):
    """A session of one user of the memory."""

    user: str
    session: str
    participants: frozenset[str] = frozenset()
    is_closed: bool = False

    @property
    def name(self) -> str:
        return f"{self.user}/{self.session}"

    def may_be_told_in(self, other: Room) -> bool:
        """Whether what was said here may be told in the other room."""
        if self.user != other.user:
            return False
        if not self.is_closed or self.session == other.session:
            return True
        return bool(other.participants) and other.participants <= self.participants


def rooms_of(folder: PersonaFolder) -> dict[str, Room]:
    """The declared sessions of a persona by id."""
    found: dict[str, Room] = {}
    for session in folder.sheet.sessions:
        if SEPARATOR in session.id or session.id in found:
            problem = "has a comma in its id" if SEPARATOR in session.id else "is declared twice"
            raise DataError(f"field `sessions`: {session.id!r} {problem}", file=folder.persona)
        found[session.id] = Room(
            folder.id, session.id, frozenset(session.participants), session.isolated
        )
    return found


def told_in(rooms: Sequence[Room]) -> dict[Room, tuple[Room, ...]]:
    """To each room, those in which it may be told."""
    return {room: tuple(other for other in rooms if room.may_be_told_in(other)) for room in rooms}


def policy_text(rules: Mapping[Room, Sequence[Room]]) -> str:
    """The policy in words: who is in each room, and where it may be told."""
    lines = [_HEAD, ""]
    for room, allowed in rules.items():
        present = f" ({', '.join(sorted(room.participants))})" if room.participants else ""
        where = (
            ", ".join(other.name for other in allowed)
            if room.is_closed
            else f"every room of {room.user}"
        )
        lines.append(f"- {room.name}{present}: may be told in {where}.")
    return "\n".join(lines)
