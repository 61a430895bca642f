"""Readers make an answer from a question and what was recalled for it.

A reader sees what a person would be shown: the question as the system saw it and the passages,
best first. No labels, no memories that were not recalled.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from mnemoscope._store.registry import Entry, Registry
from mnemoscope.types import Query


class Passage(Struct, frozen=True, omit_defaults=True):
    """One hit as a reader sees it."""

    id: str
    text: str
    at: datetime | None = None
    session: str = ""


class Reply(Struct, frozen=True, omit_defaults=True):
    """What a reader says."""

    text: str
    abstained: bool | None = False
    """Whether it says that it found no evidence, instead of an answer; None: its text tells."""
    sources: tuple[str, ...] = ()
    """Ids of the passages that the answer was made from."""
    shown: int | None = None
    """How many passages, best first, it looked at; None for all of them."""


class Reader(Protocol):
    """Makes an answer from passages."""

    def read(self, query: Query, passages: Sequence[Passage]) -> Reply: ...


READERS = Registry(
    "reader",
    {
        "extractive": Entry(
            "mnemoscope.readers.extractive:Extractive", "the sentences that answer best, no model"
        ),
        "llm": Entry(
            "mnemoscope.readers.llm_reader:Llm", "a language model, from the best passages"
        ),
        "full-context": Entry(
            "mnemoscope.readers.llm_reader:FullContextReader",
            "a language model, from all memories at once",
        ),
    },
    group="mnemoscope.readers",
)

__all__ = ["READERS", "Passage", "Reader", "Reply"]
