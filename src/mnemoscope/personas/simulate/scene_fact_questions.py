"""Questions of the second edition about facts of subjects: values, dates, causes and changes."""

from __future__ import annotations

from itertools import combinations
from random import Random

from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.grammar import write
from mnemoscope.personas.simulate.known_facts import question_about
from mnemoscope.personas.simulate.phrases import uncapital
from mnemoscope.personas.simulate.question_wording import (
    QuestionFamily,
    QuestionWording,
    Subject,
    pairs,
    shuffled,
)
from mnemoscope.personas.simulate.scene_book import SCENES
from mnemoscope.personas.simulate.story import StoryFact
from mnemoscope.text.fact_ledger import LedgerFact

_EARLY = 0.4


class FactQuestions(QuestionWording):
    """Each public method is a family: the same words with and without an answer."""

    def value(self, random: Random) -> QuestionFamily:
        """The present value of a fact."""
        answered = []
        for chain in shuffled(self._chains, random):
            fact, arc = chain[-1], self._known.arc(chain[-1])
            text, subject = self._ask(arc, self._known.kind(fact), random)
            category = "factual-recall" if len(chain) == 1 else "contradiction-resolution"
            if arc.end <= _EARLY * self._known.calendar.days and not arc.lasting:
                category = "recency-bias-resistance"
            answer = f"{self._known.the(fact)} {self._is(fact)} {fact.value}."
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
        for chain in shuffled(self._chains, random):
            kind = self._known.kind(chain[0])
            if kind.changes:
                fact = chain[-1] if random.random() < 0.7 else random.choice(chain)
                text, subject = word(self._known.arc(fact), kind)
                answer = f"{self._known.the(fact)} {self._is(fact)} now {fact.value}."
                category = "contradiction-resolution" if fact is not chain[0] else "factual-recall"
                until = self._until(fact)
                answered.append(self._about([fact], category, text, answer, subject, until=until))
        unanswered = [
            self._nothing(word(arc, kind)[0], random, arc.end, arc.id)
            for arc, kind in self._lacking(random, lambda kind: float(kind.changes > 0))
        ]
        return QuestionFamily(answered, unanswered)

    def date(self, random: Random) -> QuestionFamily:
        """The date on which a value became known."""

        def word(arc: PlannedArc, kind: StoryFact) -> tuple[str, Subject]:
            return self._phrased(SCENES.asks_date, arc, [kind], random)

        answered = []
        for chain in shuffled(self._chains, random):
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

        def word(one: tuple[PlannedArc, StoryFact], other: tuple[PlannedArc, StoryFact]) -> str:
            slots = {}
            for number, (arc, kind) in enumerate((one, other), 1):
                slots[f"clause{number}"] = self._clause(arc, kind, arc.name)
            return write(random.choice(SCENES.asks_first), random, slots)

        single = [
            chain[0]
            for chain in self._chains
            if len(chain) == 1
            and (chain[0].arc, chain[0].day, chain[0].attribute) not in self._record.by_alias
        ]
        answered = []
        for pair in pairs(single, random, lambda fact: fact.arc):
            early, late = sorted(pair, key=lambda fact: fact.day)
            if early.day == late.day:
                continue
            text = word(*((self._known.arc(fact), self._known.kind(fact)) for fact in pair))
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
                word(*pair),
                random,
                max(arc.end for arc, _ in pair),
                pair[0][0].id,
            )
            for pair in pairs(lacking, random, lambda one: one[0].id)
        ]
        return QuestionFamily(answered, unanswered)

    def why(self, random: Random) -> QuestionFamily:
        """What made a value change; without an answer if it changed for no stated reason."""

        def word(fact: LedgerFact) -> tuple[str, Subject]:
            arc, kind = self._known.arc(fact), self._known.kind(fact)
            return self._phrased(SCENES.asks_why, arc, [kind], random)

        events = {
            fact.entity: fact for fact in self._record.facts if fact.attribute == "event.what"
        }
        answered, unanswered = [], []
        for chain in shuffled(self._chains, random):
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
            return self._phrased(SCENES.asks_course, arc, [kind], random)

        answered = []
        for chain in shuffled(self._chains, random):
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
            return self._phrased(SCENES.asks_both, arc, [one, other], random)

        single: dict[str, list[LedgerFact]] = {}
        for chain in self._chains:
            if len(chain) == 1:
                single.setdefault(chain[0].arc, []).append(chain[0])
        answered = []
        for id, facts in shuffled(list(single.items()), random):
            arc = self._known.arcs[id]
            pairs = [pair for pair in combinations(facts, 2) if pair[0].day != pair[1].day]
            for pair in random.sample(pairs, min(2, len(pairs))):
                text, subject = word(arc, *(self._known.kind(fact) for fact in pair))
                parts = [f"{self._known.the(fact)} {self._is(fact)} {fact.value}" for fact in pair]
                answer = f"{' and '.join(parts)}."
                answered.append(self._about(pair, "synthesis", text, answer, subject))
        unanswered = []
        for arc in shuffled(self._known.open_arcs, random):
            kinds = self._record.omissions.get(arc.id, ())
            if len(kinds) == 2 and random.random() < 1 - max(kind.changes for kind in kinds) / 2:
                text, _ = word(arc, *random.sample(kinds, 2))
                unanswered.append(self._nothing(text, random, arc.end, arc.id))
        return QuestionFamily(answered, unanswered)
