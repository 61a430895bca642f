"""Readers answer a question from the recalled passages.

A reader gets the question as the system got it, and the passages, best first. It gets neither
labels nor memories that were not recalled.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from mnemoscope._store.registry import Entry, Registry
from mnemoscope.types import Query


class Passage(Struct, frozen=True, omit_defaults=True):
    """One hit, as the reader gets it."""

    id: str
    text: str
    at: datetime | None = None
    session: str = ""


class Reply(Struct, frozen=True, omit_defaults=True):
    """The answer of a reader."""

    text: str
    abstained: bool | None = False
    """Whether the reader abstains; None if this must be derived from the text."""
    sources: tuple[str, ...] = ()
    """Ids of the passages that the answer is based on."""
    shown: int | None = None
    """How many passages it used, best first; None for all."""
    truncated: bool = False
    """Whether the text was cut at a limit of tokens."""


class Reader(Protocol):
    """Answers a question from passages."""

    def read(self, query: Query, passages: Sequence[Passage]) -> Reply: ...


READERS = Registry(
    "reader",
    {
        "extractive": Entry(
            "mnemoscope.readers.extractive:Extractive",
            "short answers or cited sentences; no model",
        ),
        "llm": Entry(
            "mnemoscope.readers.llm_reader:Llm", "a language model with the best passages"
        ),
        "full-context": Entry(
            "mnemoscope.readers.llm_reader:FullContextReader",
            "a language model with all memories at once",
        ),
    },
    group="mnemoscope.readers",
)

__all__ = ["READERS", "Passage", "Reader", "Reply"]
