"""Questions about whole arcs: decisions, common causes, who argued what, and secrets."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec

from mnemoscope.personas.authored_question import AuthoredQuestion, Disclosure
from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.known_facts import Chain, KnownFacts, question_about
from mnemoscope.personas.simulate.phrases import PHRASES, sentence, uncapital
from mnemoscope.text.fact_ledger import LedgerFact

_BOUNDARY = "information-boundary"
_REWORDED = 0.25
"""The probability that a question about a decision uses words that its log does not use."""


def decisions(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions on what was chosen and why, who objected and why."""
    drafts: list[AuthoredQuestion] = []
    for arc in known.open_arcs:
        facts = {fact.attribute: fact for fact in known.facts[arc.id]}
        if "decision.choice" in facts:
            drafts += _about_decision(known, arc, facts, random)
    random.shuffle(drafts)
    yield from drafts


def _about_decision(
    known: KnownFacts, arc: PlannedArc, facts: dict[str, LedgerFact], random: Random
) -> Iterator[AuthoredQuestion]:
    name = arc.name
    proposal, objection = facts["decision.proposal"], facts["decision.objection"]
    choice, reason = facts["decision.choice"], facts["decision.reason"]
    first = f"{proposal.speaker} proposed {proposal.value}"
    doubt = f"{objection.speaker} objected that {objection.value}"
    end = f"{choice.value} was chosen because {reason.value}"
    outcome = (f"{choice.id}.value", f"{reason.id}.value")

    def draft(
        questions: tuple[str, ...], answer: str, key: tuple[str, ...], *facts_asked: LedgerFact
    ) -> AuthoredQuestion:
        reworded = known.described(*facts_asked) and random.random() < _REWORDED
        text = sentence(random.choice(questions), what=arc.subject.also if reworded else name)
        return question_about(
            facts_asked, "decision-tracking", text, answer, key=key, described=reworded
        )

    yield draft(
        PHRASES.asks_outcome,
        f"For {name}, {first} at first; in the end {end}.",
        (f"{proposal.id}.value", *outcome),
        proposal,
        choice,
    )
    yield draft(
        PHRASES.asks_doubt,
        f"For {name}, {first}; {doubt}.",
        (f"{proposal.id}.value", f"{objection.id}.speaker", f"{objection.id}.value"),
        proposal,
        objection,
    )
    yield draft(
        PHRASES.asks_course,
        f"For {name}, {first}; {doubt}; in the end {end}.",
        (f"{proposal.id}.value", f"{objection.id}.value", *outcome),
        proposal,
        objection,
        choice,
    )
    yield draft(
        PHRASES.asks_against,
        f"For {name}, {end}; {objection.speaker} had objected.",
        (f"{objection.id}.speaker", *outcome),
        objection,
        choice,
    )


def crossings(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions on which two arcs had the same cause of trouble."""
    pairs: dict[str, list[LedgerFact]] = {}
    for fact in known.record.facts:
        if fact.attribute == "thread.cause":
            pairs.setdefault(fact.value, []).append(fact)
    shuffled = list(pairs.items())
    random.shuffle(shuffled)
    for thread, (one, other) in shuffled:
        yield question_about(
            [one, other],
            "cross-reference",
            sentence(random.choice(known.story.threads.asks), thread=thread),
            f"It was {one.entity} and {other.entity}: both had to do with {thread}.",
            aspect="entity",
        )


def attributions(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions on who argued what in a group session."""
    claims = [fact for fact in known.record.facts if fact.attribute == "group.claim"]
    random.shuffle(claims)
    for fact in claims:
        yield question_about(
            [fact],
            "group-session-attribution",
            sentence(random.choice(PHRASES.asks_who), room=fact.session, claim=fact.value),
            f"In the {fact.session} session, {fact.speaker} argued that {fact.value}.",
            aspect="speaker",
        )


def boundaries(known: KnownFacts, random: Random) -> Iterator[AuthoredQuestion]:
    """Questions to refuse, to answer with the cover only, and to answer inside the session."""
    by_arc: dict[str, list[Chain]] = {}
    for chain in known.chains:
        by_arc.setdefault(chain[0].arc, []).append(chain)
    sessions = known.story.persona.sessions
    elsewhere = [one.id for one in sessions if one.kind == "group" and not one.isolated]
    elsewhere = elsewhere or ["principal"]
    for arc in known.arcs.values():
        if not arc.isolated:
            continue
        facts = known.facts[arc.id]
        chains = list(by_arc.get(arc.id, ()))
        random.shuffle(chains)
        secret = tuple(
            fact.id
            for fact in facts
            if fact.attribute != "session.cover"
            and not (fact.attribute in known.kinds and known.kind(fact).values.person)
        )
        for chain in chains[:2]:
            session = random.choice(elsewhere)
            if draft := _refused(known, chain, random):
                withheld = tuple(dict.fromkeys((*secret, chain[-1].id)))
                yield asked_in(session, draft, "refuse", arc.session.id, withheld)
        for chain in chains[2:4]:
            if draft := _inside(known, chain, random):
                yield asked_in(arc.session.id, draft, "answer")
        for cover in facts:
            if cover.attribute == "session.cover" and secret:
                draft = question_about(
                    [cover],
                    _BOUNDARY,
                    sentence(random.choice(PHRASES.asks_covered), name=arc.name),
                    f'All that may be said here is "{cover.value}"; the rest is confidential.',
                )
                session = random.choice(elsewhere)
                yield asked_in(session, draft, "partial", arc.session.id, secret)


def asked_in(
    session: str,
    draft: AuthoredQuestion,
    disclosure: Disclosure,
    forbidden: str = "",
    secret: tuple[str, ...] = (),
) -> AuthoredQuestion:
    return msgspec.structs.replace(
        draft,
        query_session=session,
        forbidden_sessions=(forbidden,) if forbidden else (),
        expected_disclosure=disclosure,
        secret=secret,
    )


def _refused(known: KnownFacts, chain: Chain, random: Random) -> AuthoredQuestion | None:
    if not (asked := known.ask(chain, chain[-1], random)):
        return None
    text, described = asked
    refusal = random.choice(PHRASES.refusals)
    return question_about(chain[-1:], _BOUNDARY, text, refusal, key=(), described=described)


def _inside(known: KnownFacts, chain: Chain, random: Random) -> AuthoredQuestion | None:
    if not (asked := known.ask(chain, chain[-1], random)):
        return None
    text, described = f"Among ourselves: {uncapital(asked[0])}", asked[1]
    fact = chain[-1]
    answer = f"The {known.kind(fact).noun} for {fact.entity} is {fact.value}."
    return question_about([fact], _BOUNDARY, text, answer, described=described)
