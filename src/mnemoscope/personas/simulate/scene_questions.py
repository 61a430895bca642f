"""Questions of the second edition, in pairs of families: the same words with and without an answer.

Each family words what the logs state and what they leave out in the same way and in the same
proportion, so that the text of a question does not tell whether it has an answer. A confidential
fact is asked in the same words inside its session and outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import NamedTuple, TypeVar

import msgspec

from mnemoscope.personas.authored_question import AuthoredQuestion, difficulty_of
from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.arc_questions import asked_in
from mnemoscope.personas.simulate.grammar import write
from mnemoscope.personas.simulate.known_facts import Chain, KnownFacts, question_about
from mnemoscope.personas.simulate.phrases import PHRASES, uncapital
from mnemoscope.personas.simulate.scene_book import SCENES
from mnemoscope.personas.simulate.scene_timeline import SceneRecord
from mnemoscope.personas.simulate.story import StoryFact
from mnemoscope.text.fact_ledger import LedgerFact

T = TypeVar("T")

_PER_ARC = 6.5
"""Core questions for each arc."""
_NEGATIVE = 0.15
"""The share of each family that has no answer."""
_EARLY = 0.4
_BOUNDARY = "information-boundary"
_BOUNDARY_CHAINS = 3
"""Facts of a confidential arc that are asked inside and outside."""
_SHARES: Mapping[str, float] = {
    "value": 0.20,
    "latest": 0.12,
    "date": 0.08,
    "first": 0.05,
    "why": 0.06,
    "course": 0.05,
    "both": 0.08,
    "outcome": 0.05,
    "objection": 0.05,
    "who": 0.08,
    "common": 0.07,
    "team": 0.10,
    "preference": 0.06,
}


class Subject(NamedTuple):
    """How a question names the subject of an arc."""

    text: str
    manner: str
    """name, alias or about."""


class QuestionFamily(NamedTuple):
    answered: Sequence[AuthoredQuestion]
    unanswered: Sequence[AuthoredQuestion]


def scene_questions(known: KnownFacts, record: SceneRecord) -> tuple[AuthoredQuestion, ...]:
    """All questions of a history of the second edition."""
    maker = _Maker(known, record)
    total = _PER_ARC * len(known.arcs)
    seen: set[str] = set()
    drafts: list[AuthoredQuestion] = []
    for name, share in _SHARES.items():
        family: QuestionFamily = getattr(maker, name)(known.rng.stream("questions", name))
        drafts += _mixed(family, round(total * share), seen)
    drafts += maker.boundaries(known.rng.stream("questions", _BOUNDARY))
    drafts.sort(key=lambda one: (max(one.relevant_days), one.question, one.query_session))
    width = max(3, len(str(len(drafts))))
    prefix = known.story.persona.id
    return tuple(
        msgspec.structs.replace(draft, id=f"{prefix}-q{number:0{width}}")
        for number, draft in enumerate(drafts, 1)
    )


def _mixed(family: QuestionFamily, count: int, seen: set[str]) -> Iterator[AuthoredQuestion]:
    """Questions with and without an answer in the fixed proportion."""
    answered = list(_distinct(family.answered, seen))
    unanswered = list(_distinct(family.unanswered, seen))
    count = min(count, round(len(answered) / (1 - _NEGATIVE)), round(len(unanswered) / _NEGATIVE))
    without = round(count * _NEGATIVE)
    yield from unanswered[:without]
    yield from answered[: count - without]


def _distinct(drafts: Sequence[AuthoredQuestion], seen: set[str]) -> Iterator[AuthoredQuestion]:
    for draft in drafts:
        if draft.question not in seen:
            seen.add(draft.question)
            yield draft


def _shuffled(items: Sequence[T], random: Random) -> list[T]:
    return random.sample(items, len(items))


class _Maker:
    """Makes the questions of each family; its public methods are the families."""

    def __init__(self, known: KnownFacts, record: SceneRecord) -> None:
        self._known, self._record = known, record
        self._chains = [chain for chain in known.chains if not known.arc(chain[0]).isolated]
        self._omitted = [
            (arc, kind)
            for arc in known.open_arcs
            for kind in self._record.omissions.get(arc.id, ())
        ]
        self._names = {
            (fact.arc, fact.attribute): fact
            for fact in record.facts
            if fact.attribute in ("name.meaning", "name.also")
        }

    # How subjects are named, and what is needed to understand it.

    def _subject(self, arc: PlannedArc, random: Random, about: bool | None = None) -> Subject:
        if about is None:
            about = random.random() < 0.45
        if about:
            return Subject(arc.subject.about, "about")
        also = self._names.get((arc.id, "name.also"))
        if also and random.random() < 0.4:
            return Subject(also.value, "alias")
        return Subject(arc.name, "name")

    def _links(self, facts: Sequence[LedgerFact], subject: Subject) -> Iterator[LedgerFact]:
        """The facts about names without which the days of these facts do not fit the question."""
        for fact in facts:
            alias = (fact.arc, fact.day, fact.attribute) in self._record.by_alias
            described = (fact.arc, fact.day) in self._record.abouts
            if subject.manner == "about" and not described:
                yield self._names[fact.arc, "name.meaning"]
            if subject.manner != "about" and alias != (subject.manner == "alias"):
                yield self._names[fact.arc, "name.also"]

    def _ask(self, arc: PlannedArc, kind: StoryFact, random: Random) -> tuple[str, Subject]:
        ask = random.choice(kind.asks)
        subject = self._subject(arc, random, "{about}" in ask)
        return write(ask, random, {"name": subject.text, "about": subject.text}), subject

    def _about(
        self,
        facts: Sequence[LedgerFact],
        category: str,
        text: str,
        answer: str,
        subject: Subject | None = None,
        *,
        aspect: str = "value",
        key: tuple[str, ...] | None = None,
        until: int | None = None,
    ) -> AuthoredQuestion:
        links = dict.fromkeys(self._links(facts, subject)) if subject else {}
        return question_about(
            [*facts, *links],
            category,
            text,
            answer[0].upper() + answer[1:],
            key=tuple(f"{fact.id}.{aspect}" for fact in facts) if key is None else key,
            described=subject is not None and subject.manner == "about",
            irrelevant_after=until,
        )

    def _nothing(self, text: str, random: Random, day: int, arc: str = "") -> AuthoredQuestion:
        return AuthoredQuestion(
            question=text,
            answer=random.choice(SCENES.no_answers),
            category="negative-recall",
            difficulty=difficulty_of((day,), False),
            relevant_days=(day,),
            requires_synthesis=False,
            no_evidence=True,
            key=(),
            arc=arc,
        )

    def _lacking(
        self, random: Random, weight: Callable[[StoryFact], float]
    ) -> Iterator[tuple[PlannedArc, StoryFact]]:
        """What arcs leave out; a kind is kept with the probability that its facts have answers."""
        for arc, kind in _shuffled(self._omitted, random):
            if random.random() < weight(kind):
                yield arc, kind

    def _until(self, fact: LedgerFact) -> int | None:
        return None if fact.superseded_on is None else fact.superseded_on - 1

    # Families.

    def value(self, random: Random) -> QuestionFamily:
        """The present value of a fact."""
        answered = []
        for chain in _shuffled(self._chains, random):
            fact, arc = chain[-1], self._known.arc(chain[-1])
            text, subject = self._ask(arc, self._known.kind(fact), random)
            category = "factual-recall" if len(chain) == 1 else "contradiction-resolution"
            if arc.end <= _EARLY * self._known.calendar.days and not arc.lasting:
                category = "recency-bias-resistance"
            answer = f"{self._known.the(fact)} is {fact.value}."
            answered.append(self._about([fact], category, text, answer, subject))
        unanswered = [
            self._nothing(self._ask(arc, kind, random)[0], random, arc.end, arc.id)
            for arc, kind in self._lacking(random, lambda kind: 1.0)
        ]
        return QuestionFamily(answered, unanswered)

    def latest(self, random: Random) -> QuestionFamily:
        """The present value, with the remark that it is the present one."""

        def word(arc: PlannedArc, kind: StoryFact) -> tuple[str, Subject]:
            text, subject = self._ask(arc, kind, random)
            phrasing = random.choice(SCENES.asks_latest)
            return write(phrasing, random, {"ask": uncapital(text)}), subject

        answered = []
        for chain in _shuffled(self._chains, random):
            kind = self._known.kind(chain[0])
            if kind.changes:
                fact = chain[-1] if random.random() < 0.7 else random.choice(chain)
                text, subject = word(self._known.arc(fact), kind)
                answer = f"{self._known.the(fact)} is now {fact.value}."
                category = "contradiction-resolution" if fact is not chain[0] else "factual-recall"
                until = self._until(fact)
                answered.append(self._about([fact], category, text, answer, subject, until=until))
        unanswered = [
            self._nothing(word(arc, kind)[0], random, arc.end, arc.id)
            for arc, kind in self._lacking(random, lambda kind: float(kind.changes > 0))
        ]
        return QuestionFamily(answered, unanswered)

    def date(self, random: Random) -> QuestionFamily:
        def word(arc: PlannedArc, kind: StoryFact) -> tuple[str, Subject]:
            subject = self._subject(arc, random)
            what = "who" if kind.values.person else "what"
            slots = {"what": what, "noun": kind.noun, "subject": subject.text}
            return write(random.choice(SCENES.asks_date), random, slots), subject

        answered = []
        for chain in _shuffled(self._chains, random):
            if len(chain) == 1:
                fact = chain[0]
                text, subject = word(self._known.arc(fact), self._known.kind(fact))
                answer = f"{self._known.the(fact)} was noted on {self._known.date(fact)}."
                answered.append(
                    self._about([fact], "temporal-reasoning", text, answer, subject, aspect="date")
                )
        unanswered = [
            self._nothing(word(arc, kind)[0], random, arc.end, arc.id)
            for arc, kind in self._lacking(random, lambda kind: 1 - kind.changes)
        ]
        return QuestionFamily(answered, unanswered)

    def first(self, random: Random) -> QuestionFamily:
        """Which of two facts was known first; by name only."""

        def word(one: tuple[str, StoryFact], other: tuple[str, StoryFact]) -> str:
            slots = {"noun1": one[1].noun, "subject1": one[0]}
            slots |= {"noun2": other[1].noun, "subject2": other[0]}
            return write(random.choice(SCENES.asks_first), random, slots)

        single = [
            chain[0]
            for chain in self._chains
            if len(chain) == 1
            and (chain[0].arc, chain[0].day, chain[0].attribute) not in self._record.by_alias
        ]
        answered = []
        for pair in _pairs(single, random, lambda fact: fact.arc):
            early, late = sorted(pair, key=lambda fact: fact.day)
            if early.day == late.day:
                continue
            text = word(*((fact.entity, self._known.kind(fact)) for fact in pair))
            answer = (
                f"{self._known.the(early)} came first, on {self._known.date(early)}; "
                f"{self._known.the(late)} followed on {self._known.date(late)}."
            )
            answered.append(
                self._about([early, late], "temporal-reasoning", text, answer, aspect="date")
            )
        lacking = list(self._lacking(random, lambda kind: 1 - kind.changes))
        unanswered = [
            self._nothing(
                word(*((arc.name, kind) for arc, kind in pair)),
                random,
                max(arc.end for arc, _ in pair),
                pair[0][0].id,
            )
            for pair in _pairs(lacking, random, lambda one: one[0].id)
        ]
        return QuestionFamily(answered, unanswered)

    def why(self, random: Random) -> QuestionFamily:
        """What made a value change; without an answer if it changed for no stated reason."""

        def word(fact: LedgerFact) -> tuple[str, Subject]:
            subject = self._subject(self._known.arc(fact), random)
            slots = {"noun": self._known.kind(fact).noun, "subject": subject.text}
            return write(random.choice(SCENES.asks_why), random, slots), subject

        events = {
            fact.entity: fact for fact in self._record.facts if fact.attribute == "event.what"
        }
        answered, unanswered = [], []
        for chain in _shuffled(self._chains, random):
            if len(chain) != 2:
                continue
            fact = chain[1]
            text, subject = word(fact)
            name = self._record.causes.get((f"{fact.arc} {fact.attribute}", fact.day))
            if name is None:
                unanswered.append(self._nothing(text, random, fact.day, fact.arc))
                continue
            event = events[name]
            links = dict.fromkeys(self._links([fact], subject))
            answer = f"{self._known.the(fact)} changed because {event.value}."
            draft = question_about(
                [fact, event, *links],
                "cross-reference",
                text,
                answer[0].upper() + answer[1:],
                key=(f"{event.id}.value",),
                described=subject.manner == "about",
            )
            answered.append(draft)
        return QuestionFamily(answered, unanswered)

    def course(self, random: Random) -> QuestionFamily:
        """All values of a fact, from first to last."""

        def word(arc: PlannedArc, kind: StoryFact) -> tuple[str, Subject]:
            subject = self._subject(arc, random)
            slots = {"noun": kind.noun, "subject": subject.text}
            return write(random.choice(SCENES.asks_course), random, slots), subject

        answered = []
        for chain in _shuffled(self._chains, random):
            if len(chain) > 1:
                text, subject = word(self._known.arc(chain[0]), self._known.kind(chain[0]))
                values = ", then ".join(fact.value for fact in chain)
                answer = f"{self._known.the(chain[0])} was first {values}."
                answered.append(self._about(chain, "synthesis", text, answer, subject))
        unanswered = [
            self._nothing(word(arc, kind)[0], random, arc.end, arc.id)
            for arc, kind in self._lacking(random, lambda kind: kind.changes)
        ]
        return QuestionFamily(answered, unanswered)

    def both(self, random: Random) -> QuestionFamily:
        """Two facts of one subject that became known on different days."""

        def word(arc: PlannedArc, one: StoryFact, other: StoryFact) -> tuple[str, Subject]:
            subject = self._subject(arc, random)
            slots = {"noun1": one.noun, "noun2": other.noun, "subject": subject.text}
            return write(random.choice(SCENES.asks_both), random, slots), subject

        single: dict[str, list[LedgerFact]] = {}
        for chain in self._chains:
            if len(chain) == 1:
                single.setdefault(chain[0].arc, []).append(chain[0])
        answered = []
        for id, facts in _shuffled(list(single.items()), random):
            arc = self._known.arcs[id]
            pairs = [pair for pair in combinations(facts, 2) if pair[0].day != pair[1].day]
            for pair in random.sample(pairs, min(2, len(pairs))):
                text, subject = word(arc, *(self._known.kind(fact) for fact in pair))
                parts = [f"{self._known.the(fact)} is {fact.value}" for fact in pair]
                answer = f"{' and '.join(parts)}."
                answered.append(self._about(pair, "synthesis", text, answer, subject))
        unanswered = []
        for arc in _shuffled(self._known.open_arcs, random):
            kinds = self._record.omissions.get(arc.id, ())
            if len(kinds) == 2 and random.random() < 1 - max(kind.changes for kind in kinds) / 2:
                text, _ = word(arc, *random.sample(kinds, 2))
                unanswered.append(self._nothing(text, random, arc.end, arc.id))
        return QuestionFamily(answered, unanswered)

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
        for arc in _shuffled([a for a in self._known.open_arcs if a.type == "decision"], random):
            subject = self._subject(arc, random)
            if random.random() < 0.3:
                subject = Subject(arc.subject.also, "about")
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

        def word(room: str, claim: str) -> str:
            return write(random.choice(SCENES.asks_who), random, {"room": room, "claim": claim})

        claims = [fact for fact in self._record.facts if fact.attribute == "group.claim"]
        answered = [
            self._about(
                [fact],
                "group-session-attribution",
                word(fact.session, fact.value),
                f"In the {fact.session} session, {fact.speaker} argued that {fact.value}.",
                aspect="speaker",
            )
            for fact in _shuffled(claims, random)
        ]
        made = {fact.value for fact in claims}
        unanswered = []
        for arc in _shuffled(self._known.open_arcs, random):
            claim = random.choice(self._known.story.claims).format(name=arc.name)
            if arc.session.kind == "group" and claim not in made:
                text = word(arc.session.id, claim)
                unanswered.append(self._nothing(text, random, arc.end, arc.id))
        return QuestionFamily(answered, unanswered)

    def common(self, random: Random) -> QuestionFamily:
        """Which two arcs had the same cause of trouble."""
        threads = self._known.story.threads

        def word(thread: str) -> str:
            return write(random.choice(threads.asks), random, {"thread": thread})

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
            for thread, pair in _shuffled(list(pairs.items()), random)
        ]
        causes = [f"{head} {tail}" for head in threads.heads for tail in threads.tails]
        days = sorted(pair[1].day for pair in pairs.values()) or [self._known.calendar.days]
        unanswered = [
            self._nothing(word(thread), random, random.choice(days))
            for thread in _shuffled([one for one in causes if one not in pairs], random)
        ]
        return QuestionFamily(answered, unanswered)

    def team(self, random: Random) -> QuestionFamily:
        """What holds for a person because of the team: two steps, each of which may change."""
        by_team: dict[tuple[str, str], list[LedgerFact]] = {}
        for fact in self._record.facts:
            by_team.setdefault((fact.entity, fact.attribute), []).append(fact)
        answered, unanswered = [], []
        members = [fact for fact in self._record.facts if fact.attribute == "person.team"]
        for member in _shuffled(members, random):
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
        for person, id in _shuffled(pairs, random):
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
            chains = _shuffled(by_arc.get(arc.id, []), random)
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


def _pairs(items: Sequence[T], random: Random, group: Callable[[T], str]) -> Iterator[tuple[T, T]]:
    """Pairs of items of different groups, each item at most once."""
    left = _shuffled(items, random)
    for one, other in zip(left[::2], left[1::2], strict=False):
        if group(one) != group(other):
            yield one, other
