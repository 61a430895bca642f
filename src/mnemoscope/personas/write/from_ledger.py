"""A model rewrites the sessions of a simulated history as prose that still matches the ledger.

The new folder has the same persona, arcs, questions and ledger. A day is written when the texts of
all its sessions match; until then the finished sessions are kept as drafts, so nothing is paid for
twice. A text matches if it keeps what scoring needs: each value with its subject and speaker, the
dates, and nothing that is not in the notes.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.jsonl import write_atomically
from mnemoscope.datasets.day_logs import day_files
from mnemoscope.models.prompts import load_prompt
from mnemoscope.personas.simulate.calendar import long_date
from mnemoscope.personas.write.daily_log_writer import unwrapped
from mnemoscope.personas.write.llm_writer import LlmWriter, Task, UnusableReply
from mnemoscope.personas.write.persona_files import PersonaFiles, open_persona_files
from mnemoscope.text.fact_ledger import Ledger, LedgerFact
from mnemoscope.text.facts import AtomIndex, atoms
from mnemoscope.text.matching import normal_wording, normalise, sentences, spans
from mnemoscope.types import Memory

_SESSION = re.compile(r"^#[ \t]+session:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_DRAFTS = ".retold"
_HOLES = frozenset({"name", "role", "style", "date", "session", "participants", "values", "notes"})
_HEADING = re.compile(r"^### .*$", re.MULTILINE)
_TITLE = re.compile(r"^#{1,2} ", re.MULTILINE)
_WEEKDAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b")
_LISTED = 3


class SessionNotes(NamedTuple):
    """The text of a simulated session, and its facts in the ledger."""

    day: int
    session: str
    text: str
    facts: tuple[LedgerFact, ...]


def wordings(fact: LedgerFact) -> tuple[str, ...]:
    return (fact.value, *fact.aliases)


def broken(notes: SessionNotes, rewritten: str, ledger: Sequence[LedgerFact]) -> list[str]:
    """What is wrong with a rewritten text, as sentences for the model; empty if it matches.

    `ledger` is that of the whole history: values of other days and sessions may not occur here.
    """
    if not rewritten.strip():
        return ["The text is empty."]
    return [
        *_shape(notes.text, rewritten),
        *_values(notes, rewritten),
        *_dates(notes.text, rewritten),
        *_additions(notes, rewritten, ledger),
    ]


def _shape(original: str, rewritten: str) -> Iterator[str]:
    if _TITLE.search(rewritten):
        yield "There is a line that begins with # or ##."
    wanted, there = _HEADING.findall(original), _HEADING.findall(rewritten)
    if wanted != there:
        yield f"The ### lines are to be exactly these, in this order: {' / '.join(wanted)}."


def _values(notes: SessionNotes, rewritten: str) -> Iterator[str]:
    """Each value must be in its section with its subject and speaker, in the order of the notes."""
    before, now = _sections(notes.text), _sections(rewritten)
    for fact in notes.facts:
        for place, section in enumerate(before):
            stated = [one for one in section if _says(one, wordings(fact))]
            if not stated:
                continue
            here = now[place] if place < len(now) else []
            company = _company(stated, fact)
            kept = [one for one in here if _says(one, wordings(fact))]
            # If several sentences have the value, all must stay: any may state the fact.
            times = _together(stated, company)
            if not kept:
                yield f"“{fact.value}” is missing{_under(place)}."
            elif _together(kept, company) < times:
                beside = f" together with {' and '.join(company)}" if company else ""
                yield f"“{fact.value}” belongs into {times} sentence(s){_under(place)}{beside}."
    for place, (old, new) in enumerate(zip(before, now, strict=False)):
        wanted, there = _order(old, notes.facts), _order(new, notes.facts)
        if set(wanted) == set(there) and wanted != there:
            yield f"The values are to keep their order{_under(place)}: {', '.join(wanted)}."


def _company(stated: Sequence[str], fact: LedgerFact) -> list[str]:
    """Entity and speaker, if the notes have them in the sentence of the value."""
    names = [name for name in (fact.entity, fact.speaker) if name and name != fact.value]
    best = max(stated, key=lambda one: sum(_says(one, [name]) for name in names))
    return [name for name in names if _says(best, [name])]


def _together(sentences: Sequence[str], names: Sequence[str]) -> int:
    """How many sentences contain all the names."""
    return sum(all(_says(one, [name]) for name in names) for one in sentences)


def _order(section: Sequence[str], facts: Sequence[LedgerFact]) -> list[str]:
    """The values in the order in which the section first names them."""
    whole = " \n ".join(section)
    places = {
        fact.value: min(found)
        for fact in facts
        if (found := [s[0] for w in wordings(fact) for s in spans(whole, normal_wording(w))])
    }
    return sorted(places, key=lambda value: (places[value], value))


def _dates(original: str, rewritten: str) -> Iterator[str]:
    wanted, there = _date_counts(original), _date_counts(rewritten)
    if lost := list((wanted - there).elements()):
        yield f"A date of the notes is missing or named too seldom: {_listed(lost)}."
    if new := list((there - wanted).elements()):
        yield f"A date is named that the notes do not name, or too often: {_listed(new)}."
    if days := sorted(set(_WEEKDAY.findall(rewritten)) - set(_WEEKDAY.findall(original))):
        yield f"The notes do not name {_listed(days)}."


def _date_counts(text: str) -> Counter[str]:
    return Counter(
        atom.removeprefix("date ") for atom in atoms(text).exact if atom.startswith("date ")
    )


def _additions(notes: SessionNotes, rewritten: str, ledger: Sequence[LedgerFact]) -> Iterator[str]:
    """Values, names and numbers that are not in the notes."""
    index = AtomIndex([Memory("notes", notes.text)])
    if new := index.invented(rewritten, 1, [notes.session], small=-1):
        yield f"The notes do not hold {_listed(new)}."
    old, text = normalise(notes.text), normalise(rewritten)
    own = {fact.id for fact in notes.facts}
    foreign = [
        wording
        for fact in ledger
        if fact.id not in own
        for wording in wordings(fact)
        if normal_wording(wording) in text
        and spans(text, normal_wording(wording))
        and not spans(old, normal_wording(wording))
    ]
    if foreign := list(dict.fromkeys(foreign)):
        yield f"Of another day or session, and not in these notes: {_listed(foreign)}."


def _sections(text: str) -> list[list[str]]:
    """The normalised sentences under each ### line, after those before the first ### line.

    A quotation is one sentence, because it begins with its speaker.
    """
    found: list[list[str]] = []
    for part in _HEADING.split(text):
        texts: list[str] = []
        for line in filter(None, map(str.strip, part.splitlines())):
            if line.startswith(">"):
                texts.append(normalise(line))
            else:
                texts += (one.text for one in sentences(line))
        found.append(texts)
    return found


def _says(sentence: str, of: Sequence[str]) -> bool:
    return any(spans(sentence, normal_wording(wording)) for wording in of)


def _under(place: int) -> str:
    return f" under ### line {place}" if place else ""


def _listed(values: Sequence[str]) -> str:
    more = f" and {len(values) - _LISTED} more" if len(values) > _LISTED else ""
    return ", ".join(f"“{value}”" for value in values[:_LISTED]) + more


class DayText(NamedTuple):
    """A simulated log in parts: the notes to rewrite, and the text around them that is kept."""

    day: int
    around: tuple[str, ...]
    """The text before the first session's notes, between them, and after the last."""
    notes: tuple[SessionNotes, ...]

    def together(self, rewritten: Iterable[str]) -> str:
        parts = [self.around[0]]
        for text, after in zip(rewritten, self.around[1:], strict=True):
            parts += (text, after)
        return "".join(parts)


