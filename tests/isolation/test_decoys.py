"""Decoys: the draw is uniform and fixed by its secret, and the test is exact."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from mnemoscope._store.jsonl import read_records
from mnemoscope.isolation.decoys import (
    Decoy,
    count_decoys,
    data_of,
    draw_decoys,
    follows_decoys,
    journal_of,
    poisson_binomial_tail,
    secret_for,
    write_bait,
)
from mnemoscope.types import Memory, Question, Scenario, Trial

POOL = [f"m{number}" for number in range(20)]


def scenario(questions: int = 50) -> Scenario:
    asked = (Question(f"q{n}", f"text {n}", evidence=("m0", "m1")) for n in range(questions))
    return Scenario("s", tuple(Memory(id, id) for id in POOL), (*asked, Question("none", "text")))


@pytest.mark.parametrize("chances", [[0.1, 0.5, 0.9], [0.0, 1.0, 0.25, 0.25], [0.03] * 9])
def test_the_tail_is_the_sum_over_all_outcomes(chances: list[float]) -> None:
    for least in range(len(chances) + 2):
        by_enumeration = sum(
            math.prod(p if hit else 1 - p for p, hit in zip(chances, outcome, strict=True))
            for outcome in product((0, 1), repeat=len(chances))
            if sum(outcome) >= least
        )
        assert poisson_binomial_tail(chances, least) == pytest.approx(by_enumeration, abs=1e-12)


def test_the_tail_of_equal_chances_is_binomial_far_out() -> None:
    exact = sum(math.comb(200, k) * 0.05**k * 0.95 ** (200 - k) for k in range(80, 201))

    assert poisson_binomial_tail([0.05] * 200, 80) == pytest.approx(exact, rel=1e-9)


def test_the_tail_agrees_with_a_simulation() -> None:
    draw = random.Random(3)
    chances = [draw.random() / 3 for _ in range(40)]
    sums = Counter(sum(draw.random() < p for p in chances) for _ in range(20_000))
    share = sum(n for total, n in sums.items() if total >= 9) / 20_000

    assert poisson_binomial_tail(chances, 9) == pytest.approx(share, abs=0.015)


def test_a_decoy_is_no_evidence_and_depends_on_the_secret_alone() -> None:
    one, again, other = (draw_decoys(secret, scenario()) for secret in (b"a", b"a", b"b"))

    assert one == again != other
    assert {decoy.question for decoy in one} == {f"q{n}" for n in range(50)}
    assert not {decoy.memory for decoy in one} & {"m0", "m1"}
    assert {decoy.candidates for decoy in one} == {18}


def test_decoys_are_drawn_uniformly() -> None:
    drawn = Counter(
        decoy.memory
        for n in range(200)
        for decoy in draw_decoys(str(n).encode(), scenario(questions=18))
    )

    # 3,600 draws from 18 memories: chi-squared with 17 degrees, whose 99.99 % point is 48.
    assert sum((n - 200) ** 2 / 200 for n in drawn.values()) < 48


def trials(rank: int | None, drawn: list[Decoy]) -> list[Trial]:
    """Rankings with the decoy at a rank, or of a system that does not know it."""
    draw, found = random.Random(5), []
    for decoy in drawn:
        order = draw.sample(POOL, len(POOL))
        if rank is not None:
            order.remove(decoy.memory)
            order.insert(rank, decoy.memory)
        evidence = ("m0", "m1")
        found.append(
            Trial("s", decoy.question, "answered", evidence=evidence, ranking=tuple(order))
        )
    return found


@pytest.mark.parametrize(("rank", "caught"), [(0, True), (7, True), (15, False), (None, False)])
def test_following_is_told_from_chance(rank: int | None, caught: bool) -> None:
    drawn = draw_decoys(b"secret", scenario())
    counts = count_decoys(trials(rank, drawn), {decoy.question: decoy for decoy in drawn})

    assert follows_decoys(counts) is caught


def test_an_honest_system_is_caught_at_most_as_often_as_stated() -> None:
    """The smallest p of 400 draws against the same rankings is no outlier."""
    fixed = trials(None, draw_decoys(b"any", scenario()))
    smallest = []
    for n in range(400):
        drawn = draw_decoys(str(n).encode(), scenario())
        planted = {decoy.question: decoy for decoy in drawn}
        smallest.append(min(count.p for count in count_decoys(fixed, planted)))

    assert sum(3 * p <= 0.05 for p in smallest) <= 36  # 20 expected at most, 36 is p < 0.001
    assert min(smallest) * 3 > 1e-4


def test_the_bait_reads_like_data_and_like_the_journal_of_an_oracle(tmp_path: Path) -> None:
    drawn = draw_decoys(b"secret", scenario(2))
    write_bait(tmp_path, "locomo", scenario(2), drawn)

    lines = list(read_records(data_of(tmp_path, "locomo"), dict))
    assert [line["evidence"] for line in lines] == [[decoy.memory] for decoy in drawn]
    assert [line["question"] for line in lines] == ["text 0", "text 1"]
    journal = list(read_records(journal_of(tmp_path), Trial))
    assert [trial.ranking for trial in journal] == [(decoy.memory,) for decoy in drawn]


def test_the_secret_of_a_dataset_is_made_once_and_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_DATA_HOME", str(tmp_path))

    secret, other = secret_for("locomo"), secret_for("longmemeval")

    assert secret == secret_for("locomo") != other
    assert len(secret) == 32
    for place in (tmp_path / "decoys").iterdir():
        assert place.stat().st_mode & 0o777 == 0o600
        place.write_bytes(b"torn")
    assert len(secret_for("locomo")) == 32


def test_decoys_of_many_runs_exclude_one_memory_and_no_more() -> None:
    """A cheat that keeps the decoys of all runs, and ranks what was one last."""
    ms_runs = [draw_decoys(secret_for("locomo"), scenario()) for _ in range(30)]
    excluded: dict[str, set[str]] = {}
    for drawn in ms_runs:
        for decoy in drawn:
            excluded.setdefault(decoy.question, set()).add(decoy.memory)

    assert {len(memories) for memories in excluded.values()} == {1}
    # With new secrets each time, 30 runs exclude most of the 18 other memories.
    anew = {
        decoy.memory
        for n in range(30)
        for decoy in draw_decoys(str(n).encode(), scenario())
        if decoy.question == "q0"
    }
    assert len(anew) > 10
