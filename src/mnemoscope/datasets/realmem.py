"""RealMem (2026): ten persons with long projects, whose queries need sessions from before.

A query is asked before its own session is stored, so each session with queries becomes a scenario
whose memories are the sessions before it. Names of sessions tell fillers from projects, and only
projects are evidence: memories get neutral ids. What the file extracted from sessions, and what it
gave the assistant, are labels and are never ingested.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets._io.file_tree import FileTree
from mnemoscope.datasets.base import DatasetInfo, PinnedFile
from mnemoscope.datasets.tree_dataset import TreeDataset
from mnemoscope.types import Memory, Question, Scenario

_SUFFIX = "_dialogues_256k.json"
_RAW = "https://raw.githubusercontent.com/AvatarMemory/RealMemBench/main/dataset"
_PINS = {
    "Adeleke_Okonjo": ("9dc2a8bf2777c182108b3859be6987b4203b65bd6df5cbb6e1a02e4e9f871fdb", 2461825),
    "Ethan_Hunt": ("67bd20d962cd0b01c1531cc82a73a0b1a1e58ef17db6e2f743fc9b35273734ac", 3595699),
    "Kenta_Tanaka": ("b8fe2e606db96dbce1ffa0ab7c21b23ce83d4b5d472d80cd4bd23cd8a259d397", 1966517),
    "Kim_Ji_young": ("e3e286120bc5e42d3dbe513d720f969ecebf3518fbe1a4782595e927474356a9", 2467110),
    "Liam_O_Connor": ("2427ab7d7012b28c0da9b2a70b1763cb60630f5198cf6eeed1ee68d0271c551c", 2157949),
    "Lin_Wanyu": ("a7a751066c48e829b3012a94f2b365febd0e6fb6db454a6d5f4ec01f9c55008a", 2498500),
    "Oliver_Smith": ("25a829eb690d7f81bd47141a0cd7c174e1aa98d899111d8b04e9115f0b92e1f3", 2769234),
    "Pak_Budi": ("d35e08ac141e83780b8b7bc3611feef042dbd082d0986812da1d885d028b638a", 2064025),
    "Sarah_Miller": ("2e84cfb4e29bfceebfb4eed09b84e7a2a7cae8a908d8584830e4c94a29819a6d", 2830748),
    "Sophie_Dubois": ("75f71e5ec0d14606debaea409075a6e631faf6a57d74ce7ec49f17476ef44e26", 2978252),
}
"""Person to the sha256 and the size of their file."""
_FILLER = "Enhanced:"
_DAY = len("2025-12-15")
"""The weekday follows the date."""


class _SaidTurn(msgspec.Struct, frozen=True):
    speaker: str
    content: str
    is_query: bool = False
    query_id: str | int | None = None
    category_name: str = ""
    memory_session_uuids: list[str] | None = None


class _SessionRow(msgspec.Struct, frozen=True):
    session_identifier: str
    session_uuid: str
    current_time: str
    dialogue_turns: list[_SaidTurn]


class _Dialogues(msgspec.Struct, frozen=True):
    dialogues: list[_SessionRow]


class _Dated(NamedTuple):
    row: _SessionRow
    at: datetime


class RealMem(TreeDataset):
    """Each session with queries as a scenario of the sessions before it."""

    info = DatasetInfo(
        name="realmem",
        summary="10 persons, 2,055 sessions, 1,415 queries that need earlier sessions",
        source="https://github.com/AvatarMemory/RealMemBench",
        licence="Apache-2.0",
        citation="arXiv:2601.06966 (commit 67afd089)",
        files={
            f"{person}{_SUFFIX}": PinnedFile(f"{_RAW}/{person}{_SUFFIX}", sha256, size)
            for person, (sha256, size) in _PINS.items()
        },
        granularities=("session", "turn"),
        cluster="person",
        known_defects=(
            "session names that tell fillers, which are never evidence; replaced by neutral ids",
            "evidence is what the generator gave the assistant, not a checked need",
            "sessions of three persons are not in the order of their dates",
        ),
    )

    def __init__(
        self,
        data: Path,
        *,
        granularity: Literal["session", "turn"] = "session",
        order: Literal["file", "date"] = "file",
        dates: bool = False,
    ) -> None:
        super().__init__(FileTree(data, _name_of))
        if not self.tree.places:
            raise MissingData(f"{data} contains no PERSON{_SUFFIX}")
        self.granularity = granularity
        self.order = order
        self.dates = dates
        lines = sorted(f"{pin}  {person}{_SUFFIX}\n" for person, (pin, _) in _PINS.items())
        self.tree_sha256 = hashlib.sha256("".join(lines).encode()).hexdigest()

    def read(self) -> Iterator[Scenario]:
        if (found := len(self.tree.places)) != len(_PINS):
            self.findings.add("not all persons", f"{found} of {len(_PINS)}")
        for file in self.tree.places:
            yield from self._person(file)

    def _person(self, file: str) -> Iterator[Scenario]:
        person = file.removesuffix(_SUFFIX)
        sessions = [
            _Dated(row, self._date(row, file))
            for row in self.tree.decoded(file, _Dialogues).dialogues
        ]
        places: dict[str, int] = {}
        for place, session in enumerate(sessions):
            if session.row.session_uuid in places:
                problem = f"duplicate session_uuid {session.row.session_uuid!r}"
                raise DataError(problem, file=self.tree.places[file])
            places[session.row.session_uuid] = place
            if place and session.at < sessions[place - 1].at:
                self.findings.add(f"unsorted dates, in {self.order} order", f"{person} {place}")
            self._counts["sessions"] += 1
            self._counts["fillers"] += session.row.session_identifier.startswith(_FILLER)
            self._counts["turns"] += len(session.row.dialogue_turns)
        self._counts["persons"] += 1
        if self.order == "date":
            sessions.sort(key=lambda session: session.at)
            places = {session.row.session_uuid: n for n, session in enumerate(sessions)}
        for place, session in enumerate(sessions):
            name = f"{person}-{place:03}"
            questions = tuple(self._questions(name, session, place, places))
            if not questions:
                continue
            memories = tuple(
                memory
                for number, earlier in enumerate(sessions[:place])
                for memory in self._memories(f"{name}/s{number:03}", earlier)
            )
            self._counts["scenarios"] += 1
            self._counts["memories"] += len(memories)
            self._counts["questions"] += len(questions)
            yield Scenario(name, memories, questions)

    def _date(self, row: _SessionRow, file: str) -> datetime:
        try:
            return datetime.fromisoformat(row.current_time[:_DAY]).replace(tzinfo=UTC)
        except ValueError:
            problem = f"{row.session_identifier}: cannot read the date {row.current_time!r}"
            raise DataError(problem, file=self.tree.places[file]) from None

    def _memories(self, id: str, session: _Dated) -> Iterator[Memory]:
        head = f"[{session.row.current_time}]\n" if self.dates else ""
        lines = [f"{turn.speaker}: {turn.content}" for turn in session.row.dialogue_turns]
        if self.granularity == "session":
            yield Memory(id, head + "\n".join(lines), session.at, id)
            return
        for number, (turn, line) in enumerate(zip(session.row.dialogue_turns, lines, strict=True)):
            part = f"{id}:{number:02}"
            yield Memory(part, head + line, session.at, id, turn.speaker, part_of=id)

    def _questions(
        self, name: str, session: _Dated, place: int, places: dict[str, int]
    ) -> Iterator[Question]:
        turns = session.row.dialogue_turns
        for number, turn in enumerate(turns):
            id = f"{name}/q{number:02}"
            if not turn.content.strip():
                self.findings.add("empty turn", id)
            reply = turns[number + 1] if number + 1 < len(turns) else None
            used = reply.memory_session_uuids if reply else None
            if turn.speaker == "User" and used and not turn.is_query:
                self.findings.add("turn with evidence that is no query, not asked", id)
            if not turn.is_query:
                continue
            if reply is None or turn.speaker != "User" or reply.speaker == "User":
                self.findings.add("query without a reply, not asked", id)
                continue
            self._counts[f"category {turn.category_name}"] += 1
            yield Question(
                id,
                turn.content,
                session.at,
                reference=reply.content,
                category=turn.category_name,
                evidence=self._evidence(id, used or (), place, places),
                cluster=name.rpartition("-")[0],
            )

    def _evidence(
        self, id: str, used: Sequence[str], place: int, places: dict[str, int]
    ) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for uuid in used:
            there = places.get(uuid)
            if there is None:
                self.findings.add("dangling evidence: no such session", f"{id} {uuid}")
            elif there == place:
                self.findings.add("evidence in the session of the query, dropped", id)
            elif there > place:
                self.findings.add("evidence after the query, dropped", id)
            else:
                found[f"{id.rpartition('/')[0]}/s{there:03}"] = None
        if not found:
            self.findings.add("no evidence before the query, not measured", id)
        self._counts[f"evidence: {'one session' if len(found) == 1 else 'several sessions'}"] += 1
        return tuple(found)


def _name_of(path: str) -> str | None:
    name = path.rpartition("/")[2]
    return name if name.endswith(_SUFFIX) and len(name) > len(_SUFFIX) else None
