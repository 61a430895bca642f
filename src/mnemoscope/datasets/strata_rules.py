"""The rules of the strata: what makes a question exact, paraphrase, multi-hop, update or absent.

Every rule is computed from the texts of the question and of the memories. What a file says about
itself, such as a recorded overlap, is not used.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import NamedTuple

from mnemoscope.datasets.near_duplicates import NearDuplicates
from mnemoscope.text.english import stem_words
from mnemoscope.text.tokenize import WORD, stems
from mnemoscope.types import Memory

MOST_SHARED = 0.18
"""The largest Jaccard overlap of a paraphrase with its memory, as claude-memory has it."""
_MOST_COVERED = 0.5
"""Of a long memory every overlap is small: so at most this share of the question's stems."""
_LONGEST_RUN = 3
"""So many words in a row may be those of the memory; padding does not hide a longer quotation."""
_ASKING = frozenset(
    stem_words(
        (
            "memory memories note notes say says said saying mention mentions mentioned tell tells "
            "told talk talks talked know known happen happened thing things latest last recent "
            "recently remember came come up today day when where question answer find anything "
            "something ever time connection both later earlier first other news state"
        ).split()
    )
)
"""Stems of words with which one asks: they say nothing about the memory."""
_LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТХУаеѕіјорсхуԁɡһԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧονραιı",
    "ABESIJKMHOPCTXYaesijopcxydghqwABEZHIKMNOPTYXovpaii",
)
"""Cyrillic and Greek letters that look like Latin ones, replaced in questions and memories."""
_NAME = re.compile(r"(?<![.!?:\n\"“”#*>-]\s)(?<!^)\b[A-Z][a-z]+\b")

TOP = "do not have their memory as the top full-text hit"
NO_RARE = "share no rare word with their memory"
SEVERAL = "name more than one memory"
OVERLAP = "share too many words with their memory"
FEWER = "need fewer than two distinct memories"
NOT_JOINED = "name memories that no entity or time joins"
NOTHING_EARLIER = "name no earlier memory that is superseded"
NOT_EARLIER = "name a superseded memory that is not earlier"
OTHER_SUBJECT = "name a superseded memory about another subject"
SAME_TEXT = "name a superseded memory that says the same"
ANSWERED = "may be answered by a memory that has all their words"
HAS_GOLD = "name a memory although nothing should answer them"


class StratumQuestion(NamedTuple):
    """What the rules need to know of a question."""

    id: str
    text: str
    stratum: str
    gold: tuple[str, ...]
    superseded: tuple[str, ...] = ()
    answer: str = ""
    """The reference answer, if there is one; no rule is about it."""


class BrokenRule(NamedTuple):
    """A question that breaks a rule of its stratum."""

    question: str
    stratum: str
    rule: str
    """The rule as the end of a sentence about such questions."""
    detail: str


