"""Questions about single facts and their history: what, when, what now, what over time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Any

from mnemoscope.personas.simulate.known_facts import Chain, Draft, KnownFacts, state_end
from mnemoscope.personas.simulate.sentence_templates import sentence, uncapital
from mnemoscope.text.fact_ledger import LedgerFact

_EARLY = 0.4

_LATEST = (
    "After all the changes, {what} is the {noun} for {subject} now?",
    "By the latest word, {what} is the {noun} for {subject}?",
    "Leaving earlier versions aside, {what} is the {noun} for {subject}?",
    "The {noun} for {subject} did not stay as it was at first: {what} is it now?",
    "{what} counts as the {noun} for {subject} after the last revision?",
)
_LATEST_ASK = (
    "Going by the latest word: {ask}",
    "Things were revised, so as of now: {ask}",
    "With all corrections taken into account: {ask}",
    "Not as first noted but as it stands in the end: {ask}",
)
_SET = (
    "On what date was the {noun} for {subject} put on record?",
    "On which date did we learn the {noun} for {subject}?",
    "What was the date of the note that gave the {noun} for {subject}?",
)
_CHANGED = (
    "On what date did the {noun} for {subject} change for the last time?",
    "What is the date of the latest revision of the {noun} for {subject}?",
)
_FIRST = (
    "Which was put on record first, {one} or {other}, and on what dates?",
    "What did we learn earlier, {one} or {other}? Give both dates.",
    "Put {one} and {other} in the order in which they were noted, with their dates.",
)
_HISTORY = (
    "Through which values did the {noun} for {subject} go, from first to last?",
    "List everything that was noted over time as the {noun} for {subject}.",
    "How did the {noun} for {subject} develop: what was it first, what then, what in the end?",
)
_TOGETHER = (
    "Summarise three things about {subject}: the {a}, the {b} and the {c}.",
    "For {subject}, what were the {a}, the {b} and the {c}?",
    "I need the {a}, the {b} and the {c} for {subject} in one place.",
)


def factual(known: KnownFacts, random: Random, spared: set[str]) -> Iterator[Draft]:
    """What a thing is; where it changes later, only as long as it holds."""
    for place, chain in enumerate(_shuffled(known.chains, random)):
        fact = chain[0]
        if fact.id in spared or known.plot(fact).isolated or (len(chain) > 1 and place % 4):
            continue
        if asked := known.ask(chain, fact, random):
            yield _simple("factual-recall", known, fact, *asked)


def recency(known: KnownFacts, random: Random, spared: set[str]) -> Iterator[Draft]:
    """What was said long ago, of arcs that nobody has spoken of since."""
    names = {plot.name for plot in known.plots.values()}
    for chain in sorted(_shuffled(known.chains, random), key=len):
        fact, plot = chain[-1], known.plot(chain[-1])
        if plot.end > _EARLY * known.calendar.days or plot.lasting or plot.isolated:
            continue
        if f"{plot.name} 2" in names:
            continue
        if asked := known.ask(chain, fact, random):
            spared.add(chain[0].id)
            yield _simple("recency-bias-resistance", known, fact, *asked)


def contradiction(known: KnownFacts, random: Random) -> Iterator[Draft]:
    """What holds after a revision, with the outdated value as temptation."""
    for chain in _shuffled(known.chains, random):
        if known.plot(chain[0]).isolated:
            continue
        for fact in chain[1:]:
            if fact is not chain[-1] and random.random() < 0.7:
                continue
            asked = known.ask(chain, fact, random) if random.random() < 0.5 else None
            if asked:
                text = random.choice(_LATEST_ASK).format(ask=uncapital(asked[0]))
                yield _simple("contradiction-resolution", known, fact, text, asked[1], "now ")
            else:
                subject, described = known.subject(fact, random)
                text = sentence(
                    random.choice(_LATEST),
                    what=known.what(fact),
                    noun=known.kind(fact).noun,
                    subject=subject,
                )
                yield _simple("contradiction-resolution", known, fact, text, described, "now ")


def temporal(known: KnownFacts, random: Random) -> Iterator[Draft]:
    """On what date, or which of two first."""
    chains = [c for c in _shuffled(known.chains, random) if not known.plot(c[0]).isolated]
    singles = [chain[0] for chain in chains if len(chain) == 1]
    pairs = _apart(singles)
    for place, chain in enumerate(chains):
        if place % 5 < 2 and (pair := next(pairs, None)):
            yield _which_first(known, random, *pair)
        fact = chain[-1]
        subject, described = known.subject(fact, random)
        phrasing = random.choice(_CHANGED if len(chain) > 1 else _SET)
        verb = "was last changed" if len(chain) > 1 else "was put on record"
        yield Draft(
            "temporal-reasoning",
            sentence(phrasing, noun=known.kind(fact).noun, subject=subject),
            f"{_upper(known.the(fact))} {verb} on {known.date(fact)}.",
            (fact.day,),
            fact.arc,
            (f"{fact.id}.date",),
            described=described,
        )


def synthesis(known: KnownFacts, random: Random) -> Iterator[Draft]:
    """What only several days together tell."""
    histories = [chain for chain in known.chains if len(chain) > 2]
    by_arc: dict[str, list[LedgerFact]] = {}
    for chain in _shuffled(known.chains, random):
        if len(chain) == 1 and not known.plot(chain[0]).isolated:
            by_arc.setdefault(chain[0].arc, []).append(chain[0])
    drafts = [
        _history(known, random, chain) for chain in histories if not known.plot(chain[0]).isolated
    ]
    for facts in by_arc.values():
        for three in _threes(facts):
            drafts.append(_together(known, random, three))
    yield from _shuffled(drafts, random)


def _simple(
    category: str, known: KnownFacts, fact: LedgerFact, text: str, described: bool, when: str = ""
) -> Draft:
    return Draft(
        category,
        text,
        f"{_upper(known.the(fact))} is {when}{fact.value}.",
        (fact.day,),
        fact.arc,
        (f"{fact.id}.value",),
        described=described,
        irrelevant_after=state_end(fact),
    )


def _which_first(known: KnownFacts, random: Random, one: LedgerFact, other: LedgerFact) -> Draft:
    first, second = sorted((one, other), key=lambda fact: fact.day)
    return Draft(
        "temporal-reasoning",
        sentence(random.choice(_FIRST), one=known.the(one), other=known.the(other)),
        f"{_upper(known.the(first))} came first, on {known.date(first)}; "
        f"{known.the(second)} followed on {known.date(second)}.",
        (first.day, second.day),
        first.arc,
        (f"{first.id}.date", f"{second.id}.date"),
    )


def _history(known: KnownFacts, random: Random, chain: Chain) -> Draft:
    noun = known.kind(chain[0]).noun
    subject, described = known.subject(chain[-1], random)
    values = [fact.value for fact in chain]
    return Draft(
        "synthesis",
        sentence(random.choice(_HISTORY), noun=noun, subject=subject),
        f"{_upper(known.the(chain[0]))} was first {values[0]}, "
        f"then {', then '.join(values[1:-1])}, and in the end {values[-1]}.",
        tuple(fact.day for fact in chain),
        chain[0].arc,
        tuple(f"{fact.id}.value" for fact in chain),
        described=described,
    )


def _together(known: KnownFacts, random: Random, facts: Chain) -> Draft:
    subject, described = known.subject(facts[0], random)
    nouns = [known.kind(fact).noun for fact in facts]
    parts = [f"the {noun} is {fact.value}" for noun, fact in zip(nouns, facts, strict=True)]
    return Draft(
        "synthesis",
        sentence(random.choice(_TOGETHER), subject=subject, a=nouns[0], b=nouns[1], c=nouns[2]),
        f"For {facts[0].entity}, {parts[0]}, {parts[1]}, and {parts[2]}.",
        tuple(sorted(fact.day for fact in facts)),
        facts[0].arc,
        tuple(f"{fact.id}.value" for fact in facts),
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


def _shuffled(items: list[Any], random: Random) -> list[Any]:
    shuffled = list(items)
    random.shuffle(shuffled)
    return shuffled


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
