"""Questions about the present state: a later memory tells a change of what an earlier one says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from mnemoscope.drafting.draft import Draft
from mnemoscope.drafting.memory_index import MemoryIndex
from mnemoscope.drafting.noun_phrases import OWN, Phrase, sentences
from mnemoscope.drafting.word_lists import listed

_CHANGED = re.compile(
    r"\b(?:no longer|any ?more|finally|finish(?:ed|ing) up|finished|completed|changed|switched|"
    r"moved|"
    r"replaced|started|stopped|quit|lost|sold|bought|adopted|launched|opened|closed|cancel+ed|"
    r"postponed|decided|accepted|rejected|approved|passed|won|updated|fixed|repaired|resolved|"
    r"deprecated|removed|signed|published|released|dropped|submitted|broke|broken|crashed|"
    r"improved|recovered|healed|ready|almost|done|received|joined|became|landed|ended|raised|"
    r"upgraded|renovated|restored|expanded|reached|booked|injured|hurt|sprained|tore|grew|doubled|"
    r"extended|redid|rebuilt|rewrote|hired|fired|promoted|graduated|took off|blew up|"
    r"wrapp(?:ed|ing) up|set up|settled)\b",
    re.I,
)
_BEGUN = re.compile(
    r"\b(?:start|started|starting|open|opening|join|joined|joining|buy|bought|adopt|adopted|plan|"
    r"planning|looking for|sign|signed|write|wrote|writing|create|created|creating|build|building|"
    r"launch|launched)\b",
    re.I,
)
_LONG_AGO = re.compile(r"years? ago\b", re.I)
_LOOKING_BACK = re.compile(r"\b(?:since|after|ago|'?cause|because|when I|used to|if)\b", re.I)
_MOST_ON_A_DAY = 3
_NEAR, _NEAR_A_NAME = 5, 2
"""So many words may stand between a word of change and what changed."""
_MOST_ON_A_THING = 80


class UpdateDrafts:
    """Candidates of the stratum `update`."""

    def __init__(self, index: MemoryIndex) -> None:
        self._index = index

    def drafts(self, rng: Random) -> Iterator[Draft]:
        """A thing with a name, or of the speaker's own, whose last memory tells a change."""
        topics: set[tuple[str, tuple[str, ...], str]] = set()
        for id in self._index.usable:
            if self._index.memories[id].at is None:
                continue  # the order of a file says nothing about what is later
            for phrase in self._index.phrases[id]:
                if self._is_lasting(phrase, self._index.speaker(id)):
                    circle = tuple(sorted(self._index.circle(id)))
                    topics.add((self._index.speaker(id), circle, _thing(phrase)))
        order = sorted(topics)
        rng.shuffle(order)
        for speaker, circle, text in order:
            ids = sorted(
                (
                    id
                    for id in self._index.having(text)
                    if self._index.speaker(id) == speaker and self._index.circle(id) == set(circle)
                ),
                key=self._index.time_order,
            )
            if not 2 <= len(ids) <= _MOST_ON_A_THING:
                continue
            for last in reversed(ids[1:]):
                now = self._changed(last, text)
                day = [id for id in ids if self._index.date(id) == self._index.date(last)]
                before = [
                    id for id in ids[: ids.index(day[0])] if self._named(id, text) is not None
                ]
                if now is not None and before and len(day) <= _MOST_ON_A_DAY:
                    gold = (last, *(id for id in day if id != last))
                    yield self._latest(gold, before, now, is_last=day[-1] == ids[-1])

    def _is_lasting(self, phrase: Phrase, speaker: str) -> bool:
        """Whether a phrase means the same thing each time that one speaker says it."""
        is_one_thing = phrase.determiner in OWN and not phrase.head.endswith("ing")
        # Without a speaker, the news about a name may come from anywhere.
        is_one_thing |= phrase.is_name and bool(speaker) and not phrase.text.isupper()
        rare = self._index.frequency(phrase) <= self._index.rules.joining
        return is_one_thing and rare and phrase.head not in listed("living")

    def _named(self, id: str, text: str) -> Phrase | None:
        """The phrase in a memory, if it means the thing that the speaker has."""
        found = (one for one in self._index.phrases.get(id, ()) if _thing(one) == text)
        return next(
            (
                one
                for one in found
                if self._is_lasting(one, self._index.speaker(id))
                or (one.determiner in ("a", "an") and self._is_near(_BEGUN, id, one))
            ),
            None,
        )

    def _changed(self, id: str, text: str) -> Phrase | None:
        """The phrase in a memory that tells a change of the thing, as news."""
        found = self._named(id, text)
        if found is None or not self._is_lasting(found, self._index.speaker(id)):
            return None
        if _LONG_AGO.search(self._index.memories[id].text):
            return None
        return found if self._is_near(_CHANGED, id, found) else None

    def _latest(
        self, gold: tuple[str, ...], before: Sequence[str], thing: Phrase, *, is_last: bool
    ) -> Draft:
        speaker, at = self._index.speaker(gold[0]), self._index.memories[gold[0]].at
        whose = thing.asked
        if speaker and not thing.is_name:
            whose = f"{speaker}'s {thing.text}"
        elif speaker:
            whose = f"{thing.text} from {speaker}"
        text = f"What is the latest news about {whose}?"
        if not is_last and at is not None:
            text = f"As of {at.day} {at:%B %Y}, what was the latest news about {whose}?"
        return Draft("update", text, gold, tuple(before), note=thing.text)

    def _is_near(self, pattern: re.Pattern[str], id: str, phrase: Phrase) -> bool:
        """Whether the pattern stands next to the phrase, in a clause that does not look back."""
        word, own = r"[\w'’&-]+ ", re.escape(phrase.text)
        before = _NEAR_A_NAME if phrase.is_name else _NEAR
        near = re.compile(
            rf"{pattern.pattern} (?:{word}){{0,{before}}}{own}\b"
            rf"|\b{own} (?:{word}){{0,{_NEAR_A_NAME}}}{pattern.pattern}",
            re.I,
        )
        return any(
            near.search(one) and not _LOOKING_BACK.search(one)
            for one in sentences(self._index.memories[id].text)
            if not one.endswith("?")
        )


def _thing(phrase: Phrase) -> str:
    """What a phrase of one speaker is about: the car shop and the shop are one."""
    return phrase.text.lower() if phrase.is_name else phrase.head
