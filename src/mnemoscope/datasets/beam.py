"""BEAM (2025): long chats of one user with an assistant, ten abilities, evidence by message.

Texts end in a marker of the generator (`->-> 1,3`), which is cut. Evidence names messages; for
three abilities in two halves, such as the old and the new fact. Pickle files beside the JSON files
are never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets._io.file_tree import FileTree
from mnemoscope.datasets._io.json_stream import converted
from mnemoscope.datasets.base import AnswerNeeds, DatasetInfo, PinnedFile
from mnemoscope.datasets.tree_dataset import TreeDataset
from mnemoscope.types import Memory, Question, Scenario

ABILITIES = (
    "abstention",
    "contradiction_resolution",
    "event_ordering",
    "information_extraction",
    "instruction_following",
    "knowledge_update",
    "multi_session_reasoning",
    "preference_following",
    "summarization",
    "temporal_reasoning",
)
ABSTENTION = "abstention"
CHATS = {"100K": 20, "500K": 35, "1M": 35, "10M": 10}
NEWEST = {"knowledge_update": "updated_info"}
"""Ability to the half of its evidence that states what is true now."""
TREE_SHA256 = {"100K": "0d6f01141234ec5a10c14bce6653299d422da5154a32dc775e24e3a21f1a158b"}
"""The hash of all chats and questions of a size, of those whose every file we have seen."""
_REPOSITORY = "https://github.com/mohammadtavakoli78/BEAM"
_RAW = (
    "https://raw.githubusercontent.com/mohammadtavakoli78/BEAM/"
    "b2a3ee8ba12d68f83143dda191097dc3e028ddd3/chats"
)
_CHAT, _TRUNCATED = "chat.json", "chat_trunecated.json"  # the publisher's spelling
_QUESTIONS = "probing_questions/probing_questions.json"
_ANSWER_FIELDS = (
    "answer",
    "ideal_answer",
    "ideal_response",
    "ideal_summary",
    "expected_compliance",
)
_MARKER = "->->"
_PATH = re.compile(
    r"(?:.*?/)??(?:(100K|500K|1M|10M)/)?(\d+)/"
    r"(chat\.json|chat_trunecated\.json|probing_questions/probing_questions\.json)"
)


class _BatchMessage(msgspec.Struct, frozen=True):
    role: str
    id: int
    content: str
    time_anchor: str | None = None


class _BatchRow(msgspec.Struct, frozen=True):
    turns: list[list[_BatchMessage]]


class _Probe(msgspec.Struct, frozen=True):
    question: str
    rubric: list[str]
    difficulty: str = ""
    source_chat_ids: list[Any] | dict[str, Any] | None = None
    answer: str | int | float | None = None
    ideal_answer: str | None = None
    ideal_response: str | None = None
    ideal_summary: str | None = None
    expected_compliance: str | None = None


class _BatchSession(NamedTuple):
    """A batch: one sitting of the user, with the date of its first message."""

    name: str
    anchor: str
    at: datetime | None
    turns: list[list[_BatchMessage]]


def _pinned_files() -> dict[str, PinnedFile]:
    """Every file that can be downloaded; those of 100K are the default of `fetch`."""
    lines = (files(__package__) / "beam_files.txt").read_text(encoding="utf-8").splitlines()
    known = {name: (sha256, int(size)) for sha256, size, name in map(str.split, lines)}
    found: dict[str, PinnedFile] = {}
    for size in ("100K", "500K", "1M"):
        for chat in range(1, CHATS[size] + 1):
            for file in (_CHAT, _QUESTIONS):
                name = f"{size}/{chat}/{file}"
                sha256, length = known.get(name, (None, None))
                found[name] = PinnedFile(f"{_RAW}/{name}", sha256, length, size != "100K")
    return found


class Beam(TreeDataset):
    """BEAM's chats of one size as scenarios."""

    info = DatasetInfo(
        name="beam",
        summary="long chats with an assistant, ten abilities, evidence by message",
        source=_REPOSITORY,
        licence="CC BY-SA 4.0 (card of the dataset; the repository has no licence file)",
        citation="Tavakoli et al., BEAM, 2025 (commit b2a3ee8b)",
        files=_pinned_files(),
        granularities=("message", "turn", "session"),
        cluster="chat",
        known_defects=(
            "markers of the generator at the end of texts; cut and counted",
            "questions without evidence besides abstention; asked, not measured",
            "three abilities (summarization, event ordering, instruction following) are not "
            "lookups: read the figures by ability",
        ),
        answers=AnswerNeeds(model_judge="nuggets", provides=("rubric items",)),
    )

    def __init__(
        self,
        data: Path,
        *,
        size: Literal["100K", "500K", "1M", "10M"] = "100K",
        granularity: Literal["message", "turn", "session"] = "message",
        dates: bool = False,
        chat: Literal["whole", "truncated"] = "whole",
        evidence: Literal["all", "newest"] = "all",
    ) -> None:
        super().__init__(FileTree(data, lambda path: _name_of(path, data, size)))
        self._chats = sorted({int(name.split("/")[1]) for name in self.tree.places})
        if not self._chats:
            raise MissingData(
                f"{data} contains no chat of the size {size}: expected {size}/1/{_CHAT} and "
                f"{size}/1/{_QUESTIONS} in it, or a tar archive of such files"
            )
        self.size = size
        self.granularity = granularity
        self.dates = dates
        self.chat = chat
        self.tree_sha256 = TREE_SHA256.get(size) if chat == "whole" else None
        self.evidence = evidence
        self.expected_scenarios = len(self._chats)
        self.halves: dict[str, dict[str, tuple[str, ...]]] = {}
        """Question to the halves of its evidence by name, where the labels have them."""

    def used_files(self) -> list[str]:
        every = self.chat == "truncated"
        return [name for name in self.tree.places if every or not name.endswith(_TRUNCATED)]

    def read(self) -> Iterator[Scenario]:
        self.halves = {}
        whole = CHATS[self.size]
        for number in sorted({*range(1, whole + 1)} - {*self._chats}):
            kind = f"chat missing: {len(self._chats)} of {whole} found"
            self.findings.add(kind, f"{self.size}/{number}")
        for number in self._chats:
            yield self._scenario(f"{self.size}/{number}")

    def _scenario(self, name: str) -> Scenario:
        sessions = self._sessions(name)
        memories: list[Memory] = []
        of_message: dict[int, list[str]] = {}
        for session in sessions:
            for memory, ids in self._memories(session):
                memories.append(memory)
                for id in ids:
                    of_message.setdefault(id, []).append(memory.id)
        now = max((session.at for session in sessions if session.at), default=None)
        questions = tuple(self._questions(name, of_message, now))
        self._counts["chats"] += 1
        self._counts["sessions"] += len(sessions)
        self._counts["messages"] += sum(len(turn) for one in sessions for turn in one.turns)
        self._counts["memories"] += len(memories)
        self._counts["questions"] += len(questions)
        return Scenario(name, tuple(memories), questions)

    def _sessions(self, name: str) -> list[_BatchSession]:
        file = f"{name}/{_CHAT}"
        if self.chat == "truncated" and f"{name}/{_TRUNCATED}" in self.tree.places:
            file = f"{name}/{_TRUNCATED}"
            self._counts["truncated chats"] += 1
        if file not in self.tree.places:
            raise DataError(f"{file} is missing", file=self.path)
        found: list[_BatchSession] = []
        for batch in self._batches(file):
            session = f"{name}/s{len(found) + 1:02}"
            anchors = [m.time_anchor for turn in batch.turns for m in turn if m.time_anchor]
            if not anchors:
                self.findings.add("session without a date", session)
            elif len(anchors) > 1:
                self.findings.add("session with several dates, the first is used", session)
            anchor = anchors[0] if anchors else ""
            at = self._date(anchor, file) if anchor else None
            if at and found and found[-1].at and at < found[-1].at:
                self.findings.add("unsorted dates", session)
            found.append(_BatchSession(session, anchor, at, batch.turns))
        return found

    def _batches(self, file: str) -> Iterator[_BatchRow]:
        """The batches of a chat; in 10M, those of each of its plans, one after the other."""
        place = self.tree.places[file]
        for position, row in enumerate(self.tree.decoded(file, list[dict[str, Any]]), 1):
            about = f"in element {position} of the chat: "
            plans = [[row]] if "turns" in row else list(row.values())
            for batches in plans:
                yield from converted(batches, list[_BatchRow], place, 1, about)

    def _date(self, anchor: str, file: str) -> datetime:
        try:
            return datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
        except ValueError:
            problem = f"cannot read the date {anchor!r}; expected one such as 'March-15-2024'"
            raise DataError(problem, file=self.tree.places[file]) from None

    def _memories(self, session: _BatchSession) -> Iterator[tuple[Memory, list[int]]]:
        """The memories of a session, each with the ids of its messages."""
        head = f"[{session.anchor}]\n" if self.dates and session.anchor else ""
        whole = [message for turn in session.turns for message in turn]
        texts = {message.id: self._text(session, message) for message in whole}
        if len(texts) < len(whole):
            raise DataError(f"{session.name}: a message id occurs twice", file=self.path)
        if self.granularity == "message":
            for message in whole:
                id = f"{session.name}:{message.id:05}"
                text = head + texts[message.id]
                memory = Memory(id, text, session.at, session.name, message.role)
                yield memory, [message.id]
            return
        groups = session.turns if self.granularity == "turn" else [whole]
        for number, group in enumerate(groups, 1):
            id = f"{session.name}:{number:03}" if self.granularity == "turn" else session.name
            lines = "\n".join(f"{message.role}: {texts[message.id]}" for message in group)
            yield Memory(id, head + lines, session.at, session.name), [one.id for one in group]

    def _text(self, session: _BatchSession, message: _BatchMessage) -> str:
        text, marker, _ = message.content.partition(_MARKER)
        place = f"{session.name}:{message.id:05}"
        if marker:
            self.findings.add("marker of the generator, cut", place)
            text = text.rstrip()
        if not text.strip():
            self.findings.add("empty message", place)
        return text

    def _questions(
        self, chat: str, of_message: Mapping[int, Sequence[str]], now: datetime | None
    ) -> Iterator[Question]:
        file = f"{chat}/{_QUESTIONS}"
        if file not in self.tree.places:
            raise DataError(f"{file} is missing", file=self.path)
        probes = self.tree.decoded(file, dict[str, list[_Probe]])
        if unknown := sorted(set(probes) - set(ABILITIES)):
            problem = f"unknown ability {unknown[0]!r}; BEAM has {', '.join(ABILITIES)}"
            raise DataError(problem, file=self.tree.places[file])
        for ability in sorted(probes):
            for number, probe in enumerate(probes[ability], 1):
                id = f"{chat}/{ability}-{number}"
                self._counts[ability] += 1
                self._counts["rubric items"] += len(probe.rubric)
                yield Question(
                    id,
                    probe.question,
                    now,
                    reference=next(
                        (str(x) for f in _ANSWER_FIELDS if (x := getattr(probe, f)) is not None), ""
                    ),
                    category=ability,
                    evidence=self._evidence(id, ability, probe, of_message),
                    expects="abstain" if ability == ABSTENTION else "answer",
                    difficulty=probe.difficulty,
                    rubric=tuple(probe.rubric),
                )

    def _evidence(
        self, id: str, ability: str, probe: _Probe, of_message: Mapping[int, Sequence[str]]
    ) -> tuple[str, ...]:
        cited = probe.source_chat_ids
        if ability == ABSTENTION:
            self._counts["abstention, not measured"] += 1
            return ()
        if not cited:
            kind = "empty evidence" if cited is not None else "evidence missing"
            self.findings.add(f"{kind}, not measured", id)
            return ()
        named = cited if isinstance(cited, dict) else {"": cited}
        listed = {half: list(self._message_ids(id, one)) for half, one in named.items()}
        every = [one for ids in listed.values() for one in ids]
        if len(set(every)) < len(every):
            self.findings.add("evidence cited twice", id)
        found = {half: self._resolved(id, ids, of_message) for half, ids in listed.items()}
        if isinstance(cited, dict):
            self.halves[id] = found
            self._counts["questions with halves of evidence"] += 1
        newest = found.get(NEWEST.get(ability, "no half"))
        if self.evidence == "newest" and newest:
            return newest
        return tuple(dict.fromkeys(one for ids in found.values() for one in ids))

    def _message_ids(self, id: str, cited: Any) -> Iterator[int]:
        """The message ids in a list, also in lists within it."""
        for one in cited if isinstance(cited, list) else [cited]:
            if isinstance(one, list):
                self.findings.add("nested list of evidence, flattened", id)
                yield from self._message_ids(id, one)
            elif isinstance(one, int):
                yield one
            else:
                self.findings.add("malformed evidence, dropped", f"{id} {one!r}")

    def _resolved(
        self, id: str, cited: Sequence[int], of_message: Mapping[int, Sequence[str]]
    ) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for one in cited:
            memories = of_message.get(one, ())
            if not memories:
                self.findings.add("dangling evidence: no such message", f"{id} {one}")
            elif len(memories) > 1:
                self.findings.add("evidence that several messages match, dropped", f"{id} {one}")
            else:
                found[memories[0]] = None
        return tuple(found)


def _name_of(path: str, data: Path, size: str) -> str | None:
    """The file's name in the dataset, SIZE/CHAT/FILE, if it belongs to the size."""
    parts = _PATH.fullmatch(path)
    if parts is None:
        return None
    found = parts[1] or (data.name if data.is_dir() else "")
    return f"{size}/{parts[2]}/{parts[3]}" if found == size else None
