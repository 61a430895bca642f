"""What the kit tells a system: small invented facts that share hardly a word with each other.

Each has a question that does not hold its answer, so that an answer that gives it away was known.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mnemoscope.types import Memory


class SampleFact(NamedTuple):
    text: str
    question: str
    secret: str
    """What only somebody who was told the text can say; it is in no question."""


FACTS = (
    SampleFact(
        "Quorvale hides the spare key under a violet flowerpot.",
        "Where does Quorvale hide the spare key?",
        "violet flowerpot",
    ),
    SampleFact(
        "The Zintrosk bakery sells cinnamon bread only before sunrise.",
        "When can one buy the Zintrosk speciality?",
        "before sunrise",
    ),
    SampleFact(
        "Old Mibberlan repaired a copper telescope for the harbour museum.",
        "What did Mibberlan repair?",
        "copper telescope",
    ),
    SampleFact(
        "Ruthwick's daughter plays the bassoon in a marching orchestra.",
        "Which instrument is heard from Ruthwick's family?",
        "bassoon",
    ),
    SampleFact(
        "The Pellanore ferry was late because of drifting ice.",
        "Why did Pellanore passengers wait?",
        "drifting ice",
    ),
    SampleFact(
        "Dr. Ansquith prescribed chamomile tea against the headache.",
        "What did Ansquith prescribe?",
        "chamomile tea",
    ),
    SampleFact(
        "In Hoskeld the library closes whenever a thunderstorm begins.",
        "What makes the Hoskeld reading room shut?",
        "thunderstorm",
    ),
    SampleFact(
        "Ferribane traded seven goats for a wooden sailing boat.",
        "What did Ferribane pay with?",
        "seven goats",
    ),
    SampleFact(
        "A Yondrick engineer painted the water tower bright orange.",
        "Which colour did Yondrick choose?",
        "bright orange",
    ),
    SampleFact(
        "Grandmother Velloway writes every letter with a peacock feather.",
        "How does Velloway write?",
        "peacock feather",
    ),
    SampleFact(
        "The Crastenby chess club meets beneath the railway viaduct.",
        "Where do Crastenby players meet?",
        "railway viaduct",
    ),
    SampleFact(
        "Umbrecht lost his passport inside a rented accordion case.",
        "Where was Umbrecht's document lost?",
        "accordion case",
    ),
)

DAWN = datetime(2019, 3, 4, 9, tzinfo=UTC)
"""When the kit's first memory happened: long before any machine that runs it was started."""
DUSK = DAWN + timedelta(days=60)
"""When its questions are asked."""


def told(label: str, facts: Sequence[SampleFact], *, first: datetime = DAWN) -> list[Memory]:
    """The facts as memories of one day each, with ids that say nothing."""
    return [remark(f"{label}-{n}", fact.text, n, first=first) for n, fact in enumerate(facts)]


def remark(id: str, text: str, day: int, *, first: datetime = DAWN) -> Memory:
    return Memory(id, text, first + timedelta(days=day), f"session-{day // 4}", "Ann")
