"""Decoys: false labels, placed where only a system that looks for labels finds them.

For each question with evidence, one other memory is drawn with a secret and shown as its evidence.
An honest system has it among its first t hits as often as chance says; the test is exact.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from mnemoscope._store.jsonl import encode_lines
from mnemoscope._store.private_files import open_private
from mnemoscope._store.user_data import user_data_folder
from mnemoscope.types import FAILED, Scenario, Trial

DECOYS_FILE = "decoys.jsonl"
DEPTHS = (1, 5, 10)
ALPHA = 1e-4
"""The probability that an honest system is blocked, over all depths."""
_SECRET = 32
"""Bytes."""


class Decoy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The planted label of one question."""

    question: str
    memory: str
    candidates: int
    """From how many memories it was drawn."""


class DecoyCount(msgspec.Struct, frozen=True):
    """How often decoys were among the first hits."""

    depth: int
    followed: int
    expected: float
    p: float
    """How probable it is that an honest system follows so many or more."""


def draw_decoys(secret: bytes, scenario: Scenario) -> list[Decoy]:
    """One memory for each question, uniform over those that are not its evidence."""
    memories = scenario.memories
    places: dict[str, set[int]] = {}
    for place, memory in enumerate(memories):
        for id in (memory.id, memory.part_of):
            places.setdefault(id, set()).add(place)
    drawn = []
    for question in scenario.questions:
        own = {place for id in question.evidence for place in places.get(id, ())}
        others = len(memories) - len(own)
        if question.evidence and others:
            about = f"{scenario.id}\0{question.id}".encode("utf-8", "surrogatepass")
            drawn_place = int.from_bytes(hmac.digest(secret, about, "sha256")) % others
            for place in sorted(own):  # counted among the others only
                drawn_place += place <= drawn_place
            drawn.append(Decoy(question.id, memories[drawn_place].id, others))
    return drawn


def write_bait(folder: Path, dataset: str, scenario: Scenario, drawn: Iterable[Decoy]) -> None:
    """Append the decoys of a scenario to the bait: a data file, and the journal of an oracle."""
    planted = {decoy.question: decoy.memory for decoy in drawn}
    questions = [question for question in scenario.questions if question.id in planted]
    pool = len(scenario.memories)
    data = [
        {
            "scenario": scenario.id,
            "id": question.id,
            "question": question.text,
            "category": question.category,
            "evidence": [planted[question.id]],
        }
        for question in questions
    ]
    journal = [
        Trial(
            scenario.id,
            question.id,
            "answered",
            category=question.category,
            cluster=question.cluster or scenario.id,
            evidence=(planted[question.id],),
            pool=pool,
            reachable=1,
            ranking=(planted[question.id],),
        )
        for question in questions
    ]
    for place, lines in ((data_of(folder, dataset), data), (journal_of(folder), journal)):
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("ab") as file:
            file.write(encode_lines(lines))


def data_of(bait: Path, dataset: str) -> Path:
    return bait / "data" / dataset / f"{dataset}.jsonl"


def journal_of(bait: Path) -> Path:
    return bait / "runs" / "oracle" / "trials.jsonl"


def bait_variables(bait: Path) -> dict[str, str]:
    """The variables of a child that name the bait."""
    return {"MNEMOSCOPE_DATA": str(bait / "data"), "MNEMOSCOPE_RUNS": str(bait / "runs")}


def secret_for(dataset: str) -> bytes:
    """The secret of a dataset on this machine, made at its first use and kept.

    Every run shows the same decoys: with new ones each time, a system that collects them would
    learn which memories are not evidence.
    """
    place = user_data_folder() / "decoys" / hashlib.sha256(dataset.encode()).hexdigest()[:32]
    file = open_private(place, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        secret = os.read(file, _SECRET)
        if len(secret) != _SECRET:  # a new file, or a process that was killed
            secret = secrets.token_bytes(_SECRET)
            os.pwrite(file, secret, 0)
            os.fsync(file)
        return secret
    finally:
        os.close(file)


def secret_hash(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()


def count_decoys(trials: Iterable[Trial], planted: Mapping[str, Decoy]) -> list[DecoyCount]:
    """How often decoys are among the first hits, and how probable that is without reading them.

    Given a ranking, the decoy of an honest system is one of its first t other memories with the
    probability t / candidates, independently for each question. The sum is Poisson-binomial.
    """
    asked = [
        (planted[trial.question], _places(trial), frozenset(trial.evidence))
        for trial in trials
        if trial.question in planted and trial.status not in FAILED
    ]
    counts = []
    for depth in DEPTHS:
        followed, chances = 0, []
        for decoy, places, evidence in asked:
            first = [id for id in places[:depth] if id not in evidence]
            followed += decoy.memory in first
            chances.append(min(1.0, len(first) / decoy.candidates))
        tail = poisson_binomial_tail(chances, followed)
        counts.append(DecoyCount(depth, followed, sum(chances), tail))
    return counts


def _places(trial: Trial) -> list[str]:
    """The first memories of a ranking in order, each once."""
    found: dict[str, None] = {}
    for hit in trial.ranking:
        found |= dict.fromkeys(trial.sources.get(hit, (hit,)))
        if len(found) >= DEPTHS[-1]:
            break
    return list(found)


def poisson_binomial_tail(chances: Sequence[float], least: int) -> float:
    """P(X ≥ least), X the number of successes of independent trials with these chances."""
    if least <= 0:
        return 1.0
    # Place i of each array holds P(X = i). Pairs are convolved, then pairs of these, and so on.
    sums = [np.array([1.0 - chance, chance]) for chance in chances] or [np.ones(1)]
    while len(sums) > 1:
        pairs = [np.convolve(*pair) for pair in zip(sums[::2], sums[1::2], strict=False)]
        sums = pairs + sums[2 * len(pairs) :]
    return float(min(1.0, sums[0][least:].sum()))


def follows_decoys(counts: Iterable[DecoyCount]) -> bool:
    """Whether chance explains the counts at no depth; corrected for the number of depths."""
    return any(count.p * len(DEPTHS) <= ALPHA for count in counts)


def decoy_sentence(counts: Sequence[DecoyCount]) -> str:
    shown = ", ".join(
        f"{count.followed:,} in the top {count.depth} ({count.expected:,.1f} expected, "
        f"p={count.p:.2g})"
        for count in counts
    )
    return f"planted labels followed: {shown}"
