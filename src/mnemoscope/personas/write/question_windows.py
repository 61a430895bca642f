"""Questions: pairs grounded in one window of days at a time, on what is known at its end.

A prompt holds nothing of a later day, neither a log nor what the arcs foresee, and nothing of an
isolated session: such are asked about in `boundary`. Windows go in groups, side by side in a group,
and are told how many pairs of each category the groups before gave; so a pass begun again asks what
it would have asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope.models.chat import Prompt
from mnemoscope.models.prompts import PromptFile, load_prompt
from mnemoscope.personas.write.llm_writer import LlmWriter, Task
from mnemoscope.personas.write.log_pages import dated, page, sessions_of
from mnemoscope.personas.write.persona_files import Arc, PersonaFiles
from mnemoscope.personas.write.question_answer_pairs import Gathered, ReplyReader, Shown
from mnemoscope.personas.write.question_book import QuestionBook, Window
from mnemoscope.types import CORE_CATEGORIES

INTERVAL, PAIRS = 7, 12
GROUP = 4
"""Windows that are asked side by side; fixed, so that parallelism changes no prompt."""
ATTRIBUTION = "group-session-attribution"
_CONTRADICTION = "contradiction-resolution"
_HOLES = frozenset({"name", "role", "today", "pairs", "needs", "arcs", "earlier", "days"})


def windows(home: PersonaFiles, days: range, interval: int) -> list[range]:
    """The windows of the life that lie within these days and whose logs are written.

    One whose end is not written yet waits, for it would be asked with half of its days.
    """
    written = [day for day in range(1, home.days + 1) if home.log(day).is_file()]
    return [
        window
        for window in _within(home, days, interval)
        if any(day in window for day in written)
        and (home.days in window or window[-1] <= written[-1])
    ]


def waits(home: PersonaFiles, days: range, interval: int) -> bool:
    """Whether the last window within these days waits for its logs."""
    return _within(home, days, interval)[-1:] != windows(home, days, interval)[-1:]


def _within(home: PersonaFiles, days: range, interval: int) -> list[range]:
    """Windows end every so many days of the whole life, and on its last day."""
    if interval < 1:
        raise UsageError(f"--interval {interval}: a window has at least one day")
    ends = [*range(interval, home.days, interval), home.days]
    all_windows = [range(first + 1, end + 1) for first, end in pairwise([0, *ends])]
    return [one for one in all_windows if days[0] <= one[0] and one[-1] <= days[-1]]


def open_windows(home: PersonaFiles, days: range, interval: int = INTERVAL) -> list[range]:
    """Those windows in which something was said that may be asked about anywhere."""
    return [window for window in windows(home, days, interval) if _texts(home, window)]


def window_key(window: range) -> str:
    return f"standard {window[0]}-{window[-1]}"


def write_questions(
    home: PersonaFiles,
    desk: LlmWriter,
    book: QuestionBook,
    asked: Sequence[range],
    pairs: int = PAIRS,
) -> Iterator[Window]:
    """Ask for pairs on each window that gave none yet; yields what was entered into the book."""
    prompt = load_prompt("write-questions", _HOLES, frozenset({"days"}))
    before: list[str] = []
    for place in range(0, len(asked), GROUP):
        group = asked[place : place + GROUP]
        so_far = book.categories(before)
        tasks = (
            _task(home, prompt, window, so_far, pairs)
            for window in group
            if not book.is_done(window_key(window))
        )
        keys = [window_key(window) for window in group]
        yield from book.gather(keys, desk.write_all(tasks))
        before += keys


def _task(
    home: PersonaFiles, prompt: PromptFile, window: range, so_far: Counter[str], pairs: int
) -> Task[Gathered]:
    shown = Shown(home, window, _texts(home, window))
    categories = _categories(home)
    last = window[-1]
    arcs = [arc for arc in home.arcs.arcs if home.is_open(arc.primary_session)]
    filled = prompt.fill(
        name=home.persona.name,
        role=home.persona.role,
        today=dated(home, last),
        pairs=str(pairs),
        needs=_needs(wanted(so_far, _possible(home, shown, arcs, window), pairs), so_far),
        arcs="\n".join(_arc(home, arc, last) for arc in arcs if _touches(arc, window)) or "(none)",
        earlier="; ".join(arc.title for arc in arcs if arc.end < window.start) or "(none)",
        days=days_text(home, shown),
    )
    filled = with_typical(filled, f"[{', '.join([filled.typical] * pairs)}]")
    reader = ReplyReader(
        window_key(window), lambda written: shown.standard(written, categories), pairs
    )
    return Task(f"questions on days {window[0]} to {last}", filled, reader)


def _texts(home: PersonaFiles, window: range) -> dict[int, str]:
    """What the window's days say openly; of what was put right in it, also what was wrong."""
    texts: dict[int, str] = {}
    for arc in home.arcs.arcs:
        wrong, right = arc.wrong_day, arc.corrected_day
        if wrong and right in window and wrong < window.start and home.log(wrong).is_file():
            session = arc.primary_session
            if home.is_open(session) and session in sessions_of(home, wrong):
                texts[wrong] = page(home, wrong, home.is_open)
    for day in window:
        if home.log(day).is_file():
            texts[day] = page(home, day, home.is_open)
    return {day: text for day, text in sorted(texts.items()) if text}


def _touches(arc: Arc, window: range) -> bool:
    return arc.start < window.stop and arc.end >= window.start


def _arc(home: PersonaFiles, arc: Arc, today: int) -> str:
    """What may be known of an arc today: never its description, which tells how it ends."""
    told = f"- {arc.title} ({arc.type}, session {arc.primary_session}), since "
    told += home.date_of(arc.start).isoformat()
    if arc.corrected_day and arc.corrected_day <= today and arc.corrected_belief:
        put_right = home.date_of(arc.corrected_day).isoformat()
        told += f"; believed: {arc.wrong_belief}; put right on {put_right}: {arc.corrected_belief}"
    return told


def _categories(home: PersonaFiles) -> tuple[str, ...]:
    several = len(home.persona.sessions) > 1
    return (*CORE_CATEGORIES, ATTRIBUTION) if several else CORE_CATEGORIES


def _possible(home: PersonaFiles, shown: Shown, arcs: Iterable[Arc], window: range) -> list[str]:
    """The categories that this window has something for."""
    put_right = any(arc.corrected_day in window for arc in arcs)
    rooms = {session for day in shown.window for session in sessions_of(home, day)}
    groups = [room for room in home.persona.sessions if room.id in rooms and room.kind == "group"]
    talked = any(not room.isolated for room in groups)
    return [
        category
        for category in _categories(home)
        if (put_right or category != _CONTRADICTION) and (talked or category != ATTRIBUTION)
    ]


def wanted(so_far: Counter[str], possible: Sequence[str], pairs: int) -> Counter[str]:
    """How many pairs of each category bring all of them nearest to equal."""
    want: Counter[str] = Counter()
    for _ in range(pairs):
        want[min(possible, key=lambda one: so_far[one] + want[one])] += 1
    return want


def _needs(want: Counter[str], so_far: Counter[str]) -> str:
    return "\n".join(f"- {one}: {count} ({so_far[one]} so far)" for one, count in want.items())


def days_text(home: PersonaFiles, shown: Shown) -> str:
    return "\n\n".join(
        f'<day number="{day}" date="{dated(home, day)}">\n{text}\n</day>'
        for day, text in shown.texts.items()
    )


def with_typical(prompt: Prompt, typical: str) -> Prompt:
    return msgspec.structs.replace(prompt, typical=typical)
