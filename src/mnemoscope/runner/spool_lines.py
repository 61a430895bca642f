"""Replies of a system in the spool of its unit, and the trials that are made of them later.

A locked system cannot read its spool, but it sees how long the file is, and when the next question
comes. A line with labels would be longer where a hit names the evidence. So a spool has replies
without labels, and the merger adds the labels of many questions at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.jsonl import printable, read_records
from mnemoscope._store.run_directory import JournalLine
from mnemoscope.runner.pipeline import Ask, stages
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.systems.plain_hits import PlainHits
from mnemoscope.types import Answer, Hit, Ingestion, Question, Scenario, Status, Trial, Verdict


class RecallReply(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="phase",
    tag="reply",
):
    """What a system returned for one question; nothing in it depends on a label."""

    scenario: str
    question: str
    """The hash of the question's id, whose length may say where the question is in its file."""
    status: Status
    hits: tuple[Hit, ...] = ()
    error: str = ""
    timed_out: bool = False
    checkpoint: str = ""
    ids: tuple[str, ...] = ()
    """Instead of `hits`, where each is a memory as it is."""
    scores: tuple[float | None, ...] = ()
    """One for each of the `ids`."""

    @property
    def recalled(self) -> Sequence[Hit]:
        return PlainHits(self.ids, self.scores) if self.ids else self.hits


SpoolLine = JournalLine | RecallReply
SPOOL_LINE: Any = Trial | Answer | Verdict | Ingestion | RecallReply
"""What a line of a spool is decoded as."""
_LINES: Any = msgspec.json.Decoder(SPOOL_LINE)


def reply_to(
    scenario: str, ask: Ask, hits: Sequence[Hit] = (), *, error: str = "", timed_out: bool = False
) -> RecallReply:
    ids: tuple[str, ...] = ()
    scores: tuple[float | None, ...] = ()
    if isinstance(hits, PlainHits):
        ids, scores = tuple(hits.ids), tuple(hits.scores)
    elif any(hit.text for hit in hits):
        hits = [msgspec.structs.replace(hit, text=printable(hit.text)) for hit in hits]
    status: Status = "answered" if hits else "empty"
    if error:
        status = "timeout" if timed_out else "error"
    id = hashed(ask.question.id)
    others = () if ids else tuple(hits)
    about = (error, timed_out, ask.checkpoint)
    return RecallReply(scenario, id, status, others, *about, ids, scores)


def hashed(id: str) -> str:
    return sha256(id.encode("utf-8", "surrogatepass")).hexdigest()


class SpoolReader:
    """Reads the spool of a scenario's unit."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    @cached_property
    def _asks(self) -> dict[tuple[str, str], tuple[Ask, int]]:
        """By checkpoint and hashed id: the question, and how many memories the system then had."""
        return {
            (ask.checkpoint, hashed(ask.question.id)): (ask, stage.checkpoint.memories)
            for stage in stages(self._scenario)
            for ask in stage.asks
        }

    @cached_property
    def _trials(self) -> TrialBuilder:
        return TrialBuilder(self._scenario)

    def trial(self, reply: RecallReply) -> Trial:
        """The reply with its labels, and with what its hits are credited with."""
        ask, seen = self._asks[reply.checkpoint, reply.question]
        return self._trials.trial(
            ask, reply.recalled, seen=seen, error=reply.error, timed_out=reply.timed_out
        )

    def labelled(self, lines: Iterable[SpoolLine]) -> Iterator[JournalLine]:
        return (self.trial(line) if isinstance(line, RecallReply) else line for line in lines)

    def without_labels(self, reply: RecallReply) -> Trial:
        """The reply as a trial with all that readers need."""
        ask, seen = self._asks[reply.checkpoint, reply.question]
        question = Question(ask.question.id, ask.question.text)
        return self._trials.trial(
            msgspec.structs.replace(ask, question=question),
            reply.recalled,
            seen=seen,
            error=reply.error,
            timed_out=reply.timed_out,
        )

    def outline(self, line: SpoolLine) -> JournalLine:
        """A reply as a trial that only says which question is recorded, and whether it failed."""
        if not isinstance(line, RecallReply):
            return line
        ask, _ = self._asks[line.checkpoint, line.question]
        return Trial(line.scenario, ask.question.id, line.status, checkpoint=ask.checkpoint)


def decode_line(line: bytes) -> SpoolLine:
    found: SpoolLine = _LINES.decode(line)
    return found


def read_spool(path: Path) -> Iterator[SpoolLine]:
    return read_records(path, SPOOL_LINE)
