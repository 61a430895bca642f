"""Draws an exam for judges from the questions and references of a benchmark.

Probes look like the cases of a run: the question has its own id and category, and nothing marks the
answer. Draws depend on a seed; `exam_store` chooses one that was not known before.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from random import Random

import msgspec
from msgspec import Struct

from mnemoscope.judges import Case
from mnemoscope.judges.answer_profile import shares_of_words
from mnemoscope.judges.answer_variants import KINDS, SHORT_ONLY, at_length
from mnemoscope.judges.variant_source import Source
from mnemoscope.text.abstention import says_nothing
from mnemoscope.text.english import STOP_WORDS
from mnemoscope.text.reference_types import (
    BESIDE,
    LENGTHS,
    NO_ANSWER,
    SHARED,
    Beside,
    Shared,
    shared_words,
    stratum_of,
    type_of,
    words_beside,
)
from mnemoscope.text.tokenize import stems
from mnemoscope.types import Question, Scenario

RULES = 3
"""The version of the rules; results of other versions are not reused."""
PER_KIND = 300
_MOST_OTHERS = 300
"""References of other questions that a rule may use; more would only take time."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
_SPEAKER = re.compile(r"^[A-Z][\w .'-]{0,30}:\s+")


class DrawnProbe(Struct, frozen=True):
    """An answer to a question of the benchmark, and whether a judge must accept it."""

    kind: str
    acceptable: bool
    scenario: str
    question: Question
    answer: str
    stratum: str
    weight: float
    shared: str
    """How many of the reference's words the answer has; empty where nothing is to be answered."""
    beside: str
    """How many other words it has; empty where nothing is to be answered."""
    abstained: bool = False
    memories: int = 0

    @property
    def id(self) -> str:
        text = "\0".join((self.scenario, self.question.id, self.kind, self.answer))
        return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]

    @property
    def case(self) -> Case:
        return Case(self.question, self.answer, abstained=self.abstained, memories=self.memories)


class DrawnExam(Struct, frozen=True):
    """The probes, how many of each kind the benchmark could give, and the shares of the strata."""

    probes: tuple[DrawnProbe, ...]
    held: dict[str, int]
    """At least this many; counting ends at the number that is drawn."""
    shares: dict[str, float]
    scenarios: tuple[Scenario, ...]
    """A judge begins with the scenario of its cases."""

    @property
    def sha256(self) -> str:
        return sha256(msgspec.json.encode(self.probes)).hexdigest()


def draw(
    scenarios: Iterable[Scenario], *, seed: str, per_kind: int = PER_KIND, budget: int | None = None
) -> DrawnExam:
    """Up to `per_kind` probes of each kind; with a budget, evenly fewer of every kind."""
    known = [_Conversation(one) for one in scenarios]
    asked = [(place, question) for place, own in enumerate(known) for question in own.questions]
    drawn: dict[str, list[DrawnProbe]] = {}
    for kind in KINDS:
        found = _of_kind(kind, asked, known, seed, per_kind)
        if found:
            drawn[kind] = found
    held = {kind: len(found) for kind, found in drawn.items()}
    limits = _within(held, budget)
    probes = _weighted([one for kind, found in drawn.items() for one in found[: limits[kind]]])
    order = {own.scenario.id: place for place, own in enumerate(known)}
    Random(f"{seed}/order").shuffle(probes)
    probes.sort(key=lambda one: order[one.scenario])  # judges begin a scenario once
    return DrawnExam(tuple(probes), held, _shares(asked), tuple(own.scenario for own in known))


class _Conversation:
    """A scenario with what the rules need of it."""

    def __init__(self, scenario: Scenario) -> None:
        self.questions = [
            one
            for one in scenario.questions
            if one.expects == "abstain" or (one.expects == "answer" and _is_one_answer(one))
        ]
        self.references = tuple(one.reference for one in self.questions if one.expects == "answer")
        self.size = len(scenario.memories)
        self._texts = {memory.id: memory.text for memory in scenario.memories}
        for memory in scenario.memories:
            if memory.part_of:
                self._texts[memory.part_of] = (
                    self._texts.get(memory.part_of, "") + "\n" + memory.text
                )
        self._by_memory: dict[str, list[str]] = {}
        self._stems: dict[str, frozenset[str]] = {}
        some = Random(scenario.id).sample(sorted(self._texts), min(len(self._texts), 40))
        self._some = [one for id in some for one in self._sentences_of(id)]
        self.scenario = scenario

    def source(self, question: Question, rng: Random) -> Source:
        own = self._stems_of(question.reference) - STOP_WORDS
        evidence = [one for id in question.evidence for one in self._sentences_of(id)]
        around = [*evidence[:60], *rng.sample(self._some, min(len(self._some), 60))]
        beside = [text for text in around if not own & self._stems_of(text)]
        others = [text for text in self.references if text != question.reference]
        said = sorted(evidence, key=lambda text: -len(own & self._stems_of(text)))[:3]
        return Source(
            question.text,
            question.reference,
            tuple(rng.sample(others, _MOST_OTHERS) if len(others) > _MOST_OTHERS else others),
            tuple(beside),
            tuple(said),
            question.expects,
        )

    def _sentences_of(self, id: str) -> list[str]:
        if id not in self._by_memory:
            self._by_memory[id] = _sentences(self._texts.get(id, ""))
        return self._by_memory[id]

    def _stems_of(self, text: str) -> frozenset[str]:
        if text not in self._stems:
            self._stems[text] = frozenset(stems(text))
        return self._stems[text]


