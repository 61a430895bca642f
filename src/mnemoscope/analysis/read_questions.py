"""Read the details of a run's questions from its journal, its questions and its timings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mnemoscope._store.jsonl import read_records
from mnemoscope._store.run_directory import JournalLine, RunDirectory
from mnemoscope.analysis.answers import as_read, scale_of
from mnemoscope.analysis.credit import credited, is_plain, places_of
from mnemoscope.analysis.diagnosis import classify, receipts_of
from mnemoscope.analysis.measure import Depth
from mnemoscope.analysis.pairing import recorded_depth
from mnemoscope.analysis.question_details import (
    AnswerDetails,
    DatasetTexts,
    EvidenceMemory,
    Found,
    HitKind,
    JudgeMark,
    Key,
    QuestionDetails,
    RecalledHit,
    RunQuestions,
    VerdictDetails,
)
from mnemoscope.analysis.question_records import QuestionRecord, assemble, value_of
from mnemoscope.metrics import headline
from mnemoscope.types import FAILED, Grade, Ingestion, Question, Receipt, Score, Timing, Trial

_TOP = 10
_NO_TEXTS = DatasetTexts()
_Place = tuple[str, str, str]
"""Scenario, checkpoint and question id."""


def question_details(
    run: RunDirectory,
    texts: DatasetTexts | None = None,
    *,
    depth: int | None = None,
    only: str | None = None,
    journal: Sequence[JournalLine] | None = None,
) -> RunQuestions:
    """Read every question of a finished run, or the question with the id `only`.

    `depth` is the most hits of each question; `journal` has the run's lines, if they were read
    before. The files of the run are checked for edits.
    """
    manifest, limits = run.manifest(), recorded_depth(run)
    journal = list(run.journal()) if journal is None else journal
    lines = _question_lines(run)
    clusters = {line.question: line.cluster for line in journal if isinstance(line, Trial)}
    by_id = {id: _question(line, clusters.get(id, "")) for (_, id), line in lines.items()}
    records = [one for one in assemble(journal, by_id) if only in (None, one.question.id)]
    # What is expected may change between checkpoints: a question may be about forgotten memories.
    records = [
        one._replace(question=_question(lines[one.checkpoint, one.question.id], one.cluster))
        if one.checkpoint
        else one
        for one in records
    ]
    last = manifest.checkpoints[-1] if manifest.checkpoints else ""
    ingestions = (one for one in journal if isinstance(one, Ingestion) and one.checkpoint == last)
    is_diagnosed = bool(manifest.identity.get("reader")) and scale_of(manifest).bounded
    names = tuple(headline(limits.names))
    recalls = [name.partition("@") for name in limits.names]
    ks = [int(k) for name, _, k in recalls if name == "recall" and int(k) <= _TOP]
    k = max(ks, default=0)
    reader = _Reader(
        limits,
        {name: limits.names.index(name) for name in names},
        k,
        limits.names.index(f"recall@{k}") if k else None,
        depth,
        texts or _NO_TEXTS,
        _timings(run),
        receipts_of(ingestions),
    )
    return RunQuestions(
        manifest,
        names,
        bool(texts and texts.memories),
        tuple(
            reader.details(one, read if is_diagnosed else None)
            for one, read in zip(records, as_read(manifest, records), strict=True)
        ),
    )


def named_memories(run: RunDirectory, depth: int | None = None) -> dict[str, set[str]]:
    """Scenario to the ids of its memories that the run's evidence and first hits name."""
    found: dict[str, set[str]] = {}
    for line in run.journal():
        if isinstance(line, Trial):
            own = found.setdefault(line.scenario, set())
            own.update(line.evidence, line.ranking[:depth])
            if line.sources:
                for id in line.ranking[:depth]:
                    own.update(line.sources.get(id, ()))
    return found


def hits_of(
    trial: Trial, texts: DatasetTexts = _NO_TEXTS, depth: int | None = None
) -> Iterator[RecalledHit]:
    """The hits of a trial in rank order, each with what it counts for."""
    evidence, seen = set(trial.evidence), set[str]()
    memories, scenario, scores = texts.memories, trial.scenario, trial.scores
    other: HitKind = "wrong" if evidence else "unlabelled"
    plain, is_repeated = is_plain(trial), len(set(trial.ranking)) < len(trial.ranking)
    for rank, id in enumerate(trial.ranking[:depth], 1):
        score = scores[rank - 1] if scores else None
        memory, kind, repeated = memories.get((scenario, id)), other, False
        if is_repeated:
            repeated = id in seen
            seen.add(id)
        if plain and not trial.texts:  # by far the most frequent case
            if id in evidence:
                yield RecalledHit(
                    id, rank, "right", score, None, memory, (id,), (), (), 1, repeated
                )
            else:
                yield RecalledHit(id, rank, kind, score, None, memory, (), (), (), 1, repeated)
            continue
        own = tuple(one for one in credited(trial, id) if one in evidence)
        named = credited(trial, id, "claimed")
        claimed = tuple(one for one in named if one in evidence and one not in own)
        if own:
            kind = "carried" if id in trial.texts else "right"
        elif claimed:
            kind = "claimed"
        yield RecalledHit(
            id,
            rank,
            kind,
            score,
            trial.texts.get(id),
            memory,
            own,
            claimed,
            trial.sources.get(id, ()),
            places_of(trial, id),
            repeated,
        )


