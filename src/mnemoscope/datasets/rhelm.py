"""RHELM (2026): ten persons who talk with an assistant for a year, with emails and attachments.

A turn is what the user says and what the assistant replies. Evidence names turns, sections of
attachments, and emails by their date. Questions that need files are measured only if the files are
ingested. Summaries, profiles and events in the conversation files are never ingested.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope._store.jsonl import decode_lines
from mnemoscope.datasets._io.file_tree import FileTree
from mnemoscope.datasets.base import DatasetInfo, PinnedFile
from mnemoscope.datasets.tree_dataset import TreeDataset
from mnemoscope.types import Memory, Question, Scenario

TYPES = (
    "aggregation",
    "attachment",
    "fact",
    "hallucination",
    "misleading",
    "mixed",
    "temporal",
)
PERSONS = 10
_CONVERSATIONS_SHA256 = "a54aa7756e3ebcc2749783d58cec25cd79a3a9dea1b55ad3485786abda53117d"
"""The hash of all conversations and questions."""
_ARCHIVE = "RHELM.tar.gz"
_COMMIT = "ca896ec95aec8a64aa438a946a8a1febae7e2ea6"
_PATH = re.compile(
    r"(?:.*/)?((conversations|emails|attachments)/[^/]+/[^/]+"
    r"|QA_final/low_score_qa_[^/]+_all_validated\.jsonl)"
)
_QUESTIONS = re.compile(r"QA_final/low_score_qa_(.+)_all_validated\.jsonl")
_TURN = re.compile(r"(\d{4}-\d\d-\d\d):(\d+)")
_TURNS_JOINED = re.compile(r"(\d{4}-\d\d-\d\d):(\d+)((?:,\d+)+)")
_EMAIL = re.compile(r"Emails_(\d{4}-\d\d-\d\d)\b.*", re.DOTALL)
_EMAIL_FILE = re.compile(r"\d+_email_(\d{4})_(\d\d)_(\d\d)\.txt")
_FILE = re.compile(r"([^/:]+\.(?:md|html|txt)):.*", re.DOTALL)


class _TurnRow(msgspec.Struct, frozen=True):
    turn: int
    timestamp: datetime
    user: str
    assistant: str
    research_document: str = ""


class _DayConversation(msgspec.Struct, frozen=True):
    date: str
    conversation: list[_TurnRow]


class _QuestionRow(msgspec.Struct, frozen=True):
    id: str
    question: str
    answer: str
    question_date: str
    question_type: str
    supporting_evidence: list[str]


class _RhelmPerson(NamedTuple):
    """The memories of one person, and what evidence can name."""

    memories: list[Memory]
    turns: dict[str, str]
    """`DATE:TURN` to its memory."""
    emails: dict[str, list[str]]
    """Date to the memories of the emails of that date."""
    attachments: dict[str, str]
    """File name to its memory."""
    days: dict[str, str]
    """Memory to its date."""


class Rhelm(TreeDataset):
    """Each person as a scenario."""

    info = DatasetInfo(
        name="rhelm",
        summary="10 persons, 629 days of conversation, emails and attachments, 1,305 questions",
        source="https://github.com/microsoft/RHELM",
        licence="MIT (repository), CC BY 4.0 (card of the dataset)",
        citation="arXiv:2605.31086 (commit ca896ec9)",
        files={
            _ARCHIVE: PinnedFile(f"https://codeload.github.com/microsoft/RHELM/tar.gz/{_COMMIT}")
        },
        granularities=("turn", "session"),
        cluster="person",
        known_defects=(
            "questions were kept because a baseline failed on them: hard by selection",
            "hallucination and misleading questions have evidence, and their right answer is a "
            "correction or a refusal: read them apart",
            "evidence that joins references, names a missing turn or file, or lies after the "
            "question's date; repaired or counted",
        ),
    )

    def __init__(
        self,
        data: Path,
        *,
        granularity: Literal["turn", "session"] = "turn",
        sources: Literal["conversations", "all"] = "conversations",
        dates: bool = False,
    ) -> None:
        self.sources = sources
        super().__init__(FileTree(data, _name_of))
        self.granularity = granularity
        self.dates = dates
        self._files: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        """Kind of file and person to the names of their files."""
        for name in self.used_files():
            if asked := _QUESTIONS.fullmatch(name):
                self._files["questions"][asked[1]].append(name)
            else:
                kind, person, _ = name.split("/")
                self._files[kind][person].append(name)
        if not self._files["questions"]:
            raise MissingData(
                f"{data} contains no QA_final/low_score_qa_PERSON_all_validated.jsonl: expected "
                "the data folder of RHELM or a tar archive of it"
            )
        self.expected_scenarios = len(self._files["questions"])
        self.original_ids: dict[tuple[str, str], str] = {}
        """(person, `DATE:TURN` or file name) to memory."""
        if sources == "conversations":
            self.tree_sha256 = _CONVERSATIONS_SHA256

    def used_files(self) -> list[str]:
        kinds = ("QA_final/", "conversations/")
        every = self.sources == "all"
        return [name for name in self.tree.places if every or name.startswith(kinds)]

    def read(self) -> Iterator[Scenario]:
        self.original_ids = {}
        if (found := len(self._files["questions"])) != PERSONS:
            self.findings.add("not all persons", f"{found} of {PERSONS}")
        for person in sorted(self._files["questions"]):
            yield self._scenario(person)

    def _scenario(self, name: str) -> Scenario:
        person = self._person(name)
        for label, memory in (*person.turns.items(), *person.attachments.items()):
            self.original_ids[name, label] = memory
        [file] = self._files["questions"][name]
        lines = self.tree.content(file).splitlines()
        rows = decode_lines(lines, msgspec.json.Decoder(_QuestionRow), self.tree.places[file])
        questions = tuple(self._question(name, row, person) for _, row in rows)
        self._counts["persons"] += 1
        self._counts["memories"] += len(person.memories)
        self._counts["questions"] += len(questions)
        return Scenario(name, tuple(person.memories), questions)

    def _person(self, name: str) -> _RhelmPerson:
        person = _RhelmPerson([], {}, defaultdict(list), {}, {})
        shared_at: dict[str, datetime] = {}
        for file in self._files["conversations"][name]:
            content = self.tree.decoded(file, _DayConversation)
            self._counts["sessions"] += 1
            self._counts["turns"] += len(content.conversation)
            for turn in content.conversation:
                if turn.research_document:
                    shared = turn.research_document.rpartition("/")[2]
                    shared_at.setdefault(shared, _utc(turn.timestamp))
            self._add_session(name, content, person)
        if self.sources == "all":
            self._add_emails(name, person)
            self._add_attachments(name, shared_at, person)
        person.memories.sort(key=lambda one: one.at or datetime.min.replace(tzinfo=UTC))
        return person

    def _add_session(self, name: str, content: _DayConversation, person: _RhelmPerson) -> None:
        session = f"{name}/{content.date}"
        head = f"[{content.date}]\n" if self.dates else ""
        texts = [f"user: {turn.user}\nassistant: {turn.assistant}" for turn in content.conversation]
        ids = [session] * len(texts)
        if self.granularity == "turn":
            ids = [f"{session}:{turn.turn:02}" for turn in content.conversation]
        for id, turn, text in zip(ids, content.conversation, texts, strict=True):
            person.turns[f"{content.date}:{turn.turn}"] = id
            person.days[id] = content.date
            if self.granularity == "turn":
                person.memories.append(Memory(id, head + text, _utc(turn.timestamp), session))
        if self.granularity == "session" and texts:
            begun = _utc(content.conversation[0].timestamp)
            person.memories.append(Memory(session, head + "\n".join(texts), begun, session))

    def _add_emails(self, name: str, person: _RhelmPerson) -> None:
        for number, file in enumerate(self._files["emails"][name]):
            parts = _EMAIL_FILE.fullmatch(file.rpartition("/")[2])
            if parts is None:
                raise DataError(f"{file}: its name has no date", file=self.tree.places[file])
            day = "-".join(parts.groups())
            id = f"{name}/e{number:03}"
            at = self._midnight(day, self.tree.places[file])
            person.memories.append(Memory(id, self._text(file), at, id))
            person.emails[day].append(id)
            person.days[id] = day
            self._counts["emails"] += 1

    def _add_attachments(
        self, name: str, shared_at: Mapping[str, datetime], person: _RhelmPerson
    ) -> None:
        for number, file in enumerate(self._files["attachments"][name]):
            label = file.rpartition("/")[2]
            id = f"{name}/f{number:03}"
            at = shared_at.get(label)
            if at is None:
                self.findings.add(
                    "attachment that no turn shares, without a date", f"{name} {label}"
                )
            person.memories.append(Memory(id, self._text(file), at, id))
            person.attachments[label] = id
            self._counts["attachments"] += 1

    def _midnight(self, day: str, place: Path) -> datetime:
        try:
            return datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
        except ValueError:
            raise DataError(f"cannot read the date {day!r}", file=place) from None

    def _text(self, file: str) -> str:
        try:
            return self.tree.content(file).decode()
        except UnicodeDecodeError as error:
            raise DataError(f"not UTF-8: {error.reason}", file=self.tree.places[file]) from None

    def _question(self, name: str, row: _QuestionRow, person: _RhelmPerson) -> Question:
        if row.question_type not in TYPES:
            problem = f"{row.id}: unknown question_type {row.question_type!r}"
            raise DataError(problem, file=self.path)
        self._counts[f"type {row.question_type}"] += 1
        id = f"{name}/{row.id}"
        return Question(
            id,
            row.question,
            self._midnight(row.question_date, self.path),
            reference=row.answer,
            category=row.question_type,
            evidence=self._evidence(id, row, person),
        )

    def _evidence(self, id: str, row: _QuestionRow, person: _RhelmPerson) -> tuple[str, ...]:
        """The memories that the evidence names; none if a part of it cannot be found."""
        entries = [one for entry in row.supporting_evidence for one in self._split(id, entry)]
        has_turns = any(_TURN.fullmatch(entry) for entry in entries)
        has_files = any(not _TURN.fullmatch(entry) for entry in entries)
        both = "turns and files" if has_turns else "files only"
        self._counts[f"evidence: {both if has_files else 'turns only'}"] += 1
        if has_files and self.sources == "conversations":
            self._counts["evidence in files, not measured"] += 1
            return ()
        found: dict[str, None] = {}
        whole = True
        for entry in entries:
            memories = self._named(id, entry, person)
            whole = whole and bool(memories)
            for memory in memories:
                found[memory] = None
                if person.days.get(memory, "") > row.question_date:
                    self.findings.add("evidence later than the question", f"{id} {entry}")
        if not whole:
            self._counts["evidence not complete, not measured"] += 1
            return ()
        return tuple(found)

    def _split(self, id: str, entry: str) -> list[str]:
        """The references of an entry; some entries join several with commas."""
        if joined := _TURNS_JOINED.fullmatch(entry):
            self.findings.add("joined evidence, split", f"{id} {entry!r}")
            numbers = [joined[2], *joined[3].strip(",").split(",")]
            return [f"{joined[1]}:{number}" for number in numbers]
        parts = entry.split(",")
        if len(parts) > 1 and all(_TURN.fullmatch(part) for part in parts):
            self.findings.add("joined evidence, split", f"{id} {entry!r}")
            return parts
        return [entry]

    def _named(self, id: str, entry: str, person: _RhelmPerson) -> list[str]:
        if turn := _TURN.fullmatch(entry):
            found = person.turns.get(f"{turn[1]}:{int(turn[2])}")
            if found is None:
                self.findings.add("dangling evidence: no such turn", f"{id} {entry}")
            return [found] if found else []
        if email := _EMAIL.fullmatch(entry):
            sent = person.emails.get(email[1], [])
            if len(sent) != 1:
                kind = "no email of its date" if not sent else "several emails of its date"
                self.findings.add(f"evidence with {kind}", f"{id} {entry}")
            return sent
        file = _FILE.fullmatch(entry)
        found = person.attachments.get(file[1]) if file else None
        if found is None:
            kind = "no such file" if file else "malformed"
            self.findings.add(f"dangling evidence: {kind}", f"{id} {entry}")
        return [found] if found else []


def _name_of(path: str) -> str | None:
    found = _PATH.fullmatch(path)
    return found[1] if found else None


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)
