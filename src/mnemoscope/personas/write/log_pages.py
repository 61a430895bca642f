"""Pages: the daily logs that are there, cut into sessions, as the later passes show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date

from mnemoscope._store.errors import MissingData
from mnemoscope.datasets.day_logs import pieces, read_day
from mnemoscope.personas.write.persona_files import PersonaFiles

Text = str


def written_days(home: PersonaFiles, days: Iterable[int]) -> list[int]:
    """Those of the days that have a log; none at all is an error."""
    found = sorted(day for day in days if home.log(day).is_file())
    if not found:
        raise MissingData(
            f"{home.beside('memories')} holds no log of these days: write them first, with "
            "`mnemoscope personas generate`"
        )
    return found


def sessions_of(home: PersonaFiles, day: int) -> dict[str, Text]:
    """What was said in each session of the day; the agent's own narration is under no name."""
    said: dict[str, Text] = {}
    for piece in pieces(read_day(home.log(day)), "session"):
        if piece.text:
            earlier = said.get(piece.session)
            said[piece.session] = f"{earlier}\n\n{piece.text}" if earlier else piece.text
    return said


def page(home: PersonaFiles, day: int, shown: Callable[[str], bool] = lambda session: True) -> Text:
    """The day's log as a prompt holds it, only the sessions that may be shown; "" if none."""
    parts = [
        f"# session: {session}\n\n{text}" if session else text
        for session, text in sessions_of(home, day).items()
        if shown(session)
    ]
    return "\n\n".join(parts)


def dated(home: PersonaFiles, day: int) -> str:
    """For people and models: Friday, 16 January 2026 (2026-01-16)."""
    date = home.date_of(day)
    return f"{long_date(date)} ({date.isoformat()})"


def long_date(day: date) -> str:
    """Friday, 16 January 2026"""
    return f"{day:%A}, {day.day} {day:%B %Y}"
