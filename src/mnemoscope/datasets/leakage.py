"""The leakage scan: does the input of a system reveal which memories are evidence?

It searches ids, sessions, speakers, metadata and text for markers that published datasets have
leaked, and for an id pattern that only evidence has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mnemoscope.types import Memory, Scenario

TEXT_MARKERS = (
    "has_answer",
    "answer_session_ids",
    "relevant_ids",
    "is_evidence",
    "[evidence]",
    "[EVIDENCE]",
    "<evidence>",
    "[gold]",
    "[GOLD]",
    "<gold>",
    "->-> ",
)
LABEL_FIELD = re.compile(r"answer|evidence|gold|relevant|qrel|has_ans", re.IGNORECASE)
LABEL_ID = re.compile(r"(^|[/:_.-])(answer|evidence|gold|relevant)s?([/:_.-]|\d|$)", re.IGNORECASE)
_LABEL_IN_LINE = re.compile(LABEL_ID.pattern, LABEL_ID.flags | re.MULTILINE)
_FAMILY = re.compile(r"[^\W\d_]{3,}")
_FAMILY_SIZE = 5
"""With fewer evidence ids, a word that all of them share may be chance."""


def leaks(scenario: Scenario) -> Iterator[str]:
    """Every leak as a sentence that names the memory."""
    evidence = {id for question in scenario.questions for id in question.evidence}
    memories = scenario.memories
    if _may_leak(scenario):
        for memory in memories:
            yield from _leaks_of(memory)
    families: dict[bool, set[str]] = {True: set(), False: set()}
    tails = [memory.id.rpartition("/")[2] for memory in memories]
    if _FAMILY.search("\n".join(tails)):
        for memory, tail in zip(memories, tails, strict=True):
            word = _FAMILY.search(tail)
            families[memory.id in evidence].add(word.group() if word else "")
    # A first word that all evidence ids share, and only they, reveals the answer.
    leaking = len(families[True]) == 1 and families[False] and not families[True] & families[False]
    if leaking and len(evidence) >= _FAMILY_SIZE:
        family = families[True].pop()
        if family:
            yield f"scenario {scenario.id}: all evidence ids, and only they, contain {family!r}"


def _may_leak(scenario: Scenario) -> bool:
    """Whether a memory must be looked at: one look at all of them finds nothing in most data."""
    memories = scenario.memories
    texts = "\n".join([memory.text for memory in memories])
    speakers = "\n".join({memory.speaker for memory in memories})
    names = "\n".join([memory.id for memory in memories] + [memory.session for memory in memories])
    return (
        any(marker in texts or marker in speakers for marker in TEXT_MARKERS)
        or _LABEL_IN_LINE.search(names) is not None
        or any(memory.metadata for memory in memories)
    )


def _leaks_of(memory: Memory) -> Iterator[str]:
    for field, value in (("text", memory.text), ("speaker", memory.speaker)):
        for marker in TEXT_MARKERS:
            if marker in value:
                yield f"memory {memory.id}: its {field} contains the gold marker {marker!r}"
    for field, value in (("id", memory.id), ("session", memory.session)):
        if LABEL_ID.search(value):
            yield f"memory {memory.id}: its {field} {value!r} names a label"
    for key in memory.metadata:
        if LABEL_FIELD.search(key):
            yield f"memory {memory.id}: its metadata field {key!r} names a label"