@dataclass(frozen=True)
class _Reader:
    """What the details of all questions of a run are made from."""

    limits: Depth
    places: Mapping[str, int]
    """The places of the headline metrics among the values of a trial."""
    k: int
    recall: int | None
    """The place of recall@k; None if no recall is measured."""
    depth: int | None
    texts: DatasetTexts
    timings: Mapping[_Place, Mapping[str, float]]
    receipts: Mapping[str, Receipt]

    def details(self, record: QuestionRecord, read: QuestionRecord | None) -> QuestionDetails:
        """The details of one question; `read` is its record if failures are classified."""
        question, trial, answer, verdict = record[:4]
        place = (record.scenario, record.checkpoint, question.id)
        ranks, memories = _ranks(trial), self.texts.memories
        metrics, found, k = self._measured(trial)
        return QuestionDetails(
            question.id,
            record.scenario,
            record.checkpoint,
            question.category,
            question.difficulty,
            self.texts.questions.get((record.scenario, question.id), question.text),
            question.reference,
            question.expects,
            self.texts.asked.get((record.scenario, question.id)),
            record.status or (trial.status if trial else ""),
            "; ".join(dict.fromkeys(record.errors)),
            tuple(
                EvidenceMemory(id, ranks.get(id), memories.get((record.scenario, id)))
                for id in (question.evidence if trial is None else trial.evidence)
            ),
            tuple(hits_of(trial, self.texts, self.depth)) if trial else (),
            len(trial.ranking) if trial else 0,
            trial.pool if trial else 0,
            k,
            found,
            metrics,
            AnswerDetails(answer.status, answer.text, answer.sources, answer.shown, answer.error)
            if answer
            else None,
            VerdictDetails(_mark(verdict.final), _mark(record.primary), verdict.error)
            if verdict
            else None,
            (read and answer and classify(read, self.receipts.get(record.scenario))) or "",
            **self.timings.get(place, {}),
        )

    def _measured(self, trial: Trial | None) -> tuple[dict[str, float], Found | None, int]:
        """The headline metrics of a trial, and whether the evidence is in its top k."""
        k = self.k
        if trial is None or not trial.evidence or trial.status in FAILED:
            return {}, None, k
        low = self.limits.values(trial)
        # An imported list may go on after its end.
        high = low if trial.cut is None else self.limits.highest(trial)
        known = {name: low[at] for name, at in self.places.items() if low[at] == high[at]}
        recall = self.recall
        if recall is None or low[recall] != high[recall]:
            return known, None, k
        value = low[recall]
        return known, "found" if value >= 1 else "partly" if value > 0 else "missed", k


def _ranks(trial: Trial | None) -> dict[str, int]:
    """Evidence to the rank of the first hit that is credited with it, repeated hits included."""
    ranks: dict[str, int] = {}
    if trial is not None and is_plain(trial):
        return {id: trial.ranking.index(id) + 1 for id in trial.evidence if id in trial.ranking}
    if trial is not None and trial.evidence:
        evidence = set(trial.evidence)
        for rank, id in enumerate(trial.ranking, 1):
            for one in credited(trial, id):
                if one in evidence:
                    ranks.setdefault(one, rank)
    return ranks


def _mark(mark: Score | Grade | None) -> JudgeMark | None:
    if mark is None:
        return None
    names = ("correctness", "completeness", "hallucination") if isinstance(mark, Score) else ()
    rubric = {name: int(getattr(mark, name)) for name in names}
    return JudgeMark(value_of(mark), not mark.fails, rubric, mark.reasoning, mark.votes)


def _question_lines(run: RunDirectory) -> dict[Key, dict[str, Any]]:
    """Checkpoint and id to the question's line."""
    found: dict[Key, dict[str, Any]] = {}
    for line in read_records(run.path / "questions.jsonl", dict):
        # Persona runs have Recall Bench's format, which nests the question in "qa".
        own = line.get("qa", line)
        found[line.get("checkpoint", ""), own["id"]] = own
    return found


def _question(line: Mapping[str, Any], cluster: str) -> Question:
    return Question(
        line["id"],
        line["question"],
        reference=line["referenceAnswer" if "referenceAnswer" in line else "reference"],
        category=line["category"],
        evidence=tuple(line.get("evidence", ())),
        expects=line.get("expects", line.get("expectedDisclosure", "answer")),
        difficulty=line.get("difficulty", ""),
        cluster=cluster,
    )


def _timings(run: RunDirectory) -> dict[_Place, dict[str, float]]:
    """The times of each question; its phases are timed in separate lines."""
    found: dict[_Place, dict[str, float]] = {}
    for one in run.timings():
        if one.question:
            own = found.setdefault((one.scenario, one.checkpoint, one.question), {})
            for name, value in _phases(one):
                own[name] = value
    return found


def _phases(timing: Timing) -> Iterator[tuple[str, float]]:
    for name in ("recall_ms", "answer_ms", "judge_ms"):
        if (value := getattr(timing, name)) is not None:
            yield name, value
