"""TOFU (COLM 2024): 4,000 question-answer pairs about 200 fictional authors.

All pairs are ingested and asked. Then the system forgets the authors of the forget set, and all
questions are asked again. The file lists these authors last. Here authors are numbered by a hash
of their pairs, so that neither ids nor the order of memories reveal the forget set.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope._store.jsonl import decode_lines
from mnemoscope.datasets._io.json_stream import unpacked
from mnemoscope.datasets.base import AnswerNeeds, DatasetInfo, FileDataset, PinnedFile, find_file
from mnemoscope.types import Checkpoint, Memory, Question, Scenario

AUTHORS = 200
PAIRS_EACH = 20
FORGOTTEN_AUTHORS = {"10": 20, "05": 10, "01": 2}
"""The number of authors in each forget set; its name is their percentage."""
FORGET, RETAIN = "forget", "retain"
BEFORE, AFTER = "before", "after"
# The repository of the publisher changes; this copy has the same bytes at a fixed commit.
_COPY = (
    "https://raw.githubusercontent.com/licong-lin/negative-preference-optimization/"
    "7e0849d5160d0de2c14288b73dd0afbe2b257500/TOFU/TOFU_data"
)
_WITHOUT_MEMORY = ("none", "random")
"""The baselines. An oracle has nothing to return after forgetting."""


class _Pair(msgspec.Struct, frozen=True):
    question: str
    answer: str


class _Author(NamedTuple):
    name: str
    pairs: list[_Pair]
    forgotten: bool


class Tofu(FileDataset):
    """All authors as one scenario, with questions before and after forgetting."""

    info = DatasetInfo(
        name="tofu",
        summary="200 fictional authors, some of them forgotten",
        source="https://github.com/locuslab/tofu",
        licence="MIT",
        citation="Maini et al., COLM 2024, arXiv:2401.06121",
        files={
            "full.json": PinnedFile(
                f"{_COPY}/full.json",
                "667baef2f26f781f1328701d8ea54bf25123ff22fb2d98574c96cd991cb54086",
                1077844,
            ),
            "forget01.json": PinnedFile(
                f"{_COPY}/forget01.json",
                "d0047332bd27a489c552659831f4ffff080e2b9b6e063c7c951ac4de9d494a63",
                11655,
            ),
            "forget10.json": PinnedFile(
                f"{_COPY}/forget10.json",
                "0044c8c2e70a38be93f62ec6cb1c1cc2a1f55a8df2fb549a4da2da8dde9d92f6",
                114856,
            ),
            "forget05.json": PinnedFile(f"{_COPY}/forget05.json", optional=True),
        },
        granularities=("pair", "author"),
        cluster="author",
        has_checkpoints=True,
        main_metric="mean_rouge_l",
        baselines=_WITHOUT_MEMORY,
        answers=AnswerNeeds(
            prompt="answer-tofu",
            reader="extractive",
            form="sentences",
            judge="rouge-l",
            judges=("rouge-l",),
            otherwise="forgetting is measured by rouge-l only; omit --judge",
            baselines=_WITHOUT_MEMORY,
            baselines_if_system_answers=_WITHOUT_MEMORY,
        ),
    )
    expected_scenarios: int | None = 1

    def __init__(
        self,
        data: Path,
        *,
        forget: Literal["10", "05", "01"] = "10",
        granularity: Literal["pair", "author"] = "pair",
        text: Literal["qa", "answer"] = "qa",
    ) -> None:
        super().__init__(find_file(data, "full.json"))
        self.forget = forget
        self.granularity = granularity
        self.text = text
        with suppress(MissingData):  # the forget file is optional
            name = f"forget{forget}.json"
            self.paths[name] = find_file(self.path.parent, name)

    def read(self) -> Iterator[Scenario]:
        authors = self._authors()
        memories = {author.name: self._memories(author) for author in authors}
        questions = tuple(
            question
            for author in authors
            for question in self._questions(author, memories[author.name])
        )
        everything = tuple(memory for own in memories.values() for memory in own)
        gone = tuple(
            memory.id for author in authors if author.forgotten for memory in memories[author.name]
        )
        asked = tuple(question.id for question in questions)
        self._note_repeats(questions)
        self._counts = Counter(
            {
                "authors": len(authors),
                "memories": len(everything),
                "memories to be forgotten": len(gone),
                "questions": len(questions),
                **Counter(sorted(question.category for question in questions)),
            }
        )
        yield Scenario(
            self.name,
            everything,
            questions,
            (
                Checkpoint(BEFORE, 0, len(everything), asked),
                Checkpoint(AFTER, 0, len(everything), asked, forget=gone),
            ),
        )

    def _authors(self) -> list[_Author]:
        pairs = list(self._pairs(self.path))
        if len(pairs) != AUTHORS * PAIRS_EACH:
            raise DataError(
                f"{len(pairs):,} pairs; TOFU has {AUTHORS} authors with {PAIRS_EACH} each",
                file=self.path,
            )
        self._check_forget_set(pairs)
        blocks = [pairs[start : start + PAIRS_EACH] for start in range(0, len(pairs), PAIRS_EACH)]
        kept = AUTHORS - FORGOTTEN_AUTHORS[self.forget]
        hashes = [hashlib.sha256(msgspec.json.encode(block)).digest() for block in blocks]
        order = sorted(range(len(hashes)), key=lambda place: (hashes[place], place))
        return [
            _Author(f"tofu/author-{number:03}", blocks[place], place >= kept)
            for number, place in enumerate(order)
        ]

    def _pairs(self, path: Path) -> Iterator[_Pair]:
        """One pair per line, with a question and an answer."""
        for number, pair in decode_lines(
            unpacked(path, lines=True), msgspec.json.Decoder(_Pair), path
        ):
            if not pair.question.strip() or not pair.answer.strip():
                raise DataError("the question or the answer is empty", file=path, line=number)
            yield pair

    def _check_forget_set(self, pairs: list[_Pair]) -> None:
        """The forget set is the end of the full file; its own file must list the same pairs."""
        if (listed := self.paths.get(f"forget{self.forget}.json")) is None:
            return
        size = FORGOTTEN_AUTHORS[self.forget] * PAIRS_EACH
        tail, found = pairs[-size:], list(self._pairs(listed))
        if len(found) != size:
            raise DataError(f"{len(found)} pairs; this forget set has {size}", file=listed)
        for place, (own, other) in enumerate(zip(tail, found, strict=True)):
            if own != other:
                raise DataError(
                    f"pair {place + 1} is {other.question!r}; the last {size} of "
                    f"{self.path.name} have {own.question!r} there",
                    file=listed,
                )

    def _memories(self, author: _Author) -> list[Memory]:
        if self.granularity == "author":
            return [Memory(author.name, "\n\n".join(map(self._as_text, author.pairs)))]
        return [
            Memory(f"{author.name}/p{number:02}", self._as_text(pair))
            for number, pair in enumerate(author.pairs)
        ]

    def _as_text(self, pair: _Pair) -> str:
        return f"Q: {pair.question}\nA: {pair.answer}" if self.text == "qa" else pair.answer

    def _questions(self, author: _Author, memories: list[Memory]) -> Iterator[Question]:
        for number, pair in enumerate(author.pairs):
            memory = memories[0] if self.granularity == "author" else memories[number]
            yield Question(
                f"{author.name}/q{number:02}",
                pair.question,
                reference=pair.answer,
                category=FORGET if author.forgotten else RETAIN,
                evidence=(memory.id,),
                cluster=author.name,
            )

    def _note_repeats(self, questions: tuple[Question, ...]) -> None:
        asked: set[str] = set()
        paired: set[tuple[str, str]] = set()
        for question in questions:
            pair = (question.text, question.reference)
            if pair in paired:
                self.findings.add("duplicate question-answer pair", question.id)
            elif question.text in asked:
                self.findings.add("question text asked twice", question.id)
            asked.add(question.text)
            paired.add(pair)
