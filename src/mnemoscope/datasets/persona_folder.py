"""The folder of a persona in Recall Bench's layout: its files, and its YAML content.

`arcs-180d.yaml` belongs to `memories-180d/` and `qa-180d/`; `arcs.yaml` to the names without a
suffix. An error names the file and the field; `problems` collects all errors before a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

from mnemoscope._store.errors import DataError, MissingData, MnemoscopeError, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.yaml import load_yaml
from mnemoscope.datasets.base import AnswerNeeds, DataFile
from mnemoscope.datasets.day_logs import DAY_FILE, LAST_DAY, day_files, digest
from mnemoscope.text.fact_ledger import Ledger
from mnemoscope.types import CATEGORIES, AnswerKey

T = TypeVar("T")

DEFAULT_ARCS = "arcs-1000d.yaml"
DEFAULT_EPOCH = "2024-01-01"
DISCLOSURES = ("refuse", "partial", "answer")
ARCS_FILE = re.compile(r"arcs(-.+)?\.yaml")
PERSONA_BASELINES = ("none", "random", "oracle")
PERSONA_ANSWERS = AnswerNeeds(
    reader="extractive",
    form="sentences",
    judge="ledger",
    model_judge="rubric",
    scales=("composite",),
    baselines=PERSONA_BASELINES,
)
"""What the questions of every benchmark of personas need."""

Day = Annotated[int, Meta(ge=1, le=LAST_DAY)]
Name = Annotated[str, Meta(min_length=1)]


class DeclaredSession(Struct, frozen=True):
    """A session as persona.yaml declares it."""

    id: str
    kind: str = ""
    isolated: bool = False
    participants: tuple[str, ...] = ()


class Sheet(Struct, frozen=True):
    """The fields of persona.yaml that the dataset uses."""

    id: Annotated[str, Meta(pattern=r"^[\w.@-]+$")]
    epoch: str | None = None
    sessions: list[DeclaredSession] = []


class _Arcs(Struct, frozen=True):
    epoch: str | None = None


class QuestionEntry(Struct, frozen=True):
    """One question of questions.yaml; Recall Bench has no `key`, `secret`, `arc`, `no_evidence`."""

    id: Name
    question: Name
    answer: str | int | float | bool
    category: str
    relevant_days: Annotated[tuple[Day, ...], Meta(min_length=1)]
    difficulty: str = ""
    irrelevant_after: Day | None = None
    query_session: str | None = None
    forbidden_sessions: tuple[str, ...] = ()
    expected_disclosure: str | None = None
    key: tuple[str, ...] = ()
    """References to the facts in the ledger that a correct answer names."""
    secret: tuple[str, ...] = ()
    """Facts in the ledger that an answer must not reveal."""
    arc: str = ""
    no_evidence: bool = False
    """relevant_days only define when to ask; none of these days contains an answer."""


class LedgerLabels(NamedTuple):
    """What the ledger says of one question."""

    key: AnswerKey
    replaces: tuple[str, ...] = ()
    """Ids of expiring questions, the answer of which was superseded by that of this question."""


class PersonaFolder(Struct, frozen=True):
    """One persona with the selected arcs file."""

    sheet: Sheet
    arcs: Path
    passed_over: tuple[str, ...] = ()
    """The other arcs files, if this one was chosen because it has logs."""

    @property
    def id(self) -> str:
        return self.sheet.id

    @property
    def persona(self) -> Path:
        return self.arcs.with_name("persona.yaml")

    @property
    def memories(self) -> Path:
        return self._beside("memories")

    @property
    def questions(self) -> Path:
        return self._beside("qa") / "questions.yaml"

    @property
    def ledger(self) -> Path:
        return self._beside("qa") / "ledger.jsonl"

    def _beside(self, name: str) -> Path:
        return self.arcs.with_name(name + self.arcs.stem.removeprefix("arcs"))


def find_personas(data: Path, personas: str = "", arcs: str = "") -> list[PersonaFolder]:
    """The personas below `data`, or the one in it; `personas` selects some by id."""
    sheets: dict[str, tuple[Path, Sheet]] = {}
    for folder in _folders(data):
        sheet = read_paper(folder / "persona.yaml", Sheet, "the persona")
        if sheet.id in sheets:
            raise DataError(
                f"field `id`: {sheet.id!r} is already the persona in {sheets[sheet.id][0]}",
                file=folder / "persona.yaml",
            )
        sheets[sheet.id] = folder, sheet
    wanted = [id for part in personas.split(",") if (id := part.strip())] or list(sheets)
    if unknown := [id for id in wanted if id not in sheets]:
        raise UsageError(
            f"unknown persona {unknown[0]!r}: {data} contains {', '.join(sorted(sheets))}"
        )
    return [
        _with_logs(sheet, folder) if not arcs else PersonaFolder(sheet, arcs_file(folder, arcs))
        for folder, sheet in (sheets[id] for id in dict.fromkeys(wanted))
    ]


def _with_logs(sheet: Sheet, folder: Path) -> PersonaFolder:
    """The persona with the story whose logs and questions are there; of several, the longest."""
    there = arcs_files(folder)
    days = {name: _days_of(PersonaFolder(sheet, folder / name)) for name in there}
    if len(there) < 2 or not any(days.values()):
        return PersonaFolder(sheet, arcs_file(folder))
    written = [name for name in there if days[name]]
    chosen = max(written, key=lambda name: (name == DEFAULT_ARCS, days[name], name))
    others = tuple(name for name in there if name != chosen)
    return PersonaFolder(sheet, folder / chosen, others)


def _days_of(persona: PersonaFolder) -> int:
    """How many daily logs the story has; none if it has no questions."""
    if not persona.memories.is_dir() or not persona.questions.is_file():
        return 0
    return sum(bool(DAY_FILE.fullmatch(path.name)) for path in persona.memories.iterdir())


def data_files(folders: Iterable[PersonaFolder]) -> list[DataFile]:
    """The files of each persona; its daily logs share one hash."""
    found: list[DataFile] = []
    for folder in folders:
        parts = [folder.persona, folder.arcs, folder.questions, folder.ledger]
        found += [DataFile(path, sha256_file(path)) for path in parts if path.is_file()]
        logs = day_files(folder.memories).values()
        found.append(DataFile(folder.memories, digest(tuple(logs))))
    return found


def _folders(data: Path) -> list[Path]:
    if _is_persona(data):
        return [data]
    found = sorted(filter(_is_persona, data.iterdir())) if data.is_dir() else []
    if not found:
        raise MissingData(
            f"{data} contains no personas: a persona is a folder with persona.yaml and an arcs file"
        )
    return found


def _is_persona(folder: Path) -> bool:
    return folder.is_dir() and ((folder / "persona.yaml").is_file() or bool(arcs_files(folder)))


def arcs_files(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise MissingData(f"{folder} is not a folder: a persona is a folder with persona.yaml")
    return sorted(path.name for path in folder.iterdir() if ARCS_FILE.fullmatch(path.name))


def arcs_file(folder: Path, wanted: str = "") -> Path:
    """The requested arcs file; by default the only one, or the 1,000-day one."""
    there = arcs_files(folder)
    listed = f"it has {', '.join(there)}" if there else "it has no arcs files"
    if wanted and not ARCS_FILE.fullmatch(wanted):
        raise UsageError(
            f"{wanted!r} is not an arcs file: use a name like arcs.yaml or arcs-180d.yaml"
        )
    if wanted and wanted not in there:
        raise MissingData(f"{folder / wanted} is missing: {listed}")
    if not there:
        raise MissingData(f"{folder} has no arcs file, such as arcs.yaml or arcs-180d.yaml")
    if not wanted and len(there) > 1 and DEFAULT_ARCS not in there:
        raise MissingData(f"{folder}: select an arcs file with --arcs: {listed}")
    return folder / (wanted or (there[0] if len(there) == 1 else DEFAULT_ARCS))


def read_epoch(persona: PersonaFolder) -> date:
    """The date of day 1: from the arcs file, else from persona.yaml, else the default."""
    arcs = read_paper(persona.arcs, _Arcs, "the arcs of the story")
    for written, file in ((arcs.epoch, persona.arcs), (persona.sheet.epoch, persona.persona)):
        if written is not None:
            try:
                return date.fromisoformat(written)
            except ValueError:
                problem = f"field `epoch`: {written!r} is not a date such as 2026-01-31"
                raise DataError(problem, file=file) from None
    return date.fromisoformat(DEFAULT_EPOCH)


def read_questions(path: Path) -> list[QuestionEntry]:
    """All questions of the file; raises the first error."""
    entries: list[QuestionEntry] = []
    for found in check_questions(path):
        if isinstance(found, DataError):
            raise found
        entries.append(found)
    return entries


def check_questions(path: Path) -> Iterator[QuestionEntry | DataError]:
    """Each entry of questions.yaml, or its error."""
    written = read_paper(path, Any, "the questions")
    if not isinstance(written, list):
        kinds = {dict: "a mapping", str: "a text", type(None): "empty"}
        kind = kinds.get(type(written), "a value")
        raise DataError(f"is not a list of questions but {kind}", file=path)
    if not written:
        raise DataError("contains no questions", file=path)
    seen: dict[str, int] = {}
    for number, one in enumerate(written, 1):
        id = one.get("id") if isinstance(one, dict) else None
        where = f"entry {number}" + (f" (id {id})" if id is not None else "")
        try:
            entry = msgspec.convert(one, QuestionEntry)
            if entry.category not in CATEGORIES:
                known = ", ".join(CATEGORIES)
                raise ValueError(f"field `category`: {entry.category!r} is not one of {known}")
            if (disclosure := entry.expected_disclosure) not in (None, *DISCLOSURES):
                known = ", ".join(DISCLOSURES)
                raise ValueError(
                    f"field `expected_disclosure`: {disclosure!r} is not one of {known}"
                )
            if entry.id in seen:
                raise ValueError(f"field `id`: entry {seen[entry.id]} has the same id")
        except ValueError as error:  # msgspec's ValidationError is one
            yield DataError(f"{where}: {error}", file=path)
        else:
            seen[entry.id] = number
            yield entry


def answer_keys(
    persona: PersonaFolder, entries: Sequence[QuestionEntry], epoch: date
) -> dict[str, LedgerLabels]:
    """The labels of each question from the ledger; empty without a ledger."""
    if not persona.ledger.is_file():
        return {}
    ledger = Ledger.read(persona.ledger, epoch)
    expiring: dict[str, list[str]] = {}
    for entry in entries:
        if entry.irrelevant_after is not None:
            for reference in entry.key:
                expiring.setdefault(reference, []).append(entry.id)
    found: dict[str, LedgerLabels] = {}
    for entry in entries:
        try:
            key = ledger.key(entry.key, entry.secret)
        except KeyError as error:
            problem = f"question {entry.id}: {error.args[0]!r} is not in {persona.ledger}"
            raise DataError(problem, file=persona.questions) from None
        replaced = (id for one in ledger.replaced_by(entry.key) for id in expiring.get(one, ()))
        found[entry.id] = LedgerLabels(key, tuple(dict.fromkeys(replaced)))
    return found


def problems(data: Path, personas: str = "", arcs: str = "") -> list[MnemoscopeError]:
    """Every error that would stop a run on these personas."""
    found: list[MnemoscopeError] = []

    def attempt(step: Callable[[], T]) -> T | None:
        try:
            return step()
        except MnemoscopeError as error:
            found.append(error)
            return None

    for persona in attempt(lambda: find_personas(data, personas, arcs)) or []:
        epoch = attempt(partial(read_epoch, persona)) or date.min
        attempt(partial(day_files, persona.memories))
        checked: list[QuestionEntry | DataError] = []
        attempt(partial(checked.extend, check_questions(persona.questions)))
        if checked:
            found += [one for one in checked if isinstance(one, DataError)]
            entries = [one for one in checked if isinstance(one, QuestionEntry)]
            attempt(partial(answer_keys, persona, entries, epoch))
    return found


def read_paper(path: Path, kind: type[T], purpose: str) -> T:
    """Read a YAML file of a persona; errors name the file and the field."""
    try:
        return msgspec.convert(load_yaml(path), kind)
    except FileNotFoundError:
        raise MissingData(f"{path} is missing: it should contain {purpose}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text: {error}", file=path) from None
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=path) from None
