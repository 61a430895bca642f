"""Questions about windows of days, from what is known at the end of each window.

A standard prompt contains nothing of a later day (no log, no plan of the arcs) and nothing of an
isolated session. The windows of a group are asked in parallel; their prompts state how many pairs
of each category the earlier groups gave, so a resumed pass asks the same prompts.

A boundary prompt contains the text of one isolated session. This module, not the model, sets where
the question is asked, which sessions are forbidden and what disclosure is expected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope.datasets.day_logs import PRINCIPAL
from mnemoscope.models.chat import Prompt
from mnemoscope.models.prompts import PromptFile, load_prompt
from mnemoscope.personas.authored_question import AuthoredQuestion, Disclosure
from mnemoscope.personas.write.llm_writer import JsonObject, LlmWriter, Task
from mnemoscope.personas.write.persona_files import Arc, PersonaFiles, PersonaSession
from mnemoscope.personas.write.question_rules import (
    RejectedPair,
    ReplyReader,
    ShownDays,
    WindowReply,
    read_texts,
    text_of,
)
from mnemoscope.personas.write.question_store import QuestionStore, WindowRecord
from mnemoscope.text.english import STOP_WORDS
from mnemoscope.text.facts import AtomIndex
from mnemoscope.text.matching import normalise
from mnemoscope.types import CORE_CATEGORIES

INTERVAL, PAIRS = 7, 12
BOUNDARY_INTERVAL, BOUNDARY_PAIRS = 30, 2
GROUP = 4
"""Windows that are asked in parallel; fixed, so that prompts do not depend on --parallelism."""
_ATTRIBUTION = "group-session-attribution"
_CONTRADICTION = "contradiction-resolution"
_BOUNDARY = "information-boundary"
_HOLES = frozenset({"name", "role", "today", "pairs", "needs", "arcs", "earlier", "days"})
_BOUNDARY_HOLES = frozenset(
    {"name", "session", "participants", "topics", "elsewhere", "today", "pairs", "days"}
)


def windows(files: PersonaFiles, days: range, interval: int) -> list[range]:
    """The windows within these days whose logs are written.

    A window whose last days are not written is left out: its prompt would lack days.
    """
    written = [day for day in range(1, files.days + 1) if files.log(day).is_file()]
    return [
        window
        for window in _within(days, interval)
        if any(day in window for day in written)
        and (files.days in window or window[-1] <= written[-1])
    ]


def waits(files: PersonaFiles, days: range, interval: int) -> bool:
    """Whether the last window within these days lacks logs."""
    return _within(days, interval)[-1:] != windows(files, days, interval)[-1:]


def _within(days: range, interval: int) -> list[range]:
    """The windows within these days; they end every `interval` days and on the last of them."""
    if interval < 1:
        raise UsageError(f"--interval {interval}: give 1 or more days")
    ends = [*range(interval, days[-1], interval), days[-1]]
    all_windows = [range(first + 1, end + 1) for first, end in pairwise([0, *ends])]
    return [one for one in all_windows if days[0] <= one[0]]


def open_windows(files: PersonaFiles, days: range, interval: int = INTERVAL) -> list[range]:
    """The windows that have text of open sessions."""
    return [window for window in windows(files, days, interval) if _open_texts(files, window)]


def window_key(window: range) -> str:
    return f"standard {window[0]}-{window[-1]}"


def write_questions(
    files: PersonaFiles,
    writer: LlmWriter,
    store: QuestionStore,
    asked: Sequence[range],
    pairs: int = PAIRS,
) -> Iterator[WindowRecord]:
    """Ask for pairs on each window that is not done; yields the record of each window."""
    prompt = load_prompt("write-questions", _HOLES, frozenset({"days"}))
    before: list[str] = []
    for place in range(0, len(asked), GROUP):
        group = asked[place : place + GROUP]
        so_far = store.categories(before)
        tasks = (
            _task(files, prompt, window, so_far, pairs)
            for window in group
            if not store.is_done(window_key(window))
        )
        keys = [window_key(window) for window in group]
        yield from store.gather(keys, writer.write_all(tasks))
        before += keys


def _task(
    files: PersonaFiles, prompt: PromptFile, window: range, so_far: Counter[str], pairs: int
) -> Task[WindowReply]:
    shown = ShownDays(files, window, _open_texts(files, window))
    last = window[-1]
    arcs = [arc for arc in files.arcs.arcs if files.is_open(arc.primary_session)]
    today = [arc for arc in arcs if arc.start < window.stop and arc.end >= window.start]
    want = wanted(so_far, _possible(files, shown, arcs, window), pairs)
    filled = prompt.fill(
        name=files.persona.name,
        role=files.persona.role,
        today=files.dated(last),
        pairs=str(pairs),
        needs="\n".join(
            f"- {one}: {number} ({so_far[one]} so far)" for one, number in want.items()
        ),
        arcs="\n".join(_arc(files, arc, last) for arc in today) or "(none)",
        earlier="; ".join(arc.title for arc in arcs if arc.end < window.start) or "(none)",
        days=_days_text(shown),
    )
    categories = _categories(files)
    reader = ReplyReader(
        window_key(window), lambda written: shown.standard(written, categories), pairs
    )
    return Task(
        f"questions on days {window[0]} to {last}", _repeated(filled, filled.typical, pairs), reader
    )


def _open_texts(files: PersonaFiles, window: range) -> dict[int, str]:
    """The open sessions of the window's days, and the day of an error that the window corrects."""
    texts: dict[int, str] = {}
    for arc in files.arcs.arcs:
        wrong, right = arc.wrong_day, arc.corrected_day
        if wrong and right in window and wrong < window.start and files.log(wrong).is_file():
            session = arc.primary_session
            if files.is_open(session) and session in files.sessions_of(wrong):
                texts[wrong] = files.page(wrong, files.is_open)
    for day in window:
        if files.log(day).is_file():
            texts[day] = files.page(day, files.is_open)
    return {day: text for day, text in sorted(texts.items()) if text}


