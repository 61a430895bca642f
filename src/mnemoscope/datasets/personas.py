"""Personas: simulated histories in daily logs, with questions at checkpoints (Recall Bench).

Each persona is one scenario, from the simulator or from files in the same layout. Irregularities
are counted as findings. Nothing is repaired unless asked for, and then by a list (persona_repairs).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.datasets.base import DataFile, DatasetInfo, FileDataset
from mnemoscope.datasets.checkpoint_plan import (
    PlannedQuestion,
    evening,
    morning,
    parse_ranges,
    plan_checkpoints,
)
from mnemoscope.datasets.day_logs import Granularity, day_files, drift, pieces, read_day
from mnemoscope.datasets.labelled import note_empty_texts, present
from mnemoscope.datasets.persona_folder import (
    PERSONA_ANSWERS,
    PERSONA_BASELINES,
    LedgerLabels,
    PersonaFolder,
    QuestionEntry,
    answer_keys,
    data_files,
    find_personas,
    read_epoch,
    read_questions,
)
from mnemoscope.datasets.persona_repairs import (
    KINDS,
    REPAIRS_FILE,
    REPAIRS_SHA256,
    RepairedQuestions,
    repairs_for,
)
from mnemoscope.datasets.repair_check import WEEK, repair
from mnemoscope.types import (
    CATEGORIES,
    CORE_CATEGORIES,
    Expectation,
    Memory,
    Question,
    Scalar,
    Scenario,
)

DAY_NUMBERS = re.compile(r"\bdays?[ -]\d+(?: ?(?:-|–|to|through) ?\d+)?", re.IGNORECASE)
_DISCLOSURES: dict[str, Expectation] = {"refuse": "refuse", "partial": "partial"}


class Personas(FileDataset):
    """Every persona below `data` as a scenario with its checkpoints."""

    info = DatasetInfo(
        name="personas",
        summary="simulated histories in daily logs, with checkpoints",
        source="https://github.com/Stevenic/recall",
        how_to_get="mnemoscope personas simulate all --out lives",
        granularities=("day", "session", "section"),
        cluster="story arc of a persona, or week where a question has no arc",
        has_checkpoints=True,
        main_metric="composite",
        baselines=PERSONA_BASELINES,
        answers=msgspec.structs.replace(
            PERSONA_ANSWERS,
            otherwise="personas are scored by the rubric, and {judge} gives one number: use "
            "rubric,model=… or, for simulated histories, ledger",
            may_provide=("ledger",),
        ),
    )

    def __init__(
        self,
        data: Path,
        *,
        personas: str = "",
        arcs: str = "",
        ranges: str = "30d,90d,6mo,1y,full",
        sample: int = 0,
        cohort: int = 0,
        groups: bool = False,
        seed: int = 42,
        granularity: Granularity = "day",
        repairs: bool = False,
    ) -> None:
        super().__init__(data)
        if sample < 0:
            raise UsageError(f"sample={sample}: must be 0 (ask all again) or more")
        self.personas = personas
        self.arcs = arcs
        self.ranges = parse_ranges(ranges)
        self._ranges_option = ranges
        self.folders = find_personas(data, personas, arcs)
        for folder in self.folders:
            present(folder.questions, f"the questions of {folder.id}")
            day_files(folder.memories)
        if cohort < 0:
            raise UsageError(f"cohort={cohort}: must be 0 (none besides the sample) or more")
        self.sample = sample
        self.cohort = cohort
        self.groups = groups
        self.seed = seed
        self.granularity: Granularity = granularity
        self.repairs = repairs
        self._repairs = {one.id: repairs_for(one) for one in self.folders} if repairs else {}
        self.expected_scenarios = len(self.folders)
        self.original_ids: dict[tuple[str, str], str] = {}
        """(persona, file name of the log without .md) to memory, if a memory is a day."""

    @property
    def options(self) -> dict[str, Scalar]:
        options = {**super().options, "ranges": self._ranges_option}
        for later in ("repairs", "cohort"):  # runs of earlier versions have the same identity
            if not options[later]:
                del options[later]
        return options

    @property
    def has_ledger(self) -> bool:
        """Whether every persona has a ledger, so that no judge model is needed."""
        return all(folder.ledger.is_file() for folder in self.folders)

    def files(self) -> list[DataFile]:
        """The files of each persona; its daily logs share one hash."""
        found = data_files(self.folders)
        if self.repairs:
            found.append(DataFile(REPAIRS_FILE, sha256_file(REPAIRS_FILE), REPAIRS_SHA256))
        return found

    def read(self) -> Iterator[Scenario]:
        asked: dict[str, str] = {}
        for folder in self.folders:
            scenario = self._scenario(folder)
            for question in scenario.questions:
                first = asked.setdefault(question.id, folder.id)
                if first != folder.id:
                    raise DataError(
                        f"question id {question.id!r} is also used in {first}",
                        file=folder.questions,
                    )
            yield scenario

    def _scenario(self, folder: PersonaFolder) -> Scenario:
        epoch = read_epoch(folder)
        repaired = self._repaired(folder, read_questions(folder.questions), epoch)
        entries = repaired.entries
        memories = self._memories(folder, epoch, repaired.dates)
        days = [int(memory.metadata["day"]) for memory in memories]
        keys = answer_keys(folder, entries, epoch)
        there = set(days)
        questions = tuple(
            self._question(folder.id, entry, epoch, there, keys.get(entry.id), repaired)
            for entry in entries
        )
        self._find_oddities(folder, repaired)
        if folder.passed_over:
            self.findings.add(
                "persona with several arcs files, of which one with logs is used",
                f"{folder.id}: {folder.arcs.name}, not {', '.join(folder.passed_over)}; "
                "--arcs selects another",
            )
        checkpoints = plan_checkpoints(
            days,
            [
                PlannedQuestion(
                    entry.id, entry.category, entry.relevant_days, entry.irrelevant_after
                )
                for entry in entries
            ],
            self.ranges,
            sample=self.sample,
            cohort=self.cohort,
            seed=self.seed,
            groups=self.groups,
            epoch=epoch,
        )
        checkpoints = tuple(
            msgspec.structs.replace(one, now=_last_moment(epoch, one.ingested_days, repaired.dates))
            for one in checkpoints
        )
        scenario = Scenario(folder.id, memories, questions, checkpoints)
        note_empty_texts(scenario, self.findings)
        self._count(scenario, len(there))
        return scenario

    def _repaired(
        self, folder: PersonaFolder, entries: list[QuestionEntry], epoch: date
    ) -> RepairedQuestions:
        """The questions and dates after the repairs, each of which the logs must confirm."""
        if (listed := self._repairs.get(folder.id)) is None:
            return RepairedQuestions(entries, {}, {})
        repaired, _ = repair(listed, folder, entries, epoch)
        for one in listed.repairs:
            self.findings.add(f"repaired: {KINDS[one.kind]}", f"{one.id}: {one.reason}")
        return repaired

    def _memories(
        self, folder: PersonaFolder, epoch: date, dates: Mapping[int, date]
    ) -> tuple[Memory, ...]:
        memories: list[Memory] = []
        for day, path in day_files(folder.memories).items():
            text = read_day(path)
            name = day_name(folder.id, day)
            at = morning(dates[day], 1) if day in dates else morning(epoch, day)
            if (off := drift(text, at.date())) != 0:
                kind = f"date in the text is a day {'early' if off < 0 else 'late'}"
                self.findings.add(kind, f"{name}, which is {at:%Y-%m-%d}")
            if self.granularity == "day":
                self.original_ids[folder.id, path.stem] = name
            memories += (
                Memory(
                    name + piece.suffix,
                    piece.text,
                    at,
                    piece.session,
                    metadata={"day": day},
                    part_of=name if piece.suffix else "",
                )
                for piece in pieces(text, self.granularity)
            )
        return tuple(memories)

    def _question(
        self,
        persona: str,
        entry: QuestionEntry,
        epoch: date,
        there: set[int],
        labels: LedgerLabels | None,
        repaired: RepairedQuestions,
    ) -> Question:
        days = tuple(sorted(set(entry.relevant_days)))
        named = repaired.evidence.get(entry.id, days)
        evidence = [] if entry.no_evidence else [day for day in named if day in there]
        for day in set(days) - there:
            self.findings.add("relevant day without a log", f"{entry.id}: day {day}")
        week = f"week-{(days[0] - 1) // WEEK + 1}"
        expires = entry.irrelevant_after
        expects: Expectation = _DISCLOSURES.get(entry.expected_disclosure or "", "answer")
        if entry.category == "negative-recall":
            expects = "abstain"
        return Question(
            entry.id,
            entry.question,
            reference=str(entry.answer).lower()
            if isinstance(entry.answer, bool)
            else str(entry.answer),
            category=entry.category,
            evidence=tuple(day_name(persona, day) for day in evidence),
            expects=expects,
            session=entry.query_session or "",
            difficulty=entry.difficulty,
            expires_after=_last_moment(epoch, expires, repaired.dates) if expires else None,
            cluster=f"{persona}/{entry.arc or week}",
            relevant_days=days,
            forbidden=entry.forbidden_sessions,
            key=labels.key if labels else None,
            replaces=labels.replaces if labels else (),
        )

    def _find_oddities(self, folder: PersonaFolder, repaired: RepairedQuestions) -> None:
        sessions = {session.id for session in folder.sheet.sessions}
        for entry in repaired.entries:
            days = repaired.evidence.get(entry.id, entry.relevant_days)
            in_a_row = longest_row(days)
            if in_a_row >= WEEK and not entry.no_evidence:
                kind = "a whole week" if in_a_row == WEEK else "more than a week"
                first, last = min(days), max(days)
                self.findings.add(
                    f"evidence is {kind} of consecutive days", f"{entry.id}: {first}–{last}"
                )
            if named := DAY_NUMBERS.search(entry.question):
                self.findings.add("question names day numbers", f"{entry.id}: {named[0]}")
            expires = entry.irrelevant_after
            if expires is not None and expires < max(entry.relevant_days):
                self.findings.add("question expires before its last relevant day", entry.id)
            for session in {entry.query_session, *entry.forbidden_sessions} - {None} - sessions:
                self.findings.add("session not declared in persona.yaml", f"{entry.id}: {session}")
        there = {entry.category for entry in repaired.entries}
        expected = list(CORE_CATEGORIES)
        if any(session.kind == "group" for session in folder.sheet.sessions):
            expected.append("group-session-attribution")
        if any(session.isolated for session in folder.sheet.sessions):
            expected.append("information-boundary")
        for category in expected:
            if category not in there:
                self.findings.add("category without a question", f"{folder.id}: {category}")

    def _count(self, scenario: Scenario, days: int) -> None:
        categories = Counter(question.category for question in scenario.questions)
        difficulties = Counter(question.difficulty for question in scenario.questions)
        self._counts.update(
            {
                "personas": 1,
                "days": days,
                "memories": len(scenario.memories),
                "questions": len(scenario.questions),
                "evidence": sum(len(question.evidence) for question in scenario.questions),
                "questions that expire": sum(
                    question.expires_after is not None for question in scenario.questions
                ),
                "checkpoints": len(scenario.checkpoints),
                "asked at checkpoints": sum(map(len, (c.questions for c in scenario.checkpoints))),
            }
        )
        self._counts.update({name: categories[name] for name in CATEGORIES if categories[name]})
        self._counts.update({name: n for name, n in sorted(difficulties.items()) if name})


def _last_moment(epoch: date, day: int, dates: Mapping[int, date]) -> datetime:
    """The evening of a day, by the date of its log."""
    return evening(dates[day], 1) if day in dates else evening(epoch, day)


def day_name(persona: str, day: int) -> str:
    """The memory id of a day, as evidence names it."""
    return f"{persona}/day-{day:04}"


def longest_row(days: tuple[int, ...]) -> int:
    """The length of the longest run of consecutive days."""
    longest = row = 1
    for day, following in pairwise(sorted(set(days))):
        row = row + 1 if following == day + 1 else 1
        longest = max(longest, row)
    return longest
