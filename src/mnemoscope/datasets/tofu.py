"""TOFU (COLM 2024): 4,000 pairs of question and answer about 200 authors who never lived.

Everything is remembered and asked, then the authors of the forget set are to be forgotten, and
everything is asked again. In the file they stand last; so that neither ids nor the order in which
memories come tell the sets apart, authors are numbered in the order of a hash of their pairs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
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
"""How many authors each forget set holds; its name is their share in percent."""
FORGET, RETAIN = "forget", "retain"
BEFORE, AFTER = "before", "after"
# The publisher's repository moves; this is a copy of the same bytes that does not.
_COPY = (
    "https://raw.githubusercontent.com/licong-lin/negative-preference-optimization/"
    "7e0849d5160d0de2c14288b73dd0afbe2b257500/TOFU/TOFU_data"
)
_WITHOUT_MEMORY = ("none", "random")
"""The baselines: after forgetting there is no evidence for an oracle to return."""


class _Pair(msgspec.Struct, frozen=True):
    question: str
    answer: str


class _Author(NamedTuple):
    name: str
    pairs: list[_Pair]
    forgotten: bool


class Tofu(FileDataset):
    """All authors as one scenario that is questioned before and after forgetting."""

    info = DatasetInfo(
        name="tofu",
        summary="200 invented authors, of whom some are forgotten",
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
            judge="rouge-l",
            judges=("rouge-l",),
            otherwise="forgetting is measured by rouge-l alone; leave the judges away",
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

    def paths(self) -> Mapping[str, Path]:
        listed = self._forget_file()
        return {
            "full.json": self.path,
            **({f"forget{self.forget}.json": listed} if listed else {}),
        }

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
        told = [hashlib.sha256(msgspec.json.encode(block)).digest() for block in blocks]
        order = sorted(range(len(told)), key=lambda place: (told[place], place))
        return [
            _Author(f"tofu/author-{number:03}", blocks[place], place >= kept)
            for number, place in enumerate(order)
        ]

    def _pairs(self, path: Path) -> Iterator[_Pair]:
        """One pair a line, each with something asked and something answered."""
        for number, pair in decode_lines(
            unpacked(path, lines=True), msgspec.json.Decoder(_Pair), path
        ):
            if not pair.question.strip() or not pair.answer.strip():
                raise DataError("an empty question or answer", file=path, line=number)
            yield pair

    def _check_forget_set(self, pairs: list[_Pair]) -> None:
        """The set is the end of the full file; the file that lists it must say the same."""
        if (listed := self._forget_file()) is None:
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

    def _forget_file(self) -> Path | None:
        try:
            return find_file(self.path.parent, f"forget{self.forget}.json")
        except MissingData:
            return None

    def _memories(self, author: _Author) -> list[Memory]:
        if self.granularity == "author":
            return [Memory(author.name, "\n\n".join(map(self._say, author.pairs)))]
        return [
            Memory(f"{author.name}/p{number:02}", self._say(pair))
            for number, pair in enumerate(author.pairs)
        ]

    def _say(self, pair: _Pair) -> str:
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
                self.findings.add("pair of question and answer twice", question.id)
            elif question.text in asked:
                self.findings.add("question text asked twice", question.id)
            asked.add(question.text)
            paired.add(pair)
