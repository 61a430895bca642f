"""Systems, readers and judges that the tests of checkpoints watch; watched_systems:Name."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from mnemoscope.judges import Case, Unjudged
from mnemoscope.readers import Passage, Reply
from mnemoscope.types import Hit, Memory, Query, Scenario, Score

TROUBLE = "q003"


def take_time() -> None:
    time.sleep(float(os.environ.get("WATCHED_SECONDS", "0.004")))


def tell(line: str) -> None:
    if log := os.environ.get("WATCHED_LOG"):
        with Path(log).open("a") as file:
            file.write(line + "\n")


class Watched:
    """Recalls the latest first, writes each question to $WATCHED_LOG, and has no fork."""

    def reset(self, scope: str) -> None:
        self.ids: list[str] = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self.ids.extend(memory.id for memory in memories)

    def recall(self, query: Query, k: int) -> list[str]:
        if query.text != "warm-up":
            tell(f"recall {len(self.ids)} {query.text.split()[0]}")
            take_time()
        return list(reversed(self.ids))[:k]


class Forgetful(Watched):
    """Loses its memories when it is asked: a copy must be asked instead."""

    def fork(self) -> Forgetful:
        twin = Forgetful()
        twin.ids = list(self.ids)
        return twin

    def recall(self, query: Query, k: int) -> list[str]:
        found = super().recall(query, k)
        if query.text != "warm-up":
            self.ids.clear()
        return found


class Hangs(Watched):
    def recall(self, query: Query, k: int) -> list[str]:
        if TROUBLE in query.text:
            from tests.runner.hanging import hang  # absent in another process

            hang()
        return super().recall(query, k)


class Answers:
    """Has answer and no recall."""

    def reset(self, scope: str) -> None:
        self.texts: list[str] = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self.texts.extend(memory.text for memory in memories)

    def answer(self, query: Query) -> str:
        if TROUBLE in query.text:
            raise RuntimeError("lost for words")
        thing = query.text.split()[-2]
        known = [line for text in self.texts for line in text.splitlines() if thing in line]
        return known[-1] if known else "No evidence found."


class RefusesLater(Watched):
    """Ingests the days of the first checkpoint and refuses later ones."""

    def remember(self, memories: Sequence[Memory]) -> None:
        super().remember(memories)
        if len(self.ids) > 3:
            raise MemoryError("full")


class WrongPerson:
    """Recalls something of another kind each time."""

    def recall(self, query: Query, k: int) -> list[Hit]:
        return [Hit("nobody", text="nothing of the kind")]


class Slowly:
    """A reader that writes what it reads to the log."""

    def read(self, query: Query, passages: Sequence[Passage]) -> Reply:
        tell(f"read {len(passages)} {query.text.split()[0]}")
        take_time()
        first = passages[0].text if passages else ""
        return Reply(first.strip().splitlines()[-1] if first else "No evidence found.")


class HangingReader(Slowly):
    def read(self, query: Query, passages: Sequence[Passage]) -> Reply:
        if TROUBLE in query.text:
            from tests.runner.hanging import hang  # absent in another process

            hang()
        return super().read(query, passages)


class Harsh:
    """A judge that fails everything and cannot judge one question."""

    def begin(self, scenario: Scenario) -> None:
        tell(f"begin {scenario.id}")

    def judge(self, case: Case) -> Score:
        tell(f"judge {case.memories} {case.question.id}")
        if TROUBLE in case.question.id:
            raise Unjudged("cannot make it out")
        return Score(0, 0, 1, f"seen: {case.excerpts[:30]}")


class Mild(Harsh):
    """An appellate judge that fails sometimes."""

    def judge(self, case: Case) -> Score:
        if "q005" in case.question.id:
            raise ConnectionError("away")
        return Score(3, 2, 1, "upheld")


class Nonsense:
    """A reader that returns something else each time."""

    replies = (None, "a text", 5, Reply(5), Reply("half \ud800", sources={1, 2}))  # type: ignore[arg-type]

    def __init__(self) -> None:
        self._asked = 0

    def read(self, query: Query, passages: Sequence[Passage]) -> Reply:
        self._asked += 1
        return self.replies[self._asked % len(self.replies)]  # type: ignore[return-value]


class Lavish(Harsh):
    """A judge that gives scores above the scale."""

    def judge(self, case: Case) -> Score:
        return Score(30, 20, 7)


class Deadly(Watched):
    """Ends its process."""

    def recall(self, query: Query, k: int) -> list[str]:
        if TROUBLE in query.text:
            os._exit(3)
        return super().recall(query, k)


class BadFork(Watched):
    def fork(self) -> BadFork:
        raise RuntimeError("cannot be copied after all")


class SlowJudge(Harsh):
    def judge(self, case: Case) -> Score:
        from tests.runner.hanging import seem_slow

        seem_slow(20)
        return Score(1, 1, 1)
