"""Near-duplicate memories, found without comparing every pair.

Two memories are near-duplicates if their word sets have a Jaccard overlap of at least 0.9, without
case and punctuation. A long text that differs in one number is a near-duplicate too: review the
memories that `twins=expand` adds to the evidence.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from mnemoscope.types import Memory

WORD = re.compile(r"\w+")


class NearDuplicates:
    """The near-duplicates of each memory of one corpus.

    Memories with the same word set form a group. Prefix filtering finds similar groups (Bayardo,
    Ma and Srikant, Scaling Up All Pairs Similarity Search, WWW 2007): sort words by frequency,
    rarest first; two sets with an overlap of 0.9 share one of their first n - ceil(0.9 n) + 1
    words.
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
        self._prefixes: list[list[str]] = []
        self._having: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for group, words in enumerate(self._sets):
            length = len(words) - (9 * len(words) + 9) // 10 + 1
            prefix = sorted(words, key=lambda word: (frequency[word], word))[:length]
            self._prefixes.append(prefix)
            for place, word in enumerate(prefix):
                self._having[word].append((group, place))

    def of(self, id: str) -> list[str]:
        """The near-duplicates of a memory, in the order of the corpus."""
        if (group := self._group_of.get(id)) is None:
            return []
        near = [group, *self._near(group, before=len(self._sets))]
        positions = sorted(position for g in near for position in self._members[g])
        return [self._ids[position] for position in positions if self._ids[position] != id]

    def repeats(self) -> Iterator[tuple[str, str]]:
        """Each memory with an earlier near-duplicate, and one such memory."""
        for group, (first, *others) in enumerate(self._members):
            # Stop at the first match: a corpus made from one template, where all pairs match, is
            # then as fast as any other.
            earlier = next(self._near(group, before=group), None)
            if earlier is not None:
                yield self._ids[first], self._ids[self._members[earlier][0]]
            for position in others:
                yield self._ids[position], self._ids[first]

    def _near(self, group: int, *, before: int) -> Iterator[int]:
        """The groups before `before` whose words overlap enough with this group."""
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
                # This is their first common word: only the words after it can be shared too.
                most = min(size - place, other_size - other_place)
                if _overlap_enough(most, size, other_size) and _overlap_enough(
                    len(words & self._sets[other]), size, other_size
                ):
                    yield other


def _overlap_enough(shared: int, size: int, other_size: int) -> bool:
    return 10 * shared >= 9 * (size + other_size - shared)


def _words(text: str) -> frozenset[str]:
    stripped = text.casefold().strip()
    # A text without words, such as an emoji, counts as one word.
    return frozenset(WORD.findall(stripped) or ([stripped] if stripped else []))
