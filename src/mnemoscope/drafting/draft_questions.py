"""Draft the questions of a dataset folder: candidates, rules, and what was dropped and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.datasets.review_log import decisions, question_sha256
from mnemoscope.datasets.strata import STRATA, StrataQuery
from mnemoscope.datasets.strata_rules import StrataRules, StratumQuestion
from mnemoscope.drafting.draft import Draft
from mnemoscope.drafting.memory_index import MemoryIndex
from mnemoscope.drafting.model_drafts import ModelDrafts
from mnemoscope.drafting.question_files import QuestionFiles, asked, read_memories
from mnemoscope.drafting.template_drafts import TemplateDrafts

PER_STRATUM = 20
SEED = 42
_MOST_TRIED = 50
"""So many candidates for each question that is wanted are tried; a model is asked for fewer."""
_MOST_ASKED_OF_MODEL = 4
_ID_LENGTH = 6
_SAME_MEMORY = "ask for a memory that has a question of this stratum"
_REJECTED = "were rejected by a person before"


class DraftedQuestions(msgspec.Struct, frozen=True):
    """What `mnemoscope questions draft` wrote and dropped."""

    folder: str
    wanted: int
    """How many questions a stratum shall have."""
    drafted: dict[str, int]
    """Stratum to the number of new questions."""
    kept: dict[str, int]
    """Stratum to the number of questions that were there: written or reviewed by a person."""
    dropped: dict[str, dict[str, int]]
    """Stratum to the rules that candidates broke, and how many did."""

    @property
    def short(self) -> dict[str, int]:
        """The strata with fewer questions than wanted, and how many they have."""
        counts = {name: self.drafted[name] + self.kept.get(name, 0) for name in self.drafted}
        return {name: count for name, count in counts.items() if count < self.wanted}


def draft_questions(
    folder: Path,
    *,
    per_stratum: int = PER_STRATUM,
    seed: int = SEED,
    model: str = "",
    strata: Sequence[str] = STRATA,
) -> DraftedQuestions:
    """Write queries.jsonl and qrels.jsonl with so many questions of each stratum.

    Drafts that nobody has reviewed are replaced; questions that a person wrote, accepted or edited
    stay. The same corpus, seed and model give the same questions.
    """
    if per_stratum < 1:
        raise UsageError(f"--per-stratum {per_stratum}: must be 1 or more")
    if unknown := [name for name in strata if name not in STRATA]:
        raise UsageError(f"unknown stratum {unknown[0]!r}; there are {', '.join(STRATA)}")
    memories = read_memories(folder)
    rules = StrataRules(memories)
    templates = TemplateDrafts(MemoryIndex(memories, rules), seed)
    writer = ModelDrafts(model, rules) if model else None
    files = QuestionFiles.read(folder)
    made = decisions(folder)
    rejected = {one.question_sha256 for one in made.values() if one.choice == "reject"}
    kept = [query for query in files.queries if not query.drafted_by or query.query_id in made]
    others = [one for one in files.queries if one not in kept and one.stratum not in strata]
    drafted: dict[str, int] = {}
    dropped: dict[str, dict[str, int]] = {}
    new: list[StrataQuery] = []
    for stratum in strata:
        room = per_stratum - sum(one.stratum == stratum for one in kept)
        selection = _Selection(stratum, rules, kept, rejected)
        tries = _MOST_ASKED_OF_MODEL if writer else _MOST_TRIED
        candidates = _first(templates.of(stratum), max(0, room) * tries)
        for draft, author in writer.rewritten(candidates) if writer else _as_is(candidates):
            if len(selection.chosen) >= room:
                break
            selection.offer(draft, author)
        new += selection.chosen
        drafted[stratum] = len(selection.chosen)
        dropped[stratum] = dict(selection.dropped.most_common())
    files.queries = sorted([*kept, *others, *new], key=lambda one: STRATA.index(one.stratum))
    if not files.queries:
        raise DataError(
            "no question could be drafted from these memories: most are shorter than seven words, "
            "or not English; give --model, or write queries.jsonl by hand",
            file=folder / "corpus.jsonl",
        )
    files.save()
    return DraftedQuestions(
        str(folder), per_stratum, drafted, dict(Counter(one.stratum for one in kept)), dropped
    )


class _Selection:
    """The accepted drafts of one stratum; each memory is asked for once."""

    def __init__(
        self,
        stratum: str,
        rules: StrataRules,
        kept: Sequence[StrataQuery],
        rejected: set[str],
    ) -> None:
        self._stratum, self._rules, self._rejected = stratum, rules, rejected
        own = [asked(query) for query in kept if query.stratum == stratum]
        self._taken = {id for one in own for id in one.gold}
        self._texts = {one.text for one in own}
        self._ids = {query.query_id for query in kept}
        self.chosen: list[StrataQuery] = []
        self.dropped: Counter[str] = Counter()

    def offer(self, draft: Draft, author: str) -> None:
        """Accept a draft, or count why not."""
        gold = tuple(
            dict.fromkeys(one for id in draft.gold for one in (id, *self._rules.twins(id)))
        )
        own = (draft.text, self._stratum, gold, draft.superseded, draft.answer)
        question = StratumQuestion("", *own)
        broken = self._rules.broken(question)
        if broken:
            self.dropped[broken[0].rule] += 1
        elif question_sha256(question) in self._rejected:
            self.dropped[_REJECTED] += 1
        elif set(draft.gold) & self._taken or draft.text in self._texts:
            self.dropped[_SAME_MEMORY] += 1
        else:
            self._taken |= set(gold)
            self._texts.add(draft.text)
            self.chosen.append(
                StrataQuery(
                    self._id_of(question),
                    draft.text,
                    self._stratum,
                    list(gold),
                    superseded_ids=list(draft.superseded),
                    answer=draft.answer,
                    drafted_by=author,
                )
            )

    def _id_of(self, question: StratumQuestion) -> str:
        """An id that another question never gets, so that files of two drafts cannot be mixed."""
        digest, length = question_sha256(question), _ID_LENGTH
        while (id := f"{self._stratum}_{digest[:length]}") in self._ids:
            length += 1
        self._ids.add(id)
        return id


def _first(drafts: Iterator[Draft], most: int) -> Iterator[Draft]:
    for _, draft in zip(range(most), drafts, strict=False):
        yield draft


def _as_is(drafts: Iterator[Draft]) -> Iterator[tuple[Draft, str]]:
    return ((draft, "templates") for draft in drafts)
