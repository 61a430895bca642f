"""Pass 3: for each daily log the memories that the agent would have saved by a tool, in YAML.

A prompt contains the memories of an earlier day as an example of the voice, so days are written in
order. Stretches of thirty days are written in parallel and begin with the voice of the first day.
So prompts do not depend on speed or parallelism, and a resumed pass asks the same prompts.

A prompt contains the whole day. A value of an isolated session that is filed under another session
would leak, so such a reply is retried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, zip_longest
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.yaml import dump_yaml
from mnemoscope.datasets.day_logs import PRINCIPAL
from mnemoscope.models.prompts import PromptFile, load_prompt
from mnemoscope.personas.write.llm_writer import (
    JsonObject,
    LlmWriter,
    Task,
    UnusableReply,
    read_whole_array,
)
from mnemoscope.personas.write.persona_files import PersonaFiles
from mnemoscope.text.facts import AtomIndex
from mnemoscope.types import Memory

TOOL = "memorySave"
_DATE = re.compile(r"(?:\d{4}-)?\d\d-\d\d|\d{4}")
STRETCH = 30
"""Days."""
_HOLES = frozenset({"name", "role", "style", "date", "log", "sessions", "voice"})
_NO_VOICE = "(none yet: this is the first day)"
_LONGEST_VOICE = 6000
"""Characters; a part of a long day is enough to show the voice."""


class MemoryCall(msgspec.Struct, frozen=True):
    session: str
    tool: str
    content: str


class SavedDay(NamedTuple):
    day: int
    calls: tuple[MemoryCall, ...]


def tool_file(files: PersonaFiles, day: int) -> Path:
    return files.beside("tools") / f"day-{day:04}.yaml"


def write_tool_calls(files: PersonaFiles, writer: LlmWriter, days: Iterable[int]) -> Iterator[int]:
    """Write the memories saved on each of these days; yields a day when its file is written."""
    prompt = load_prompt("write-tool-calls", _HOLES, frozenset({"log"}))
    for wave in _waves(sorted(days)):
        for written in writer.write_all(_task(files, prompt, day) for day in wave):
            if written.result is not None:
                day, calls = written.result
                write_atomically(tool_file(files, day), tool_yaml(files, day, calls).encode())
                yield day


def _waves(days: list[int]) -> Iterator[list[int]]:
    """The first day, then the next day of every stretch at a time."""
    if not days:
        return
    yield days[:1]
    stretches = [list(group) for _, group in groupby(days[1:], _stretch)]
    for wave in zip_longest(*stretches):
        yield [day for day in wave if day is not None]


def _stretch(day: int) -> int:
    return (day - 1) // STRETCH


def _task(files: PersonaFiles, prompt: PromptFile, day: int) -> Task[SavedDay]:
    persona = files.persona
    texts = _session_texts(files, day)
    sessions = list(texts)
    filled = prompt.fill(
        name=persona.name,
        role=persona.role,
        style=persona.communication_style.strip(),
        date=files.dated(day),
        log=files.page(day),
        sessions=", ".join(sessions),
        voice=_voice(files, day),
    )
    filled = msgspec.structs.replace(
        filled, typical=filled.typical.replace("{{session}}", sessions[0] if sessions else "")
    )

    def read(reply: str) -> SavedDay:
        calls = read_calls(reply, sessions)
        _refuse_leaks(files, calls, texts)
        return SavedDay(day, calls)

    return Task(f"day {day}", filled, read)


def _session_texts(files: PersonaFiles, day: int) -> dict[str, str]:
    """The text of the day's sessions; text before the first heading belongs to the principal."""
    texts: dict[str, str] = {}
    for session, text in files.sessions_of(day).items():
        id = session or PRINCIPAL
        texts[id] = f"{texts[id]}\n\n{text}" if id in texts else text
    return texts


def _refuse_leaks(files: PersonaFiles, calls: Iterable[MemoryCall], texts: dict[str, str]) -> None:
    for number, call in enumerate(calls, 1):
        for id in texts:
            if id == call.session or files.is_open(id):
                continue
            index = AtomIndex([Memory(one, texts[one]) for one in (call.session, id)])
            own, both = (index.invented(call.content, seen, []) for seen in (1, 2))
            # Two sessions may name the same date independently.
            if leaked := [one for one in own if one not in both and not _DATE.fullmatch(one)]:
                raise UnusableReply(
                    f"call {number} is filed under {call.session}, but holds what was said in "
                    f"{id} alone: {', '.join(leaked)}"
                )


def _voice(files: PersonaFiles, day: int) -> str:
    """The file of the last earlier day of the stretch, or else of the first day."""
    first_of_stretch = _stretch(day) * STRETCH + 1
    nearest = (tool_file(files, earlier) for earlier in range(day - 1, first_of_stretch - 1, -1))
    first = (tool_file(files, earlier) for earlier in range(1, first_of_stretch))
    for file in (*nearest, *first):
        if file.is_file():
            return file.read_text(encoding="utf-8")[:_LONGEST_VOICE].strip()
    return _NO_VOICE


def read_calls(reply: str, sessions: Iterable[str]) -> tuple[MemoryCall, ...]:
    """The calls of a day that has these sessions; UnusableReply says which rule they break."""
    known = list(sessions)
    calls = tuple(
        _call(one, number, known) for number, one in enumerate(read_whole_array(reply), 1)
    )
    if not calls:
        raise UnusableReply("the array is empty; a day with a log has something worth keeping")
    return calls


def _call(written: JsonObject, number: int, sessions: list[str]) -> MemoryCall:
    session, content = written.get("session"), written.get("content")
    if session not in sessions:
        raise UnusableReply(
            f'call {number}: "session" is {session!r}; on this day there is {", ".join(sessions)}'
        )
    if (tool := written.get("tool", TOOL)) != TOOL:
        raise UnusableReply(f'call {number}: "tool" is {tool!r}; there is only {TOOL}')
    if not isinstance(content, str) or not content.strip():
        raise UnusableReply(f'call {number}: "content" is a text that is not empty')
    return MemoryCall(session, TOOL, content.strip())


def tool_yaml(files: PersonaFiles, day: int, calls: Iterable[MemoryCall]) -> str:
    date, log = files.date_of(day), files.log(day)
    header = (
        f"# {date.isoformat()}: what {files.persona.id} saved to memory on day {day}, one {TOOL} "
        f"each.\n# Written by mnemoscope personas tool-calls from {log.parent.name}/{log.name}.\n\n"
    )
    content = {
        "day": day,
        "date": date.isoformat(),
        "day_of_week": f"{date:%A}",
        "persona": files.persona.id,
        "calls": msgspec.to_builtins(tuple(calls)),
    }
    return header + dump_yaml(content)
