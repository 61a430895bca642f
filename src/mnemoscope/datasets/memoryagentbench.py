"""MemoryAgentBench, Conflict_Resolution (2025): numbered facts, of which later ones override.

The file has no evidence. For single-hop questions it is derived: the fact that ends with the answer
and whose beginning the question repeats. Where a later fact with the same beginning ends otherwise,
the label is doubtful, and the question is listed. Multi-hop questions need a chain of facts, which
is not derived: they are asked and not measured.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope.datasets._io.json_stream import array_elements
from mnemoscope.datasets.base import AnswerNeeds, DatasetInfo, FileDataset, PinnedFile, find_file
from mnemoscope.types import Memory, Question, Scenario

SIZES = ("6k", "32k", "64k", "262k")
HOPS = {"sh": "single-hop", "mh": "multi-hop"}
_FILE = "Conflict_Resolution.json"
_SOURCE = re.compile(r"factconsolidation_(sh|mh)_(\w+)")
_FACT = re.compile(r"(\d+)\. (.+)")
_WORD = re.compile(r"\w+")
_RARE = 0.003
"""A word of fewer than this share of the facts names something, others belong to the wording.

Set on the published file, where 0.2 % to 0.5 % give the same evidence count and 2 % loses 16."""


class _RowLabels(msgspec.Struct, frozen=True):
    source: str


class _Row(msgspec.Struct, frozen=True):
    context: str
    questions: list[str]
    answers: list[list[str]]
    metadata: _RowLabels


class _Derived(NamedTuple):
    """The fact with the answer, and the facts that begin alike, by their place."""

    place: int
    alike: list[int]


class FactList:
    """The facts of one store, in the order in which they override each other."""

    def __init__(self, facts: Sequence[str]) -> None:
        self._facts = facts
        words = [set(_words(fact)) for fact in facts]
        self._frequency = Counter(word for own in words for word in own)
        self._by_last_word: dict[str, list[int]] = defaultdict(list)
        for place, fact in enumerate(facts):
            self._by_last_word[_words(fact)[-1] if _words(fact) else ""].append(place)

    def derived(self, question: str, answer: str) -> _Derived | None:
        """The fact that answers a question; the last one if several do so equally well."""
        asked = set(_words(question))
        ends = _words(answer)
        best: tuple[float, int] | None = None
        beginning = ""
        for place in self._by_last_word[ends[-1] if ends else ""]:
            fact = self._facts[place]
            # Some answers end in a full stop themselves: "Apple Inc."
            ended = next((t for t in (fact, fact[:-1]) if t.endswith(f" {answer}")), None)
            if ended is None:
                continue
            rest = ended.removesuffix(answer)
            own = set(_words(rest))
            if any(self._is_rare(word) for word in own - asked):
                continue
            found = (len(own & asked) / max(1, len(own)), place)
            if best is None or found > best:
                best, beginning = found, rest
        if best is None:
            return None
        alike = [place for place, fact in enumerate(self._facts) if fact.startswith(beginning)]
        return _Derived(best[1], alike)

    def _is_rare(self, word: str) -> bool:
        return self._frequency[word] < max(2, _RARE * len(self._facts))


class MemoryAgentBench(FileDataset):
    """The four stores of Conflict_Resolution as scenarios."""

    info = DatasetInfo(
        name="memoryagentbench",
        summary="conflict resolution: 4 lists of facts, 800 questions, later facts override",
        source="https://huggingface.co/datasets/ai-hyz/MemoryAgentBench",
        licence="MIT",
        citation="Hu et al., 2025, arXiv:2507.05257",
        files={
            _FILE: PinnedFile(
                "", "d5168e94cba99744e35031c1e6419e6090d63978f5addc9163d56704a78c7acd", 3293442
            )
        },
        granularities=("fact",),
        cluster="question",
        known_defects=(
            "no evidence; derived for single-hop questions, multi-hop questions are not measured",
            "seven answers that a later fact contradicts; listed, not corrected",
            "only the competency Conflict_Resolution is read",
        ),
        answers=AnswerNeeds(judge="substring"),
    )

    def __init__(
        self,
        data: Path,
        *,
        size: Literal["all", "6k", "32k", "64k", "262k"] = "all",
        hops: Literal["both", "single", "multi"] = "both",
    ) -> None:
        super().__init__(find_file(data, _FILE))
        self.size = size
        self.hops = hops
        self.expected_scenarios = len(SIZES) if size == "all" else 1
        self.conflicts: dict[str, tuple[str, ...]] = {}
        """Question to the facts that begin like its evidence and end otherwise."""

    def read(self) -> Iterator[Scenario]:
        self.conflicts = {}
        rows: dict[str, dict[str, _Row]] = {}
        for line, row in array_elements(self.path, _Row, "in the row that starts here: "):
            parts = _SOURCE.fullmatch(row.metadata.source)
            if parts is None:
                problem = f"unknown source {row.metadata.source!r}; expected factconsolidation_…"
                raise DataError(problem, file=self.path, line=line)
            if len(row.questions) != len(row.answers) or not all(row.answers):
                problem = f"{row.metadata.source}: a question without an answer"
                raise DataError(problem, file=self.path, line=line)
            if parts[1] in rows.setdefault(parts[2], {}):
                problem = f"duplicate row {row.metadata.source!r}"
                raise DataError(problem, file=self.path, line=line)
            rows[parts[2]][parts[1]] = row
        for size in sorted(rows, key=lambda one: (len(one), one)):
            if self.size in ("all", size):
                yield self._scenario(size, rows[size])

    def _scenario(self, size: str, rows: dict[str, _Row]) -> Scenario:
        contexts = {row.context for row in rows.values()}
        if len(contexts) > 1:
            problem = f"the single-hop and the multi-hop row of {size} have different contexts"
            raise DataError(problem, file=self.path)
        facts = self._facts(size, contexts.pop())
        ids = [f"{size}/f{number:05}" for number in range(len(facts))]
        # The number is part of the text: it tells a reader which fact is newer.
        memories = tuple(
            Memory(id, f"{number}. {fact}")
            for number, (id, fact) in enumerate(zip(ids, facts, strict=True))
        )
        known = FactList(facts)
        questions: list[Question] = []
        for hops, row in sorted(rows.items(), reverse=True):
            if self.hops == "both" or HOPS[hops].startswith(self.hops):
                questions += self._questions(size, hops, row, known, ids)
        self._counts["stores"] += 1
        self._counts["facts"] += len(facts)
        self._counts["memories"] += len(memories)
        self._counts["questions"] += len(questions)
        return Scenario(size, memories, tuple(questions))

    def _facts(self, size: str, context: str) -> list[str]:
        facts: list[str] = []
        for line in context.splitlines():
            fact = _FACT.fullmatch(line)
            if fact and int(fact[1]) != len(facts):
                problem = f"{size}: fact {fact[1]} where {len(facts)} is expected"
                raise DataError(problem, file=self.path)
            if fact:
                facts.append(fact[2])
        return facts

    def _questions(
        self, size: str, hops: str, row: _Row, known: FactList, ids: Sequence[str]
    ) -> Iterator[Question]:
        for number, (text, answers) in enumerate(zip(row.questions, row.answers, strict=True)):
            id = f"{size}/{hops}-{number:03}"
            category = HOPS[hops]
            self._counts[category] += 1
            evidence: tuple[str, ...] = ()
            if hops == "sh":
                evidence = self._evidence(id, text, answers[0], known, ids)
            else:
                self._counts["multi-hop, not measured"] += 1
            yield Question(
                id,
                text,
                reference=answers[0],
                category=category,
                evidence=evidence,
                cluster=id,
            )

    def _evidence(
        self, id: str, question: str, answer: str, known: FactList, ids: Sequence[str]
    ) -> tuple[str, ...]:
        derived = known.derived(question, answer)
        if derived is None:
            self.findings.add("no fact answers the question, not measured", id)
            return ()
        self._counts["evidence derived"] += 1
        if len(derived.alike) > 1:
            self._counts["questions with a conflict"] += 1
            self.conflicts[id] = tuple(ids[one] for one in derived.alike if one != derived.place)
        if derived.alike[-1] != derived.place:
            self.findings.add("label in doubt: a later fact ends otherwise", f"{id} {answer!r}")
        return (ids[derived.place],)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