class StrataRules:
    """The rules over one corpus."""

    def __init__(self, memories: Sequence[Memory], twins: NearDuplicates | None = None) -> None:
        self.memories = {memory.id: memory for memory in memories}
        self._order = {memory.id: place for place, memory in enumerate(memories)}
        self._twins = twins or NearDuplicates(memories)
        self.terms = {memory.id: frozenset(stems(all_text(memory))) for memory in memories}
        """The stems of each memory, with its tags, keywords and speaker."""
        self.frequency = Counter(stem for own in self.terms.values() for stem in own)
        """In how many memories a stem occurs."""
        self._having: dict[str, list[str]] = {}
        for id, own in self.terms.items():
            for stem in own:
                self._having.setdefault(stem, []).append(id)
        self._search = _FullText(memories)

    @property
    def rare(self) -> int:
        """A stem is rare if at most so many memories have it."""
        return max(3, len(self.memories) // 200)

    @property
    def joining(self) -> int:
        """A stem that more memories have joins none of them."""
        return max(5, len(self.memories) // 50)

    def broken(self, question: StratumQuestion) -> list[BrokenRule]:
        """The rules of its stratum that the question breaks."""
        check = {
            "exact": self._exact,
            "paraphrase": self._paraphrase,
            "multihop": self._multihop,
            "update": self._update,
            "absent": self._absent,
        }[question.stratum]
        about = question.id, question.stratum
        return [BrokenRule(*about, rule, detail) for rule, detail in check(question)]

    def twins(self, id: str) -> list[str]:
        """The near-duplicates of a memory."""
        return self._twins.of(id)

    def having(self, wanted: Iterable[str]) -> set[str]:
        """The memories that have all these stems."""
        found = [set(self._having.get(stem, ())) for stem in wanted]
        return set.intersection(*found) if found else set()

    def shared_terms(self, first: str, second: str) -> list[str]:
        """The stems, rare enough to join two memories, that both have; the rarest first."""
        shared = self.terms[first] & self.terms[second]
        few = [stem for stem in shared if self.frequency[stem] <= self.joining]
        return sorted(few, key=lambda stem: (self.frequency[stem], stem))

    def are_joined(self, first: str, second: str) -> bool:
        """Whether two memories share a name, a rare term or a day."""
        one, other = self.memories[first], self.memories[second]
        if one.at is not None and other.at is not None and one.at.date() == other.at.date():
            return True
        return bool(self.shared_terms(first, second) or names(one.text) & names(other.text))

    def overlap(self, text: str, id: str) -> float:
        """The Jaccard overlap of a question's stems with those of a memory and its keywords."""
        asked, own = content_stems(text), set(stems(_with_keywords(self.memories[id])))
        return len(asked & own) / len(asked | own) if asked | own else 0.0

    def _single(self, question: StratumQuestion) -> list[tuple[str, str]]:
        first, *others = question.gold
        beside = sorted(set(others) - set(self.twins(first)))
        return [(SEVERAL, f"{first} and {', '.join(beside)}")] if beside else []

    def _exact(self, question: StratumQuestion) -> list[tuple[str, str]]:
        found = self._single(question)
        gold = {*question.gold, *(twin for id in question.gold for twin in self.twins(id))}
        top = self._search.top(question.text)
        if top not in gold:
            found.append((TOP, f"the top hit is {top or 'none'}, not {question.gold[0]}"))
        shared = content_stems(question.text) & self.terms[question.gold[0]]
        if not any(self.frequency[stem] <= self.rare for stem in shared):
            found.append((NO_RARE, f"more than {self.rare} memories have each shared word"))
        return found

    def _paraphrase(self, question: StratumQuestion) -> list[tuple[str, str]]:
        found = self._single(question)
        for id in question.gold:
            memory = self.memories[id]
            asked, own = content_stems(question.text), set(stems(_with_keywords(memory)))
            if (overlap := self.overlap(question.text, id)) > MOST_SHARED:
                found.append((OVERLAP, f"overlap {overlap:.2f} with {id}, at most {MOST_SHARED}"))
            elif asked and len(asked & own) / len(asked) > _MOST_COVERED:
                found.append((OVERLAP, f"{len(asked & own)} of its {len(asked)} stems are in {id}"))
            elif run := _shared_run(question.text, _with_keywords(memory)):
                found.append((OVERLAP, f"{id} has {run!r} word for word"))
            if found:
                break
        return found

    def _multihop(self, question: StratumQuestion) -> list[tuple[str, str]]:
        distinct: list[str] = []
        for id in question.gold:
            if not set(self.twins(id)) & set(distinct):
                distinct.append(id)
        if len(distinct) < 2:
            return [(FEWER, f"{', '.join(question.gold)} say the same")]
        reached, left = {distinct[0]}, set(distinct[1:])
        while near := {id for id in left if any(self.are_joined(id, one) for one in reached)}:
            reached |= near
            left -= near
        return [(NOT_JOINED, f"{', '.join(sorted(left))} and {distinct[0]}")] if left else []

    def _update(self, question: StratumQuestion) -> list[tuple[str, str]]:
        gold = question.gold[0]
        if not question.superseded:
            return [(NOTHING_EARLIER, f"superseded_ids is empty; {gold} supersedes what?")]
        found = []
        for id in question.superseded:
            if not self._is_earlier(id, gold):
                found.append((NOT_EARLIER, f"{id} is not before {gold}"))
            if id in self.twins(gold) or id == gold:
                found.append((SAME_TEXT, f"{id} and {gold} are near-duplicates"))
            elif not self.are_about_one_subject(id, gold):
                found.append((OTHER_SUBJECT, f"{id} and {gold} share no name and no rare word"))
        return found

    def are_about_one_subject(self, first: str, second: str) -> bool:
        shared = names(self.memories[first].text) & names(self.memories[second].text)
        return bool(self.shared_terms(first, second) or shared)

    def _is_earlier(self, first: str, second: str) -> bool:
        one, other = self.memories[first].at, self.memories[second].at
        if one is not None and other is not None and one != other:
            return one < other
        return self._order[first] < self._order[second]

    def _absent(self, question: StratumQuestion) -> list[tuple[str, str]]:
        if question.gold:
            return [(HAS_GOLD, f"qrels name {', '.join(question.gold)}")]
        asked = content_stems(question.text)
        if not asked:
            return [(ANSWERED, "the question has no word that could be missing")]
        found = sorted(self.having(asked), key=self._order.__getitem__)
        return [(ANSWERED, f"{found[0]} has {', '.join(sorted(asked))}")] if found else []


def withheld_strata(
    questions: Iterable[StratumQuestion], broken: Iterable[BrokenRule]
) -> dict[str, str]:
    """Why claims about a stratum are withheld: its questions that break its rules."""
    sizes = Counter(question.stratum for question in questions)
    ids: dict[tuple[str, str], set[str]] = {}
    for one in broken:
        ids.setdefault((one.stratum, one.rule), set()).add(one.question)
    reasons: dict[str, list[str]] = {}
    for (stratum, rule), own in ids.items():
        reasons.setdefault(stratum, []).append(
            f"{len(own):,} of {sizes[stratum]:,} questions of {stratum} {rule}"
        )
    return {stratum: "; ".join(own) for stratum, own in reasons.items()}


def content_stems(text: str) -> set[str]:
    """The stems of a question that are not about asking."""
    return set(stems(_as_read(text))) - _ASKING


def all_text(memory: Memory) -> str:
    """The text of a memory with its tags, keywords and speaker."""
    tags = _as_read(str(memory.metadata.get("tags", "")))
    return f"{_with_keywords(memory)} {tags} {_as_read(memory.speaker)}"


def names(text: str) -> set[str]:
    """Capitalised words that do not begin a sentence."""
    return set(_NAME.findall(text))


def _with_keywords(memory: Memory) -> str:
    return _as_read(f"{memory.text} {memory.metadata.get('expanded_keywords', '')}")


def _as_read(text: str) -> str:
    """The text as a reader sees it: a copy with invisible or foreign characters stays a copy."""
    if text.isascii():
        return text
    seen = unicodedata.normalize("NFKD", text).translate(_LOOKALIKES)
    return "".join(one for one in seen if unicodedata.category(one) not in ("Cf", "Mn"))


def _shared_run(text: str, other: str) -> str:
    """Words in a row that both texts have, more than may be shared, else empty."""
    asked, own = (WORD.findall(one.lower()) for one in (_as_read(text), other))
    size = _LONGEST_RUN + 1
    runs = {tuple(own[start : start + size]) for start in range(len(own) - size + 1)}
    for start in range(len(asked) - size + 1):
        if (run := tuple(asked[start : start + size])) in runs:
            return " ".join(run)
    return ""


class _FullText:
    """The top hit of SQLite's full-text search, as the claude-memory benchmark verifies it.

    The built-in system `fts5` searches in the same way; datasets may not import systems.
    """

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._memories = memories
        self._database: sqlite3.Connection | None = None

    def top(self, text: str) -> str:
        """The id of the best hit for any of the words; empty if there is none."""
        if self._database is None:
            self._database = self._filled()
        terms = " OR ".join(f'"{word}"' for word in WORD.findall(text.lower()))
        if not terms:
            return ""
        with closing(self._database.cursor()) as cursor:
            found = cursor.execute(
                "SELECT rowid FROM search WHERE search MATCH ?"
                " ORDER BY bm25(search), importance DESC, rowid LIMIT 1",
                (terms,),
            ).fetchone()
        return self._memories[found[0]].id if found else ""

    def _filled(self) -> sqlite3.Connection:
        database = sqlite3.connect(":memory:")
        database.execute(
            "CREATE VIRTUAL TABLE search USING fts5(content, category, tags, expanded_keywords,"
            " importance UNINDEXED)"
        )
        fields = ("category", "tags", "expanded_keywords")
        database.executemany(
            "INSERT INTO search(rowid, content, category, tags, expanded_keywords, importance)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                (
                    place,
                    memory.text,
                    *(str(memory.metadata.get(field, "")) for field in fields),
                    0.5 if (given := memory.metadata.get("importance", "")) == "" else given,
                )
                for place, memory in enumerate(self._memories)
            ),
        )
        return database
