"""LongMemEval (ICLR 2025, cleaned): 500 questions, each with its haystack.

The session ids of the file reveal the answer sessions (`answer_…`), so memories get neutral ids by
position. Scenarios are named by position too, because question ids reveal abstention (`_abs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope.datasets._io.json_stream import array_elements
from mnemoscope.datasets.base import (
    AnswerNeeds,
    DatasetInfo,
    FileDataset,
    PinnedFile,
    PublishedRules,
    find_file,
)
from mnemoscope.types import Memory, Question, Scenario

OFFICIAL_NAMES = {
    "oracle": "longmemeval_oracle.json",
    "s": "longmemeval_s_cleaned.json",
    "m": "longmemeval_m_cleaned.json",
}
_HUB = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned"
TYPES = (
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
)


class _ChatTurn(msgspec.Struct, frozen=True):
    role: str
    content: str
    has_answer: bool = False


class _Item(msgspec.Struct, frozen=True):
    question_id: str
    question_type: str
    question: str
    question_date: str
    answer: str | int
    answer_session_ids: list[str]
    haystack_dates: list[str]
    haystack_session_ids: list[str]
    haystack_sessions: list[list[_ChatTurn]]


class _SessionPart(NamedTuple):
    """Part of a session that becomes one memory."""

    suffix: str
    text: str
    speaker: str
    has_answer: bool


class LongMemEval(FileDataset):
    """LongMemEval's questions, each as a scenario."""

    info = DatasetInfo(
        name="longmemeval",
        summary="500 questions, each with its haystack",
        source=_HUB,
        licence="MIT",
        citation="Wu et al., ICLR 2025, arXiv:2410.10813 (cleaned release)",
        files={
            "longmemeval_oracle.json": PinnedFile(
                f"{_HUB}/resolve/main/longmemeval_oracle.json",
                "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
                15388478,
            ),
            "longmemeval_s_cleaned.json": PinnedFile(
                f"{_HUB}/resolve/main/longmemeval_s_cleaned.json",
                "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
                277383467,
            ),
            "longmemeval_m_cleaned.json": PinnedFile(
                f"{_HUB}/resolve/main/longmemeval_m_cleaned.json", optional=True
            ),
        },
        granularities=("session", "round", "turn"),
        cluster="question",
        known_defects=(
            "session and question ids that reveal the label; replaced by neutral ids",
            "haystacks with sessions later than the question",
        ),
        answers=AnswerNeeds(
            prompt="answer-longmemeval",
            model_judge="longmemeval",
            provides=("longmemeval question types",),
        ),
        published_rules={
            "pgmnemo": PublishedRules(
                options={"abstention": "score"},
                rules="abstention questions are scored, with their distractor sessions as evidence",
                sound="sound: abstention questions have no answer session and are not scored.",
            )
        },
    )
    expected_scenarios: int | None = 500

    def __init__(
        self,
        data: Path,
        *,
        variant: Literal["oracle", "s", "m"] = "s",
        granularity: Literal["session", "round", "turn"] = "session",
        dates: bool = False,
        abstention: Literal["skip", "score"] = "skip",
    ) -> None:
        super().__init__(find_file(data, OFFICIAL_NAMES[variant], f"longmemeval_{variant}*.json"))
        self.paths = {OFFICIAL_NAMES[variant]: self.path}
        self.variant = variant
        self.granularity = granularity
        self.dates = dates
        self.abstention = abstention
        self.original_ids: dict[tuple[str, str], str] = {}
        """(scenario, session id in the file) to memory, to score rankings made elsewhere."""

    def read(self) -> Iterator[Scenario]:
        # The 500 ids in the order of the release, so that a subset can list what it lacks.
        official = (files(__package__) / "longmemeval_ids.txt").read_text(encoding="utf-8").split()
        positions = {id: position for position, id in enumerate(official)}
        seen: set[str] = set()
        extra = len(official)
        about = "in the question that starts here: "
        for line, item in array_elements(self.path, _Item, about, self.unpacked(self.path)):
            self._check(item, line)
            if item.question_id in seen:
                problem = f"duplicate question_id {item.question_id!r}"
                raise DataError(problem, file=self.path, line=line)
            seen.add(item.question_id)
            position = positions.get(item.question_id)
            if position is None:
                position, extra = extra, extra + 1
                self.findings.add("question not in the official release", item.question_id)
            yield self._scenario(f"q{position:03}", item, line)
        for id in official:
            if id not in seen:
                self.findings.add(f"question missing: {len(seen)} of {len(official)} found", id)

    def _check(self, item: _Item, line: int) -> None:
        if item.question_type not in TYPES:
            problem = f"{item.question_id}: unknown question_type {item.question_type!r}"
            raise DataError(problem, file=self.path, line=line)
        sessions = len(item.haystack_sessions)
        if not len(item.haystack_dates) == len(item.haystack_session_ids) == sessions:
            problem = f"{item.question_id}: the numbers of haystack dates, ids and sessions differ"
            raise DataError(problem, file=self.path, line=line)

    def _scenario(self, name: str, item: _Item, line: int) -> Scenario:
        abstains = item.question_id.endswith("_abs")
        now = self._date(item.question_date, item, line)
        memories: list[Memory] = []
        evidence: list[str] = []
        times = [self._date(stamp, item, line) for stamp in item.haystack_dates]
        self._find_oddities(item, now, times)
        for position, (id, session) in enumerate(
            zip(item.haystack_session_ids, item.haystack_sessions, strict=True)
        ):
            session_name = f"{name}/s{position:03}"
            head = f"[{item.haystack_dates[position]}]\n" if self.dates else ""
            is_answer = id in item.answer_session_ids
            self.original_ids.setdefault((name, id), session_name)
            for piece in _parts(session, self.granularity):
                memory = Memory(
                    session_name + piece.suffix,
                    head + piece.text,
                    times[position],
                    session_name,
                    piece.speaker,
                )
                memories.append(memory)
                if is_answer and (self.granularity == "session" or piece.has_answer):
                    evidence.append(memory.id)
        if abstains and self.abstention == "skip":
            evidence = []
            self._counts["abstention, not measured"] += 1
        elif not evidence:
            self.findings.add(f"no evidence at {self.granularity} granularity", item.question_id)
        self._counts["questions"] += 1
        self._counts["sessions"] += len(item.haystack_sessions)
        self._counts["turns"] += sum(map(len, item.haystack_sessions))
        self._counts["memories"] += len(memories)
        self._counts[f"type {item.question_type}"] += 1
        question = Question(
            item.question_id,
            item.question,
            now,
            reference=str(item.answer),
            category=item.question_type,
            evidence=tuple(evidence),
            expects="abstain" if abstains else "answer",
        )
        memories.sort(key=lambda memory: memory.at or now)
        return Scenario(name, tuple(memories), (question,))

    def _find_oddities(self, item: _Item, now: datetime, times: list[datetime]) -> None:
        if times != sorted(times):
            self.findings.add("haystack not in date order, sorted", item.question_id)
        if late := sum(time > now for time in times):
            self.findings.add(
                "haystack with sessions after the question", f"{item.question_id} ({late})"
            )
            self._counts["sessions after the question"] += late
        repeated = [id for id, n in Counter(item.haystack_session_ids).items() if n > 1]
        if repeated:
            self.findings.add("duplicate session id in a haystack", item.question_id)
        lost = set(item.answer_session_ids) - set(item.haystack_session_ids)
        if lost:
            self.findings.add("dangling evidence: session not in haystack", item.question_id)
        for session in item.haystack_sessions:
            for turn in session:
                if not turn.content.strip():
                    self.findings.add("empty turn", item.question_id)

    def _date(self, stamp: str, item: _Item, line: int) -> datetime:
        try:
            return datetime.strptime(stamp, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
        except ValueError:
            problem = f"{item.question_id}: cannot read the date {stamp!r}"
            raise DataError(problem, file=self.path, line=line) from None


def _parts(session: list[_ChatTurn], granularity: str) -> Iterator[_SessionPart]:
    if granularity == "session":
        yield _SessionPart("", _transcript(session), "", any(turn.has_answer for turn in session))
        return
    groups = [[turn] for turn in session] if granularity == "turn" else _rounds(session)
    for number, group in enumerate(groups):
        speaker = group[0].role if granularity == "turn" else ""
        has_answer = any(turn.has_answer for turn in group)
        yield _SessionPart(f":{number:03}", _transcript(group), speaker, has_answer)


def _rounds(session: list[_ChatTurn]) -> list[list[_ChatTurn]]:
    """Each user turn starts a round; turns before the first one form a round too."""
    rounds: list[list[_ChatTurn]] = []
    for turn in session:
        if turn.role == "user" or not rounds:
            rounds.append([])
        rounds[-1].append(turn)
    return rounds


def _transcript(turns: list[_ChatTurn]) -> str:
    return "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
