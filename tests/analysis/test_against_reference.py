"""The closing sentences of `run`: each system against bm25, with one error rate for all."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.against_reference import CHANCE, against_reference
from mnemoscope.reports.closing_sentences import closing_sentences, sentence, signed
from mnemoscope.reports.tables import LABEL_WIDTH, Paragraph, wrapped
from mnemoscope.stats.clustered import cluster_sums, difference
from mnemoscope.stats.families import max_t

Make = Callable[..., RunDirectory]


def hits(share: float, seed: int = 1, of: int = 200) -> list[bool]:
    dice = random.Random(seed)
    return [dice.random() < share for _ in range(of)]


def test_each_system_is_compared_with_bm25_in_plain_words(make_run: Make, tmp_path: Path) -> None:
    shares = {"good": 0.95, "bad": 0.3, "same": 0.6, "bm25": 0.6, "random": 0.1}
    runs = [
        make_run(tmp_path / name, hits(share, place), clusters=10)
        for place, (name, share) in enumerate(shares.items())
    ]
    found = {one.label: one for one in against_reference(runs)}

    assert {one.reference for one in found.values()} == {"bm25"}
    assert found["good"].direction == "more"
    assert found["bad"].direction == "less"
    assert found["same"].direction == "cannot tell"
    assert sentence(found["good"]).startswith("good finds more than bm25: recall@10 +0.")
    assert sentence(found["bad"]).startswith("bad finds less than bm25: recall@10 −0.")
    assert sentence(found["same"]).startswith("same cannot be told from bm25: recall@10 ")


def test_the_intervals_are_simultaneous_over_the_systems(make_run: Make, tmp_path: Path) -> None:
    values = {name: hits(0.6, seed) for seed, name in enumerate(("bm25", "a", "b", "c"))}
    runs = [make_run(tmp_path / name, own, clusters=10) for name, own in values.items()]
    deltas = np.array([values[name] for name in "abc"], dtype=float).T
    deltas -= np.array(values["bm25"], dtype=float)[:, None]
    sums = cluster_sums(deltas, [f"c{n % 10}" for n in range(200)])
    family = max_t(sums)

    for place, one in enumerate(against_reference(runs)):
        row = difference(sums.column(place))
        assert (one.delta, one.low, one.high) == pytest.approx(
            (row.delta, *family.interval(row)), abs=1e-12
        )
        assert one.systems == 3
    alone = against_reference(runs[:2])[0]
    assert alone.high < against_reference(runs)[0].high, "one comparison needs no correction"


def test_a_metric_with_luck_among_many_is_not_called_better(make_run: Make, tmp_path: Path) -> None:
    """The cheat: run a system twenty times and report the best one alone."""
    names = ["bm25", *(f"try{n}" for n in range(20))]
    runs = [
        make_run(tmp_path / name, hits(0.6, seed), clusters=10)
        for seed, name in enumerate(names, 63)
    ]
    assert {one.direction for one in against_reference(runs)} == {"cannot tell"}
    alone = {one.direction for run in runs[1:] for one in against_reference([runs[0], run])}
    assert alone != {"cannot tell"}, "one of twenty looks better or worse by luck"


@pytest.mark.parametrize(
    ("clusters", "said"),
    [(1, "on this conversation only"), (3, "on these 3 conversations only"), (5, "")],
)
def test_few_conversations_are_said(
    make_run: Make, tmp_path: Path, clusters: int, said: str
) -> None:
    runs = [
        make_run(tmp_path / name, hits(share), clusters=clusters)
        for name, share in (("mine", 0.9), ("bm25", 0.4))
    ]
    *_, legend = closing_sentences(runs)
    assert isinstance(legend, Paragraph)
    assert (said in legend.text) if said else ("only" not in legend.text)


def test_without_baselines_the_reference_is_chance(make_run: Make, tmp_path: Path) -> None:
    (one,) = against_reference([make_run(tmp_path / "mine", hits(0.9), clusters=10)])
    assert (one.reference, one.direction) == (CHANCE, "more")
    assert one.delta == pytest.approx(np.mean(hits(0.9)) - 0.5)  # ten of a pool of twenty


def test_random_is_the_reference_where_bm25_did_not_run(make_run: Make, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, hits(0.5), clusters=10) for name in ("mine", "random")]
    assert [one.reference for one in against_reference(runs)] == ["random"]


def test_a_system_that_failed_everywhere_is_not_compared(make_run: Make, tmp_path: Path) -> None:
    lost = make_run(tmp_path / "lost", hits(0.9), failed=200, clusters=10)
    runs = [lost, make_run(tmp_path / "bm25", hits(0.5), clusters=10)]
    (one,) = against_reference(runs)
    assert one.direction == "not measured"
    assert sentence(one) == "lost was not measured: no question can be compared with bm25"


def test_only_the_reference_itself_gives_no_sentence(make_run: Make, tmp_path: Path) -> None:
    assert closing_sentences([make_run(tmp_path / "bm25", hits(0.5))]) == []


def test_signs_are_printed_and_zero_has_none() -> None:
    assert [signed(value) for value in (0.1, -0.1, -0.0001)] == ["+0.100", "−0.100", "0.000"]


@pytest.mark.parametrize(
    ("label", "lines"),
    [
        ("bm25", ["bm25"]),
        ("words-LongLabelledMemorySystem", ["words-Long", "Labelled", "MemorySystem"]),
        ("hybrid,fusion=rrf,weight=0.6", ["hybrid,", "fusion=rrf,", "weight=0.6"]),
        ("averyveryverylongword", ["averyveryve…"]),
        ("two\nlines", ["two lines"]),
    ],
)
def test_labels_wrap_between_words_only(label: str, lines: list[str]) -> None:
    assert wrapped(label).split("\n") == lines
    assert all(len(line) <= LABEL_WIDTH for line in lines)
