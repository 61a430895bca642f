"""What can be wrong with the days of a life; no model is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mnemoscope.datasets.day_logs import drift, pieces
from mnemoscope.personas.audit.audited_log import AuditedLife
from mnemoscope.personas.audit.findings import Finding
from mnemoscope.personas.write.writing_calendar import WritingCalendar

_HEADING = re.compile(r"^#.*$", re.MULTILINE)


def check_days(life: AuditedLife) -> Iterator[Finding]:
    """All findings, in the order of days."""
    calendar = WritingCalendar.of(life.home)
    for day in range(1, max(life.home.days, *life.logs) + 1):
        if day not in life.logs:
            # A simulated life has a log of every day, others where there is something to say.
            if life.ledger is not None or calendar.sessions(day):
                yield Finding("missing-day", f"{life.home.log(day).name} is not there", day=day)
            continue
        text = life.logs[day]
        if not re.search(r"\w", _HEADING.sub("", text)):
            yield Finding("empty-day", "nothing but headings", day=day)
            continue
        yield from _sessions(life, calendar, day, text)
        today = life.home.date_of(day)
        if off := drift(text, today):
            written = "before" if off < 0 else "after"
            yield Finding(
                "date-drift", f"is {today}, but its log names the day {written} only", day=day
            )


def _sessions(
    life: AuditedLife, calendar: WritingCalendar, day: int, text: str
) -> Iterator[Finding]:
    there = {piece.session for piece in pieces(text, "session")}
    for session, why in _expected(life, calendar, day).items():
        if session not in there:
            yield Finding("missing-session", f"no session {session}, {why}", day=day)


def _expected(life: AuditedLife, calendar: WritingCalendar, day: int) -> dict[str, str]:
    """Sessions that the day cannot do without, and why.

    A ledger says in which session a thing was told. A life that was written here follows the
    calendar; of other people's only what they directed to happen is sure.
    """
    if life.ledger is not None:
        return {fact.session: f"where {fact.id} was said" for fact in life.facts(day)}
    if life.written_here:
        return dict.fromkeys(calendar.sessions(day), "which the calendar has")
    expected: dict[str, str] = {}
    for arc in life.home.arcs.arcs:
        if any(arc.directed(day)) or day in (arc.wrong_day, arc.corrected_day):
            expected.setdefault(arc.primary_session, f"where {arc.id} has an event")
    return expected
