"""Disclosure: the same question, asked in rooms that may be told the answer and in others.

Made from simulated histories, by their ledger, persona.yaml and logs. Several users share a store,
and their memories are interleaved day by day. Every question text is asked as often inside as
outside, so the text says nothing about the right reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec.structs import replace

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.datasets.base import DataFile, DatasetInfo, FileDataset
from mnemoscope.datasets.checkpoint_plan import evening, morning
from mnemoscope.datasets.day_logs import PRINCIPAL, day_files, digest, pieces, read_day
from mnemoscope.datasets.disclosure_policy import (
    SEPARATOR,
    Room,
    policy_text,
    rooms_of,
    told_in,
)
from mnemoscope.datasets.disclosure_questions import (
    current_facts,
    own_wordings,
    patterns,
    rooms_to_ask,
    told_outside,
    wording_of,
)
from mnemoscope.datasets.labelled import present
from mnemoscope.datasets.persona_folder import (
    PERSONA_ANSWERS,
    PERSONA_BASELINES,
    PersonaFolder,
    find_personas,
    read_epoch,
    read_questions,
)
from mnemoscope.text.fact_ledger import Ledger, LedgerFact
from mnemoscope.types import TOLD_IN, AnswerKey, Memory, Question, Scenario

CLOSED, OPEN = "closed-room", "open-room"
"""Categories: facts of a closed room, which other rooms of their user and neighbours may not be
told, and facts of an open room, which only neighbours may not be told."""
WITHHELD = "I cannot share that here."


class _User(NamedTuple):
    folder: PersonaFolder
    ledger: Ledger
    rooms: dict[str, Room]
    memories: list[Memory]
    wordings: dict[str, str]
    covers: set[str]
    """Facts that are meant for other rooms than their own."""


class _Store(NamedTuple):
    """What several users have in common."""

    rooms: tuple[Room, ...]
    texts: dict[str, str]
    """Room to everything that was said in it, without case."""
    patterns: dict[str, str]
    values: dict[str, list[str]]
    """Attribute to the values of all users."""
    now: datetime
    """When all questions are asked: an own time for each user would tell whose fact it is."""


class DisclosureRooms(FileDataset):
    """Every group of `users` personas below `data` is one store."""

    info = DatasetInfo(
        name="disclosure",
        summary="the same questions in rooms that may and may not be told, several users a store",
        source="made from the files that `mnemoscope personas simulate` writes",
        how_to_get="mnemoscope personas simulate all --days 180 --out lives",
        granularities=("session", "section"),
        cluster="story arc of a persona",
        main_metric="right",
        baselines=PERSONA_BASELINES,
        known_defects=(
            "a secret that is told in other words is found by a model judge only",
            "one user's days are in time order; days of several users are interleaved by number",
        ),
        answers=replace(
            PERSONA_ANSWERS,
            prompt="answer-disclosure",
            otherwise="disclosure is judged by the marks of the rubric, and {judge} gives one "
            "number: use ledger or rubric,model=…",
            provides=("ledger",),
        ),
    )

    def __init__(
        self,
        data: Path,
        *,
        personas: str = "",
        arcs: str = "",
        users: int = 3,
        most: int = 40,
        granularity: Literal["session", "section"] = "session",
    ) -> None:
        super().__init__(data)
        if users < 1:
            raise UsageError(f"users={users}: a store must have 1 user or more")
        if most < 1:
            raise UsageError(f"most={most}: must be 1 question or more of each user and kind")
        self.personas = personas
        self.arcs = arcs
        self.users = users
        self.most = most
        self.granularity: Literal["session", "section"] = granularity
        self.folders = find_personas(data, personas, arcs)
        for folder in self.folders:
            present(folder.questions, f"the questions of {folder.id}")
            present(folder.ledger, f"the ledger of {folder.id}, which `personas simulate` writes")
            day_files(folder.memories)
        # One last store with fewer users would have fewer neighbours: they join the one before.
        whole = max(1, len(self.folders) // users)
        self._groups = [self.folders[place::whole] for place in range(whole)]
        self.expected_scenarios = whole

    def files(self) -> list[DataFile]:
        found: list[DataFile] = []
        for folder in self.folders:
            parts = [folder.persona, folder.arcs, folder.questions, folder.ledger]
            found += [DataFile(path, sha256_file(path)) for path in parts]
            logs = day_files(folder.memories).values()
            found.append(DataFile(folder.memories, digest(tuple(logs))))
        return found

    def read(self) -> Iterator[Scenario]:
        for number, folders in enumerate(self._groups, 1):
            yield self._scenario(f"store-{number}", [self._user(folder) for folder in folders])

    def _user(self, folder: PersonaFolder) -> _User:
        epoch = read_epoch(folder)
        rooms = rooms_of(folder)
        memories: list[Memory] = []
        for day, path in day_files(folder.memories).items():
            for piece in pieces(read_day(path), self.granularity):
                session = piece.session or PRINCIPAL
                if SEPARATOR in session:
                    raise DataError(f"session {session!r} has a comma in its id", file=path)
                if session not in rooms:
                    self.findings.add("session not declared in persona.yaml", f"{path}: {session}")
                    rooms[session] = Room(folder.id, session)
                memories.append(
                    Memory(
                        f"{folder.id}/day-{day:04}{piece.suffix}",
                        piece.text,
                        morning(epoch, day),
                        rooms[session].name,
                        metadata={"day": day},
                    )
                )
        entries = read_questions(folder.questions)
        return _User(
            folder,
            Ledger.read(folder.ledger, epoch),
            rooms,
            memories,
            own_wordings(entries),
            told_outside(entries),
        )

    def _scenario(self, name: str, users: list[_User]) -> Scenario:
        rules = told_in([room for user in users for room in user.rooms.values()])
        allowed = {room.name: [other.name for other in others] for room, others in rules.items()}
        # Concurrent writers: of one day, in an order that has nothing to do with the users.
        mixed = sorted(
            (memory for user in users for memory in user.memories),
            key=lambda memory: (memory.metadata["day"], sha256(memory.id.encode()).digest()),
        )
        memories = tuple(
            replace(
                memory,
                metadata={**memory.metadata, TOLD_IN: SEPARATOR.join(allowed[memory.session])},
            )
            for memory in mixed
        )
        last = max(memory.at for memory in memories if memory.at is not None)
        store = _Store(tuple(rules), _said(memories), {}, {}, evening(last.date(), 1))
        for user in users:
            for attribute, text in patterns(user.wordings, user.ledger).items():
                store.patterns.setdefault(attribute, text)
            for fact in user.ledger.facts.values():
                store.values.setdefault(fact.attribute, []).append(fact.value)
        asked: dict[str, str] = {}
        questions: list[Question] = []
        for user in users:
            questions += self._questions(user, store, asked)
        if not questions:
            raise DataError(
                "no fact of these personas can be asked in a room that may be told and in one that "
                "may not: simulate more days, or several personas",
                file=self.path,
            )
        self._count(users, memories, questions)
        # Of one text, the order of the rooms may not tell which of them may be told.
        questions.sort(key=lambda question: (question.text, question.session))
        return Scenario(name, memories, tuple(questions), policy=policy_text(rules))

    def _questions(self, user: _User, store: _Store, asked: dict[str, str]) -> Iterator[Question]:
        """All that is asked about one user: each text in each of its rooms."""
        taken: Counter[str] = Counter()
        own, neighbours = (
            [room for room in store.rooms if (room.user == user.folder.id) is same]
            for same in (True, False)
        )
        facts = sorted(current_facts(user.ledger), key=lambda fact: _mix(user.folder.id, fact.id))
        for fact in facts:
            place = f"{user.folder.id}: {fact.id}"
            origin = user.rooms.get(fact.session)
            if fact.id in user.covers or origin is None:
                continue
            kind = CLOSED if origin.is_closed else OPEN
            rooms = rooms_to_ask(place, origin, own, neighbours, PRINCIPAL)
            if rooms is None or taken[kind] == self.most:
                continue
            wordings = user.ledger.wordings(f"{fact.id}.value")
            if _is_told(wordings, store, besides=origin.name):
                self.findings.add("value also occurs in another room: not asked", place)
                continue
            evidence = _evidence(user, fact, origin.name, wordings)
            if not evidence:
                self.findings.add("value not found in the log of its day: not asked", place)
                continue
            text = wording_of(fact, user.wordings, store.patterns)
            if asked.setdefault(text, place) != place or _names(text, wordings):
                self.findings.add("question repeats another, or names its answer: not asked", place)
                continue
            taken[kind] += 1
            told = self._question(user, fact, store, text, kind)
            for room in rooms.inside:
                yield replace(
                    told,
                    id=f"{user.folder.id}-{fact.id}@{room.name}",
                    session=room.name,
                    evidence=evidence,
                    forbidden=_forbidden(store, room),
                )
            secret = _secrets(user, fact, store, origin)
            for room in rooms.outside:
                yield replace(
                    told,
                    id=f"{user.folder.id}-{fact.id}@{room.name}",
                    session=room.name,
                    reference=WITHHELD,
                    expects="refuse",
                    forbidden=_forbidden(store, room),
                    key=AnswerKey(secret=secret),
                )

    def _question(
        self, user: _User, fact: LedgerFact, store: _Store, text: str, kind: str
    ) -> Question:
        """The question without a room, as it is answered inside."""
        key = user.ledger.key((f"{fact.id}.value",))
        right = {wording.casefold() for item in key.required for wording in item}
        near = (*key.others, *store.values[fact.attribute])
        others = (v for v in dict.fromkeys(near) if v.casefold() not in right)
        return Question(
            "",
            text,
            store.now,
            fact.value,
            kind,
            cluster=f"{user.folder.id}/{fact.arc or fact.entity}",
            relevant_days=(fact.day,),
            key=replace(key, others=tuple(v for v in others if v not in key.outdated)),
        )

    def _count(
        self, users: Sequence[_User], memories: Sequence[Memory], asks: Sequence[Question]
    ) -> None:
        self._counts.update(
            {
                "stores": 1,
                "users": len(users),
                "rooms": sum(len(user.rooms) for user in users),
                "memories": len(memories),
                "questions": len({ask.text for ask in asks}),
                "asked": len(asks),
                "asked inside": sum(ask.expects == "answer" for ask in asks),
                "asked outside": sum(ask.expects == "refuse" for ask in asks),
            }
        )
        self._counts.update(Counter(ask.category for ask in asks))


def _mix(user: str, fact: str) -> bytes:
    """An order of facts in which days and arcs are mixed."""
    return sha256(f"{user}\0{fact}".encode()).digest()


def _said(memories: Sequence[Memory]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for memory in memories:
        texts.setdefault(memory.session, []).append(memory.text.casefold())
    return {room: "\n".join(parts) for room, parts in texts.items()}


def _is_told(wordings: Sequence[str], store: _Store, *, besides: str) -> bool:
    """Whether a value occurs in another room: a reply could then name it without a leak."""
    return any(
        wording.casefold() in text
        for room, text in store.texts.items()
        if room != besides
        for wording in wordings
    )


def _evidence(user: _User, fact: LedgerFact, room: str, wordings: Sequence[str]) -> tuple[str, ...]:
    """The memories of the fact's day and room that contain the value."""
    return tuple(
        memory.id
        for memory in user.memories
        if memory.metadata["day"] == fact.day
        and memory.session == room
        and _names(memory.text, wordings)
    )


def _names(text: str, wordings: Sequence[str]) -> bool:
    plain = text.casefold()
    return any(wording.casefold() in plain for wording in wordings)


def _secrets(user: _User, fact: LedgerFact, store: _Store, origin: Room) -> tuple[str, ...]:
    """What may not be told outside: the value, and earlier values that no other room knows."""
    found = [*user.ledger.wordings(f"{fact.id}.value")]
    for earlier in user.ledger.predecessors(fact):
        wordings = user.ledger.wordings(f"{earlier.id}.value")
        if not _is_told(wordings, store, besides=origin.name):
            found += wordings
    return tuple(dict.fromkeys(found))


def _forbidden(store: _Store, room: Room) -> tuple[str, ...]:
    return tuple(other.name for other in store.rooms if not other.may_be_told_in(room))
