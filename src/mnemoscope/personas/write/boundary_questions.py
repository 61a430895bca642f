"""Boundary questions: what was said in an isolated session, asked where it may not be told.

A prompt holds the text of its own session and of no other. Where it is asked, which sessions are
forbidden and what is expected is set here, not by the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mnemoscope.models.prompts import PromptFile, load_prompt
from mnemoscope.personas.write.llm_writer import LlmWriter, Task
from mnemoscope.personas.write.log_pages import dated, sessions_of
from mnemoscope.personas.write.persona_files import PRINCIPAL, PersonaFiles, Session
from mnemoscope.personas.write.question_answer_pairs import (
    Dropped,
    Gathered,
    Pair,
    ReplyReader,
    Shown,
    read_texts,
    text_of,
)
from mnemoscope.personas.write.question_book import QuestionBook, Window
from mnemoscope.personas.write.question_windows import days_text, windows, with_typical
from mnemoscope.text.english import STOP_WORDS
from mnemoscope.text.facts import AtomIndex
from mnemoscope.text.matching import normalise

INTERVAL, PAIRS = 30, 2
CATEGORY = "information-boundary"
_DISCLOSURES = ("refuse", "partial")
_HOLES = frozenset({"name", "session", "participants", "topics", "elsewhere", "today"})
_HOLES |= {"pairs", "days"}


class Stretch(NamedTuple):
    """An isolated session in a window of days."""

    session: Session
    window: range
    elsewhere: str
    """Where it is asked."""

    @property
    def key(self) -> str:
        return f"boundary {self.session.id} {self.window.start}-{self.window.stop - 1}"


def stretches(home: PersonaFiles, days: range, interval: int) -> list[Stretch]:
    """Each isolated session in each window in which something was said there.

    It is asked in the open group sessions in turn, or with the principal where there is none.
    """
    rooms = home.persona.sessions
    elsewhere = [one.id for one in rooms if one.kind == "group" and not one.isolated]
    elsewhere = elsewhere or [one.id for one in rooms if one.id == PRINCIPAL and not one.isolated]
    found = []
    if elsewhere:
        for room in (one for one in rooms if one.isolated):
            for number, window in enumerate(windows(home, days, interval)):
                if _texts(home, room, window):
                    found.append(Stretch(room, window, elsewhere[number % len(elsewhere)]))
    return found


def write_boundary_questions(
    home: PersonaFiles,
    desk: LlmWriter,
    book: QuestionBook,
    asked: Sequence[Stretch],
    pairs: int = PAIRS,
) -> Iterator[Window]:
    """Ask for pairs on each stretch that gave none yet; yields what was entered into the book."""
    prompt = load_prompt("write-boundary-questions", _HOLES, frozenset({"days"}))
    tasks = (_task(home, prompt, one, pairs) for one in asked if not book.is_done(one.key))
    yield from book.gather([one.key for one in asked], desk.write_all(tasks))


def _task(home: PersonaFiles, prompt: PromptFile, stretch: Stretch, pairs: int) -> Task[Gathered]:
    room, window, elsewhere = stretch
    shown = Shown(home, window, _texts(home, room, window))
    last = window.stop - 1
    filled = prompt.fill(
        name=home.persona.name,
        session=room.id,
        participants=", ".join(room.participants) or "(not named)",
        topics=", ".join(room.sensitive_topics) or "(not named)",
        elsewhere=elsewhere,
        today=dated(home, last),
        pairs=str(pairs),
        days=days_text(home, shown),
    )
    one = filled.typical.replace("{{day}}", str(max(shown.texts)))
    one = one.replace("{{word}}", _some_word(shown.texts[max(shown.texts)]))
    filled = with_typical(filled, f"[{', '.join([one] * pairs)}]")
    reader = ReplyReader(stretch.key, lambda written: _pair(written, shown, stretch), pairs)
    return Task(f"session {room.id}, days {window.start} to {last}", filled, reader)


def _texts(home: PersonaFiles, room: Session, window: range) -> dict[int, str]:
    """What was said in this one session."""
    logs = (day for day in window if home.log(day).is_file())
    said = ((day, sessions_of(home, day).get(room.id, "")) for day in logs)
    return {day: text for day, text in said if text}


def _pair(written: Mapping[str, Any], shown: Shown, stretch: Stretch) -> Pair:
    question, answer, difficulty = read_texts(written)
    secret = text_of(written, "secret")
    disclosure = written.get("expected_disclosure", "refuse")
    if disclosure not in _DISCLOSURES:
        raise Dropped("unreadable", f"expected_disclosure {disclosure!r}")
    days = shown.days(written, question, secret)
    shown.need_values(secret, days)
    shown.need_names(question, days)
    told = normalise(secret).rstrip(".") in normalise(answer)
    if told or (disclosure == "refuse" and AtomIndex([]).invented(answer, 0, [question])):
        raise Dropped("tells", answer)
    return Pair(
        question,
        answer,
        CATEGORY,
        difficulty,
        days,
        len(days) > 1,
        query_session=stretch.elsewhere,
        forbidden_sessions=(stretch.session.id,),
        expected_disclosure=disclosure,
    )


def _some_word(text: str) -> str:
    """Any word of the text that could be asked about."""
    words = (word for word in re.findall(r"\b[a-z]{4,}\b", text) if word not in STOP_WORDS)
    return next(words, "that")