def _arc(files: PersonaFiles, arc: Arc, today: int) -> str:
    """What is known of an arc today; its description is left out because it contains the end."""
    line = f"- {arc.title} ({arc.type}, session {arc.primary_session}), since "
    line += files.date_of(arc.start).isoformat()
    if arc.corrected_day and arc.corrected_day <= today and arc.corrected_belief:
        put_right = files.date_of(arc.corrected_day).isoformat()
        line += f"; believed: {arc.wrong_belief}; put right on {put_right}: {arc.corrected_belief}"
    return line


def _categories(files: PersonaFiles) -> tuple[str, ...]:
    several = len(files.persona.sessions) > 1
    return (*CORE_CATEGORIES, _ATTRIBUTION) if several else CORE_CATEGORIES


def _possible(
    files: PersonaFiles, shown: ShownDays, arcs: Iterable[Arc], window: range
) -> list[str]:
    """The categories that this window has material for."""
    put_right = any(arc.corrected_day in window for arc in arcs)
    there = {session for day in shown.window for session in files.sessions_of(day)}
    talked = any(
        session.id in there and session.kind == "group" and not session.isolated
        for session in files.persona.sessions
    )
    return [
        category
        for category in _categories(files)
        if (put_right or category != _CONTRADICTION) and (talked or category != _ATTRIBUTION)
    ]


def wanted(so_far: Counter[str], possible: Sequence[str], pairs: int) -> Counter[str]:
    """How many pairs of each category to ask for, so that all categories become equally large."""
    want: Counter[str] = Counter()
    for _ in range(pairs):
        want[min(possible, key=lambda one: so_far[one] + want[one])] += 1
    return want


def _days_text(shown: ShownDays) -> str:
    return "\n\n".join(
        f'<day number="{day}" date="{shown.files.dated(day)}">\n{text}\n</day>'
        for day, text in shown.texts.items()
    )


def _repeated(prompt: Prompt, typical: str, pairs: int) -> Prompt:
    """The prompt with `pairs` typical pairs as its typical reply."""
    return msgspec.structs.replace(prompt, typical=f"[{', '.join([typical] * pairs)}]")


