"""What the kit tells a system: small invented facts that share hardly a word with each other.

Each has a question that does not hold its answer, so that an answer that gives it away was known.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mnemoscope.types import Memory


class Fact(NamedTuple):
    text: str
    question: str
    secret: str
    """What only somebody who was told the text can say; it is in no question."""


FACTS = (
    Fact(
        "Quorvale hides the spare key under a violet flowerpot.",
        "Where does Quorvale hide the spare key?",
        "violet flowerpot",
    ),
    Fact(
        "The Zintrosk bakery sells cinnamon bread only before sunrise.",
        "When can one buy the Zintrosk speciality?",
        "before sunrise",
    ),
    Fact(
        "Old Mibberlan repaired a copper telescope for the harbour museum.",
        "What did Mibberlan repair?",
        "copper telescope",
    ),
    Fact(
        "Ruthwick's daughter plays the bassoon in a marching orchestra.",
        "Which instrument is heard from Ruthwick's family?",
        "bassoon",
    ),
    Fact(
        "The Pellanore ferry was late because of drifting ice.",
        "Why did Pellanore passengers wait?",
        "drifting ice",
    ),
    Fact(
        "Dr. Ansquith prescribed chamomile tea against the headache.",
        "What did Ansquith prescribe?",
        "chamomile tea",
    ),
    Fact(
        "In Hoskeld the library closes whenever a thunderstorm begins.",
        "What makes the Hoskeld reading room shut?",
        "thunderstorm",
    ),
    Fact(
        "Ferribane traded seven goats for a wooden sailing boat.",
        "What did Ferribane pay with?",
        "seven goats",
    ),
    Fact(
        "A Yondrick engineer painted the water tower bright orange.",
        "Which colour did Yondrick choose?",
        "bright orange",
    ),
    Fact(
        "Grandmother Velloway writes every letter with a peacock feather.",
        "How does Velloway write?",
        "peacock feather",
    ),
    Fact(
        "The Crastenby chess club meets beneath the railway viaduct.",
        "Where do Crastenby players meet?",
        "railway viaduct",
    ),
    Fact(
        "Umbrecht lost his passport inside a rented accordion case.",
        "Where was Umbrecht's document lost?",
        "accordion case",
    ),
)

DAWN = datetime(2019, 3, 4, 9, tzinfo=UTC)
"""When the kit's first memory happened: long before any machine that runs it was started."""
DUSK = DAWN + timedelta(days=60)
"""When its questions are asked."""


def told(label: str, facts: Sequence[Fact], *, first: datetime = DAWN) -> list[Memory]:
    """The facts as memories of one day each, with ids that say nothing."""
    return [remark(f"{label}-{n}", fact.text, n, first=first) for n, fact in enumerate(facts)]


def remark(id: str, text: str, day: int, *, first: datetime = DAWN) -> Memory:
    return Memory(id, text, first + timedelta(days=day), f"session-{day // 4}", "Ann")
