"""Systems that break the contract, each in one way; selected as flawed_systems:Name.

All but the flaw is sound: they find the memories that share words with the question.
"""

from __future__ import annotations

import copy
import os
import random
import re
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from mnemoscope.types import Hit, Memory, Query, Receipt, Selector


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


class Sound:
    """A correct system with all methods."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []

    def reset(self, scope: str) -> None:
        self.memories = []

    def remember(self, memories: Sequence[Memory]) -> Any:
        self.memories.extend(memories)

    def recall(self, query: Query, k: int) -> Any:
        return [memory.id for memory in self.found(query)][:k]

    def found(self, query: Query) -> list[Memory]:
        asked = words(query.text)
        shared = [(len(asked & words(memory.text)), memory) for memory in self.memories]
        best = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
        return [memory for _, memory in best]

    def forget(self, selector: Selector) -> None:
        self.memories = [memory for memory in self.memories if memory.id not in selector.ids]

    def fork(self) -> Any:
        twin = copy.copy(self)
        twin.memories = list(self.memories)
        return twin


class LeaksBetweenScopes(Sound):
    """Ignores scopes."""

    def reset(self, scope: str) -> None:
        pass


class LeaksByWording(Sound):
    """Hits are new texts without sources, made from memories of all scopes."""

    heard: ClassVar[list[str]] = []

    def remember(self, memories: Sequence[Memory]) -> Any:
        super().remember(memories)
        self.heard.extend(memory.text for memory in memories)

    def recall(self, query: Query, k: int) -> Any:
        said = [text for text in self.heard if words(text) & words(query.text)]
        return [Hit(memory.id, text=" ".join(said)) for memory in self.found(query)][:k]


class KeepsWhatItHad(Sound):
    """Has a store for each scope, and does not empty it on reset."""

    def __init__(self) -> None:
        self.stores: dict[str, list[Memory]] = {}

    def reset(self, scope: str) -> None:
        self.memories = self.stores.setdefault(scope, [])


class SharesOneStore(Sound):
    """Every instance empties and fills the same list."""

    store: ClassVar[list[Memory]] = []

    def __init__(self) -> None:
        self.memories = self.store

    def reset(self, scope: str) -> None:
        self.store.clear()


class StampsWithTheMachinesClock(Sound):
    """The latest first, by the time of ingestion instead of the date of the memory."""

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.stamps: dict[str, float] = {}

    def remember(self, memories: Sequence[Memory]) -> Any:
        super().remember(memories)
        self.stamps |= {memory.id: time.time() for memory in memories}

    def found(self, query: Query) -> list[Memory]:
        return sorted(super().found(query), key=lambda memory: -self.stamps[memory.id])


class ExpiresByTheMachinesClock(Sound):
    """Drops memories that are more than twenty years old, or in the future, by today's date."""

    def found(self, query: Query) -> list[Memory]:
        today = datetime.now(UTC)
        oldest = today - timedelta(days=365 * 20)
        return [m for m in super().found(query) if m.at is None or oldest < m.at <= today]


class SearchesBeforeIndexing(Sound):
    """Returns from ready before the index is complete, which takes one more question."""

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.behind: list[Memory] = []

    def remember(self, memories: Sequence[Memory]) -> Any:
        self.behind.extend(memories)

    def ready(self) -> None:
        pass

    def found(self, query: Query) -> list[Memory]:
        found = super().found(query)
        self.memories, self.behind = [*self.memories, *self.behind], []
        return found


class ForgetsNothing(Sound):
    def forget(self, selector: Selector) -> None:
        pass


class ForgetsTooMuch(Sound):
    def forget(self, selector: Selector) -> None:
        self.memories = self.memories[:2]


class ReturnsOtherIds(Sound):
    """Numbers what it stores, and returns the numbers."""

    def recall(self, query: Query, k: int) -> Any:
        return [f"row-{self.memories.index(memory)}" for memory in self.found(query)][:k]


class NamesItsSources(ReturnsOtherIds):
    """The same, but each hit has sources, which is correct."""

    def recall(self, query: Query, k: int) -> Any:
        return [Hit(f"row-{m.id}", sources=(m.id,)) for m in self.found(query)][:k]


class LosesSilently(Sound):
    def remember(self, memories: Sequence[Memory]) -> Any:
        super().remember(memories[::2])


class LosesAndSaysSo(Sound):
    def remember(self, memories: Sequence[Memory]) -> Any:
        super().remember(memories[::2])
        return Receipt(rejected={memory.id: "every second one is" for memory in memories[1::2]})


class MergesSilently(Sound):
    def remember(self, memories: Sequence[Memory]) -> Any:
        held = {memory.text for memory in self.memories}
        for memory in memories:
            if memory.text not in held:
                self.memories.append(memory)
                held.add(memory.text)


class LearnsFromQuestions(Sound):
    """Ranks recently recalled memories higher."""

    def recall(self, query: Query, k: int) -> Any:
        found = self.found(query)[:k]
        if found:
            self.memories.remove(found[-1])
            self.memories.insert(0, found[-1])
        return [memory.id for memory in found]


class CopiesShareTheStore(Sound):
    def fork(self) -> Any:
        return copy.copy(self)


class NeverTheSame(Sound):
    def found(self, query: Query) -> list[Memory]:
        found = super().found(query)
        random.shuffle(found)
        return found


class CutsLongTexts(Sound):
    def found(self, query: Query) -> list[Memory]:
        kept = [m for m in super().found(query) if words(query.text) & words(m.text[:500])]
        return [m for m in kept if len(m.text) < 500 or words(m.text[:500]) >= words(query.text)]


class NeedsDates(Sound):
    def found(self, query: Query) -> list[Memory]:
        return [m for m in super().found(query) if m.at and query.now and m.at < query.now]


class ParsesTheQuestion(Sound):
    """Passes search syntax in the question to its search engine."""

    def recall(self, query: Query, k: int) -> Any:
        if '"' in query.text:
            raise ValueError("unbalanced quotes")
        return super().recall(query, k)


class ReturnsNothingButNone(Sound):
    def recall(self, query: Query, k: int) -> Any:
        return super().recall(query, k) if query.text else None


class Exits(Sound):
    """Ends the process when it gets a memory without text."""

    def remember(self, memories: Sequence[Memory]) -> Any:
        if not all(memory.text for memory in memories):
            os._exit(3)
        super().remember(memories)


class Hangs(Sound):
    """Hangs in forget."""

    def forget(self, selector: Selector) -> None:
        threading.Event().wait()


class HangsAlways(Sound):
    def recall(self, query: Query, k: int) -> Any:
        threading.Event().wait()


class AnswersOnly:
    """Has no recall; answers with the sentence that shares most words with the question."""

    heard: ClassVar[list[str]] = []

    def reset(self, scope: str) -> None:
        self.told: list[str] = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self.told.extend(memory.text for memory in memories)

    def answer(self, query: Query) -> str:
        asked = words(query.text)
        return max(self.told, key=lambda text: len(asked & words(text)), default="")


class AnswersFromEverywhere(AnswersOnly):
    def reset(self, scope: str) -> None:
        self.told = self.heard


def first_three(query: Query, k: int) -> list[str]:
    """A bare function with its own collection."""
    return ["a", "b", "c"][:k]


only_one = Sound()
"""An object instead of a class."""
