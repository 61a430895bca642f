"""The audit with a model: is the evidence enough, is it needed, and does a later day change it?

Only questions with an answer in the logs are audited, not refusals and questions without an answer.
Each verdict is on disk as soon as it is received, and is not asked for again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.jsonl import Journal, read_records
from mnemoscope.datasets.day_logs import pieces
from mnemoscope.datasets.persona_folder import QuestionEntry
from mnemoscope.models.chat import Prompt
from mnemoscope.models.prompts import load_prompt
from mnemoscope.models.replies import parse_json, without_thoughts
from mnemoscope.personas.audit.audited_history import AuditedHistory
from mnemoscope.personas.audit.findings import AuditFinding, RepairProposal
from mnemoscope.personas.audit.static_audit import wants_evidence
from mnemoscope.personas.write.llm_writer import JsonObject, LlmWriter, Task, UnusableReply
from mnemoscope.personas.write.question_rules import COMMON, word_stems
from mnemoscope.text.facts import AtomIndex
from mnemoscope.types import Memory

TRAIL = "model-audit.jsonl"
CheckName = Literal["answerable", "without-evidence", "superseded"]
CHECKS: tuple[CheckName, ...] = ("answerable", "without-evidence", "superseded")
PASSAGES = 8
"""Most passages in a prompt."""
_SHARED = 0.34
"""The share of the question's word weights that a related passage has at least."""
_SAME_WORDS = 0.8
"""The share of the reference's words that a correct answer without values has at least."""


class AuditVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the trail: the verdict of a model on a question."""

    question: str
    check: CheckName
    model: str
    asked: str
    """Hash of the prompt, so that a question that was edited is audited again."""
    judged: bool
    """False if the replies were not usable, which says nothing about the question."""
    code: str = ""
    """Empty if nothing is wrong."""
    why: str = ""
    proposal: RepairProposal | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.question, self.check, self.model, self.asked


class VerdictJournal:
    """The trail as a journal: each verdict is on disk as soon as it is received."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        self.verdicts = {verdict.key: verdict for verdict in read_records(path, AuditVerdict)}

    def add(self, verdict: AuditVerdict) -> None:
        self._journal.append(verdict)
        self.verdicts[verdict.key] = verdict

    def __enter__(self) -> VerdictJournal:
        return self

    def __exit__(self, *exc: object) -> None:
        self._journal.close()


def as_findings(verdicts: Iterable[AuditVerdict]) -> list[AuditFinding]:
    """The findings of the verdicts that have a code."""
    return [
        AuditFinding(verdict.code, verdict.why, verdict.question, proposal=verdict.proposal)
        for verdict in verdicts
        if verdict.code
    ]


class LogPassage(NamedTuple):
    """A section of a day's log."""

    day: int
    text: str


class LogPassages:
    """All sections of a history."""

    def __init__(self, history: AuditedHistory) -> None:
        self._history = history

    @cached_property
    def _all(self) -> list[tuple[LogPassage, frozenset[str]]]:
        return [
            (LogPassage(day, piece.text), word_stems(piece.text))
            for day, text in self._history.logs.items()
            for piece in pieces(text, "section")
        ]

    @cached_property
    def _weights(self) -> dict[str, float]:
        """The weight of each word: its inverse document frequency over the passages."""
        counts = Counter(word for _, words in self._all for word in words)
        return {word: math.log(len(self._all) / count) for word, count in counts.items()}

    def after(self, entry: QuestionEntry) -> list[LogPassage]:
        """The most related passages after its evidence, in the order of days."""
        asked = word_stems(entry.question) - COMMON
        whole = sum(self._weights.get(word, 0.0) for word in asked)
        last = max(entry.relevant_days)
        weighed = [
            (sum(self._weights[word] for word in asked & words), passage)
            for passage, words in self._all
            if passage.day > last
        ]
        near = [pair for pair in weighed if pair[0] > 0 and pair[0] >= _SHARED * whole]
        near.sort(key=lambda pair: (-pair[0], pair[1].day))
        return sorted((passage for _, passage in near[:PASSAGES]), key=lambda p: p.day)


class Judgement(NamedTuple):
    """The judgement of a reply on a question."""

    code: str
    why: str
    proposal: RepairProposal | None = None


FINE = Judgement("", "")


class _AuditCase(NamedTuple):
    entry: QuestionEntry
    check: CheckName
    prompt: Prompt
    read: Callable[[JsonObject], Judgement]


