"""Prose: filling the slots of a phrasing so that the result is a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from random import Random

from mnemoscope.personas.simulate.rng import Deck

_SLOT = re.compile(r"\{(person|weekday|n)\}")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_PENDING = re.compile(
    r"\b(still|yet|no|not|nobody|none|nothing|never|open|until|waiting|waits|awaiting|wait|pending"
    r"|undecided|unclear|unknown|unsettled|without|missing|blank|unanswered|cannot|tbd|before|once"
    r"|\w+n't|have to|has to|to be)\b",
    re.IGNORECASE,
)


def sentence(phrasing: str, **slots: str) -> str:
    """The phrasing with its slots filled, beginning with a capital."""
    return capital(phrasing.format(**slots))


def capital(text: str) -> str:
    """With a capital first letter, but leaving words such as eBPF alone."""
    word = text.split(" ", 1)[0]
    return text[0].upper() + text[1:] if word.islower() or len(word) == 1 else text


def uncapital(phrasing: str) -> str:
    """Ready for the middle of a sentence; a slot or a name at its beginning stays as it is."""
    word = re.split(r"[ ,:]", phrasing, maxsplit=1)[0]
    if word in _QUESTION_WORDS:
        return phrasing[0].lower() + phrasing[1:]
    return phrasing


_QUESTION_WORDS = frozenset(
    "What Which Who Whom Whose When Where How Why By At In On Under From For With To Of After "
    "Until Through Against Above Below Into Over Is Was Does Did Do Are Were Can Has Have "
    "Since Within Up Around Before During Toward Towards About Between Among".split()
)


def tells_that_open(mention: str) -> bool:
    """Whether a near miss says that something is unknown, which is false once it is known."""
    return bool(_PENDING.search(mention))


def fill(phrasing: str, people: Deck[str], random: Random) -> str:
    """A piece of filler: each person in it is another one."""

    def slot(match: re.Match[str]) -> str:
        if match[1] == "person":
            return people.deal()
        return random.choice(_WEEKDAYS) if match[1] == "weekday" else str(random.randint(2, 9))

    return capital(_SLOT.sub(slot, phrasing))


class Fresh:
    """Keeps what was said when: no sentence comes twice in a month, no phrasing day after day."""

    def __init__(self, days: int = 30) -> None:
        self._days = days
        self._said: dict[str, int] = {}
        self._used: dict[tuple[str, str], int] = {}

    def deal(
        self,
        deck: Deck[str],
        day: int,
        wording: Callable[[str], str],
        *,
        of: str = "",
        rest: int = 1,
    ) -> str | None:
        """The next phrasing that is fresh, worded; None where all of them are stale.

        A phrasing rests for some days after it was used `of` the same thing.
        """
        for _ in range(2 * len(deck)):
            card = deck.deal()
            if day - self._used.get((of, card), -rest - 1) <= rest:
                continue
            text = wording(card)
            if day - self._said.get(text, -self._days - 1) > self._days:
                self._said[text] = self._used[of, card] = day
                return text
        return None


def words(texts: Iterable[str]) -> int:
    return sum(len(text.split()) for text in texts)
