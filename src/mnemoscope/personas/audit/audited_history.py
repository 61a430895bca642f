"""A history for the audit: its logs and questions, and the words and values of each day."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import filterfalse
from pathlib import Path

from mnemoscope._store.errors import DataError
from mnemoscope._store.jsonl import read_records
from mnemoscope.datasets.checkpoint_plan import morning
from mnemoscope.datasets.day_logs import day_files, read_day
from mnemoscope.datasets.persona_folder import QuestionEntry, check_questions
from mnemoscope.personas.write.llm_writer import AccountEntry
from mnemoscope.personas.write.persona_files import PersonaFiles
from mnemoscope.personas.write.question_rules import word_stems
from mnemoscope.text.fact_ledger import Ledger, LedgerFact
from mnemoscope.text.facts import AtomIndex
from mnemoscope.text.matching import normalise
from mnemoscope.types import Memory

# A weekday next to a name is not part of it; May 26–28 are two dates.
_WEEKDAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b")
_RANGE = re.compile(r"\b([A-Z][a-z]+ )(\d{1,2})[–-](\d{1,2})\b")


class AuditedHistory:
    """The logs, the questions and the optional ledger of a persona's folder.

    Findings are written to the `trail` folder, by default the folder of the questions.
    """

    def __init__(self, files: PersonaFiles, trail: Path | None = None) -> None:
        self.files = files
        self.trail = trail or self.qa
        self.logs = {
            day: read_day(path) for day, path in day_files(files.beside("memories")).items()
        }
        self.entries: list[QuestionEntry] = []
        self.unreadable: list[str] = []
        """The errors of entries that break the format."""
        for found in check_questions(self.qa / "questions.yaml"):
            if isinstance(found, DataError):
                self.unreadable.append(str(found))
            else:
                self.entries.append(found)
        # Caches of the instance: a cached method would keep every history in memory.
        self.stems = cache(lambda day: word_stems(self.logs[day]))
        self.plain = cache(lambda day: normalise(self.logs[day]))

    @property
    def qa(self) -> Path:
        return self.files.beside("qa")

    @cached_property
    def ledger(self) -> Ledger | None:
        path = self.files.ledger
        return Ledger.read(path, self.files.epoch) if path.is_file() else None

    def facts(self, day: int) -> list[LedgerFact]:
        """The facts of a day in the ledger."""
        return self._facts.get(day, [])

    @cached_property
    def _facts(self) -> dict[int, list[LedgerFact]]:
        by_day: dict[int, list[LedgerFact]] = {}
        for fact in self.ledger.facts.values() if self.ledger else ():
            by_day.setdefault(fact.day, []).append(fact)
        return by_day

    @cached_property
    def written_here(self) -> bool:
        """Whether our own passes wrote its days, which account.jsonl records."""
        place = self.files.folder / "account.jsonl"
        return place.is_file() and any(
            entry.pass_name == "generate" for entry in read_records(place, AccountEntry)
        )

    def evidence(self, entry: QuestionEntry) -> tuple[int, ...]:
        """The relevant days that have a log, in order."""
        return tuple(day for day in sorted(set(entry.relevant_days)) if day in self.logs)

    def absent(self, entry: QuestionEntry, days: Iterable[int]) -> list[str]:
        """Checkable values of the answer that are neither in these days nor in the question."""
        kept = frozenset(days)
        answer, asked = _RANGE.sub(r"\1\2 to \1\3", str(entry.answer)), [entry.question]
        missing = self._atoms.absent(answer, {self._place[day] for day in kept}, asked)
        return [
            *filterfalse(_WEEKDAY.search, missing),
            *(value for value in self._keys(entry, kept) if value not in missing),
        ]

    def _keys(self, entry: QuestionEntry, days: Iterable[int]) -> Iterable[str]:
        """Ledger values of a correct answer that none of the days contains."""
        if self.ledger is None:
            return
        texts = [self.plain(day) for day in days]
        for reference in entry.key:
            if reference.endswith(".date"):
                continue  # the log's file name gives the day
            wordings = self.ledger.wordings(reference)
            if not any(normalise(wording) in text for wording in wordings for text in texts):
                yield wordings[0]

    @cached_property
    def _atoms(self) -> AtomIndex:
        epoch = self.files.epoch
        logs = self.logs.items()
        return AtomIndex([Memory(str(d), text, morning(epoch, d), "") for d, text in logs])

    @cached_property
    def _place(self) -> dict[int, int]:
        return {day: place for place, day in enumerate(self.logs)}
