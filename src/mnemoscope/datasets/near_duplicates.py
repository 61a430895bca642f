"""Twins: memories that say nearly the same, found without comparing every pair.

Two memories are twins if their sets of words are equal but for case and punctuation, or overlap
by at least nine tenths (Jaccard). Only words count: a long text that differs in a single number
is a twin too, so whoever widens evidence by twins should look at what was added.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from mnemoscope.types import Memory

WORD = re.compile(r"\w+")


class NearDuplicates:
    """The twins of each memory of one corpus.

    Memories with one set of words form a group, and groups are found by prefix filtering
    (Bayardo, Ma and Srikant, Scaling Up All Pairs Similarity Search, WWW 2007): with words in
    one global order, rarest first, two sets that overlap by nine tenths must share one of
    their first n - ceil(0.9 n) + 1 words.
    """

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._ids = [memory.id for memory in memories]
        self._group_of: dict[str, int] = {}
        groups: dict[frozenset[str], int] = {}
        self._members: list[list[int]] = []
        for position, memory in enumerate(memories):
            if not (words := _words(memory.text)):
                continue
            group = groups.setdefault(words, len(groups))
            if group == len(self._members):
                self._members.append([])
            self._members[group].append(position)
            self._group_of[memory.id] = group
        self._sets = list(groups)
        frequency = Counter(word for words in self._sets for word in words)
        self._prefixes = [
            sorted(words, key=lambda word: (frequency[word], word))[: _prefix_length(len(words))]
            for words in self._sets
        ]
        self._having: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for group, prefix in enumerate(self._prefixes):
            for place, word in enumerate(prefix):
                self._having[word].append((group, place))

    def of(self, id: str) -> list[str]:
        """The other memories that say nearly the same, in the corpus's order."""
        if (group := self._group_of.get(id)) is None:
            return []
        near = [group, *self._near(group, before=len(self._sets))]
        positions = sorted(position for g in near for position in self._members[g])
        return [self._ids[position] for position in positions if self._ids[position] != id]

    def repeats(self) -> Iterator[tuple[str, str]]:
        """Each memory that has a twin before it in the corpus, with one such twin."""
        for group, (first, *others) in enumerate(self._members):
            # The search stops at the first find, so a corpus made from one template, in which
            # every pair is a pair of twins, costs no more than any other.
            earlier = next(self._near(group, before=group), None)
            if earlier is not None:
                yield self._ids[first], self._ids[self._members[earlier][0]]
            for position in others:
                yield self._ids[position], self._ids[first]

    def _near(self, group: int, *, before: int) -> Iterator[int]:
        """The other groups, up to `before`, whose words overlap enough with this one's."""
        words = self._sets[group]
        size = len(words)
        seen = {group}
        for place, word in enumerate(self._prefixes[group]):
            for other, other_place in self._having[word]:
                if other >= before:
                    break
                if other in seen:
                    continue
                seen.add(other)
                other_size = len(self._sets[other])
                # This is their first common word, so only what follows it can be shared too.
                most = min(size - place, other_size - other_place)
                if _overlap_enough(most, size, other_size) and _overlap_enough(
                    len(words & self._sets[other]), size, other_size
                ):
                    yield other


def _overlap_enough(shared: int, size: int, other_size: int) -> bool:
    return 10 * shared >= 9 * (size + other_size - shared)


def _words(text: str) -> frozenset[str]:
    stripped = text.casefold().strip()
    # A text without a single word, such as an emoji, is its own and only word.
    return frozenset(WORD.findall(stripped) or ([stripped] if stripped else []))


def _prefix_length(size: int) -> int:
    return size - (9 * size + 9) // 10 + 1
