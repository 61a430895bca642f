"""Change: what a system tells after facts changed, expired, came back, or were to be forgotten.

The benchmark is made from the files of simulated histories, by program, with the ledger as the
source of every right answer. Each persona is one scenario.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets.base import DataFile, DatasetInfo, FileDataset
from mnemoscope.datasets.change_plan import (
    History,
    PlantedNote,
    planned_meetings,
    roles_of,
    written_date,
)
from mnemoscope.datasets.change_questions import CHANGE_CATEGORIES, KEPT, KNOWN, QuestionWriter
from mnemoscope.datasets.checkpoint_plan import evening, morning
from mnemoscope.datasets.day_logs import (
    PRINCIPAL,
    Granularity,
    day_files,
    pieces,
    read_day,
)
from mnemoscope.datasets.fact_chains import fact_chains
from mnemoscope.datasets.persona_folder import (
    PERSONA_ANSWERS,
    PERSONA_BASELINES,
    PersonaFolder,
    data_files,
    find_personas,
    read_epoch,
    read_paper,
    read_questions,
)
from mnemoscope.text.fact_ledger import Ledger
from mnemoscope.types import Checkpoint, Memory, Question, Scenario

BEFORE, AFTER = "before", "after"
_SESSION = re.compile(r"^#[ \t]+session:", re.MULTILINE)


class _Person(Struct, frozen=True):
    name: str


class _Cast(Struct, frozen=True):
    cast: list[_Person] = []


class ChangeBenchmark(FileDataset):
    """Every persona below `data` with questions about what changed."""

    info = DatasetInfo(
        name="change",
        summary="updates, as-of questions, expired plans, requests to forget, from histories",
        source="simulated histories, or others with a ledger of facts",
        how_to_get="mnemoscope personas simulate all --out histories",
        granularities=("section", "day", "session"),
        cluster="story arc of a persona",
        has_checkpoints=True,
        main_metric="composite",
        baselines=PERSONA_BASELINES,
        answers=replace(
            PERSONA_ANSWERS,
            otherwise="change is scored by the rubric, and {judge} gives one number: use ledger or "
            "rubric,model=…",
            provides=("ledger",),
        ),
    )

    def __init__(
        self,
        data: Path,
        *,
        personas: str = "",
        arcs: str = "",
        forgetting: Literal["call", "told"] = "call",
        seed: int = 42,
        granularity: Granularity = "section",
    ) -> None:
        super().__init__(data)
        self.personas = personas
        self.arcs = arcs
        self.forgetting = forgetting
        self.seed = seed
        self.granularity: Granularity = granularity
        self.folders = find_personas(data, personas, arcs)
        for folder in self.folders:
            if not folder.ledger.is_file():
                raise MissingData(
                    f"{folder.ledger} is missing: `change` needs histories with a ledger, as "
                    "`mnemoscope personas simulate` writes them"
                )
        self.expected_scenarios = len(self.folders)

    def files(self) -> list[DataFile]:
        """The files of each persona; its daily logs share one hash."""
        return data_files(self.folders)

    def read(self) -> Iterator[Scenario]:
        for folder in self.folders:
            yield self._scenario(folder)

    def _scenario(self, folder: PersonaFolder) -> Scenario:
        epoch = read_epoch(folder)
        texts = {day: read_day(path) for day, path in day_files(folder.memories).items()}
        ledger = Ledger.read(folder.ledger, epoch)
        entries = read_questions(folder.questions) if folder.questions.is_file() else []
        told = self._memories(folder.id, epoch, texts)
        chains, unusable = fact_chains(ledger, told, entries)
        for one in unusable:
            self.findings.add(f"not asked: {one.why}", f"{folder.id}: {one.fact.id}")
        names = [person.name for person in read_paper(folder.persona, _Cast, "the persona").cast]
        history = History(folder.id, epoch, chains, told, tuple(texts), names, self.seed)
        roles = roles_of(history)
        meetings = planned_meetings(history, roles)
        notes = [note for one in roles if (note := one.note)]
        notes += [note for one in meetings for note in one.notes]
        memories = self._memories(folder.id, epoch, _with_notes(texts, notes, epoch))
        writer = QuestionWriter(history, ledger, memories)
        questions = writer.all_questions(roles, meetings)
        if not questions:
            raise DataError("has no fact that a question can be asked about", file=folder.ledger)
        scenario = self._asked(history, memories, questions, writer.forgotten)
        self._count(scenario, len(notes))
        return scenario

    def _memories(self, persona: str, epoch: date, texts: Mapping[int, str]) -> tuple[Memory, ...]:
        return tuple(
            Memory(
                f"{persona}/day-{day:04}{piece.suffix}",
                piece.text,
                morning(epoch, day),
                piece.session,
                metadata={"day": day},
            )
            for day, text in texts.items()
            for piece in pieces(text, self.granularity)
        )

    def _asked(
        self,
        history: History,
        memories: tuple[Memory, ...],
        questions: tuple[Question, ...],
        forgotten: tuple[str, ...],
    ) -> Scenario:
        """What is to be forgotten is asked before the requests, all else after them.

        Facts to be kept are asked at both times: a system that forgets too much loses them.
        """
        end = history.days[-1]
        now = evening(history.epoch, end + bool(forgotten))
        later = [question.id for question in questions if question.category != KNOWN]
        checkpoints = [
            Checkpoint(
                AFTER,
                end + 1,
                len(memories),
                tuple(later),
                now,
                ingested_days=len(history.days),
                forget=forgotten if self.forgetting == "call" else (),
                forget_if_able=True,
            )
        ]
        if forgotten:
            earlier = [question.id for question in questions if question.category in (KNOWN, KEPT)]
            so_far = sum(int(memory.metadata["day"]) <= end for memory in memories)
            before = evening(history.epoch, end)
            checkpoints.insert(
                0,
                Checkpoint(
                    BEFORE, end, so_far, tuple(earlier), before, ingested_days=len(history.days)
                ),
            )
        return Scenario(history.persona, memories, questions, tuple(checkpoints))

    def _count(self, scenario: Scenario, notes: int) -> None:
        categories = Counter(question.category for question in scenario.questions)
        forgotten = scenario.checkpoints[-1].forget
        self._counts.update(
            {
                "personas": 1,
                "memories": len(scenario.memories),
                "planted notes": notes,
                "memories to be forgotten": len(forgotten),
                "questions": len(scenario.questions),
                **{name: categories[name] for name in CHANGE_CATEGORIES if categories[name]},
            }
        )


def _with_notes(
    texts: Mapping[int, str], notes: Sequence[PlantedNote], epoch: date
) -> dict[int, str]:
    """The logs with the notes, each at the end of its day's first session.

    Notes on the day after the last one are that day's log.
    """
    by_day: dict[int, list[str]] = {}
    for note in notes:
        by_day.setdefault(note.day, []).append(note.text)
    found = dict(texts)
    for day, added in sorted(by_day.items()):
        today = morning(epoch, day)
        text = found.get(day, f"# session: {PRINCIPAL}\n\n{today:%A}, {written_date(today.date())}")
        headings = list(_SESSION.finditer(text))
        cut = headings[1].start() if len(headings) > 1 else len(text)
        parts = [text[:cut].rstrip(), *added, text[cut:]]
        found[day] = "\n\n".join(part for part in parts if part)
    return dict(sorted(found.items()))
