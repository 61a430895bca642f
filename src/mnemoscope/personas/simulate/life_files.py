"""Files: a life as a persona folder in Recall Bench's formats, and what such a folder holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import encode_line
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.personas.simulate.plots import AT_ONCE, Plot
from mnemoscope.personas.simulate.simulator import SimulatedLife
from mnemoscope.personas.simulate.story import StoryPersona
from mnemoscope.text.fact_ledger import LedgerFact

_DAY = re.compile(r"day-\d{4,}\.md")


class LifeFolder(NamedTuple):
    """One life in a persona folder."""

    persona: str
    name: str
    arcs: str
    """The file that pairs its folders."""
    days: int
    questions: int
    ledger: bool


def life_files(life: SimulatedLife) -> dict[str, bytes]:
    """Every file of a life, by its path in the persona folder."""
    span = f"{life.days}d"
    files = {
        "persona.yaml": dump_yaml(_persona(life.story.persona)),
        f"arcs-{span}.yaml": dump_yaml(_arcs(life)),
        f"qa-{span}/questions.yaml": dump_yaml(list(life.questions)),
    }
    for day, text in enumerate(life.daily_logs, 1):
        files[f"memories-{span}/day-{day:04}.md"] = text
    encoded = {name: text.encode() for name, text in files.items()}
    encoded[f"qa-{span}/ledger.jsonl"] = b"".join(map(encode_line, life.facts))
    return encoded


def write_life(life: SimulatedLife, folder: Path, *, force: bool = False) -> Path:
    """Write it below the folder; what is there already must be the same, unless forced."""
    home = folder / life.story.persona.id
    files = life_files(life)
    strays = [path for path in _days_in(home / f"memories-{life.days}d") if _key(path) not in files]
    if not force:
        for path in _different(home, files):
            raise _occupied(path)
        if strays:
            raise _occupied(strays[0])
    for path in strays:
        path.unlink()
    for name, content in files.items():
        path = home / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return home


def shelves(folder: Path) -> list[LifeFolder]:
    """The lives in a folder of personas, or in the folder of one."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder")
    homes = [folder] if (folder / "persona.yaml").exists() else sorted(folder.iterdir())
    found = [shelf for home in homes if home.is_dir() for shelf in _shelves(home)]
    if not found:
        raise UsageError(f"{folder} holds no persona: no persona.yaml with an arcs file beside it")
    return found


def _shelves(home: Path) -> Iterator[LifeFolder]:
    described = home / "persona.yaml"
    if not described.exists():
        return
    persona = load_yaml(described)
    if not isinstance(persona, dict):
        raise DataError("should hold fields such as id and name", file=described)
    for arcs in sorted(home.glob("arcs*.yaml")):
        suffix = arcs.stem.removeprefix("arcs")
        asked = home / f"qa{suffix}" / "questions.yaml"
        questions = load_yaml(asked) if asked.exists() else []
        yield LifeFolder(
            str(persona.get("id", home.name)),
            str(persona.get("name", "")),
            arcs.name,
            len(_days_in(home / f"memories{suffix}")),
            len(questions) if isinstance(questions, list) else 0,
            (home / f"qa{suffix}" / "ledger.jsonl").exists(),
        )


def _persona(persona: StoryPersona) -> Any:
    described = msgspec.to_builtins(persona)
    for person in described["cast"]:
        # msgspec omits a default by identity, which a story loses on its way to another process
        if person.get("kind") == "human":
            del person["kind"]
    for session in described["sessions"]:
        session.pop("cover", None)
    return described


def _arcs(life: SimulatedLife) -> dict[str, Any]:
    facts: dict[str, list[LedgerFact]] = {}
    for fact in life.facts:
        facts.setdefault(fact.arc, []).append(fact)
    return {
        "epoch": life.epoch.isoformat(),
        "maxConcurrent": AT_ONCE,
        "arcs": [_arc(plot, facts.get(plot.id, [])) for plot in life.plots],
    }


def _arc(plot: Plot, facts: list[LedgerFact]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": plot.id,
        "type": plot.type,
        "title": plot.name,
        "description": plot.subject.about,
        "startDay": plot.start,
        "endDay": plot.end,
        "primarySession": plot.session.id,
    }
    if plot.echoes:
        entry["referencedSessions"] = list(plot.echoes)
    if speakers := sorted({fact.speaker for fact in facts if fact.speaker}):
        entry["participants"] = speakers
    entry["directives"] = [
        {"day": fact.day, "event": f"{fact.attribute}: {fact.value}"} for fact in facts
    ]
    if plot.type == "correction":
        entry |= _correction(facts)
    return entry


def _correction(facts: list[LedgerFact]) -> dict[str, Any]:
    """The first belief that proved wrong, and what it became."""
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
    return sorted(path for path in folder.iterdir() if _DAY.fullmatch(path.name))


def _key(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _different(home: Path, files: dict[str, bytes]) -> Iterator[Path]:
    for name, content in files.items():
        path = home / name
        if path.exists() and path.read_bytes() != content:
            yield path


def _occupied(path: Path) -> UsageError:
    return UsageError(
        f"{path} is there already and is not what would be written; "
        "choose another --out or give --force"
    )
