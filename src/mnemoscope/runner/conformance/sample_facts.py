"""The memories of the kit: small invented facts that share few words with each other.

Each has a question that does not contain its answer, so a system that gives the answer has the
fact.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mnemoscope.types import Memory


class SampleFact(NamedTuple):
    text: str
    question: str
    secret: str
    """The answer, which is in the text but in no question."""


_SECRETS_IN_BRACKETS = {
    "Quorvale hides the spare key under a [violet flowerpot].": (
        "Where does Quorvale hide the spare key?"
    ),
    "The Zintrosk bakery sells cinnamon bread only [before sunrise].": (
        "When can one buy the Zintrosk speciality?"
    ),
    "Old Mibberlan repaired a [copper telescope] for the harbour museum.": (
        "What did Mibberlan repair?"
    ),
    "Ruthwick's daughter plays the [bassoon] in a marching orchestra.": (
        "Which instrument is heard from Ruthwick's family?"
    ),
    "The Pellanore ferry was late because of [drifting ice].": (
        "Why did Pellanore passengers wait?"
    ),
    "Dr. Ansquith prescribed [chamomile tea] against the headache.": (
        "What did Ansquith prescribe?"
    ),
    "In Hoskeld the library closes whenever a [thunderstorm] begins.": (
        "What makes the Hoskeld reading room shut?"
    ),
    "Ferribane traded [seven goats] for a wooden sailing boat.": ("What did Ferribane pay with?"),
    "A Yondrick engineer painted the water tower [bright orange].": (
        "Which colour did Yondrick choose?"
    ),
    "Grandmother Velloway writes every letter with a [peacock feather].": (
        "How does Velloway write?"
    ),
    "The Crastenby chess club meets beneath the [railway viaduct].": (
        "Where do Crastenby players meet?"
    ),
    "Umbrecht lost his passport inside a rented [accordion case].": (
        "Where was Umbrecht's document lost?"
    ),
}
FACTS = tuple(
    SampleFact(re.sub(r"[\[\]]", "", text), question, text.partition("[")[2].partition("]")[0])
    for text, question in _SECRETS_IN_BRACKETS.items()
)

FIRST_DAY = datetime(2019, 3, 4, 9, tzinfo=UTC)
"""When the kit's first memory happened: long before the machine was started."""
ASKED_AT = FIRST_DAY + timedelta(days=60)
"""When its questions are asked."""


def as_memories(
    label: str, facts: Sequence[SampleFact], *, first: datetime = FIRST_DAY
) -> list[Memory]:
    """The facts as memories, one a day, with ids that do not reveal the content."""
    return [dated_memory(f"{label}-{n}", fact.text, n, first=first) for n, fact in enumerate(facts)]


def dated_memory(id: str, text: str, day: int, *, first: datetime = FIRST_DAY) -> Memory:
    return Memory(id, text, first + timedelta(days=day), f"session-{day // 4}", "Ann")
