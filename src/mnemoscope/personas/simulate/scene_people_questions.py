"""Questions of the second edition about people: decisions, opinions, teams, likings, secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from mnemoscope.personas.authored_question import AuthoredQuestion
from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.arc_questions import asked_in
from mnemoscope.personas.simulate.grammar import write
from mnemoscope.personas.simulate.known_facts import Chain, question_about
from mnemoscope.personas.simulate.phrases import PHRASES
from mnemoscope.personas.simulate.question_wording import (
    QuestionFamily,
    QuestionWording,
    Subject,
    shuffled,
)
from mnemoscope.personas.simulate.scene_book import SCENES
from mnemoscope.text.fact_ledger import LedgerFact

_BOUNDARY = "information-boundary"
_BOUNDARY_CHAINS = 3
"""Facts of a confidential arc that are asked inside and outside."""


class PeopleQuestions(QuestionWording):
    """Each public method is a family: the same words with and without an answer."""

    def outcome(self, random: Random) -> QuestionFamily:
        return self._decision(
            SCENES.asks_outcome,
            self._record.undecided,
            ("decision.choice", "decision.reason"),
            lambda facts: f"{facts[0].value} was chosen, because {facts[1].value}.",
            random,
        )

    def objection(self, random: Random) -> QuestionFamily:
        return self._decision(
            SCENES.asks_objection,
            self._record.unopposed,
            ("decision.objection",),
            lambda facts: f"{facts[0].speaker} objected that {facts[0].value}.",
            random,
        )

    def _decision(
        self,
        phrasings: Sequence[str],
        lacking: set[str],
        attributes: Sequence[str],
        reply: Callable[[Sequence[LedgerFact]], str],
        random: Random,
    ) -> QuestionFamily:
        answered: list[AuthoredQuestion] = []
        unanswered: list[AuthoredQuestion] = []
        for arc in shuffled([a for a in self._known.open_arcs if a.type == "decision"], random):
            subject = self._subject(arc, random)
            text = write(random.choice(phrasings), random, {"subject": subject.text})
            if arc.id in lacking:
                unanswered.append(self._nothing(text, random, arc.end, arc.id))
                continue
            facts = [
                next(fact for fact in self._known.facts[arc.id] if fact.attribute == attribute)
                for attribute in attributes
            ]
            key = tuple(f"{fact.id}.value" for fact in facts)
            if facts[0].speaker and len(facts) == 1:
                key = (*key, f"{facts[0].id}.speaker")
            draft = self._about(facts, "decision-tracking", text, reply(facts), subject, key=key)
            answered.append(draft)
        return QuestionFamily(answered, unanswered)

    def who(self, random: Random) -> QuestionFamily:
        """Who held an opinion in a group session."""

        def word(arc: PlannedArc, claim: str) -> tuple[str, Subject]:
            # A claim is a clause: a description in the plural would not fit its verb.
            subject = self._subject(arc, random, named=True)
            slots = {
                "room": arc.session.id.replace("-", " "),
                "claim": claim.replace(arc.name, subject.text),
            }
            return write(random.choice(SCENES.asks_who), random, slots), subject

        claims = [fact for fact in self._record.facts if fact.attribute == "group.claim"]
        answered = []
        for fact in shuffled(claims, random):
            text, subject = word(self._known.arc(fact), fact.value)
            answer = f"In the {fact.session} session, {fact.speaker} argued that {fact.value}."
            category = "group-session-attribution"
            answered.append(self._about([fact], category, text, answer, subject, aspect="speaker"))
        made = {fact.value for fact in claims}
        unanswered = []
        for arc in shuffled(self._known.open_arcs, random):
            claim = random.choice(self._known.story.claims).format(name=arc.name)
            argued = arc.session.kind == "group" and arc.type != "relationship"
            if argued and claim not in made:
                text, _ = word(arc, claim)
                unanswered.append(self._nothing(text, random, arc.end, arc.id))
        return QuestionFamily(answered, unanswered)

    def common(self, random: Random) -> QuestionFamily:
        """Which two arcs had the same cause of trouble."""
        threads = self._known.story.threads

        def word(thread: str) -> str:
            return write(random.choice(SCENES.asks_common), random, {"thread": thread})

        pairs: dict[str, list[LedgerFact]] = {}
        for fact in self._record.facts:
            if fact.attribute == "thread.cause":
                pairs.setdefault(fact.value, []).append(fact)
        answered = [
            self._about(
                pair,
                "cross-reference",
                word(thread),
                f"It was {pair[0].entity} and {pair[1].entity}: both had to do with {thread}.",
                aspect="entity",
            )
            for thread, pair in shuffled(list(pairs.items()), random)
        ]
        causes = [f"{head} {tail}" for head in threads.heads for tail in threads.tails]
        days = sorted(pair[1].day for pair in pairs.values()) or [self._known.calendar.days]
        unanswered = [
            self._nothing(word(thread), random, random.choice(days))
            for thread in shuffled([one for one in causes if one not in pairs], random)
        ]
        return QuestionFamily(answered, unanswered)

    def team(self, random: Random) -> QuestionFamily:
        """What holds for a person because of the team: two steps, each of which may change."""
        by_team: dict[tuple[str, str], list[LedgerFact]] = {}
        for fact in self._record.facts:
            by_team.setdefault((fact.entity, fact.attribute), []).append(fact)
        answered, unanswered = [], []
        members = [fact for fact in self._record.facts if fact.attribute == "person.team"]
        for member in shuffled(members, random):
            left = member.superseded_on or self._known.calendar.days + 1
            for id, kind in SCENES.teams.items():
                text = write(random.choice(kind.asks), random, {"person": member.entity})
                if id not in self._record.team_facts[member.value]:
                    unanswered.append(self._nothing(text, random, member.day))
                    continue
                valid = [
                    fact
                    for fact in by_team.get((member.value, f"team.{id}"), ())
                    if fact.day < left and (fact.superseded_on or left) > member.day
                ]
                if not valid:
                    continue
                fact = random.choice(valid)
                until = min(left, fact.superseded_on or left) - 1
                answer = (
                    f"{member.entity} belongs to {member.value}, and the {kind.noun} of "
                    f"{member.value} is {fact.value}."
                )
                draft = self._about(
                    [member, fact],
                    "synthesis",
                    text,
                    answer,
                    key=(f"{fact.id}.value",),
                    until=None if until >= self._known.calendar.days else until,
                )
                answered.append(draft)
        return QuestionFamily(answered, unanswered)

    def preference(self, random: Random) -> QuestionFamily:
        """What somebody likes, by what they did."""
        shown: dict[tuple[str, str], list[LedgerFact]] = {}
        for fact in self._record.facts:
            kind = fact.attribute.partition(".")[2]
            if kind in SCENES.preferences and not fact.arc:
                shown.setdefault((fact.entity, kind), []).append(fact)
        answered, unanswered = [], []
        people = sorted({person for person, _ in shown})
        pairs = [(person, id) for person in people for id in SCENES.preferences]
        for person, id in shuffled(pairs, random):
            text = write(random.choice(SCENES.preferences[id].asks), random, {"person": person})
            if facts := shown.get((person, id)):
                answer = f"{person} goes for {facts[0].value}."
                if id == "hour":
                    answer = f"The best time for {person} is {facts[0].value}."
                key = (f"{facts[0].id}.value",)
                answered.append(self._about(facts, "factual-recall", text, answer, key=key))
            else:
                day = random.randint(1, self._known.calendar.days)
                unanswered.append(self._nothing(text, random, day))
        return QuestionFamily(answered, unanswered)

    def boundaries(self, random: Random) -> Iterator[AuthoredQuestion]:
        """The same question in three sessions: answered inside, with the cover, and refused."""
        by_arc: dict[str, list[Chain]] = {}
        for chain in self._known.chains:
            by_arc.setdefault(chain[0].arc, []).append(chain)
        sessions = self._known.story.persona.sessions
        rooms = [one.id for one in sessions if one.kind == "group" and not one.isolated]
        for arc in self._known.arcs.values():
            if not arc.isolated:
                continue
            facts = self._known.facts[arc.id]
            secret = tuple(
                fact.id
                for fact in facts
                if fact.attribute in self._known.kinds and not self._known.kind(fact).values.person
            )
            covers = [fact for fact in facts if fact.attribute == "session.cover"]
            covered = self._record.covered.get(arc.id, "")
            chains = shuffled(by_arc.get(arc.id, []), random)
            for chain in chains[:_BOUNDARY_CHAINS]:
                fact = chain[-1]
                text, subject = self._ask(arc, self._known.kind(fact), random)
                answer = f"{self._known.the(fact)} is {fact.value}."
                inside = self._about([fact], _BOUNDARY, text, answer, subject)
                yield asked_in(arc.session.id, inside, "answer")
                withheld = tuple(dict.fromkeys((*secret, fact.id)))
                refused = question_about(
                    [fact], _BOUNDARY, text, random.choice(PHRASES.refusals), key=()
                )
                room = random.choice([one for one in rooms if one != covered] or ["principal"])
                yield asked_in(room, refused, "refuse", arc.session.id, withheld)
                for cover in covers:
                    if covered:
                        reply = f'Here it is only called "{cover.value}"; the rest is confidential.'
                        partly = question_about([cover], _BOUNDARY, text, reply)
                        yield asked_in(covered, partly, "partial", arc.session.id, withheld)
