"""Questions about single facts and their history, and questions that have no answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, zip_longest
from random import Random
from typing import TypeVar

import msgspec

from mnemoscope.personas.authored_question import AuthoredQuestion, difficulty_of
from mnemoscope.personas.simulate.known_facts import Chain, KnownFacts, question_about
from mnemoscope.personas.simulate.phrases import PHRASES, fill, sentence, uncapital
from mnemoscope.personas.simulate.rng import ShuffledCycle
from mnemoscope.personas.simulate.story import ARC_TYPES
from mnemoscope.text.fact_ledger import LedgerFact

T = TypeVar("T")

_EARLY = 0.4


def factual(known: KnownFacts, random: Random, spared: set[str]) -> Iterator[AuthoredQuestion]:
    """Questions on the first value of a fact; a revised one only holds for a time."""
    for place, chain in enumerate(_shuffled(known.chains, random)):
        fact = chain[0]
        if fact.id in spared or known.arc(fact).isolated or (len(chain) > 1 and place % 4):
            continue
        if asked := known.ask(chain, fact, random):
            yield _value_of(known, fact, "factual-recall", *asked)


def recency(known: KnownFacts, random: Random, spared: set[str]) -> Iterator[AuthoredQuestion]:
    """Questions on early facts of arcs that were not mentioned since."""
    names = {arc.name for arc in known.arcs.values()}
    for chain in sorted(_shuffled(known.chains, random), key=len):
        fact, arc = chain[-1], known.arc(chain[-1])
        if arc.end > _EARLY * known.calendar.days or arc.lasting or arc.isolated:
            continue
        if f"{arc.name} 2" in names:
            continue
        if asked := known.ask(chain, fact, random):
            spared.add(chain[0].id)
            yield _value_of(known, fact, "recency-bias-resistance", *asked)


def contradiction(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions on the value after a revision; the outdated value is a distractor."""
    for chain in _shuffled(known.chains, random):
        if known.arc(chain[0]).isolated:
            continue
        for fact in chain[1:]:
            if fact is not chain[-1] and random.random() < 0.7:
                continue
            asked = known.ask(chain, fact, random) if random.random() < 0.5 else None
            if asked:
                text, described = asked
                text = random.choice(PHRASES.asks_latest_again).format(ask=uncapital(text))
            else:
                subject, described = known.subject(fact, random)
                kind = known.kind(fact)
                what = "who" if kind.values.person else "what"
                phrasing = random.choice(PHRASES.asks_latest)
                text = sentence(phrasing, what=what, noun=kind.noun, subject=subject)
            yield _value_of(known, fact, "contradiction-resolution", text, described, "now ")


