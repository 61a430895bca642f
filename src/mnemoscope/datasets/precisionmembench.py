"""PrecisionMemBench (2026): 35 beliefs of a user, 77 cases that say which of them may be recalled.

It asks for precision: in 34 cases nothing at all should be recalled. Ids in the file reveal which
beliefs are superseded, so memories get neutral ids. It was built around its author's own product:
it tests supersession, scope and aliases, and is no ranking of systems.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple

import msgspec
from msgspec import field

from mnemoscope._store.errors import DataError
from mnemoscope.datasets._io.json_stream import array_elements
from mnemoscope.datasets.base import DatasetInfo, FileDataset, PinnedFile, find_file
from mnemoscope.types import Memory, Question, Scenario

USER = "test-user"
"""The user whose beliefs the cases are about."""
_BELIEFS, _CASES = "beliefs.seed.json", "retrieval.cases.json"
_RAW = (
    "https://raw.githubusercontent.com/tenurehq/precisionMemBench/"
    "18c7955357b33098a64d601bc8e4624c41743972/fixtures"
)


class _Belief(msgspec.Struct, frozen=True):
    user_id: str
    type: str
    canonical_name: str
    aliases: list[str]
    content: str
    scope: list[str]
    epistemic_status: str
    pinned: bool
    created_at: datetime
    id: str = field(name="_id")
    superseded_by: str | None = None


class _BeliefLists(msgspec.Struct, frozen=True, rename="camel"):
    should_only_include: list[str] | None = None
    must_exclude: list[str] = []


class _Expected(msgspec.Struct, frozen=True, rename="camel"):
    relevant_beliefs: _BeliefLists = _BeliefLists()


class _CaseRow(msgspec.Struct, frozen=True, rename="camel"):
    case_id: str
    category: str
    scope: list[str]
    query: str
    expect: _Expected
    user_id: str = USER


class OfficialMeans(NamedTuple):
    """The two figures of a published report, and how many cases each is the mean of."""

    precision: float
    recall: float
    precision_cases: int
    recall_cases: int


def case_precision(returned: Sequence[str], expected: Collection[str]) -> float | None:
    """The official precision of a case: right ones of those returned.

    If nothing is returned it is 0 where something is expected, and undefined where nothing is.
    """
    if returned:
        return sum(id in expected for id in returned) / len(returned)
    return 0.0 if expected else None


def case_recall(returned: Sequence[str], expected: Collection[str]) -> float | None:
    """The official recall of a case; undefined where nothing is expected."""
    return len({*returned} & {*expected}) / len({*expected}) if expected else None


def official_means(cases: Iterable[tuple[Sequence[str], Collection[str]]]) -> OfficialMeans:
    """The means over (returned, expected) of all cases, leaving out those without a value."""
    pairs = list(cases)
    precisions = [one for case in pairs if (one := case_precision(*case)) is not None]
    recalls = [one for case in pairs if (one := case_recall(*case)) is not None]
    return OfficialMeans(fmean(precisions), fmean(recalls), len(precisions), len(recalls))


class PrecisionMemBench(FileDataset):
    """The beliefs of the test user as one scenario, with the cases that can be asked of it."""

    info = DatasetInfo(
        name="precisionmembench",
        summary="35 beliefs, 77 cases: recall these and nothing else",
        source="https://github.com/tenurehq/precisionMemBench",
        licence="MIT",
        citation="arXiv:2605.11325 (commit 18c79553)",
        files={
            _BELIEFS: PinnedFile(
                f"{_RAW}/{_BELIEFS}",
                "35659b3b9a581b644fc6746e1b4e902c3e7b56c0973b546bf7b0816a69e3de98",
                33303,
            ),
            _CASES: PinnedFile(
                f"{_RAW}/{_CASES}",
                "09e99f0852280538abe34b03570f65583fdb10df3c554b7150f0f665d5db709c",
                35940,
            ),
        },
        granularities=("belief",),
        cluster="question",
        known_defects=(
            "ids that reveal which beliefs are superseded; replaced by neutral ids",
            "built around its author's product, which passes all 77 cases",
            "cases with an empty query, or of a user without beliefs, are not asked",
            "the session cases, pinned facts and the persona prelude are not read",
        ),
    )
    expected_scenarios: int | None = 1

    def __init__(self, data: Path, *, text: Literal["named", "content"] = "named") -> None:
        super().__init__(find_file(data, _BELIEFS))
        self.paths[_CASES] = find_file(self.path.parent, _CASES)
        self.text = text
        self.original_ids: dict[tuple[str, str], str] = {}
        self.excluded: dict[str, tuple[str, ...]] = {}
        """Question to the memories that must not be recalled, where a case names them."""

    def read(self) -> Iterator[Scenario]:
        self.original_ids, self.excluded = {}, {}
        memories = self._memories()
        questions = tuple(self._questions())
        self._counts["memories"] = len(memories)
        self._counts["questions"] = len(questions)
        yield Scenario(USER, memories, questions)

    def _memories(self) -> tuple[Memory, ...]:
        beliefs: dict[str, _Belief] = {}
        for line, belief in array_elements(self.path, _Belief):
            if belief.id in beliefs:
                raise DataError(f"duplicate _id {belief.id!r}", file=self.path, line=line)
            beliefs[belief.id] = belief
            self._counts["beliefs"] += 1
            self._counts[f"status {belief.epistemic_status}"] += 1
            self._counts["pinned"] += belief.pinned
        found: list[Memory] = []
        for belief in sorted(beliefs.values(), key=lambda one: (one.created_at, one.id)):
            if belief.superseded_by and belief.superseded_by not in beliefs:
                self.findings.add("superseded by an unknown belief", belief.id)
            if belief.user_id != USER:
                self.findings.add("belief of another user, not stored", belief.id)
                continue
            id = f"{USER}/m{len(found):02}"
            self.original_ids[USER, belief.id] = id
            names = ", ".join([belief.canonical_name, *belief.aliases])
            text = f"{names}: {belief.content}" if self.text == "named" else belief.content
            # The scope takes the place of the session: both say where a memory belongs.
            found.append(Memory(id, text, belief.created_at, ", ".join(belief.scope)))
        return tuple(found)

    def _questions(self) -> Iterator[Question]:
        path = self.paths[_CASES]
        asked: set[tuple[str, ...]] = set()
        for line, case in array_elements(path, _CaseRow):
            self._counts["cases"] += 1
            relevant = case.expect.relevant_beliefs
            expected = relevant.should_only_include or []
            kind = "something" if expected else "nothing"
            self._counts[f"cases that expect {kind}"] += 1
            if relevant.should_only_include is None:
                self.findings.add("no expected list, read as empty", case.case_id)
            if (key := (case.query, *case.scope)) in asked:
                self.findings.add("query asked twice in a scope", case.case_id)
            asked.add(key)
            if not case.query.strip():
                self.findings.add("empty query, not asked", case.case_id)
            elif case.user_id != USER:
                self.findings.add("case of a user without beliefs, not asked", case.case_id)
            else:
                self.excluded[case.case_id] = self._ids(case, relevant.must_exclude, line)
                yield Question(
                    case.case_id,
                    case.query,
                    category=case.category,
                    evidence=self._ids(case, expected, line),
                    session=", ".join(case.scope),
                    cluster=case.case_id,
                )

    def _ids(self, case: _CaseRow, beliefs: Sequence[str], line: int) -> tuple[str, ...]:
        """The memories of beliefs; those of other users are not stored and cannot be recalled."""
        found: dict[str, None] = {}
        for belief in beliefs:
            if (USER, belief) in self.original_ids:
                found[self.original_ids[USER, belief]] = None
            elif belief not in self.findings.examples.get("belief of another user, not stored", []):
                problem = f"{case.case_id}: there is no belief {belief!r}"
                raise DataError(problem, file=self.paths[_CASES], line=line)
        return tuple(found)
