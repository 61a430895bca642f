"""LoCoMo (ACL 2024): ten long conversations between two people, 1,986 questions.

Its evidence has malformed and dangling entries. By default they are repaired, and every repair is
a finding. The image search phrases in the file (`query`) reveal answers, so this module lists every
field that a system may see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope.datasets._io.json_stream import array_elements, converted
from mnemoscope.datasets.base import (
    AnswerNeeds,
    DatasetInfo,
    FileDataset,
    PinnedFile,
    PublishedRules,
    find_file,
)
from mnemoscope.types import Memory, Question, Scenario

CATEGORIES = {
    "1": "multi-hop",
    "2": "temporal",
    "3": "open-domain",
    "4": "single-hop",
    "5": "adversarial",
}
"""The official names. Many harnesses swap them, so results are keyed by the integer."""
ADVERSARIAL = "5"

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_WELL_FORMED = re.compile(r"D([1-9]\d*):([1-9]\d*)")
_AUDIT_ID = re.compile(r"locomo_(\d+)_qa(\d+)")
_IN_SAMPLE = "in the sample that starts here: "


class _DialogTurn(msgspec.Struct, frozen=True):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str = ""


class _QuestionAnswer(msgspec.Struct, frozen=True):
    question: str
    category: int
    evidence: list[str]
    answer: str | int = ""


class _Sample(msgspec.Struct, frozen=True):
    sample_id: str
    conversation: dict[str, Any]
    qa: list[_QuestionAnswer]


class _Correction(msgspec.Struct, frozen=True):
    question_id: str
    error_type: str
    correct_evidence: list[str]
    correct_answer: str = ""


class _Session(msgspec.Struct, frozen=True):
    number: int
    at: datetime
    date_line: str
    turns: list[_DialogTurn]


@lru_cache(maxsize=4096)
def _cited_turns(entry: str) -> tuple[list[tuple[str, str]], bool]:
    """The labels of session and turn in an entry of evidence, and whether it is well-formed."""
    labels = [
        (f"D{int(session)}", f"D{int(session)}:{int(turn)}")
        for session, turn in _EVIDENCE.findall(entry)
    ]
    return labels, _WELL_FORMED.fullmatch(entry) is not None


@lru_cache(maxsize=4096)
def _session_time(stamp: str) -> datetime:
    return datetime.strptime(stamp, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


class Locomo(FileDataset):
    """LoCoMo's conversations as scenarios."""

    info = DatasetInfo(
        name="locomo",
        summary="10 long conversations, 1,986 questions",
        source="https://github.com/snap-research/locomo",
        licence="CC BY-NC 4.0",
        citation="Maharana et al., ACL 2024, arXiv:2402.17753",
        files={
            "locomo10.json": PinnedFile(
                "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
                "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
                2805274,
            ),
            "audit_errors.json": PinnedFile(
                "https://raw.githubusercontent.com/dial481/locomo-audit/main/errors.json",
                "f298ef46263fada20688a1d672be37d4f488c6da3b19343eea55ae5c1b5fe55e",
                150552,
                optional=True,
            ),
        },
        granularities=("session", "turn"),
        category_names=CATEGORIES,
        cluster="conversation",
        known_defects=(
            "malformed evidence, or evidence for a missing turn; repaired unless evidence=naive",
            "wrong answer keys, found by an audit; corrected with audit=on",
            "many harnesses swap the names of the category numbers",
        ),
        answers=AnswerNeeds(prompt="answer-locomo", judge="f1"),
        published_rules={
            "pgmnemo": PublishedRules(
                options={"scope": "dataset", "evidence": "naive"},
                rules="labels match in any conversation, repeated labels keep their rank, "
                "malformed evidence is cut at the first colon",
                sound="sound: a label counts only in the conversation of the question, and only "
                "once;\nmalformed evidence is repaired. The file does not name the conversation "
                "of a label,\nso the sound figures are upper bounds.",
            )
        },
    )

    def __init__(
        self,
        data: Path,
        *,
        granularity: Literal["session", "turn"] = "session",
        dates: bool = False,
        captions: bool = False,
        scope: Literal["conversation", "dataset"] = "conversation",
        evidence: Literal["repaired", "naive"] = "repaired",
        adversarial: bool = True,
        audit: bool = False,
    ) -> None:
        super().__init__(find_file(data, "locomo10.json", "locomo*.json"))
        self.granularity = granularity
        self.dates = dates
        self.captions = captions
        self.scope = scope
        self.evidence = evidence
        self.adversarial = adversarial
        self.audit = audit
        self.expected_scenarios = 10 if scope == "conversation" else 1
        if audit:
            listed = find_file(self.path.parent, "audit_errors.json", "errors.json")
            self.paths["audit_errors.json"] = listed

    def read(self) -> Iterator[Scenario]:
        self._seen: set[str] = set()
        corrections = self._corrections() if self.audit else {}
        conversations = (
            self._conversation(index, line, sample, corrections)
            for index, (line, sample) in enumerate(array_elements(self.path, _Sample, _IN_SAMPLE))
        )
        if self.scope == "conversation":
            yield from conversations
            return
        pooled = list(conversations)
        yield Scenario(
            "locomo",
            tuple(memory for one in pooled for memory in one.memories),
            tuple(question for one in pooled for question in one.questions),
        )

    def _conversation(
        self, index: int, line: int, sample: _Sample, corrections: dict[str, _Correction]
    ) -> Scenario:
        name = sample.sample_id
        if name in self._seen:
            raise DataError(f"duplicate sample_id {name!r}", file=self.path, line=line)
        self._seen.add(name)
        sessions = self._sessions(sample, line)
        memories = tuple(self._memories(name, sessions))
        known = {memory.id for memory in memories}
        turns = {turn.dia_id for session in sessions for turn in session.turns}
        self._counts["conversations"] += 1
        self._counts["sessions"] += len(sessions)
        self._counts["turns"] += sum(len(session.turns) for session in sessions)
        self._counts["memories"] += len(memories)
        questions: list[Question] = []
        texts: set[str] = set()
        for number, asked in enumerate(sample.qa):
            if self.adversarial or str(asked.category) != ADVERSARIAL:
                correction = corrections.get(f"{index}/{number}")
                now = sessions[-1].at if sessions else None
                id = f"{name}/q{number}"
                questions.append(self._question(id, asked, correction, now, known, turns))
                if asked.question in texts:
                    self.findings.add("question text asked twice", id)
                texts.add(asked.question)
        self._counts["questions"] += len(questions)
        return Scenario(name, memories, tuple(questions))

    def _sessions(self, sample: _Sample, line: int) -> list[_Session]:
        fields = sample.conversation
        numbers = sorted(
            int(match[1]) for key in fields if (match := re.fullmatch(r"session_(\d+)", key))
        )
        for key in fields:
            dated = re.fullmatch(r"session_(\d+)_date_time", key)
            if dated and int(dated[1]) not in numbers:
                self.findings.add("date without a session", f"{sample.sample_id} {key}")
        sessions: list[_Session] = []
        for number in numbers:
            stamp = fields.get(f"session_{number}_date_time")
            try:
                at = _session_time(str(stamp))
            except ValueError:
                raise DataError(
                    f"{sample.sample_id} session_{number}_date_time: cannot read {stamp!r}; "
                    "expected a date such as '1:56 pm on 8 May, 2023'",
                    file=self.path,
                    line=line,
                ) from None
            written = fields[f"session_{number}"]
            turns = converted(written, list[_DialogTurn], self.path, line, _IN_SAMPLE)
            if sessions and at < sessions[-1].at:
                self.findings.add("unsorted dates", f"{sample.sample_id} D{number}")
            sessions.append(_Session(number, at, f"[{stamp}]", turns))
        return sessions

    def _memories(self, conversation: str, sessions: list[_Session]) -> Iterator[Memory]:
        seen: set[str] = set()
        for session in sessions:
            name = f"{conversation}/D{session.number}"
            head = f"{session.date_line}\n" if self.dates else ""
            lines: list[str] = []
            for turn in session.turns:
                if turn.dia_id in seen:
                    raise DataError(
                        f"{conversation}: duplicate dia_id {turn.dia_id!r}", file=self.path
                    )
                seen.add(turn.dia_id)
                shares = self.captions and turn.blip_caption
                caption = f" [shares {turn.blip_caption}]" if shares else ""
                lines.append(f"{turn.speaker}: {turn.text.strip()}{caption}")
            if self.granularity == "session":
                yield Memory(name, head + "\n".join(lines), session.at, name)
                continue
            for turn, text in zip(session.turns, lines, strict=True):
                id = f"{conversation}/{turn.dia_id}"
                yield Memory(id, head + text, session.at, name, turn.speaker)

    def _question(
        self,
        id: str,
        asked: _QuestionAnswer,
        correction: _Correction | None,
        now: datetime | None,
        known: set[str],
        turns: set[str],
    ) -> Question:
        cited, answer = asked.evidence, str(asked.answer)
        if correction is not None:
            self.findings.add(f"answer key corrected by the audit: {correction.error_type}", id)
            cited = correction.correct_evidence
            answer = correction.correct_answer or answer
        category = str(asked.category)
        if category not in CATEGORIES:
            raise DataError(f"{id}: unknown category {category}", file=self.path)
        self._counts[f"category {category} {CATEGORIES[category]}"] += 1
        read = self._naive_evidence if self.evidence == "naive" else self._repaired_evidence
        evidence = read(id, cited, known, turns)
        if not cited:
            self.findings.add("empty evidence", id)
        elif not evidence:
            self.findings.add("no evidence entry could be resolved", id)
        return Question(
            id,
            asked.question,
            now,
            reference=answer,
            category=category,
            evidence=evidence,
            expects="abstain" if category == ADVERSARIAL else "answer",
            cluster=id.partition("/")[0],
        )

    def _repaired_evidence(
        self, id: str, cited: list[str], known: set[str], turns: set[str]
    ) -> tuple[str, ...]:
        conversation = id.partition("/")[0]
        found: dict[str, None] = {}
        is_session = self.granularity == "session"
        if len(cited) > 1 and len(set(cited)) < len(cited):
            self.findings.add("evidence cited twice", id)
        for entry in cited:
            labels, is_well_formed = _cited_turns(entry)
            if not is_well_formed:
                kind = "malformed evidence, repaired" if labels else "malformed evidence, dropped"
                self.findings.add(kind, f"{id} {entry!r}")
            for session, turn in labels:
                if turn not in turns:
                    self.findings.add("dangling evidence: no such turn", f"{id} {turn}")
                memory = f"{conversation}/{session if is_session else turn}"
                if memory in known:
                    found[memory] = None
        return tuple(found)

    def _naive_evidence(
        self, id: str, cited: list[str], known: set[str], turns: set[str]
    ) -> tuple[str, ...]:
        """Like published harnesses: cut at the first colon, keep labels that match no memory."""
        conversation = id.partition("/")[0]
        labels = [e.split(":")[0] if self.granularity == "session" else e for e in cited]
        evidence = tuple(dict.fromkeys(f"{conversation}/{label}" for label in labels))
        for memory in evidence:
            if memory not in known:
                self.findings.add("unresolvable evidence, kept", f"{id} {memory}")
        return evidence

    def _corrections(self) -> dict[str, _Correction]:
        path = self.paths["audit_errors.json"]
        found: dict[str, _Correction] = {}
        for line, correction in array_elements(path, _Correction):
            place = _AUDIT_ID.fullmatch(correction.question_id)
            if place is None:
                problem = f"question_id {correction.question_id!r} does not look like locomo_0_qa1"
                raise DataError(problem, file=path, line=line)
            found[f"{place[1]}/{place[2]}"] = correction
        return found