def temporal(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions on the date of a fact, or on which of two came first."""
    chains = [c for c in _shuffled(known.chains, random) if not known.arc(c[0]).isolated]
    pairs = _apart([chain[0] for chain in chains if len(chain) == 1])
    for place, chain in enumerate(chains):
        if place % 5 < 2 and (pair := next(pairs, None)):
            yield _which_first(known, random, *pair)
        fact = chain[-1]
        subject, described = known.subject(fact, random)
        phrasing = random.choice(
            PHRASES.asks_day_changed if len(chain) > 1 else PHRASES.asks_day_set
        )
        verb = "was last changed" if len(chain) > 1 else "was put on record"
        yield question_about(
            [fact],
            "temporal-reasoning",
            sentence(phrasing, noun=known.kind(fact).noun, subject=subject),
            f"{_upper(known.the(fact))} {verb} on {known.date(fact)}.",
            aspect="date",
            described=described,
        )


def synthesis(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions whose answer needs several days."""
    by_arc: dict[str, list[LedgerFact]] = {}
    for chain in _shuffled(known.chains, random):
        if len(chain) == 1 and not known.arc(chain[0]).isolated:
            by_arc.setdefault(chain[0].arc, []).append(chain[0])
    drafts = [
        _history(known, random, chain)
        for chain in known.chains
        if len(chain) > 2 and not known.arc(chain[0]).isolated
    ]
    drafts += [
        _together(known, random, three) for facts in by_arc.values() for three in _threes(facts)
    ]
    yield from _shuffled(drafts, random)


def negatives(known: KnownFacts, random: Random, count: int) -> Iterator[AuthoredQuestion]:
    """Questions without an answer: three sorts in turn, spread over the history."""
    sorts = (_omitted(known, random), _withheld(known, random), _never(known, random))
    mixed = [draft for row in zip_longest(*sorts) for draft in row if draft is not None]
    for place, draft in enumerate(mixed):
        if not draft.relevant_days:
            share = (place % max(count, 1) + 1) / (max(count, 1) + 1)
            day = max(1, round(share * known.calendar.days))
            answer = random.choice(PHRASES.no_answers)
            draft = msgspec.structs.replace(draft, answer=answer, relevant_days=(day,))
        yield draft


def _omitted(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions on a kind of fact that the logs mention without its value."""
    arcs = [arc for arc in known.open_arcs if arc.id in known.record.omitted]
    for arc in _shuffled(arcs, random):
        ask = random.choice(known.record.omitted[arc.id].asks)
        text = sentence(ask, name=arc.name, about=arc.subject.about)
        yield _unanswered(text, random, (arc.end,), arc.id, described="{about}" in ask)


def _withheld(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions on subjects that never came up."""
    drafts = []
    for type in ARC_TYPES:
        asks = [ask for kind in known.story.arcs[type].facts for ask in kind.asks]
        for subject in known.withheld[type]:
            chosen = (
                random.sample(asks, min(3, len(asks))) if asks else PHRASES.asks_withheld_decision
            )
            for ask in chosen:
                text = sentence(ask, name=subject.name, about=subject.about)
                drafts.append(_unanswered(text, random, described="{about}" in ask))
    yield from _shuffled(drafts, random)


def _never(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions on events that never happen."""
    people = ShuffledCycle(known.story.colleagues(), random)
    for question in _shuffled(known.story.never, random):
        yield _unanswered(fill(question, people, random), random)


def _unanswered(
    text: str, random: Random, days: tuple[int, ...] = (), arc: str = "", *, described: bool = False
) -> AuthoredQuestion:
    """A question without an answer; without days, `negatives` sets from when it is asked."""
    return AuthoredQuestion(
        question=text,
        answer=random.choice(PHRASES.no_answers),
        category="negative-recall",
        difficulty=difficulty_of(days, described),
        relevant_days=days,
        requires_synthesis=False,
        no_evidence=True,
        key=(),
        arc=arc,
    )


def _value_of(
    known: KnownFacts, fact: LedgerFact, category: str, text: str, described: bool, when: str = ""
) -> AuthoredQuestion:
    return question_about(
        [fact],
        category,
        text,
        f"{_upper(known.the(fact))} is {when}{fact.value}.",
        described=described,
        irrelevant_after=None if fact.superseded_on is None else fact.superseded_on - 1,
    )


def _which_first(
    known: KnownFacts, random: Random, one: LedgerFact, other: LedgerFact
) -> AuthoredQuestion:
    first, second = sorted((one, other), key=lambda fact: fact.day)
    return question_about(
        [first, second],
        "temporal-reasoning",
        sentence(
            random.choice(PHRASES.asks_which_first), one=known.the(one), other=known.the(other)
        ),
        f"{_upper(known.the(first))} came first, on {known.date(first)}; "
        f"{known.the(second)} followed on {known.date(second)}.",
        aspect="date",
    )


def _history(known: KnownFacts, random: Random, chain: Chain) -> AuthoredQuestion:
    subject, described = known.subject(chain[-1], random)
    values = [fact.value for fact in chain]
    return question_about(
        chain,
        "synthesis",
        sentence(
            random.choice(PHRASES.asks_history), noun=known.kind(chain[0]).noun, subject=subject
        ),
        f"{_upper(known.the(chain[0]))} was first {values[0]}, "
        f"then {', then '.join(values[1:-1])}, and in the end {values[-1]}.",
        described=described,
    )


def _together(known: KnownFacts, random: Random, facts: Chain) -> AuthoredQuestion:
    subject, described = known.subject(facts[0], random)
    a, b, c = (known.kind(fact).noun for fact in facts)
    parts = [f"the {known.kind(fact).noun} is {fact.value}" for fact in facts]
    return question_about(
        facts,
        "synthesis",
        sentence(random.choice(PHRASES.asks_together), subject=subject, a=a, b=b, c=c),
        f"For {facts[0].entity}, {parts[0]}, {parts[1]}, and {parts[2]}.",
        described=described,
    )


def _threes(facts: list[LedgerFact]) -> Iterator[Chain]:
    """Up to two groups of three facts on three different days, no fact in both."""
    left = list(facts)
    for _ in range(2):
        for three in combinations(left, 3):
            if len({fact.day for fact in three}) == 3:
                yield three
                left = [fact for fact in left if fact not in three]
                break


def _apart(facts: list[LedgerFact]) -> Iterator[tuple[LedgerFact, LedgerFact]]:
    """Pairs of facts about different things that became known on different days."""
    left = sorted(facts, key=lambda fact: fact.day)
    for one, other in zip(left[::2], left[5::2], strict=False):
        if one.entity != other.entity and one.day != other.day:
            yield one, other


def _shuffled(items: Sequence[T], random: Random) -> list[T]:
    shuffled = list(items)
    random.shuffle(shuffled)
    return shuffled


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
