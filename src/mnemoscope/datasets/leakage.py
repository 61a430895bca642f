"""The leakage scan: does the input of a system reveal which memories are evidence?

It searches ids, sessions, speakers, metadata and text for markers that published datasets have
leaked, and for an id pattern that only evidence has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mnemoscope.types import Scenario

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
_FAMILY = re.compile(r"[^\W\d_]{3,}")
_FAMILY_SIZE = 5
"""With fewer evidence ids, a word that all of them share may be chance."""


def leaks(scenario: Scenario) -> Iterator[str]:
    """Every leak as a sentence that names the memory."""
    evidence = {id for question in scenario.questions for id in question.evidence}
    families: dict[bool, set[str]] = {True: set(), False: set()}
    for memory in scenario.memories:
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
        word = _FAMILY.search(memory.id.rpartition("/")[2])
        families[memory.id in evidence].add(word.group() if word else "")
    # A first word that all evidence ids share, and only they, reveals the answer.
    leaking = len(families[True]) == 1 and families[False] and not families[True] & families[False]
    if leaking and len(evidence) >= _FAMILY_SIZE:
        family = families[True].pop()
        if family:
            yield f"scenario {scenario.id}: all evidence ids, and only they, contain {family!r}"
