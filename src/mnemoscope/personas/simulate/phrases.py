"""Fills the slots of phrasings, and reads the phrasings that all stories share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from random import Random

import msgspec

from mnemoscope._store.yaml import parse_yaml
from mnemoscope.personas.simulate.rng import ShuffledCycle

_SLOT = re.compile(r"\{(person|weekday|n)\}")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_PENDING = re.compile(
    r"\b(still|yet|no|not|nobody|none|nothing|never|open|until|waiting|waits|awaiting|wait|pending"
    r"|undecided|unclear|unknown|unsettled|without|missing|blank|unanswered|cannot|tbd|before|once"
    r"|\w+n't|have to|has to|to be)\b",
    re.IGNORECASE,
)
_QUESTION_WORDS = frozenset(
    "What Which Who Whom Whose When Where How Why By At In On Under From For With To Of After "
    "Until Through Against Above Below Into Over Is Was Does Did Do Are Were Can Has Have "
    "Since Within Up Around Before During Toward Towards About Between Among".split()
)


def sentence(phrasing: str, **slots: str) -> str:
    """The phrasing with its slots filled and a capital first letter."""
    return capital(phrasing.format(**slots))


@lru_cache(1 << 14)
def capital(text: str) -> str:
    """The text with a capital first letter; words such as eBPF stay unchanged."""
    word = text.split(" ", 1)[0]
    return text[0].upper() + text[1:] if word.islower() or len(word) == 1 else text


def uncapital(phrasing: str) -> str:
    """A question for the middle of a sentence; a slot or name at its start stays unchanged."""
    word = re.split(r"[ ,:]", phrasing, maxsplit=1)[0]
    if word in _QUESTION_WORDS:
        return phrasing[0].lower() + phrasing[1:]
    return phrasing


def is_pending(mention: str) -> bool:
    """Whether a near miss says that a value is unknown, which is false once it is known."""
    return bool(_PENDING.search(mention))


def fill(phrasing: str, people: ShuffledCycle[str], random: Random) -> str:
    """A filler sentence; each of its person slots gets another person."""
    if "{" not in phrasing:
        return capital(phrasing)

    def slot(match: re.Match[str]) -> str:
        if match[1] == "person":
            return people.draw()
        return random.choice(_WEEKDAYS) if match[1] == "weekday" else str(random.randint(2, 9))

    return capital(_SLOT.sub(slot, phrasing))


class RepetitionFilter:
    """Rejects a sentence used within the last 30 days, and a phrasing used within the last few."""

    def __init__(self, days: int = 30) -> None:
        self._days = days
        self._sentences: dict[str, int] = {}
        self._phrasings: dict[str, dict[str, int]] = {}

    def draw(
        self,
        phrasings: ShuffledCycle[str],
        day: int,
        wording: Callable[[str], str],
        *,
        subject: str = "",
        rest: int = 1,
    ) -> str | None:
        """A sentence from the next fresh phrasing, or None if none is fresh.

        A phrasing is not used again for the same subject within `rest` days.
        """
        used, said = self._phrasings.setdefault(subject, {}), self._sentences
        since, long_ago = day - rest, day - self._days
        for phrasing in phrasings.draws(2 * len(phrasings)):
            if phrasing in used and used[phrasing] >= since:
                continue
            text = wording(phrasing)
            if text not in said or said[text] < long_ago:
                said[text] = used[phrasing] = day
                return text
        return None


def count_words(texts: Iterable[str]) -> int:
    return sum(len(text.split()) for text in texts)


class CommonPhrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """phrases.yaml; its comments describe each list."""

    abouts: tuple[str, ...]
    heads: tuple[str, ...]
    goes_on: tuple[str, ...]
    afterwards: tuple[str, ...]
    looking_back: tuple[str, ...]
    described_back: tuple[str, ...]
    rumours: tuple[str, ...]
    open_points: tuple[str, ...]
    routine: tuple[str, ...]
    days_off: tuple[str, ...]
    titles: tuple[str, ...]
    group_titles: tuple[str, ...]
    quiet_titles: tuple[str, ...]
    asks_latest: tuple[str, ...]
    asks_latest_again: tuple[str, ...]
    asks_day_set: tuple[str, ...]
    asks_day_changed: tuple[str, ...]
    asks_which_first: tuple[str, ...]
    asks_history: tuple[str, ...]
    asks_together: tuple[str, ...]
    no_answers: tuple[str, ...]
    asks_withheld_decision: tuple[str, ...]
    asks_outcome: tuple[str, ...]
    asks_doubt: tuple[str, ...]
    asks_course: tuple[str, ...]
    asks_against: tuple[str, ...]
    asks_who: tuple[str, ...]
    refusals: tuple[str, ...]
    asks_covered: tuple[str, ...]


_FILE = files("mnemoscope.personas.simulate") / "phrases.yaml"
PHRASES = msgspec.convert(
    parse_yaml(_FILE.read_text(encoding="utf-8"), Path("phrases.yaml")), CommonPhrases
)
