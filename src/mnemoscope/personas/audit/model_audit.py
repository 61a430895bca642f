"""The audit by a model: is the evidence enough, is it needed, and does the answer stay right?

Only questions that have an answer in the logs are asked about: silence and refusals have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from mnemoscope.datasets.persona_folder import Entry
from mnemoscope.models.chat import Prompt
from mnemoscope.models.prompts import load_prompt
from mnemoscope.models.replies import parse_json, without_thoughts
from mnemoscope.personas.audit.audit_verdicts import (
    CHECKS,
    CheckName,
    Verdict,
    VerdictBook,
    prompt_hash,
)
from mnemoscope.personas.audit.audited_log import AuditedLife
from mnemoscope.personas.audit.findings import Proposal
from mnemoscope.personas.audit.later_passages import Passages
from mnemoscope.personas.audit.qa_checks import wants_evidence
from mnemoscope.personas.write.llm_writer import LlmWriter, Task, Unusable
from mnemoscope.personas.write.question_wording import COMMON, word_stems
from mnemoscope.text.facts import AtomIndex
from mnemoscope.types import Memory

_SAME_WORDS = 0.8
"""An answer without numbers and names is right if it has so many of the reference's own words."""


class Judgement(NamedTuple):
    """What a reply says of a question."""

    code: str
    why: str
    proposal: Proposal | None = None


FINE = Judgement("", "")


class _Case(NamedTuple):
    entry: Entry
    check: CheckName
    prompt: Prompt
    read: Callable[[dict[str, Any]], Judgement]


class ModelAudit:
    """The three checks of one life."""

    def __init__(self, life: AuditedLife, checks: Sequence[CheckName] = CHECKS) -> None:
        self._life = life
        self._checks = checks
        self._passages = Passages(life)
        self._prompts = {
            "answerable": load_prompt(
                "audit-answerable", frozenset({"question", "reference", "evidence"})
            ),
            "without-evidence": load_prompt("audit-without-evidence", frozenset({"question"})),
            "superseded": load_prompt(
                "audit-superseded", frozenset({"question", "reference", "later", "day"})
            ),
        }

    def ask(
        self,
        desk: LlmWriter,
        book: VerdictBook,
        model: str,
        *,
        again: bool = False,
        tell: Callable[[str], None] = lambda line: None,
    ) -> list[str]:
        """Ask what was not asked yet, each verdict on disk at once; what got no reply at all."""
        cases = list(self._cases())
        waiting = [case for case in cases if again or _key(case, model) not in book.verdicts]
        by_about = {_about(case): case for case in waiting}
        failed: list[str] = []
        audited = skipped = 0
        for written in desk.write_all(map(_task, waiting)):
            case = by_about[written.task.about]
            judgement = written.result
            read = written.task.read
            assert isinstance(read, _Reading)
            audited += judgement is not None
            skipped += judgement is None
            if judgement is None and not read.replied:
                failed.append(written.task.about)
            else:
                code, why, proposal = judgement or Judgement("", written.problem)
                book.add(Verdict(*_key(case, model), judgement is not None, code, why, proposal))
            tell(f"audited {audited}/{len(waiting)}" + (f", {skipped} skipped" if skipped else ""))
        return failed

    def current(self, book: VerdictBook, model: str = "") -> list[Verdict]:
        """The verdicts on questions and logs as they are now, of one model or of all."""
        keys = {_key(case, "")[:2]: _key(case, "")[3] for case in self._cases()}
        current = [
            verdict
            for verdict in book.verdicts.values()
            if keys.get((verdict.question, verdict.check)) == verdict.asked
            and model in ("", verdict.model)
        ]
        # The book has them in the order in which replies came, which says nothing.
        place = {key: number for number, key in enumerate(keys)}
        return sorted(current, key=lambda one: place[one.question, one.check])

    def _cases(self) -> Iterator[_Case]:
        makers = {
            "answerable": self._answerable,
            "without-evidence": self._without,
            "superseded": self._superseded,
        }
        for entry in self._life.entries:
            if wants_evidence(entry) and self._life.evidence(entry):
                for check in self._checks:
                    yield from makers[check](entry)

    def _answerable(self, entry: Entry) -> Iterator[_Case]:
        days = self._life.evidence(entry)
        shown = [
            f"## day {day}, {self._life.home.date_of(day)}\n\n{self._life.logs[day]}"
            for day in days
        ]
        prompt = self._prompts["answerable"].fill(
            question=entry.question, reference=str(entry.answer), evidence="\n\n".join(shown)
        )

        def read(reply: dict[str, Any]) -> Judgement:
            answerable, why = _boolean(reply, "answerable"), _text(reply, "why")
            if not answerable:
                return Judgement("not-answerable", why, Proposal(drop=True))
            needed = reply.get("days")
            if not isinstance(needed, list) or not all(type(day) is int for day in needed):
                raise Unusable('"days" is a list of the numbers of days')
            fewer = tuple(sorted(set(needed)))
            if not set(fewer) <= set(days):
                raise Unusable(f'"days" may hold only {", ".join(map(str, days))}')
            if 0 < len(fewer) < len(days):
                return Judgement("loose-evidence", why, Proposal(relevant_days=fewer))
            return FINE._replace(why=why)

        yield _Case(entry, "answerable", prompt, read)

    def _without(self, entry: Entry) -> Iterator[_Case]:
        prompt = self._prompts["without-evidence"].fill(question=entry.question)

        def read(reply: dict[str, Any]) -> Judgement:
            known, answer = _boolean(reply, "known"), _text(reply, "answer")
            if known and agrees(answer, str(entry.answer), entry.question):
                why = f"answered without evidence: {answer}"
                return Judgement("leaks", why, Proposal(drop=True))
            return FINE

        yield _Case(entry, "without-evidence", prompt, read)

    def _superseded(self, entry: Entry) -> Iterator[_Case]:
        later = self._passages.after(entry) if entry.irrelevant_after is None else []
        if not later:
            return
        date_of = self._life.home.date_of
        shown = [f"## day {one.day}, {date_of(one.day)}\n\n{one.text}" for one in later]
        last = max(entry.relevant_days)
        prompt = self._prompts["superseded"].fill(
            question=entry.question,
            reference=str(entry.answer),
            day=str(last),
            later="\n\n".join(shown),
        )
        days = {one.day for one in later}

        def read(reply: dict[str, Any]) -> Judgement:
            changed, why, day = _boolean(reply, "superseded"), _text(reply, "why"), reply.get("day")
            if not changed:
                return FINE._replace(why=why)
            if day not in days:
                raise Unusable(f'"day" is one of {", ".join(map(str, sorted(days)))}')
            why = f"day {day}: {_text(reply, 'answer') or why}"
            return Judgement("superseded", why, Proposal(irrelevant_after=day - 1))

        yield _Case(entry, "superseded", prompt, read)


