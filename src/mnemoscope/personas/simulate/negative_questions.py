"""Questions that have no answer: what never happened, who never came, what was never told."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from random import Random

from mnemoscope.personas.simulate.cast import colleagues
from mnemoscope.personas.simulate.known_facts import Draft, KnownFacts
from mnemoscope.personas.simulate.rng import Deck
from mnemoscope.personas.simulate.sentence_templates import fill, sentence
from mnemoscope.personas.simulate.story import ARC_TYPES

_ANSWERS = (
    "No evidence found: nothing in the log says so.",
    "No evidence found: the log is silent on this.",
    "No evidence found: this was never noted.",
    "No evidence found: there is no entry that would tell.",
)
_WITHHELD_DECISION = (
    "What was chosen for {name}, and why?",
    "Who objected in {name}, and on what grounds?",
)


def negatives(known: KnownFacts, random: Random, count: int) -> Iterator[Draft]:
    """The three sorts in turn, spread over the life."""
    sorts = (_omitted(known, random), _withheld(known, random), _never(known, random))
    mixed = [draft for row in zip_longest(*sorts) for draft in row if draft is not None]
    for place, draft in enumerate(mixed):
        if draft.days:
            yield draft
        else:
            share = (place % max(count, 1) + 1) / (max(count, 1) + 1)
            day = max(1, round(share * known.calendar.days))
            yield _vain(draft.question, random, (day,), described=draft.described)


def _omitted(known: KnownFacts, random: Random) -> Iterator[Draft]:
    """A kind of fact that was talked about and never told, of a subject that is well known."""
    plots = [plot for plot in known.open_plots if plot.id in known.record.omitted]
    random.shuffle(plots)
    for plot in plots:
        ask = random.choice(known.record.omitted[plot.id].asks)
        text = sentence(ask, name=plot.name, about=plot.subject.about)
        yield _vain(text, random, (plot.end,), plot.id, described="{about}" in ask)


def _withheld(known: KnownFacts, random: Random) -> Iterator[Draft]:
    """Subjects of a well known kind that never came up."""
    drafts = []
    for type in ARC_TYPES:
        asks = [ask for kind in known.story.arcs[type].facts for ask in kind.asks]
        for subject in known.withheld[type]:
            chosen = random.sample(asks, min(3, len(asks))) if asks else list(_WITHHELD_DECISION)
            for ask in chosen:
                text = sentence(ask, name=subject.name, about=subject.about)
                drafts.append(_vain(text, random, (), described="{about}" in ask))
    random.shuffle(drafts)
    yield from drafts


def _never(known: KnownFacts, random: Random) -> Iterator[Draft]:
    people = Deck(colleagues(known.story), random)
    questions = list(known.story.never)
    random.shuffle(questions)
    for question in questions:
        yield _vain(fill(question, people, random), random, ())


def _vain(
    text: str, random: Random, days: tuple[int, ...], arc: str = "", *, described: bool = False
) -> Draft:
    return Draft(
        "negative-recall",
        text,
        random.choice(_ANSWERS),
        days,
        arc,
        described=described,
        no_evidence=True,
    )
