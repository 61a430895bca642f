"""Creates a persona with a model: one request for the persona, one for its arcs.

Both files are written after both replies are valid, so a folder never contains only one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.jsonl import printable, write_atomically
from mnemoscope.datasets.day_logs import LAST_DAY
from mnemoscope.models.chat import Prompt
from mnemoscope.models.prompts import load_prompt
from mnemoscope.models.replies import parse_json, without_thoughts
from mnemoscope.personas.write.llm_writer import LlmWriter, Task, UnusableReply
from mnemoscope.personas.write.persona_files import Arcs, Persona, PersonaFiles, as_yaml
from mnemoscope.personas.write.persona_rules import (
    AT_ONCE,
    DIRECTED,
    FEWEST,
    LONG,
    MINIMA,
    MOST,
    QUIET_MOST,
    broken_arcs,
    broken_persona,
    least_quiet,
    scaled,
)

T = TypeVar("T", Persona, Arcs)

_REASONS = 20
"""Most broken rules that one retry lists."""

_SPARE = 2
"""An estimate assumes this many arcs more than the fewest."""


def create(
    writer: LlmWriter, brief: str, folder: Path, *, days: int, epoch: date, overwrite: bool = False
) -> PersonaFiles:
    """Let the model write the persona and its arcs, and write both files."""
    check(folder, days, epoch, overwrite=overwrite)
    holes = {"brief": brief.strip(), "days": str(days)}
    prompt = load_prompt("write-persona", frozenset(holes)).fill(**holes)
    persona = _written(writer, "persona", prompt, _read_persona)

    def read_arcs(reply: str) -> Arcs:
        arcs = _converted(reply, Arcs)
        _refuse(broken_arcs(arcs, persona, days))
        return msgspec.structs.replace(arcs, epoch=epoch.isoformat(), max_concurrent=AT_ONCE)

    arcs = _written(writer, "arcs", _arcs_prompt(brief, persona, days, epoch), read_arcs)
    files = PersonaFiles(folder, _arcs_file(folder, days), persona, arcs)
    # The arcs file is written last: where it exists, the persona exists too.
    write_atomically(folder / "persona.yaml", printable(as_yaml(persona)).encode())
    write_atomically(files.arcs_file, printable(as_yaml(arcs)).encode())
    return files


def check(folder: Path, days: int, epoch: date, *, overwrite: bool) -> None:
    """UsageError if the days are out of range or files would be overwritten."""
    longest = min(LAST_DAY, (date.max - epoch).days + 1)
    if not 1 <= days <= longest:
        raise UsageError(f"--days {days}: a history that begins on {epoch} has 1 to {longest:,}")
    if any(path.exists() and not path.is_dir() for path in (folder, *folder.parents)):
        raise UsageError(f"{folder} is a file or below a file: give a folder")
    files = folder / "persona.yaml", _arcs_file(folder, days)
    there = [path for path in files if path.exists()]
    if there and not overwrite:
        raise UsageError(f"{there[0]} exists: choose another folder or give --overwrite")
    logs = sorted(folder.glob("memories*/day-*.md"))
    if there and logs:
        raise UsageError(
            f"{logs[0]} is a log of the persona in this folder: choose another folder, or remove it"
        )


def _written(writer: LlmWriter, name: str, prompt: Prompt, read: Callable[[str], T]) -> T:
    """The result of the prompt; an error if there is none."""
    written = writer.write(Task(name, prompt, read))
    if written.result is not None:
        return written.result
    raise MnemoscopeError(
        f"no usable {name} was received, so neither file was written: {written.message}\nTry again "
        "with another --model or a simpler --prompt"
    )


def _read_persona(reply: str) -> Persona:
    persona = _converted(reply, Persona)
    _refuse(broken_persona(persona))
    return persona


def _converted(reply: str, kind: type[T]) -> T:
    try:
        return msgspec.convert(parse_json(without_thoughts(reply)), kind)
    except (ValueError, msgspec.ValidationError) as error:
        raise UnusableReply(str(error)) from None


def _refuse(reasons: list[str]) -> None:
    if reasons:
        more = len(reasons) - _REASONS
        shown = [*reasons[:_REASONS], *([f"and {more} more like these"] if more > 0 else [])]
        raise UnusableReply("".join(f"\n- {reason}" for reason in shown).lstrip())


def _arcs_prompt(brief: str, persona: Persona, days: int, epoch: date) -> Prompt:
    least = sum(scaled(number, days) for number in MINIMA.values())
    holes: dict[str, Any] = {
        "brief": brief.strip(),
        "persona": as_yaml(persona).strip(),
        "days": days,
        "first_date": epoch.isoformat(),
        "last_date": (epoch + timedelta(days=days - 1)).isoformat(),
        "fewest": max(1, least, FEWEST if days >= LONG else 0),
        "most": MOST,
        "minima": "\n".join(
            f"- {type}: {f'at least {needed}' if (needed := scaled(number, days)) else 'as needed'}"
            for type, number in MINIMA.items()
        ),
        "at_once": AT_ONCE,
        "quiet_least": least_quiet(days),
        "quiet_most": QUIET_MOST,
        "directed": max(1, scaled(DIRECTED, days)),
    }
    values = {name: str(value) for name, value in holes.items()}
    filled = load_prompt("write-arcs", frozenset(values)).fill(**values)
    # An estimate needs as many typical arcs as a reply is likely to have.
    arcs = cycle(json.loads(filled.typical)["arcs"])
    likely = list(islice(arcs, min(MOST, holes["fewest"] + _SPARE)))
    return msgspec.structs.replace(filled, typical=json.dumps({"arcs": likely}))


def _arcs_file(folder: Path, days: int) -> Path:
    return folder / f"arcs-{days}d.yaml"