def agrees(answer: str, reference: str, question: str) -> bool:
    """Whether an answer says what the reference says beyond what the question says already."""
    told = AtomIndex([Memory("answer", answer)])
    values = AtomIndex([]).invented(reference, 0, [question])
    if values:
        return not told.invented(reference, 1, [question])
    wanted = word_stems(reference) - word_stems(question) - COMMON
    wanted = wanted or word_stems(reference)
    shared = wanted & word_stems(answer)
    return bool(wanted) and len(shared) >= _SAME_WORDS * len(wanted)


class _Reading:
    """Reads the replies to one prompt, and remembers whether there was any."""

    def __init__(self, case: _Case) -> None:
        self._case = case
        self.replied = False

    def __call__(self, reply: str) -> Judgement:
        self.replied = True
        try:
            return self._case.read(parse_json(without_thoughts(reply)))
        except Unusable:
            raise
        except ValueError as error:
            raise Unusable(str(error)) from None


def _task(case: _Case) -> Task[Judgement]:
    return Task(_about(case), case.prompt, _Reading(case))


def _about(case: _Case) -> str:
    return f"{case.entry.id}, {case.check}"


def _key(case: _Case, model: str) -> tuple[str, CheckName, str, str]:
    return case.entry.id, case.check, model, prompt_hash(case.prompt)


def _boolean(reply: dict[str, Any], name: str) -> bool:
    value = reply.get(name)
    if not isinstance(value, bool):
        raise Unusable(f'"{name}" is true or false')
    return value


def _text(reply: dict[str, Any], name: str) -> str:
    value = reply.get(name, "")
    return " ".join(value.split()) if isinstance(value, str) else ""
