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
_BY_SIGN = {sign: tuple(marker for marker in TEXT_MARKERS if sign in marker) for sign in "_[<>"}
"""To a character, the markers that contain it; each marker contains one of them."""
LABEL_FIELD = re.compile(r"answer|evidence|gold|relevant|qrel|has_ans", re.IGNORECASE)
_LABEL_WORDS = ("answer", "evidence", "gold", "relevant")
LABEL_ID = re.compile(rf"(^|[/:_.-])({'|'.join(_LABEL_WORDS)})s?([/:_.-]|\d|$)", re.IGNORECASE)
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
    sessions = {memory.session for memory in memories}
    names = "\n".join([*(memory.id for memory in memories), *sessions])
    return (
        any(_has_marker(text) for text in (texts, speakers))
        or _names_label(names)
        or any(memory.metadata for memory in memories)
    )


def _has_marker(text: str) -> bool:
    """Whether a text contains a marker; most texts lack the character that is looked for first."""
    return any(
        sign in text and any(marker in text for marker in markers)
        for sign, markers in _BY_SIGN.items()
    )


def _names_label(names: str) -> bool:
    """Whether a line is the name of a label; a search for the words is faster than the pattern."""
    lower = names.lower()
    # Of other alphabets, some letters are equal to ours without their case, but not when lowered.
    if names.isascii() and not any(word in lower for word in _LABEL_WORDS):
        return False
    return _LABEL_IN_LINE.search(names) is not None


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
