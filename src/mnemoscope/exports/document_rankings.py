"""The rankings of a run as TREC, ranx and ir_measures know them: one document at each rank.

Scores fall strictly with the rank, so that no tool sees a tie and breaks it in its own way.
Questions without evidence and questions that failed are left out, as they are of our figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mnemoscope._store.errors import MissingExtra, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.credit import credited, hit_places, is_plain, takes_places
from mnemoscope.datasets.trec import NO_HITS
from mnemoscope.metrics import HitPlaces, dedupe
from mnemoscope.types import FAILED, Trial

if TYPE_CHECKING:
    import ranx

# As bytes are split by readers of TREC's files.
_SPACE = re.compile("[ \t\n\r\x0b\x0c\x00]")


class DocumentRankings(NamedTuple):
    """Judgments and rankings by question, with what was left out."""

    judgments: dict[str, dict[str, int]]
    """Question to its evidence with grades."""
    rankings: dict[str, list[str]]
    """Question to its documents, best first."""
    depth: int
    failed: int
    without_hits: int
    rewritten: int
    """Questions whose hits are not single memories."""

    def scores(self) -> dict[str, dict[str, float]]:
        """Question to its documents with scores that fall by 1 at each rank."""
        return {
            question: {document: float(len(own) - rank) for rank, document in enumerate(own)}
            for question, own in self.rankings.items()
        }

    def notes(self, label: str) -> list[str]:
        """What a user of the files must know."""
        found = [
            f"{label}: scores are written so that they fall with the rank; the rank is what counts"
        ]
        if self.failed:
            found.append(f"{label}: {self.failed:,} questions failed and are left out")
        if self.without_hits:
            found.append(
                f"{label}: {self.without_hits:,} questions without hits have the document {NO_HITS}"
            )
        if self.rewritten:
            found.append(
                f"{label}: in {self.rewritten:,} questions the hits are not single memories; each "
                "rank has the evidence that its hit is credited with, else a placeholder"
            )
        return found


def document_rankings(run: RunDirectory) -> DocumentRankings:
    """Read the rankings of the last checkpoint.

    Raises UsageError if a hit is credited with several memories: then no ranking of single
    documents has the same figures.
    """
    depth = int(run.read_json("metrics.json")["depth"])
    judgments: dict[str, dict[str, int]] = {}
    rankings: dict[str, list[str]] = {}
    failed = without_hits = rewritten = combined = 0
    for trial in run.trials():
        if not trial.evidence:
            continue
        if trial.status in FAILED:
            failed += 1
            continue
        found = single_documents(trial, depth)
        if found is None:
            combined += 1
            continue
        without_hits += not found
        rewritten += not is_plain(trial)
        judgments[trial.question] = {id: trial.grades.get(id, 1) for id in trial.evidence}
        rankings[trial.question] = found or [NO_HITS]
    if combined:
        raise UsageError(
            f"{run.path}: {combined:,} questions have a hit that is credited with several "
            "memories, so no ranking of single documents has their figures; export --format jsonl "
            "--what rankings"
        )
    if not rankings:
        raise UsageError(f"{run.path}: no question with evidence was measured")
    return DocumentRankings(judgments, rankings, depth, failed, without_hits, rewritten)


def single_documents(trial: Trial, depth: int) -> list[str] | None:
    """The documents of a trial, best first; None if a hit is credited with several memories."""
    ranking: Sequence[str] = dedupe(trial.ranking)[:depth]
    if is_plain(trial):
        return list(ranking)
    if takes_places(trial):
        hits = hit_places(trial, ranking)
    else:
        hits = [HitPlaces(credited(trial, id), 1) for id in ranking]
    missing, found = set(trial.evidence), list[str]()
    for memories, places in hits:
        fresh = sorted(missing & set(memories))
        if len(fresh) > 1 or (fresh and places > 1):
            return None
        missing -= set(fresh)
        found += fresh or [f"no-new-evidence-{len(found) + n}" for n in range(1, places + 1)]
    return found[:depth]


def trec_files(found: DocumentRankings, name: str) -> dict[str, bytes]:
    """`NAME.qrels` and `NAME.run` in TREC's format."""
    _refuse_spaces(found)
    qrels = (
        f"{question} 0 {document} {grade}\n"
        for question, own in found.judgments.items()
        for document, grade in own.items()
    )
    return {
        f"{name}.qrels": "".join(qrels).encode(),
        f"{name}.run": "".join(_run_lines(found, name)).encode(),
    }


def _run_lines(found: DocumentRankings, tag: str) -> Iterator[str]:
    for question, own in found.rankings.items():
        for rank, document in enumerate(own, 1):
            yield f"{question} Q0 {document} {rank} {len(own) - rank + 1} {tag}\n"


def _refuse_spaces(found: DocumentRankings) -> None:
    for question, own in found.rankings.items():
        for id in (question, *found.judgments[question], *own):
            if _SPACE.search(id) or not id:
                raise UsageError(
                    f"the id {id!r} contains white space, which TREC's format cannot hold; export "
                    "--format ranx, or --format jsonl --what rankings"
                )


def ranx_files(found: DocumentRankings, name: str) -> dict[str, bytes]:
    """`NAME.qrels.json` and `NAME.run.json`, as ranx reads and writes them."""
    return {
        f"{name}.qrels.json": _json(found.judgments),
        f"{name}.run.json": _json(found.scores()),
    }


def _json(content: Mapping[str, Mapping[str, float]]) -> bytes:
    return msgspec.json.encode(content) + b"\n"


def ranx_objects(found: DocumentRankings, name: str) -> tuple[ranx.Qrels, ranx.Run]:
    """The `Qrels` and `Run` objects of ranx, which is imported here: that takes seconds."""
    try:
        from ranx import Qrels, Run
    except ImportError:
        raise MissingExtra("ranx objects", "pip install ranx") from None
    return Qrels(found.judgments), Run(found.scores(), name=name)


def ir_measures_objects(found: DocumentRankings) -> tuple[list[Any], list[Any]]:
    """Lists of `Qrel` and `ScoredDoc` of ir_measures."""
    try:
        from ir_measures import Qrel, ScoredDoc
    except ImportError:
        raise MissingExtra("ir_measures objects", "pip install 'mnemoscope[rederive]'") from None
    qrels = [Qrel(q, id, grade) for q, own in found.judgments.items() for id, grade in own.items()]
    run = [
        ScoredDoc(q, id, score) for q, own in found.scores().items() for id, score in own.items()
    ]
    return qrels, run


def jsonl_rankings(run: RunDirectory) -> bytes:
    """One line for each question of the last checkpoint, as `mnemoscope score` reads them.

    Unlike the other formats this one keeps failed questions, scores, and hits that name several
    memories or have texts of their own.
    """
    depth = int(run.read_json("metrics.json")["depth"])
    lines = []
    for trial in run.trials():
        line: dict[str, Any] = {
            "question": trial.question,
            "ranking": trial.ranking,
            "status": trial.status,
            "depth": depth,
        }
        for name in ("scores", "sources", "ordered", "texts"):
            if value := getattr(trial, name):
                line[name] = value
        lines.append(line)
    return msgspec.json.Encoder().encode_lines(lines)