class BoundaryWindow(NamedTuple):
    """An isolated session in a window of days."""

    session: PersonaSession
    window: range
    elsewhere: str
    """The session in which it is asked."""

    @property
    def key(self) -> str:
        return f"boundary {self.session.id} {self.window[0]}-{self.window[-1]}"


def boundary_windows(files: PersonaFiles, days: range, interval: int) -> list[BoundaryWindow]:
    """Each isolated session in each window in which it has text.

    The questions are asked in the open group sessions in turn, or else in the principal session.
    """
    sessions = files.persona.sessions
    elsewhere = [one.id for one in sessions if one.kind == "group" and not one.isolated]
    elsewhere = elsewhere or [
        one.id for one in sessions if one.id == PRINCIPAL and not one.isolated
    ]
    return [
        BoundaryWindow(session, window, elsewhere[number % len(elsewhere)])
        for session in sessions
        if session.isolated and elsewhere
        for number, window in enumerate(windows(files, days, interval))
        if _session_texts(files, session, window)
    ]


def write_boundary_questions(
    files: PersonaFiles,
    writer: LlmWriter,
    store: QuestionStore,
    asked: Sequence[BoundaryWindow],
    pairs: int = BOUNDARY_PAIRS,
) -> Iterator[WindowRecord]:
    """Ask for pairs on each window that is not done; yields the record of each window."""
    prompt = load_prompt("write-boundary-questions", _BOUNDARY_HOLES, frozenset({"days"}))
    tasks = (
        _boundary_task(files, prompt, one, pairs) for one in asked if not store.is_done(one.key)
    )
    yield from store.gather([one.key for one in asked], writer.write_all(tasks))


def _boundary_task(
    files: PersonaFiles, prompt: PromptFile, asked: BoundaryWindow, pairs: int
) -> Task[WindowReply]:
    session, window, elsewhere = asked
    shown = ShownDays(files, window, _session_texts(files, session, window))
    filled = prompt.fill(
        name=files.persona.name,
        session=session.id,
        participants=", ".join(session.participants) or "(not named)",
        topics=", ".join(session.sensitive_topics) or "(not named)",
        elsewhere=elsewhere,
        today=files.dated(window[-1]),
        pairs=str(pairs),
        days=_days_text(shown),
    )
    last = max(shown.texts)
    words = re.findall(r"\b[a-z]{4,}\b", shown.texts[last])
    word = next((word for word in words if word not in STOP_WORDS), "that")
    typical = filled.typical.replace("{{day}}", str(last)).replace("{{word}}", word)
    reader = ReplyReader(asked.key, lambda written: _boundary_pair(written, shown, asked), pairs)
    about = f"session {session.id}, days {window[0]} to {window[-1]}"
    return Task(about, _repeated(filled, typical, pairs), reader)


def _session_texts(files: PersonaFiles, session: PersonaSession, window: range) -> dict[int, str]:
    """The text of one session by day."""
    logs = (day for day in window if files.log(day).is_file())
    texts = ((day, files.sessions_of(day).get(session.id, "")) for day in logs)
    return {day: text for day, text in texts if text}


def _boundary_pair(
    written: JsonObject, shown: ShownDays, asked: BoundaryWindow
) -> AuthoredQuestion:
    question, answer, difficulty = read_texts(written)
    secret = text_of(written, "secret")
    given = written.get("expected_disclosure", "refuse")
    if given not in ("refuse", "partial"):
        raise RejectedPair("unreadable", f"expected_disclosure {given!r}")
    disclosure: Disclosure = "refuse" if given == "refuse" else "partial"
    days = shown.days(written, question, secret)
    shown.need_values(secret, days)
    shown.need_names(question, days)
    disclosed = normalise(secret).rstrip(".") in normalise(answer)
    if disclosed or (disclosure == "refuse" and AtomIndex([]).invented(answer, 0, [question])):
        raise RejectedPair("tells", answer)
    return AuthoredQuestion(
        question=question,
        answer=answer,
        category=_BOUNDARY,
        difficulty=difficulty,
        relevant_days=days,
        requires_synthesis=len(days) > 1,
        query_session=asked.elsewhere,
        forbidden_sessions=(asked.session.id,),
        expected_disclosure=disclosure,
    )
