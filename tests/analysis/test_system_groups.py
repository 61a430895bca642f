"""Groups of systems that cannot be told apart, and ways to get a better group than deserved."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.measure import Depth
from mnemoscope.analysis.pairing import NotComparable
from mnemoscope.analysis.system_groups import groups_or_reason, system_groups, value_of
from mnemoscope.cli.app import invoke
from mnemoscope.results import Results, RunResult
from mnemoscope.stats.groups import all_pairs
from mnemoscope.types import Trial

Make = Callable[..., RunDirectory]
N = 400


def hits(good: int, of: int = N) -> list[bool]:
    return [number < good for number in range(of)]


def test_systems_that_differ_get_letters_ranks_and_a_best_group(
    make_run: Make, tmp_path: Path
) -> None:
    goods = {"best": 390, "near": 388, "mid": 250, "low": 60}
    runs = [make_run(tmp_path / name, hits(n), clusters=20) for name, n in goods.items()]

    found = system_groups(runs)

    assert [one.system for one in found.systems] == list(goods)
    assert [one.letters for one in found.systems] == ["a", "a", "b", "c"]
    assert [one.ranks for one in found.systems] == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert [one.is_best for one in found.systems] == [True, True, False, False]
    assert len(found.pairs) == 6
    assert (found.metric, found.questions, found.clusters) == ("recall@10", N, 20)


def test_the_order_of_the_runs_does_not_matter(make_run: Make, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"s{n}", hits(n), clusters=10) for n in (100, 300, 200)]

    assert system_groups(runs) == system_groups(runs[::-1])


def test_a_system_run_twice_under_two_names_is_not_told_apart(
    make_run: Make, tmp_path: Path
) -> None:
    runs = [make_run(tmp_path / name, hits(300), clusters=10) for name in ("mine", "twin")]
    runs.append(make_run(tmp_path / "weak", hits(100), clusters=10))

    found = system_groups(runs)

    assert [one.letters for one in found.systems] == ["a", "a", "b"]
    assert not found.pairs[0].is_decided


def test_a_system_does_not_rise_by_failing_where_it_would_be_wrong(
    make_run: Make, tmp_path: Path
) -> None:
    # It fails on the first 120 questions and finds all others; the honest ones find 360 of 400.
    cheat = make_run(tmp_path / "cheat", [True] * N, clusters=20, failed=120)
    honest = [
        make_run(tmp_path / name, [n % 10 != 9 for n in range(N)], clusters=20)
        for name in ("one", "two")
    ]

    found = system_groups([cheat, *honest])

    mine = found.of("cheat")
    assert mine is not None
    assert mine.mean == 1.0 and mine.lowest == pytest.approx(0.7)
    assert found.systems[-1].system == "cheat"
    assert mine.ranks[1] == 3 and found.systems[0].ranks[0] == 1
    assert found.left_out == 120
    assert "120 of 400 questions failed in at least one system (cheat 120)" in found.notes[-1]


def test_a_system_that_failed_mostly_takes_no_part(make_run: Make, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"s{n}", hits(n), clusters=10) for n in (300, 200)]
    runs.append(make_run(tmp_path / "broken", [True] * N, clusters=10, failed=390))

    found = system_groups(runs)

    assert found.of("broken") is None
    assert found.questions == N
    assert found.notes == ["broken measured 10 of 400 questions: too few for a group"]


def test_the_oracle_does_not_compete(make_run: Make, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, hits(n)) for name, n in (("a", 200), ("b", 190))]
    runs.append(make_run(tmp_path / "oracle", [True] * N))

    found = system_groups(runs)

    assert found.apart == ["oracle"]
    assert {one.system for one in found.systems} == {"a", "b"}


@pytest.mark.parametrize("change", [{"data": "e" * 64}, {"scope": "other"}, {"depth": 20}])
def test_a_run_of_other_data_options_or_depth_is_refused(
    make_run: Make, tmp_path: Path, change: dict[str, object]
) -> None:
    runs = [make_run(tmp_path / f"s{n}", hits(n)) for n in (100, 200)]
    runs.append(make_run(tmp_path / "other", hits(300), **change))

    with pytest.raises(NotComparable, match="s100 and other differ in"):
        system_groups(runs)
    assert isinstance(groups_or_reason(runs), str)
    assert invoke(["compare", *(str(run.path) for run in runs)]) == 3


def test_a_run_is_refused_twice_and_copies_count_as_one_system(
    make_run: Make, tmp_path: Path
) -> None:
    first, second = (make_run(tmp_path / f"s{n}", hits(n)) for n in (100, 200))

    with pytest.raises(UsageError, match="given twice"):
        system_groups([first, second, first])

    copy = tmp_path / "renamed"
    shutil.copytree(first.path, copy)
    found = system_groups([first, second, RunDirectory(copy)])
    assert found.notes == ["s100; renamed: one system, run 2 times"]


def test_few_conversations_speak_of_themselves_only(make_run: Make, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"s{n}", hits(n), clusters=2) for n in (100, 300)]

    found = system_groups(runs)

    assert found.these_only
    assert [one.letters for one in found.systems] == ["a", "b"]


def test_a_weak_system_does_not_hide_the_difference_of_similar_ones() -> None:
    random = np.random.default_rng(1)
    clusters = [f"c{n % 10}" for n in range(2000)]
    base = random.random(2000) < 0.9
    better = base | (random.random(2000) < 0.3)
    noise = random.random(10)[[n % 10 for n in range(2000)]]
    weak = random.random(2000) < noise
    values = np.column_stack([base, better, weak]).astype(float)

    assert all_pairs(values[:, :2], clusters)[0].decided
    assert all_pairs(values, clusters)[0].decided


@given(
    ranking=st.lists(st.sampled_from([f"m{n}" for n in range(15)]), max_size=30),
    evidence=st.sets(st.sampled_from([f"m{n}" for n in range(15)]), min_size=1, max_size=4),
    metric=st.sampled_from(["recall@10", "hit@5", "ndcg@10", "all@3", "precision@1", "mrr@10"]),
)
def test_one_metric_equals_that_of_all_metrics(
    ranking: list[str], evidence: set[str], metric: str
) -> None:
    depth = Depth(20)
    trial = Trial("s", "q", "answered", evidence=tuple(evidence), ranking=tuple(ranking))

    assert value_of(depth, trial, metric) == depth.values(trial)[depth.names.index(metric)]


def test_the_command_compares_all_pairs(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(make_run(tmp_path / f"s{n}", hits(n), clusters=10).path) for n in (390, 250, 60)]
    page = tmp_path / "page.md"

    assert invoke(["compare", *runs, "--markdown", str(page), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [one["letters"] for one in content["systems"]] == ["a", "b", "c"]
    assert "| s390 | s250 |" in page.read_text()
    assert invoke(["compare", *runs]) == 0
    shown = capsys.readouterr().out
    assert "Best of 3 by recall@10: s390." in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert invoke(["compare", *runs, "--band", "0.1"]) == 2
    assert invoke(["compare", *runs, "--metrics", "recall@10,hit@10"]) == 2
    assert invoke(["compare", *runs, "--metrics", "wrong@10"]) == 2


def test_results_show_groups_in_frames_and_html(make_run: Make, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"s{n}", hits(n), clusters=10) for n in (390, 60)]

    results = Results([RunResult(run.path) for run in runs])

    rows = [row for row in results.figures() if row.group]
    assert [(row.system, row.group, row.best_rank, row.worst_rank) for row in rows] == [
        ("s390", "a", 1, 1),
        ("s60", "b", 2, 2),
    ]
    many = api.compare_many(results)
    assert [row.verdict for row in many.rows()] == ["better"]
    assert "<b>0.9750</b>" in many._repr_html_()


def test_six_systems_stay_told_apart_when_conversations_are_drawn_again() -> None:
    random = np.random.default_rng(3)
    clusters = np.repeat([f"c{n}" for n in range(12)], 40)
    ease = random.random(len(clusters))
    values = np.column_stack([ease < good for good in (0.9, 0.89, 0.7, 0.69, 0.4, 0.1)]).astype(
        float
    )
    before = all_pairs(values, clusters.tolist())
    assert sum(pair.decided for pair in before) >= 12
    kept = reversed_ = total = 0
    for _ in range(20):
        drawn = random.choice(12, 12)
        rows = np.concatenate([np.flatnonzero(clusters == f"c{n}") for n in drawn])
        again = all_pairs(values[rows], np.repeat([f"d{n}" for n in range(12)], 40).tolist())
        for old, new in zip(before, again, strict=True):
            if old.decided:
                total += 1
                same = old.row.delta * new.row.delta > 0
                kept += new.decided and same
                reversed_ += new.decided and not same
    assert reversed_ == 0
    assert kept > 0.9 * total
