"""Memories that a durability test writes, and how it finds out whether a system has them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from mnemoscope.systems.loader import Driver
from mnemoscope.types import Hit, Memory, Question

_K = 10
_FIRST = datetime(2026, 1, 5, 9, tzinfo=UTC)
_WHO = "Ada Ben Cleo Dana Emil Fay Gus Hana Ivo June".split()
_WHAT = "lamp bicycle piano kettle ladder camera tent violin clock basket".split()
_HOW = "blue old broken borrowed heavy painted spare wooden silver tiny".split()
_WHERE = "cellar attic garden office garage kitchen hallway studio shed barn".split()


def planted(prefix: str, count: int, seed: int) -> list[Memory]:
    """Memories with different words, each with a code that no other text contains."""
    rng = random.Random(f"{seed}/{prefix}")
    found = []
    for number in range(count):
        code = f"{prefix}{rng.randrange(16**8):08x}"
        who, what, how, where = (rng.choice(words) for words in (_WHO, _WHAT, _HOW, _WHERE))
        text = f"{who} keeps the {how} {what} in the {where}. Its code is {code}."
        at = _FIRST + timedelta(minutes=number)
        found.append(Memory(f"{prefix}-{number:04}", text, at=at, session=prefix))
    return found


def present(driver: Driver, memories: Iterable[Memory]) -> set[str]:
    """The ids of the memories that the system returns for their own texts."""
    return {memory.id for memory in memories if _is_found(driver, memory)}


def _is_found(driver: Driver, memory: Memory) -> bool:
    question = Question("", memory.text, now=_FIRST + timedelta(days=1), session=memory.session)
    hits: Sequence[Hit] = driver.recall(question, _K)
    # A system may return texts of its own: then the code says what they were made from.
    code = memory.text.rpartition(" ")[2].rstrip(".")
    return any(
        hit.id == memory.id or memory.id in hit.sources or (hit.text and code in hit.text)
        for hit in hits
    )