def _is_one_answer(question: Question) -> bool:
    """Whether the reference is an answer, not a rubric of a good reply or several answers."""
    is_rubric = question.category == "single-session-preference"
    several = "acceptable" in question.reference.lower()
    return bool(question.reference.strip()) and not is_rubric and not several


def _sentences(text: str) -> list[str]:
    parts = (_SPEAKER.sub("", part.strip()) for part in _SENTENCE.split(text))
    return [part for part in parts if 4 <= len(part.split()) <= 40]


def _of_kind(
    kind: str,
    asked: Sequence[tuple[int, Question]],
    known: Sequence[_Conversation],
    seed: str,
    most: int,
) -> list[DrawnProbe]:
    about = KINDS[kind]
    fitting = [pair for pair in asked if pair[1].expects == about.expects]
    Random(f"{seed}/{kind}").shuffle(fitting)
    found: list[DrawnProbe] = []
    for place, question in fitting:
        if len(found) == most:
            break
        own = known[place]
        rng = Random(f"{seed}/{kind}/{own.scenario.id}/{question.id}")
        source = own.source(question, rng)
        answer = about.rule(source, rng)
        if answer is None or not answer.strip():
            continue
        if not about.acceptable and _same(answer, question.reference):
            continue
        if kind not in SHORT_ONLY and about.expects == "answer":
            length = LENGTHS[len(found) % len(LENGTHS)]
            at = at_length(answer, source, length, acceptable=about.acceptable, rng=rng)
            answer = at or answer
        found.append(
            DrawnProbe(
                kind,
                about.acceptable,
                own.scenario.id,
                question,
                answer,
                stratum_of(question, answer),
                about.weight,
                shared_words(answer, question.reference) if about.expects == "answer" else "",
                words_beside(answer, question.reference) if about.expects == "answer" else "",
                abstained=says_nothing(answer, question.text),
                memories=own.size,
            )
        )
    return found


def _weighted(probes: Sequence[DrawnProbe]) -> list[DrawnProbe]:
    """The probes weighted so that they share as many words with references, and have as many
    others beside, as real answers.

    Kinds with as many of both divide the share of such answers by their own weights.
    """
    kinds: dict[tuple[bool, str], dict[tuple[str, str], dict[str, float]]] = defaultdict(dict)
    for one in probes:
        if one.shared and one.weight:
            words = one.shared, one.beside
            kinds[one.acceptable, one.stratum].setdefault(words, {})[one.kind] = one.weight
    parts = {side: _parts(shares_of_words(*side), set(found)) for side, found in kinds.items()}
    weighted = []
    for one in probes:
        if one.shared and one.weight:
            side, words = (one.acceptable, one.stratum), (one.shared, one.beside)
            own = one.weight / sum(kinds[side][words].values())
            one = msgspec.structs.replace(one, weight=own * parts[side][words])
        weighted.append(one)
    return weighted


def _parts(
    shares: Mapping[tuple[Shared, Beside], float], drawn: set[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    """The shares of what was drawn; a share without a probe goes to the nearest one.

    Words shared count first: nearest are those with as many of them, and most alike beside.
    """
    first: dict[str, int] = {shared: place for place, shared in enumerate(SHARED)}
    second: dict[str, int] = {beside: place for place, beside in enumerate(BESIDE)}
    places = {one: (first[one[0]], second[one[1]]) for one in drawn}
    parts = dict.fromkeys(drawn, 0.0)
    for (shared, beside), share in shares.items():
        here = first[shared], second[beside]
        nearest = min(
            drawn,
            key=lambda one: (
                abs(places[one][0] - here[0]),
                abs(places[one][1] - here[1]),
                places[one],
            ),
        )
        parts[nearest] += share
    return parts


def _same(answer: str, reference: str) -> bool:
    return " ".join(stems(answer)) == " ".join(stems(reference))


def _within(held: Mapping[str, int], budget: int | None) -> dict[str, int]:
    """How many of each kind: all, or as evenly as the budget and the kinds allow."""
    if budget is None or sum(held.values()) <= budget:
        return dict(held)
    taken = dict.fromkeys(held, 0)
    left = budget
    while left > 0:
        open_kinds = [kind for kind in held if taken[kind] < held[kind]]
        each = max(1, left // len(open_kinds))
        for kind in open_kinds:
            more = min(each, held[kind] - taken[kind], left)
            taken[kind] += more
            left -= more
    return taken


def _shares(asked: Sequence[tuple[int, Question]]) -> dict[str, float]:
    """The shares of the strata in the benchmark, if answers of each length were as many."""
    counts: Counter[str] = Counter()
    for _, question in asked:
        if question.expects != "answer":
            counts[NO_ANSWER] += 1.0  # type: ignore[assignment]
            continue
        kind = type_of(question.text, question.reference)
        for length in LENGTHS:
            counts[f"{kind}, {length}"] += 1 / len(LENGTHS)  # type: ignore[assignment]
    total = sum(counts.values())
    return {stratum: count / total for stratum, count in counts.items()}