class HistoryRewriter:
    """Rewrites a simulated history into a new folder."""

    def __init__(self, source: PersonaFiles, out: Path) -> None:
        self.source = source
        path = source.ledger
        if not path.is_file():
            raise MissingData(
                f"{path} is missing: only a simulated history has a ledger; make one with "
                "mnemoscope personas simulate"
            )
        if out.resolve() == source.folder.resolve():
            raise UsageError(f"--out {out} is the folder of --persona: choose another folder")
        if out.exists() and not out.is_dir():
            raise UsageError(f"--out {out} is a file: give a folder")
        self._ledger = tuple(Ledger.read(path, source.epoch).facts.values())
        self._by_place: dict[tuple[int, str], list[LedgerFact]] = {}
        for fact in self._ledger:
            self._by_place.setdefault((fact.day, fact.session), []).append(fact)
        self._prompt = load_prompt("write-from-ledger", _HOLES, frozenset({"notes", "values"}))

    def open(self, folder: Path) -> PersonaFiles:
        """Copy the persona, arcs, questions and ledger to the new folder, and read it."""
        source = self.source
        questions = source.beside("qa") / "questions.yaml"
        for path in (source.folder / "persona.yaml", source.arcs_file, questions, source.ledger):
            copy = folder / path.relative_to(source.folder)
            content = path.read_bytes()
            if copy.exists() and copy.read_bytes() != content:
                raise UsageError(
                    f"{copy} exists and differs from that of {source.folder}: choose another --out"
                )
            if not copy.exists():
                write_atomically(copy, content)
        return open_persona_files(folder, source.arcs_file.name)

    def days(self, wanted: range) -> list[int]:
        """The wanted days that the simulated history has."""
        return [day for day in day_files(self.source.beside("memories")) if day in wanted]

    def write(
        self, files: PersonaFiles, writer: LlmWriter, days: Iterable[int], *, anew: bool = False
    ) -> Iterator[int]:
        """Rewrite these days; yields each day as soon as its log is on disk."""
        waiting: dict[int, tuple[DayText, dict[int, str]]] = {}
        ready: list[int] = []

        def keep(day: int, place: int, rewritten: str) -> None:
            text, have = waiting[day]
            have[place] = rewritten
            if len(have) == len(text.notes):
                self._finish(files, text, have)
                ready.append(day)
                del waiting[day]

        def tasks() -> Iterator[Task[_RewrittenSession]]:
            for day in days:
                text = self.split(day)
                waiting[day] = text, {}
                for place, notes in enumerate(text.notes):
                    draft = "" if anew else _read_draft(files, day, place)
                    if draft and not broken(notes, draft, self._ledger):
                        keep(day, place, draft)
                    else:
                        yield self._task(notes, place)

        for written in writer.write_all(tasks()):
            if written.result is not None:
                day, place, rewritten = written.result
                write_atomically(_draft(files, day, place), f"{rewritten}\n".encode())
                keep(day, place, rewritten)
            while ready:
                yield ready.pop(0)
        yield from ready

    def split(self, day: int) -> DayText:
        raw = self.source.log(day).read_bytes().decode()
        headings = list(_SESSION.finditer(raw))
        around: list[str] = []
        notes: list[SessionNotes] = []
        done = 0
        ends = [heading.start() for heading in headings[1:]] + [len(raw)]
        for heading, end in zip(headings, ends, strict=True):
            body = raw[heading.end() : end]
            text = body.strip()
            if not text:
                continue
            start = heading.end() + body.index(text)
            around.append(raw[done:start])
            done = start + len(text)
            facts = self._by_place.get((day, heading[1]), [])
            notes.append(SessionNotes(day, heading[1], text, tuple(facts)))
        return DayText(day, (*around, raw[done:]), tuple(notes))

    def _task(self, notes: SessionNotes, place: int) -> Task[_RewrittenSession]:
        def read(reply: str) -> _RewrittenSession:
            rewritten = _cleaned(reply)
            if problems := broken(notes, rewritten, self._ledger):
                raise UnusableReply(" ".join(problems))
            return _RewrittenSession(notes.day, place, rewritten)

        persona = self.source.persona
        session = next((one for one in persona.sessions if one.id == notes.session), None)
        prompt = self._prompt.fill(
            name=persona.name,
            role=persona.role,
            style=persona.communication_style.strip(),
            date=long_date(self.source.date_of(notes.day)),
            session=notes.session,
            participants=", ".join(session.participants) if session else "nobody else",
            values="\n".join(map(_value, notes.facts)) or "none",
            notes=notes.text,
        )
        prompt = msgspec.structs.replace(prompt, typical=notes.text)
        return Task(f"day {notes.day}, session {notes.session}", prompt, read)

    def _finish(self, files: PersonaFiles, text: DayText, rewritten: dict[int, str]) -> None:
        whole = text.together(rewritten[place] for place in range(len(text.notes)))
        write_atomically(files.log(text.day), whole.encode())
        shutil.rmtree(files.folder / _DRAFTS / f"day-{text.day:04}", ignore_errors=True)


class _RewrittenSession(NamedTuple):
    day: int
    place: int
    text: str


def _value(fact: LedgerFact) -> str:
    by = f", said by {fact.speaker}" if fact.speaker else ""
    also = f" (or {' or '.join(fact.aliases)})" if fact.aliases else ""
    return f"- {fact.value}{also}: {fact.entity}{by}"


def _cleaned(reply: str) -> str:
    """The text without reasoning, a code fence around it, or the session's heading."""
    text = unwrapped(reply)
    if heading := _SESSION.match(text):
        text = text[heading.end() :].strip()
    return text


def _draft(files: PersonaFiles, day: int, place: int) -> Path:
    """The draft of a session, named by its place: session names may repeat."""
    return files.folder / _DRAFTS / f"day-{day:04}" / f"{place}.md"


def _read_draft(files: PersonaFiles, day: int, place: int) -> str:
    path = _draft(files, day, place)
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""
