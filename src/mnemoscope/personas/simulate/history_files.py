"""Writes simulated histories as persona folders in Recall Bench's formats, and lists folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import encode_lines
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.datasets.day_logs import DAY_FILE
from mnemoscope.personas.authored_question import AuthoredQuestion
from mnemoscope.personas.simulate.arc_plan import AT_ONCE, PlannedArc
from mnemoscope.personas.simulate.story import Story, StoryPersona
from mnemoscope.text.fact_ledger import LedgerFact


@dataclass(frozen=True)
class SimulatedHistory:
    """The arcs, facts, daily logs and questions of a persona."""

    story: Story
    days: int
    seed: int
    epoch: date
    arcs: tuple[PlannedArc, ...]
    facts: tuple[LedgerFact, ...]
    daily_logs: tuple[str, ...]
    """One text a day, from day 1."""
    questions: tuple[AuthoredQuestion, ...]


class HistorySummary(NamedTuple):
    """One history in a persona folder."""

    persona: str
    name: str
    arcs: str
    """The name of its arcs file, whose suffix the folders share."""
    days: int
    questions: int
    ledger: bool


def history_files(history: SimulatedHistory) -> dict[str, bytes]:
    """Every file of a history, by its path in the persona folder."""
    span = f"{history.days}d"
    files = {
        "persona.yaml": dump_yaml(_persona(history.story.persona)),
        f"arcs-{span}.yaml": dump_yaml(_arcs(history)),
        f"qa-{span}/questions.yaml": dump_yaml(msgspec.to_builtins(history.questions)),
    }
    for day, text in enumerate(history.daily_logs, 1):
        files[f"memories-{span}/day-{day:04}.md"] = text
    encoded = {name: text.encode() for name, text in files.items()}
    encoded[f"qa-{span}/ledger.jsonl"] = encode_lines(history.facts)
    return encoded


def write_history(history: SimulatedHistory, folder: Path, *, force: bool = False) -> Path:
    """Write a history below the folder; files that exist and differ are an error, unless forced."""
    target = folder / history.story.persona.id
    files = {target / name: content for name, content in history_files(history).items()}
    strays = [day for day in _days_in(target / f"memories-{history.days}d") if day not in files]
    if not force:
        there = (path for path in files if path.exists())
        changed = (path for path in there if path.read_bytes() != files[path])
        if occupied := next(changed, None) or next(iter(strays), None):
            raise UsageError(
                f"{occupied} is there already and differs from what would be written: "
                "choose another --out, or give --force to overwrite it"
            )
    for path in strays:
        path.unlink()
    for path, content in files.items():
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return target


def list_histories(folder: Path) -> list[HistorySummary]:
    """The histories in a folder of personas, or in the folder of one."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    personas = [folder] if (folder / "persona.yaml").exists() else sorted(folder.iterdir())
    found = [one for persona in personas if persona.is_dir() for one in _histories(persona)]
    if not found:
        raise UsageError(
            f"{folder} contains no personas: no persona.yaml with an arcs file next to it"
        )
    return found


def _histories(folder: Path) -> Iterator[HistorySummary]:
    described = folder / "persona.yaml"
    if not described.exists():
        return
    persona = load_yaml(described)
    if not isinstance(persona, dict):
        raise DataError("should contain fields such as id and name", file=described)
    for arcs in sorted(folder.glob("arcs*.yaml")):
        suffix = arcs.stem.removeprefix("arcs")
        asked = folder / f"qa{suffix}" / "questions.yaml"
        questions = load_yaml(asked) if asked.exists() else []
        yield HistorySummary(
            str(persona.get("id", folder.name)),
            str(persona.get("name", "")),
            arcs.name,
            len(_days_in(folder / f"memories{suffix}")),
            len(questions) if isinstance(questions, list) else 0,
            (folder / f"qa{suffix}" / "ledger.jsonl").exists(),
        )


def _persona(persona: StoryPersona) -> Any:
    described = msgspec.to_builtins(persona)
    for person in described["cast"]:
        # msgspec compares defaults by identity, which a pickled story does not keep
        if person.get("kind") == "human":
            del person["kind"]
    for session in described["sessions"]:
        session.pop("cover", None)
    return described


def _arcs(history: SimulatedHistory) -> dict[str, Any]:
    facts: dict[str, list[LedgerFact]] = {}
    for fact in history.facts:
        facts.setdefault(fact.arc, []).append(fact)
    return {
        "epoch": history.epoch.isoformat(),
        "maxConcurrent": AT_ONCE,
        "arcs": [_arc(arc, facts.get(arc.id, [])) for arc in history.arcs],
    }


def _arc(arc: PlannedArc, facts: list[LedgerFact]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": arc.id,
        "type": arc.type,
        "title": arc.name,
        "description": arc.subject.about,
        "startDay": arc.start,
        "endDay": arc.end,
        "primarySession": arc.session.id,
    }
    if arc.echoes:
        entry["referencedSessions"] = list(arc.echoes)
    if speakers := sorted({fact.speaker for fact in facts if fact.speaker}):
        entry["participants"] = speakers
    entry["directives"] = [
        {"day": fact.day, "event": f"{fact.attribute}: {fact.value}"} for fact in facts
    ]
    if arc.type == "correction":
        entry |= _correction(facts)
    return entry


def _correction(facts: list[LedgerFact]) -> dict[str, Any]:
    """The first belief that was corrected, and its correction."""
    by_id = {fact.id: fact for fact in facts}
    for wrong in facts:
        if wrong.superseded_by:
            right = by_id[wrong.superseded_by]
            return {
                "wrongDay": wrong.day,
                "correctedDay": right.day,
                "wrongBelief": f"{wrong.attribute}: {wrong.value}",
                "correctedBelief": f"{right.attribute}: {right.value}",
            }
    return {}


def _days_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if DAY_FILE.fullmatch(path.name))
