"""Pass 2: for each daily log the conversation between user and assistant that it could come from.

A conversation depends on its day's log only, so all of them are written in parallel. The user is
the person that the persona works for, so its prompt leaves out isolated sessions. A reply that
breaks a rule is retried; after the last try the conversation is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.jsonl import write_atomically
from mnemoscope.models.prompts import PromptFile, load_prompt
from mnemoscope.personas.write.llm_writer import (
    JsonObject,
    LlmWriter,
    Task,
    UnusableReply,
    read_whole_array,
)
from mnemoscope.personas.write.persona_files import PersonaFiles

Format = Literal["markdown", "json"]
Role = Literal["user", "assistant"]

FEWEST, MOST = 4, 12
_ROLES: tuple[Role, Role] = ("user", "assistant")
_SUFFIX: dict[Format, str] = {"markdown": "md", "json": "json"}
# Such a line begins a turn in the Markdown files.
_SPEAKER_LINE = re.compile(r"^\*\*(?:User|Assistant)\*\*:", re.MULTILINE)
_HOLES = frozenset({"name", "role", "style", "principal", "date", "log"})


class ConversationTurn(msgspec.Struct, frozen=True):
    role: Role
    content: str


class Conversation(NamedTuple):
    day: int
    turns: tuple[ConversationTurn, ...]


def conversation_file(files: PersonaFiles, day: int, format: Format) -> Path:
    return files.beside("conversations") / f"conv-{day:04}.{_SUFFIX[format]}"


def open_days(files: PersonaFiles, days: Iterable[int]) -> list[int]:
    """The days that have text of open sessions."""
    return [day for day in days if files.page(day, files.is_open)]


def write_conversations(
    files: PersonaFiles, writer: LlmWriter, days: Iterable[int], format: Format = "markdown"
) -> Iterator[int]:
    """Write the conversation of each of these days; yields a day when its file is written."""
    prompt = load_prompt("write-conversation", _HOLES, frozenset({"log"}))
    tasks = (_task(files, prompt, day) for day in days)
    for written in writer.write_all(tasks):
        if written.result is not None:
            day, turns = written.result
            text = as_markdown(turns) if format == "markdown" else as_json(turns)
            write_atomically(conversation_file(files, day, format), text.encode())
            yield day


def _task(files: PersonaFiles, prompt: PromptFile, day: int) -> Task[Conversation]:
    persona = files.persona
    filled = prompt.fill(
        name=persona.name,
        role=persona.role,
        style=persona.communication_style.strip(),
        principal=persona.principal.name if persona.principal else "the person they work for",
        date=files.dated(day),
        log=files.page(day, files.is_open),
    )
    return Task(f"day {day}", filled, lambda reply: Conversation(day, read_turns(reply)))


def read_turns(reply: str) -> tuple[ConversationTurn, ...]:
    """The turns of a conversation; UnusableReply says which rule they break."""
    turns = tuple(_turn(one, number) for number, one in enumerate(read_whole_array(reply), 1))
    if not FEWEST <= len(turns) <= MOST:
        raise UnusableReply(f"it has {len(turns)} turns; there must be {FEWEST} to {MOST}")
    for number, turn in enumerate(turns):
        if turn.role != _ROLES[number % 2]:
            raise UnusableReply(
                f"turn {number + 1} is the {turn.role}'s; turns alternate, and the user begins"
            )
    return turns


def _turn(written: JsonObject, number: int) -> ConversationTurn:
    role, content = written.get("role"), written.get("content")
    if role not in _ROLES:
        raise UnusableReply(f'turn {number}: "role" is "user" or "assistant", not {role!r}')
    if not isinstance(content, str) or not content.strip():
        raise UnusableReply(f'turn {number}: "content" is a text that is not empty')
    if _SPEAKER_LINE.search(content):
        raise UnusableReply(
            f"turn {number} holds a line that begins a turn; one object is one turn"
        )
    return ConversationTurn("user" if role == "user" else "assistant", content.strip())


def as_markdown(turns: Iterable[ConversationTurn]) -> str:
    return "".join(f"**{turn.role.capitalize()}**:\n\n{turn.content}\n\n" for turn in turns)


def as_json(turns: Iterable[ConversationTurn]) -> str:
    encoded = msgspec.json.encode(list(turns))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"
