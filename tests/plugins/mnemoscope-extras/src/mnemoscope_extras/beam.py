"""BEAM (100K): 20 long chats with an assistant, 400 questions about ten abilities."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mnemoscope.datasets import AnswerNeeds, DatasetInfo, FileDataset, PinnedFile
from mnemoscope.types import AnswerKey, Memory, Question, Scenario

FILE = "beam_100K.tar.xz"
SHA256 = "3b880e47d1cdbbc57e697aa1f124d766ca6510ffb2b5f20704aeb5b189c4fbe9"
ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
MARKER = "->->"  # Behind it a message says which questions were made from it.


class Beam(FileDataset):
    """Each chat as a scenario; a memory is one message."""

    info = DatasetInfo(
        name="beam-chats",
        summary="20 long chats, 400 questions about ten abilities",
        source="https://huggingface.co/datasets/Mohammadta/BEAM",
        licence="CC BY-SA 4.0",
        citation="Tavakoli et al., BEAM, github.com/mohammadtavakoli78/BEAM b2a3ee8b",
        files={FILE: PinnedFile(sha256=SHA256)},
        granularities=("message",),
        cluster="chat",
        known_defects=("messages that end in an evidence marker; it is cut off",),
        answers=AnswerNeeds(judge="covered-items", provides=("rubric",)),
    )
    expected_scenarios: int | None = 20

    def read(self) -> Iterator[Scenario]:
        files = _files(self.path)
        for number in range(1, 21):
            name, folder = f"chat-{number:02}", f"100K/{number}"
            memories = tuple(self._memories(name, json.loads(files[f"{folder}/chat.json"])))
            asked = json.loads(files[f"{folder}/probing_questions/probing_questions.json"])
            questions = tuple(_questions(name, asked, memories[-1].at))
            self._counts.update(memories=len(memories), questions=len(questions))
            yield Scenario(name, memories, questions)

    def _memories(self, chat: str, batches: list[dict[str, Any]]) -> Iterator[Memory]:
        for batch in batches:
            turns = [turn for own in batch["turns"] for turn in own]
            day = next(turn["time_anchor"] for turn in turns if turn.get("time_anchor"))
            at = datetime.strptime(day, "%B-%d-%Y").replace(tzinfo=UTC)
            for turn in turns:
                id, session = f"{chat}/m{turn['id']:04}", f"{chat}/s{batch['batch_number']}"
                text, marked, _ = turn["content"].partition(MARKER)
                if marked:
                    self.findings.add("evidence marker cut off", id)
                yield Memory(id, text.rstrip(), at, session, turn["role"])


def _questions(chat: str, asked: dict[str, list[Any]], now: datetime | None) -> Iterator[Question]:
    for ability, own in asked.items():
        for place, one in enumerate(own):
            cited = sorted(_ids(one.get("source_chat_ids", ())))
            yield Question(
                f"{chat}/{ability}-{place}",
                one["question"],
                now,
                reference=next(one[name] for name in ANSWERS if name in one),
                category=ability,
                evidence=tuple(f"{chat}/m{id:04}" for id in cited),
                expects="abstain" if ability == "abstention" else "answer",
                key=AnswerKey(tuple((item.partition(": ")[2] or item,) for item in one["rubric"])),
            )


def _ids(cited: Any) -> set[int]:
    """Evidence is a list, or lists by the halves of a question."""
    if isinstance(cited, int):
        return {cited}
    return set().union(*map(_ids, cited.values() if isinstance(cited, dict) else cited))


def _files(path: Path) -> dict[str, bytes]:
    """All files, read in the order of the archive: going back in it decompresses it again."""
    with tarfile.open(path) as archive:
        opened = ((one.name, archive.extractfile(one)) for one in archive)
        return {name: file.read() for name, file in opened if file is not None}