class ModelAudit:
    """The three checks of one history."""

    def __init__(self, history: AuditedHistory, checks: Sequence[CheckName] = CHECKS) -> None:
        self._history = history
        self._checks = checks
        self._passages = LogPassages(history)
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
        writer: LlmWriter,
        journal: VerdictJournal,
        model: str,
        *,
        again: bool = False,
        progress: Callable[[str], None] = lambda line: None,
    ) -> list[str]:
        """Ask for the verdicts that are not in the journal; returns what got no reply."""
        cases = list(self._cases())
        waiting = [case for case in cases if again or _key(case, model) not in journal.verdicts]
        by_about = {_about(case): case for case in waiting}
        failed: list[str] = []
        audited = skipped = 0
        for written in writer.write_all(
            Task(_about(case), case.prompt, _VerdictReader(case)) for case in waiting
        ):
            case = by_about[written.task.about]
            judgement = written.result
            read = written.task.read
            assert isinstance(read, _VerdictReader)
            audited += judgement is not None
            skipped += judgement is None
            if judgement is None and not read.replied:
                failed.append(written.task.about)
            else:
                code, why, proposal = judgement or Judgement("", written.problem)
                journal.add(
                    AuditVerdict(*_key(case, model), judgement is not None, code, why, proposal)
                )
            progress(
                f"audited {audited}/{len(waiting)}" + (f", {skipped} skipped" if skipped else "")
            )
        return failed

    def current(self, journal: VerdictJournal, model: str = "") -> list[AuditVerdict]:
        """The verdicts that hold for the present questions and logs, of one model or of all."""
        keys = {_key(case, "")[:2]: _key(case, "")[3] for case in self._cases()}
        current = [
            verdict
            for verdict in journal.verdicts.values()
            if keys.get((verdict.question, verdict.check)) == verdict.asked
            and model in ("", verdict.model)
        ]
        # The journal has them in the order of replies, which is random.
        place = {key: number for number, key in enumerate(keys)}
        return sorted(current, key=lambda one: place[one.question, one.check])

    def _cases(self) -> Iterator[_AuditCase]:
        makers = {
            "answerable": self._answerable,
            "without-evidence": self._without,
            "superseded": self._superseded,
        }
        for entry in self._history.entries:
            if wants_evidence(entry) and self._history.evidence(entry):
                for check in self._checks:
                    yield from makers[check](entry)

    def _answerable(self, entry: QuestionEntry) -> Iterator[_AuditCase]:
        days = self._history.evidence(entry)
        shown = [
            f"## day {day}, {self._history.files.date_of(day)}\n\n{self._history.logs[day]}"
            for day in days
        ]
        prompt = self._prompts["answerable"].fill(
            question=entry.question, reference=str(entry.answer), evidence="\n\n".join(shown)
        )

        def read(reply: JsonObject) -> Judgement:
            answerable, why = _boolean(reply, "answerable"), _text(reply, "why")
            if not answerable:
                return Judgement("not-answerable", why, RepairProposal(drop=True))
            needed = reply.get("days")
            if not isinstance(needed, list) or not all(type(day) is int for day in needed):
                raise UnusableReply('"days" is a list of the numbers of days')
            fewer = tuple(sorted(set(needed)))
            if not set(fewer) <= set(days):
                raise UnusableReply(f'"days" may hold only {", ".join(map(str, days))}')
            if 0 < len(fewer) < len(days):
                return Judgement("loose-evidence", why, RepairProposal(relevant_days=fewer))
            return FINE._replace(why=why)

        yield _AuditCase(entry, "answerable", prompt, read)

    def _without(self, entry: QuestionEntry) -> Iterator[_AuditCase]:
        prompt = self._prompts["without-evidence"].fill(question=entry.question)

        def read(reply: JsonObject) -> Judgement:
            known, answer = _boolean(reply, "known"), _text(reply, "answer")
            if known and agrees(answer, str(entry.answer), entry.question):
                why = f"answered without evidence: {answer}"
                return Judgement("leaks", why, RepairProposal(drop=True))
            return FINE

        yield _AuditCase(entry, "without-evidence", prompt, read)

    def _superseded(self, entry: QuestionEntry) -> Iterator[_AuditCase]:
        later = self._passages.after(entry) if entry.irrelevant_after is None else []
        if not later:
            return
        date_of = self._history.files.date_of
        shown = [f"## day {one.day}, {date_of(one.day)}\n\n{one.text}" for one in later]
        last = max(entry.relevant_days)
        prompt = self._prompts["superseded"].fill(
            question=entry.question,
            reference=str(entry.answer),
            day=str(last),
            later="\n\n".join(shown),
        )
        days = {one.day for one in later}

        def read(reply: JsonObject) -> Judgement:
            changed, why, day = _boolean(reply, "superseded"), _text(reply, "why"), reply.get("day")
            if not changed:
                return FINE._replace(why=why)
            if day not in days:
                raise UnusableReply(f'"day" is one of {", ".join(map(str, sorted(days)))}')
            why = f"day {day}: {_text(reply, 'answer') or why}"
            return Judgement("superseded", why, RepairProposal(irrelevant_after=day - 1))

        yield _AuditCase(entry, "superseded", prompt, read)


def agrees(answer: str, reference: str, question: str) -> bool:
    """Whether an answer has the values of the reference that are not in the question."""
    stated = AtomIndex([Memory("answer", answer)])
    values = AtomIndex([]).invented(reference, 0, [question])
    if values:
        return not stated.invented(reference, 1, [question])
    wanted = word_stems(reference) - word_stems(question) - COMMON
    wanted = wanted or word_stems(reference)
    shared = wanted & word_stems(answer)
    return bool(wanted) and len(shared) >= _SAME_WORDS * len(wanted)


class _VerdictReader:
    """Reads the replies to one prompt, and records whether there was any."""

    def __init__(self, case: _AuditCase) -> None:
        self._case = case
        self.replied = False

    def __call__(self, reply: str) -> Judgement:
        self.replied = True
        try:
            return self._case.read(parse_json(without_thoughts(reply)))
        except UnusableReply:
            raise
        except ValueError as error:
            raise UnusableReply(str(error)) from None


def _about(case: _AuditCase) -> str:
    return f"{case.entry.id}, {case.check}"


def _key(case: _AuditCase, model: str) -> tuple[str, CheckName, str, str]:
    prompt = f"{case.prompt.system}\0{case.prompt.user}".encode("utf-8", "replace")
    return case.entry.id, case.check, model, sha256(prompt).hexdigest()[:16]


def _boolean(reply: JsonObject, name: str) -> bool:
    value = reply.get(name)
    if not isinstance(value, bool):
        raise UnusableReply(f'"{name}" is true or false')
    return value


def _text(reply: JsonObject, name: str) -> str:
    value = reply.get(name, "")
    return " ".join(value.split()) if isinstance(value, str) else ""
