"""The question book: questions.yaml, and beside it the journal of the windows that were asked.

A window's pairs are in the journal before they are in the questions, and a second line says that
they have arrived there: a pass killed in between neither loses them nor asks for them again. Pairs
that somebody deleted from questions.yaml do not come back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope.authoring.pairs import Pair, asked_words
from mnemoscope.authoring.sheets import Home
from mnemoscope.core.jsonl import Journal, read_records, write_atomically
from mnemoscope.core.yaml import dump_yaml, load_yaml
from mnemoscope.datasets.persona_files import read_questions


class Window(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the journal: what a window gave, or that it is settled."""

    key: str
    """`standard 8-14`, or `boundary family 1-30`."""
    ids: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    dropped: dict[str, int] = {}
    settled: bool = False
    """The pairs are in questions.yaml."""


class QuestionBook:
    """All questions of a life, and which windows they were asked of."""

    def __init__(self, home: Home) -> None:
        self._persona = home.persona.id
        self._file = home.beside("qa") / "questions.yaml"
        self._journal_file = home.beside("qa") / "windows.jsonl"
        self._entries = _read_entries(self._file)
        self._windows: dict[str, Window] = {}
        unsettled: dict[str, Window] = {}
        if self._journal_file.is_file():
            # Opening it cuts off a line that a killed pass left half written.
            Journal(self._journal_file).close()
            for line in read_records(self._journal_file, Window):
                if line.settled:
                    unsettled.pop(line.key, None)
                else:
                    self._windows[line.key] = unsettled[line.key] = line
        for window in unsettled.values():
            self._settle(window)

    def __len__(self) -> int:
        return len(self._entries)

    def is_done(self, key: str) -> bool:
        return key in self._windows

    def categories(self, keys: Iterable[str]) -> Counter[str]:
        """How many pairs of each category these windows gave."""
        windows = [self._windows[key] for key in keys if key in self._windows]
        return Counter(pair.category for window in windows for pair in window.pairs)

    def dropped(self) -> Counter[str]:
        """How many pairs of all windows were dropped, by reason."""
        counted: Counter[str] = Counter()
        for window in self._windows.values():
            counted.update(window.dropped)
        return counted

    def add(self, key: str, pairs: Iterable[Pair], dropped: dict[str, int]) -> Window:
        """Enter what a window gave; what is asked already is left out and counted."""
        asked = {asked_words(str(entry["question"])) for entry in self._entries}
        new: list[Pair] = []
        counted = Counter(dropped)
        for pair in pairs:
            if (words := asked_words(pair.question)) in asked:
                counted["duplicate"] += 1
            else:
                asked.add(words)
                new.append(pair)
        first = self._last_number() + 1
        ids = tuple(f"{self._persona}-q{first + place:03}" for place in range(len(new)))
        window = Window(key, ids, tuple(new), dict(counted))
        with Journal(self._journal_file) as journal:
            journal.append(window)
        self._windows[key] = window
        self._settle(window)
        return window

    def _settle(self, window: Window) -> None:
        there = {entry["id"] for entry in self._entries}
        for id, pair in zip(window.ids, window.pairs, strict=True):
            if id not in there:
                self._entries.append({"id": id, **msgspec.to_builtins(pair)})
        if window.pairs:
            write_atomically(self._file, dump_yaml(self._entries).encode())
        with Journal(self._journal_file) as journal:
            journal.append(Window(window.key, settled=True))

    def _last_number(self) -> int:
        """Numbers are never given twice, not even those of pairs that were deleted."""
        ids = [str(entry["id"]) for entry in self._entries]
        ids += [id for window in self._windows.values() for id in window.ids]
        pattern = re.compile(rf"{re.escape(self._persona)}-q(\d+)")
        return max((int(found[1]) for id in ids if (found := pattern.fullmatch(id))), default=0)


def _read_entries(path: Path) -> list[dict[str, Any]]:
    """The entries as they stand, fields that nobody here knows included."""
    if not path.is_file():
        return []
    read_questions(path)
    entries: list[dict[str, Any]] = load_yaml(path)
    return entries
