"""The questions of the `change` benchmark, with their evidence, rivals and answer keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from mnemoscope.datasets.change_plan import (
    History,
    PlannedMeeting,
    PlantedNote,
    RoleOfChain,
    written_date,
)
from mnemoscope.datasets.fact_chains import FactChain, says, wordings_of
from mnemoscope.text.fact_ledger import Ledger, LedgerFact, date_wordings
from mnemoscope.types import AnswerKey, Expectation, Memory, Question

UPDATE, TWICE, AS_OF = "update", "twice-corrected", "as-of"
EXPIRED, CANCELLED = "expired-plan", "cancelled-plan"
KNOWN, FORGOTTEN, KEPT = "known", "forgotten", "kept"
DUPLICATE, CONTRADICTION = "duplicate", "contradiction"
CHANGE_CATEGORIES = (
    *(UPDATE, TWICE, AS_OF, EXPIRED, CANCELLED),
    *(KNOWN, FORGOTTEN, KEPT, DUPLICATE, CONTRADICTION),
)


class QuestionWriter:
    """Writes the questions about one history, whose memories contain the planted notes."""

    def __init__(self, history: History, ledger: Ledger, memories: Sequence[Memory]) -> None:
        self._history, self._ledger = history, ledger
        self._texts = {memory.id: memory.text for memory in memories}
        self._by_day: dict[int, list[Memory]] = {}
        for memory in memories:
            self._by_day.setdefault(int(memory.metadata["day"]), []).append(memory)
        self.forgotten: tuple[str, ...] = ()
        """Ids of the memories that the requests are about."""

    def all_questions(
        self, roles: Sequence[RoleOfChain], meetings: Sequence[PlannedMeeting]
    ) -> tuple[Question, ...]:
        """All questions, in an order and with ids that say nothing about them."""
        gone = [one.chain.stated[0] for one in roles if one.role == "forgotten"]
        self.forgotten = tuple(sorted(gone))
        found = [question for role in roles for question in self._about(role)]
        found += [question for one in meetings if (question := self._about_plan(one))]
        found = [one for one in found if self._is_answerable(one)]
        found.sort(key=lambda question: self._history.place(question.id))
        return tuple(
            replace(question, id=f"{self._history.persona}-c{number:04}")
            for number, question in enumerate(found, 1)
        )

    def _is_answerable(self, question: Question) -> bool:
        """Whether no memory that it needs is forgotten; large memories contain several facts."""
        if question.category in (KNOWN, FORGOTTEN):
            return True
        return set(self.forgotten).isdisjoint((*question.evidence, *question.rivals))

    def _about(self, planned: RoleOfChain) -> Iterator[Question]:
        chain, note = planned.chain, planned.note
        noted = self._memory_of(note) if note is not None else ""
        match planned.role:
            case "changed":
                category = UPDATE if len(chain.facts) == 2 else TWICE
                yield from self._now(chain, category)
                yield from self._then(chain, chain.stated)
            case "reversed":
                first, second = chain.facts
                key = replace(self._key(first), outdated=(second.value,))
                yield self._ask(chain, TWICE, chain.question, (noted,), (chain.stated[1],), key)
                yield from self._then(chain, (*chain.stated, noted))
            case "forgotten":
                yield self._ask(
                    chain, KNOWN, chain.question, chain.stated, (), self._key(chain.last)
                )
                key = AnswerKey(secret=(chain.last.value, *chain.last.aliases))
                yield self._ask(
                    chain, FORGOTTEN, chain.question, (), chain.stated, key, expects="abstain"
                )
            case "kept":
                yield self._ask(
                    chain, KEPT, chain.question, chain.stated, (), self._key(chain.last)
                )
            case "duplicate":
                key = self._key(chain.last)
                yield self._ask(chain, DUPLICATE, chain.question, chain.stated, (noted,), key)
            case "contradiction":
                own = self._key(chain.last)
                both = (*own.required, (planned.other_value,))
                others = tuple(value for value in own.others if value != planned.other_value)
                key = replace(own, required=both, others=others)
                yield self._ask(
                    chain, CONTRADICTION, chain.question, (*chain.stated, noted), (), key
                )

    def _now(self, chain: FactChain, category: str) -> Iterator[Question]:
        """The value that is valid now; its rivals state an earlier one alone."""
        evidence = chain.stated[-1]
        rivals = self._rivals(chain.stated[:-1], evidence, wordings_of(chain.last))
        if rivals:
            key = self._key(chain.last)
            yield self._ask(chain, category, chain.question, (evidence,), rivals, key)

    def _then(self, chain: FactChain, told: Sequence[str]) -> Iterator[Question]:
        """For each superseded value, what was believed on a day on which it was valid."""
        history = self._history
        for place, fact in enumerate(chain.facts[:-1]):
            until = chain.facts[place + 1].day
            if until <= fact.day:
                continue
            rng = history.rng("as-of", fact.id)
            # The day after, so that the date alone does not point to the log that tells it.
            day = rng.randrange(fact.day + 1, until) if until > fact.day + 1 else fact.day
            rivals = self._rivals(told, chain.stated[place], wordings_of(fact))
            if rivals:
                others = tuple(one.value for one in chain.facts if one is not fact)
                key = replace(self._key(fact), outdated=others)
                asked = (
                    f"What did we believe on {written_date(history.date(day))}? {chain.question}"
                )
                name = f"{AS_OF}-{place}"
                yield self._ask(chain, AS_OF, asked, (chain.stated[place],), rivals, key, name=name)

    def _rivals(
        self, ids: Iterable[str], evidence: str, wordings: Sequence[str]
    ) -> tuple[str, ...]:
        """Those of the memories that do not state the right value."""
        return tuple(
            dict.fromkeys(
                id for id in ids if id != evidence and not says(self._texts[id], wordings)
            )
        )

    def _about_plan(self, meeting: PlannedMeeting) -> Question | None:
        right, outdated = map(date_wordings, (meeting.second_date, meeting.first_date))
        evidence = self._memory_of(meeting.second)
        rivals = self._rivals([self._memory_of(meeting.first)], evidence, right)
        if not rivals:  # both plans stand in one memory
            return None
        category = CANCELLED if meeting.cancelled else EXPIRED
        return Question(
            f"plan/{meeting.entity}",
            f"When do we next meet about {meeting.entity}?",
            reference=f"On {written_date(meeting.second_date)}.",
            category=category,
            evidence=(evidence,),
            rivals=rivals,
            cluster=f"{self._history.persona}/{meeting.arc or meeting.entity}",
            key=AnswerKey(required=(right,), outdated=outdated),
        )

    def _ask(
        self,
        chain: FactChain,
        category: str,
        text: str,
        evidence: tuple[str, ...],
        rivals: tuple[str, ...],
        key: AnswerKey,
        *,
        expects: Expectation = "answer",
        name: str = "",
    ) -> Question:
        return Question(
            f"{chain.id}/{name or category}",
            text,
            reference="; ".join(item[0] for item in key.required),
            category=category,
            evidence=evidence,
            rivals=rivals,
            expects=expects,
            cluster=f"{self._history.persona}/{chain.last.arc or chain.entity}",
            key=key,
        )

    def _key(self, fact: LedgerFact) -> AnswerKey:
        return self._ledger.key([f"{fact.id}.value"])

    def _memory_of(self, note: PlantedNote) -> str:
        """The memory that contains the note."""
        return next(one.id for one in self._by_day[note.day] if note.text in one.text)
