"""Replay the calls of a log on systems, and say which recalls would change.

There are no labels: agreement with the log is not recall, and a change may be for the better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

import msgspec

from mnemoscope._store.errors import MnemoscopeError, SystemLost, UsageError, error_text
from mnemoscope.runner.logged_calls import CallLog, LoggedCall, found_in
from mnemoscope.systems.loader import Driver, Plan, describe
from mnemoscope.types import Hit, Memory, Query, Selector

LOGGED = "the log"
CAVEAT = (
    "Agreement is not recall: the log has no labels. A change may be for the better or for the "
    "worse; read some of them, or label them and run a benchmark"
)
_SCOPE = "replay"


class ReplayedRecall(msgspec.Struct, frozen=True, kw_only=True):
    """What one system found for one logged query, beside the reference."""

    line: int
    query: str
    found: list[str]
    """Ids of memories, best first."""
    reference: list[str] | None = None
    """What the reference found; None if the log has no reply for this query."""
    error: str = ""

    @property
    def newly_found(self) -> list[str]:
        return [id for id in self.found if id not in (self.reference or ())]

    @property
    def no_longer_found(self) -> list[str]:
        return [id for id in self.reference or () if id not in self.found]

    @property
    def is_compared(self) -> bool:
        return self.reference is not None and not self.error

    @property
    def is_changed(self) -> bool:
        return self.is_compared and bool(self.newly_found or self.no_longer_found)

    @property
    def overlap(self) -> float:
        """The share of memories in both lists, of the longer one; 1 if both are empty."""
        longest = max(len(self.found), len(self.reference or ()))
        shared = len(set(self.found) & set(self.reference or ()))
        return shared / longest if longest else 1.0


class ReplayedSystem(msgspec.Struct, frozen=True, kw_only=True):
    """All recalls of one system."""

    system: str
    recalls: list[ReplayedRecall]
    rejected: int = 0
    """Memories that the system did not store."""
    not_forgotten: int = 0
    """Deletions of the log that the system could not make."""
    error: str = ""
    """Why the system stopped, if it did."""

    @property
    def compared(self) -> list[ReplayedRecall]:
        return [one for one in self.recalls if one.is_compared]

    @property
    def changed(self) -> list[ReplayedRecall]:
        return [one for one in self.recalls if one.is_changed]

    @property
    def mean_overlap(self) -> float | None:
        return fmean(one.overlap for one in self.compared) if self.compared else None


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A replayed log."""

    reference: str
    """`the log`, or the label of the first system."""
    k: int
    memories: dict[str, str]
    """Id to text of everything that the log writes."""
    systems: list[ReplayedSystem]
    skipped: dict[str, int]
    caveat: str = CAVEAT


def replay_log(
    log: CallLog,
    plans: Sequence[Plan],
    k: int,
    *,
    against: str = "",
    done: Callable[[str], None] | None = None,
) -> Replay:
    """Replay a log on each system.

    Writes before a query are visible to it and later ones are not, because calls are made in their
    order. `against` is `log` or `first`; by default the log, if it has replies.
    """
    if k < 1:
        raise UsageError(f"--k {k}: compare at least one hit")
    memories = {
        memory.id: memory
        for call in log.calls
        if call.operation == "remember"
        for memory in call.memories
    }
    logged = _logged(log, k)
    has_replies = any(found is not None for found in logged.values())
    if against == "log" and not has_replies:
        raise UsageError("--against log: the log has no replies to its searches; use first")
    by_log = against == "log" or (against != "first" and has_replies)
    reference: Mapping[int, list[str] | None] | None = logged if by_log else None
    if not by_log and len(plans) < 2:
        raise UsageError("the log has no replies to compare with: name two systems or more")
    systems: list[ReplayedSystem] = []
    for plan in plans:
        label = plan.spec.label or str(plan.spec)
        if done is not None:
            done(label)
        replayed = _replayed(label, plan, log, k, reference)
        if reference is None:
            if replayed.error:
                raise MnemoscopeError(f"{label} is the reference and failed: {replayed.error}")
            reference = {one.line: None if one.error else one.found for one in replayed.recalls}
        systems.append(replayed)
    return Replay(
        reference=LOGGED if by_log else systems[0].system,
        k=k,
        memories={id: memory.text for id, memory in memories.items()},
        systems=systems,
        skipped=log.skipped,
    )


def _logged(log: CallLog, k: int) -> dict[int, list[str] | None]:
    """What each logged search found among the memories that were written before it."""
    held: dict[str, Memory] = {}
    found: dict[int, list[str] | None] = {}
    for call in log.calls:
        if call.operation == "remember":
            held |= {memory.id: memory for memory in call.memories}
        elif call.operation == "recall":
            own = found_in(call, held)
            found[call.line] = None if own is None else own[:k]
    return found


def _replayed(
    label: str,
    plan: Plan,
    log: CallLog,
    k: int,
    reference: Mapping[int, list[str] | None] | None,
) -> ReplayedSystem:
    recalls: list[ReplayedRecall] = []
    rejected = not_forgotten = 0
    problem = ""
    described = describe(plan)
    driver = Driver(plan.build, described.system)
    held: dict[str, Memory] = {}
    try:
        driver.begin(_SCOPE)
        for call in log.calls:
            if call.operation == "remember":
                rejected += len(driver.remember(call.memories).rejected)
                held |= {memory.id: memory for memory in call.memories}
            elif call.operation == "forget":
                gone = _meant(call.memories, held)
                if gone and driver.can("forget"):
                    driver.forget(Selector(gone))
                elif gone:
                    not_forgotten += len(gone)
            else:
                expected = None if reference is None else reference.get(call.line)
                recalls.append(_recalled(driver, call, expected, held, k))
    except Exception as error:
        problem = error_text(error)
    finally:
        driver.close()
    return ReplayedSystem(
        system=label,
        recalls=recalls,
        rejected=rejected,
        not_forgotten=not_forgotten,
        error=problem,
    )


def _recalled(
    driver: Driver,
    call: LoggedCall,
    expected: list[str] | None,
    held: Mapping[str, Memory],
    k: int,
) -> ReplayedRecall:
    """One recall; an error is recorded, unless the system is lost."""
    found: list[str] = []
    problem = ""
    try:
        found = _ids(driver.ask(Query(call.query, call.at), k), held)[:k]
    except SystemLost:
        raise
    except Exception as error:
        problem = error_text(error)
    return ReplayedRecall(
        line=call.line, query=call.query, found=found, reference=expected, error=problem
    )


def _meant(selected: Sequence[Memory], held: Mapping[str, Memory]) -> tuple[Memory, ...]:
    """The memories that a deletion means, by id, by text, or by the entity they are about."""
    wanted = {memory.text for memory in selected}
    return tuple(
        memory
        for memory in held.values()
        if memory.id in wanted
        or memory.text in wanted
        or (": " in memory.text and {*memory.text.split(": ", 1)} & wanted)
    )


def _ids(hits: Sequence[Hit], held: Mapping[str, Memory]) -> list[str]:
    """The memories of hits, by their ids, their sources or their texts."""
    by_text = {memory.text: id for id, memory in held.items()}
    found: list[str] = []
    for hit in hits:
        named = [id for id in (hit.id, *hit.sources) if id in held]
        found += named or [by_text[hit.text]] * (hit.text in by_text)
    return list(dict.fromkeys(found))
