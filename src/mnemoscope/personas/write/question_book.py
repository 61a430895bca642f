"""The question book: questions.yaml, and beside it the journal of the windows that were asked.

A window's pairs are in the journal as soon as they have come. They get their numbers in the order
of windows, not of replies, so that a pass gives the same questions however often it was killed. A
second line holds the numbers, a third says that the pairs are in questions.yaml: whatever lies in
between is neither lost nor asked for again. Pairs that somebody deleted there do not come back.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.jsonl import Journal, read_records, write_atomically
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.datasets.persona_folder import read_questions
from mnemoscope.personas.write.llm_writer import Written
from mnemoscope.personas.write.persona_files import PersonaFiles
from mnemoscope.personas.write.question_answer_pairs import Gathered, Pair
from mnemoscope.personas.write.question_wording import asked_words


class Window(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a window gave; in the journal three lines: what came, its numbers, `settled`."""

    key: str
    """`standard 8-14`, or `boundary family 1-30`."""
    ids: tuple[str, ...] = ()
    """One for each pair; empty for what was asked already."""
    pairs: tuple[Pair, ...] = ()
    dropped: dict[str, int] = {}
    settled: bool = False
    """The pairs are in questions.yaml."""

    @property
    def kept(self) -> list[tuple[str, Pair]]:
        """The pairs that have a number, with it."""
        return [(id, pair) for id, pair in zip(self.ids, self.pairs, strict=False) if id]

    @property
    def lost(self) -> Counter[str]:
        """How many pairs came to nothing, by reason."""
        return Counter(self.dropped) + Counter(duplicate=self.ids.count(""))


class QuestionBook:
    """All questions of a life, and which windows they were asked of."""

    def __init__(self, home: PersonaFiles) -> None:
        self._persona = home.persona.id
        self._file = home.beside("qa") / "questions.yaml"
        self._journal_file = home.beside("qa") / "windows.jsonl"
        self._entries = _read_entries(self._file)
        self._windows: dict[str, Window] = {}
        if self._journal_file.is_file():
            # Opening it cuts off a line that a killed pass left half written.
            Journal(self._journal_file).close()
            for line in read_records(self._journal_file, Window):
                self._windows[line.key] = _joined(self._windows.get(line.key), line)
        for window in list(self._windows.values()):
            if window.ids and not window.settled:
                self._settle(window)

    def __len__(self) -> int:
        return len(self._entries)

    def is_done(self, key: str) -> bool:
        return key in self._windows

    def categories(self, keys: Iterable[str]) -> Counter[str]:
        """How many pairs of each category these windows gave."""
        windows = [self._windows[key] for key in keys if key in self._windows]
        return Counter(pair.category for window in windows for _, pair in window.kept)

    def dropped(self) -> Counter[str]:
        """How many pairs of all windows were dropped, by reason."""
        return sum((window.lost for window in self._windows.values()), Counter[str]())

    def gather(self, keys: Sequence[str], written: Iterable[Written[Gathered]]) -> Iterator[Window]:
        """Write down each reply as it comes, and number the pairs in the order of the windows.

        A window whose reply has not come holds up those behind it until the last reply is there.
        """
        waiting = deque(key for key in keys if not self.is_settled(key))
        for one in written:
            if one.result is not None:
                self._enter(Window(one.result.key, (), one.result.pairs, one.result.dropped))
            while waiting and self.is_done(waiting[0]):
                yield self._number(waiting.popleft())
        yield from map(self._number, filter(self.is_done, waiting))

    def settle_all_but(self, keys: Iterable[str]) -> None:
        """What a killed pass left without numbers, and this one will not come upon."""
        left = [key for key in self._windows if not self.is_settled(key)]
        for key in left:
            if key not in set(keys):
                self._number(key)

    def is_settled(self, key: str) -> bool:
        return key in self._windows and self._windows[key].settled

    def _number(self, key: str) -> Window:
        """Give the window's pairs their numbers; what is asked already gets none."""
        window = self._windows[key]
        asked = {asked_words(str(entry["question"])) for entry in self._entries}
        number, ids = self._last_number(), list[str]()
        for pair in window.pairs:
            if (words := asked_words(pair.question)) in asked:
                ids.append("")
            else:
                asked.add(words)
                number += 1
                ids.append(f"{self._persona}-q{number:03}")
        self._enter(Window(key, tuple(ids)))
        return self._settle(self._windows[key])

    def _settle(self, window: Window) -> Window:
        there = {entry["id"] for entry in self._entries}
        new = [(id, pair) for id, pair in window.kept if id not in there]
        self._entries += ({"id": id, **msgspec.to_builtins(pair)} for id, pair in new)
        if new:
            write_atomically(self._file, dump_yaml(self._entries).encode())
        self._enter(Window(window.key, settled=True))
        return self._windows[window.key]

    def _enter(self, line: Window) -> None:
        with Journal(self._journal_file) as journal:
            journal.append(line)
        self._windows[line.key] = _joined(self._windows.get(line.key), line)

    def _last_number(self) -> int:
        """Numbers are never given twice, not even those of pairs that were deleted."""
        ids = [str(entry["id"]) for entry in self._entries]
        ids += [id for window in self._windows.values() for id in window.ids]
        pattern = re.compile(rf"{re.escape(self._persona)}-q(\d+)")
        return max((int(found[1]) for id in ids if (found := pattern.fullmatch(id))), default=0)


def _joined(window: Window | None, line: Window) -> Window:
    """What is known of a window after one more line of the journal."""
    if window is None or line.pairs:
        return line
    return msgspec.structs.replace(
        window, ids=line.ids or window.ids, settled=line.settled or window.settled
    )


def _read_entries(path: Path) -> list[dict[str, Any]]:
    """The entries as they stand, fields that nobody here knows included."""
    if not path.is_file():
        return []
    read_questions(path)
    entries: list[dict[str, Any]] = load_yaml(path)
    return entries
