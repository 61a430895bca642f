"""The system under check: the kit calls it only through this module.

A call that raises becomes a flaw with the name of the call. The parent gets the name before the
call, so that it can name a call that does not return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from typing import Any

from mnemoscope._store.errors import BadReply
from mnemoscope.integrations.catalog import ITEMS
from mnemoscope.runner.checkpoints import joined
from mnemoscope.runner.conformance.sample_facts import ASKED_AT
from mnemoscope.runner.failures import error_line
from mnemoscope.systems import CONNECTORS
from mnemoscope.systems.hosted import Hosted
from mnemoscope.systems.loader import Driver, Plan, abilities
from mnemoscope.systems.machine_clock import machine_clock
from mnemoscope.types import Hit, Memory, Question, Receipt, Selector

ROOM = 50
"""The k of a question that must find its memory at any rank: more than the kit ingests."""

BUILDING = "building it, or reset('kit')"


class Flaw(Exception):
    """What is wrong with the system: what was seen, and what its author should do."""

    def __init__(self, seen: str, fix: str, *, required: bool = True) -> None:
        super().__init__(seen)
        self.seen, self.fix, self.required = seen, fix, required


class Raised(Flaw):
    """A call that raised. The same error in a later check is not a new finding."""


class Unclear(Exception):
    """A check that gives no result for this system, and why."""


class SystemProbe:
    """One system, and the scopes that the checks open in it."""

    def __init__(
        self, plan: Plan, announce: Callable[[str], None], patience: float, built: Any = None
    ) -> None:
        self.patience = patience
        """Seconds after which a memory that is not found counts as lost."""
        self.is_leaking = False
        """Whether a scope contained memories of another scope, or of before its reset."""
        name = plan.spec.name
        self.is_remote = name in ITEMS or name.partition(":")[0] in CONNECTORS.builtin
        """Whether the system runs in a process whose clock cannot be replaced."""
        self.announce = announce
        self.ever_given: set[str] = set()
        self._plan = plan
        self._built = built
        self._driver = Driver(self._build, built)
        with self.trying(BUILDING):
            self._driver.begin("kit")
        self._first = self._built
        self.verbs = _verbs(self._first)
        self.can_remember = abilities(self._first).remembers
        """Whether it has `remember`, or is a bare function, which needs none."""

    def _build(self) -> Any:
        self._built = self._plan.build()
        return self._built

    def _build_beside(self) -> Any:
        """Another system in the same process as the first; None if it is the same object."""
        if isinstance(self._built, Hosted):
            return self._built.another()
        system = self._plan.build()
        return None if system is self._first else system

    @cached_property
    def is_shared_object(self) -> bool:
        """Whether every build gives the same object."""
        with self.trying("building another one, or reset('kit')"):
            system = self._build_beside()
            if system is None:
                return True
            driver = Driver(self._build_beside, system)
            driver.begin("kit")
        driver.close()
        return False

    @contextmanager
    def machine_clock(self) -> Iterator[Callable[[float], None]]:
        """While the block runs, the system's Python code reads a clock; the function sets it."""
        if not isinstance(self._built, Hosted):
            with machine_clock() as clock:
                yield clock.put
            return
        try:
            yield self._built.set_clock
        finally:
            with suppress(Exception):  # its process may have ended
                self._built.set_clock(None)

    def scope(self, scope: str, *batches: Sequence[Memory]) -> Scope:
        """The system, reset to this scope, with these memories ingested, as in a run."""
        return self._begun(self._driver, scope, batches)

    def separate_scope(self, scope: str, *batches: Sequence[Memory]) -> Scope:
        """The same in a newly built system, which the caller closes."""
        return self._begun(Driver(self._build_beside), scope, batches)

    def _begun(self, driver: Driver, scope: str, batches: Iterable[Sequence[Memory]]) -> Scope:
        with self.trying(f"reset({scope!r})" if "reset" in self.verbs else "building it"):
            driver.begin(scope)
        opened = Scope(self, driver)
        for batch in batches:
            opened.remember(batch)
        return opened

    def start_over(self) -> None:
        """Build the system again: the last check may have damaged it."""
        self._driver.close()

    def close(self) -> None:
        self.announce("close()")
        self._driver.close()

    @contextmanager
    def trying(self, call: str) -> Iterator[None]:
        self.announce(call)
        try:
            yield
        except BadReply as error:
            raise Raised(f"{call}: {error}", "Return what docs/systems.md describes.") from error
        except BaseException as error:
            raise Raised(
                f"{call} raised {error_line(error)}",
                "Fix the error; in a run it fails the question or the whole scenario.",
            ) from error


