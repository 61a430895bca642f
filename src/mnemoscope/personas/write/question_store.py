"""The question store: questions.yaml, and next to it the journal of the windows that were asked.

The journal has three lines for a window: its pairs as soon as they are received, then their ids,
then that the pairs are in questions.yaml. So a killed pass neither loses a pair nor asks for it
again. Ids follow the order of windows, not of replies, so a resumed pass gives the same questions.
Pairs that were deleted from questions.yaml are not written again.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from mnemoscope._store.jsonl import Journal, read_records, write_atomically
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.datasets.persona_folder import read_questions
from mnemoscope.personas.authored_question import AuthoredQuestion
from mnemoscope.personas.write.llm_writer import Written
from mnemoscope.personas.write.persona_files import PersonaFiles
from mnemoscope.personas.write.question_rules import WindowReply, asked_words


class WindowRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The pairs of a window; a line of the journal has a part of the fields."""

    key: str
    """`standard 8-14`, or `boundary family 1-30`."""
    ids: tuple[str, ...] = ()
    """One for each pair; empty for a duplicate."""
    pairs: tuple[AuthoredQuestion, ...] = ()
    dropped: dict[str, int] = {}
    settled: bool = False
    """The pairs are in questions.yaml."""

    @property
    def kept(self) -> list[AuthoredQuestion]:
        """The pairs that have an id, with it."""
        numbered = zip(self.ids, self.pairs, strict=False)
        return [msgspec.structs.replace(pair, id=id) for id, pair in numbered if id]

    @property
    def losses(self) -> Counter[str]:
        """How many pairs were dropped, by reason."""
        return Counter(self.dropped) + Counter(duplicate=self.ids.count(""))


class QuestionStore:
    """All questions of a history, and the windows that they came from."""

    def __init__(self, files: PersonaFiles) -> None:
        self._persona = files.persona.id
        self._file = files.beside("qa") / "questions.yaml"
        self._journal_file = files.beside("qa") / "windows.jsonl"
        self._entries: list[dict[str, object]] = []
        """The entries of questions.yaml, unknown fields included."""
        if self._file.is_file():
            read_questions(self._file)
            self._entries = load_yaml(self._file)
        self._windows: dict[str, WindowRecord] = {}
        if self._journal_file.is_file():
            # Opening it removes a line that a killed pass left incomplete.
            Journal(self._journal_file).close()
            for line in read_records(self._journal_file, WindowRecord):
                self._note(line)
        for window in list(self._windows.values()):
            if window.ids and not window.settled:
                self._settle(window)

    def __len__(self) -> int:
        return len(self._entries)

    def is_done(self, key: str) -> bool:
        return key in self._windows

    def is_settled(self, key: str) -> bool:
        return key in self._windows and self._windows[key].settled

    def categories(self, keys: Iterable[str]) -> Counter[str]:
        """How many pairs of each category these windows gave."""
        windows = [self._windows[key] for key in keys if key in self._windows]
        return Counter(pair.category for window in windows for pair in window.kept)

    def dropped(self) -> Counter[str]:
        """How many pairs of all windows were dropped, by reason."""
        return sum((window.losses for window in self._windows.values()), Counter[str]())

    def gather(
        self, keys: Sequence[str], written: Iterable[Written[WindowReply]]
    ) -> Iterator[WindowRecord]:
        """Record each reply as it is received, and number the pairs in the order of the windows.

        A window without a reply delays the later ones until the last reply is received.
        """
        waiting = deque(key for key in keys if not self.is_settled(key))
        for one in written:
            if one.result is not None:
                self._enter(WindowRecord(one.result.key, (), one.result.pairs, one.result.dropped))
            while waiting and self.is_done(waiting[0]):
                yield self._number(waiting.popleft())
        yield from map(self._number, filter(self.is_done, waiting))

    def settle_all_but(self, keys: Iterable[str]) -> None:
        """Number the pairs of other windows that a killed pass left without ids."""
        left = [key for key in self._windows if not self.is_settled(key)]
        for key in left:
            if key not in set(keys):
                self._number(key)

    def _number(self, key: str) -> WindowRecord:
        """Give the window's pairs their ids; a duplicate gets none."""
        asked = {asked_words(str(entry["question"])) for entry in self._entries}
        number, ids = self._last_number(), list[str]()
        for pair in self._windows[key].pairs:
            if (words := asked_words(pair.question)) in asked:
                ids.append("")
            else:
                asked.add(words)
                number += 1
                ids.append(f"{self._persona}-q{number:03}")
        self._enter(WindowRecord(key, tuple(ids)))
        return self._settle(self._windows[key])

    def _settle(self, window: WindowRecord) -> WindowRecord:
        there = {entry["id"] for entry in self._entries}
        if new := [pair for pair in window.kept if pair.id not in there]:
            self._entries += msgspec.to_builtins(new)
            write_atomically(self._file, dump_yaml(self._entries).encode())
        self._enter(WindowRecord(window.key, settled=True))
        return self._windows[window.key]

    def _enter(self, line: WindowRecord) -> None:
        with Journal(self._journal_file) as journal:
            journal.append(line)
        self._note(line)

    def _note(self, line: WindowRecord) -> None:
        """Merge one more line of the journal into the window's record."""
        window = self._windows.get(line.key)
        if window is not None and not line.pairs:
            line = msgspec.structs.replace(
                window, ids=line.ids or window.ids, settled=line.settled or window.settled
            )
        self._windows[line.key] = line

    def _last_number(self) -> int:
        """The highest number so far, including deleted pairs, because ids are never reused."""
        ids = [str(entry["id"]) for entry in self._entries]
        ids += [id for window in self._windows.values() for id in window.ids]
        pattern = re.compile(rf"{re.escape(self._persona)}-q(\d+)")
        return max((int(found[1]) for id in ids if (found := pattern.fullmatch(id))), default=0)