class Scope:
    """The system in one scope, with the memories ingested there."""

    def __init__(self, system: SystemProbe, driver: Driver) -> None:
        self.given: dict[str, Memory] = {}
        self.receipt = Receipt()
        self._subject = system
        self._driver = driver

    def remember(self, memories: Sequence[Memory]) -> Receipt:
        self.given |= {memory.id: memory for memory in memories}
        self._subject.ever_given |= self.given.keys()
        with self._subject.trying(f"remember({len(memories)} memories) or ready()"):
            new = self._driver.remember(memories)
        self.receipt = joined(self.receipt, new)
        return new

    def forget(self, memories: Sequence[Memory]) -> None:
        with self._subject.trying(f"forget({len(memories)} memories) or ready()"):
            self._driver.forget(Selector(tuple(memories)))

    def fork(self) -> Scope:
        with self._subject.trying("fork()"):
            copy = Scope(self._subject, self._driver.fork())
        copy.given, copy.receipt = dict(self.given), self.receipt
        return copy

    def close(self) -> None:
        self._subject.announce("close()")
        self._driver.close()

    def recall(
        self, text: str, k: int = ROOM, *, now: datetime | None = ASKED_AT, about: str = ""
    ) -> list[Hit]:
        """Ask a question; only the oracle sees `about`, the id of the memory asked for."""
        question = Question("", text, now, evidence=(about,) if about else ())
        with self._subject.trying(f"recall({text[:40]!r}, k={k})"):
            return self._driver.recall(question, k)

    def answer(self, text: str) -> str:
        with self._subject.trying(f"answer({text[:40]!r})"):
            return self._driver.answer(Question("", text, ASKED_AT))

    def finds(self, memory: Memory, *, now: datetime | None = ASKED_AT) -> bool:
        """Whether a question with the memory's own words finds it."""
        return any(stems_from(hit, memory.id) for hit in self.recall_own(memory, now=now))

    def recall_own(self, memory: Memory, *, now: datetime | None = ASKED_AT) -> list[Hit]:
        return self.recall(memory.text, now=now, about=memory.id)

    def missing(self, memories: Iterable[Memory]) -> list[Memory]:
        """The memories that are neither found nor in the receipt.

        The last given is asked for first, to detect indexing that is not finished.
        """
        excused = self.receipt.rejected.keys() | self.receipt.merged.keys()
        asked = [memory for memory in memories if memory.id not in excused]
        return [memory for memory in reversed(asked) if not self.finds(memory)]

    def must_find(self, memories: Sequence[Memory]) -> None:
        """Require that the memories are found; otherwise a check for lost ones gives no result."""
        if gone := self.missing(memories):
            why = "foreign ids, see ids" if self.foreign(gone[0]) else "see read-back and losses"
            raise Unclear(f"cannot be checked: {named(gone)} is not found at all ({why})")
        if all(m.id in self.receipt.rejected.keys() | self.receipt.merged.keys() for m in memories):
            raise Unclear("cannot be checked: it rejected or merged every memory")

    def foreign(self, memory: Memory) -> list[Hit]:
        """Hits for a memory's own words whose ids the kit never gave."""
        known = self._subject.ever_given
        return [hit for hit in self.recall_own(memory) if not set(origins(hit)) <= known]

    def rankings(
        self, memories: Iterable[Memory], *, now: datetime | None = ASKED_AT
    ) -> dict[str, list[str]]:
        """The ranking for each memory's own words: ids of this scope's memories, each once."""
        return {memory.id: self._traced(self.recall_own(memory, now=now)) for memory in memories}

    def _traced(self, hits: Iterable[Hit]) -> list[str]:
        ids = [id for hit in hits for id in origins(hit) if id in self.given]
        return list(dict.fromkeys(ids))


def origins(hit: Hit) -> tuple[str, ...]:
    """The ids of the memories that a hit was made from."""
    return hit.sources or (hit.id,)


def stems_from(hit: Hit, id: str) -> bool:
    return hit.id == id or id in hit.sources


def named(memories: Sequence[Memory]) -> str:
    """The first memory's words and the number of others, for a message."""
    more = f" and {len(memories) - 1} more" if len(memories) > 1 else ""
    return f"“{memories[0].text[:48]}”{more}"


def differing(one: dict[str, list[str]], other: dict[str, list[str]]) -> list[str]:
    """Ids of the memories whose rankings differ."""
    return [id for id, ranking in one.items() if ranking != other[id]]


def _verbs(system: Any) -> frozenset[str]:
    names = ("reset", "remember", "ready", "answer", "forget", "fork", "stats", "close")
    verbs = {name for name in names if hasattr(system, name)}
    if hasattr(system, "build_index"):
        verbs.add("remember")
    if abilities(system).recalls:
        verbs.add("recall")
    return frozenset(verbs)
