"""`mnemoscope compare`: what it refuses, what it says, and other people's published figures.

Published figures: pgmnemo v0.2.1 and v0.3.0 on LoCoMo sessions, ../shared/data/pgmnemo; the table
is the one its own tool prints (issue 3).
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import EditedRun
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.aggregates import CAVEAT, read_aggregates, seed_comparison
from mnemoscope.analysis.compare import NotComparable, compare, rows_of
from mnemoscope.analysis.comparison import Comparison, Declared
from mnemoscope.analysis.pairing import PairedValues
from mnemoscope.cli.app import invoke
from mnemoscope.datasets import dataset_info, open_dataset
from mnemoscope.reports.comparison_tables import answer
from mnemoscope.runner.score_rankings import score

Make = Callable[..., RunDirectory]
Shared = Callable[[str], Path]

VERSIONS = ("v0.2.1_session_20260509", "v0.3.0_session_20260513")
PUBLISHED = {
    "recall@5": (0.6623, 0.6640, "0.11", "0.9098", "0.004"),
    "recall@10": (0.7951, 0.7994, "0.34", "0.7364", "0.011"),
    "recall@25": (0.9623, 0.9641, "0.30", "0.7634", "0.010"),
    "recall@50": (0.9993, 0.9996, "0.40", "0.6871", "0.013"),
    "mrr": (0.5480, 0.5569, "0.56", "0.5731", "0.018"),
}
"""base, cand, z, p_raw, h; every p_corrected is 1."""


def hits(good: int, of: int = 400) -> list[bool]:
    """The first `count` questions are hits, so more hits only gain questions."""
    return [number < good for number in range(of)]


@pytest.fixture(scope="module")
def theirs(shared_data: Shared, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Both published raw files, scored by pgmnemo's own rules."""
    folder = tmp_path_factory.mktemp("pgmnemo")
    data = shared_data("locomo")
    for version in VERSIONS:
        file = shared_data(f"pgmnemo/locomo/{version}/raw_retrievals.jsonl")
        dataset = open_dataset(
            "locomo", data, dataset_info("locomo").published_rules["pgmnemo"].options
        )
        score(dataset, file, folder / version, format="pgmnemo", compat="pgmnemo")
    return [folder / version for version in VERSIONS]


def test_published_rankings_paired_gain_49_and_lose_36_hits(theirs: list[Path]) -> None:
    found = compare(*map(RunDirectory, theirs), discordant="hit@10")

    row = found.row("hit@10")
    assert (found.paired, found.clusters) == (1982, 10)
    assert (row.n, row.gained, row.lost) == (1982, 49, 36)
    assert (row.role, row.verdict, row.confirmed) == ("secondary", "cannot tell", False)
    changes = [one.change for one in found.discordant]
    assert (changes.count("gained"), changes.count("lost")) == (49, 36)
    assert all(one.text for one in found.discordant)


@pytest.mark.parametrize("metric", PUBLISHED)
def test_published_aggregates_give_the_publishers_own_table(
    metric: str, shared_data: Shared
) -> None:
    base, cand = (read_aggregates(shared_data(f"pgmnemo/locomo/{v}")) for v in VERSIONS)

    rows = seed_comparison(base, cand)

    assert [row.metric for row in rows if row.metric != "recall@1"] == list(PUBLISHED)
    row = next(row for row in rows if row.metric == metric)
    assert (row.base, row.cand) == PUBLISHED[metric][:2]
    assert (f"{row.z:.2f}", f"{row.p_raw:.4f}", f"{row.h:.3f}") == PUBLISHED[metric][2:]
    assert (row.p_corrected, row.effect_label, row.significant) == (1.0, "small", False)
    if metric == "recall@10":
        assert [round(end, 4) for end in row.base_ci95] == [0.7768, 0.8123]


def test_comparing_published_aggregates_prints_the_caveat(
    shared_data: Shared, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(shared_data(f"pgmnemo/locomo/{v}/metrics.json")) for v in VERSIONS]
    page = tmp_path / "page.md"

    code = invoke(["compare", *files, "--markdown", str(page)])

    printed = capsys.readouterr()
    assert code == 0
    assert "only the unpaired seed tests are possible" in printed.err
    assert "for comparability only" in " ".join(printed.out.split())
    assert max(map(len, printed.out.splitlines())) <= 100
    assert ".7768–.8123" in printed.out
    assert "0.7951 [0.7768, 0.8123]" in page.read_text()
    assert CAVEAT in page.read_text()


def test_seed_tests_of_their_scored_rankings_agree_with_their_aggregates(
    theirs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["compare", *map(str, theirs), "--tests", "seed", "--json"]) == 0

    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["recall@10"]["base"] == pytest.approx(0.7951, abs=5e-5)
    assert f"{rows['recall@10']['z']:.2f}" == "0.33"  # of unrounded means; theirs: 0.34
    assert rows["mrr"]["cand"] == pytest.approx(0.5569, abs=5e-5)


@pytest.mark.parametrize(
    ("before", "after", "band", "verdict", "code"),
    [
        (160, 240, None, "better", 0),
        (240, 160, None, "worse", 1),
        (200, 200, 0.02, "equivalent", 0),
        (200, 204, 0.05, "equivalent", 0),
        (200, 200, None, "cannot tell", 0),
        (200, 204, 0.001, "cannot tell", 0),
    ],
)
def test_verdicts_and_exit_codes(
    make_run: Make,
    tmp_path: Path,
    before: int,
    after: int,
    band: float | None,
    verdict: str,
    code: int,
) -> None:
    base, cand = make_run(tmp_path / "base", hits(before)), make_run(tmp_path / "cand", hits(after))

    found = compare(base, cand, metrics=["hit@10"], band=band, by_category=False)

    assert [(row.metric, row.role) for row in found.rows] == [
        ("recall@10", "primary"),
        ("hit@10", "secondary"),
    ]
    assert [row.verdict for row in found.rows] == [verdict] * 2
    assert found.rows[1].confirmed == (verdict in ("better", "worse"))
    assert found.regressed == bool(code)
    limits = ["--band", str(band)] if band else []
    arguments = ["compare", str(base.path), str(cand.path), "--metrics", "hit@10", *limits]
    assert invoke(arguments) == code


def test_categories_are_exploratory_and_have_intervals_but_no_verdict(
    make_run: Make, tmp_path: Path
) -> None:
    even = [number % 2 == 0 for number in range(400)]
    base = make_run(tmp_path / "base", [True] * 400)
    cand = make_run(tmp_path / "cand", even)

    found = compare(base, cand, metrics=["hit@10"])

    assert found.row("hit@10", "odd").ci95[1] < 0
    assert found.row("hit@10", "even").delta == 0
    assert {row.verdict for row in found.rows if row.role == "category"} == {None}
    assert found.regressed  # overall


def test_selecting_metrics_changes_neither_family_nor_verdict(
    make_run: Make, tmp_path: Path
) -> None:
    base, cand = make_run(tmp_path / "base", hits(200)), make_run(tmp_path / "cand", hits(208))
    whole = compare(base, cand)

    for chosen in (["hit@10"], ["hit@10", "all@10"], ["mrr@10"]):
        found = compare(base, cand, metrics=chosen, by_category=False)
        assert [row.metric for row in found.rows] == ["recall@10", *chosen]
        assert found.rows == [whole.row(row.metric) for row in found.rows]
        assert found.guarded == whole.guarded


def test_a_metric_that_was_not_declared_has_no_verdict_however_large_the_difference(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, cand = make_run(tmp_path / "base", hits(40)), make_run(tmp_path / "cand", hits(360))

    found = compare(base, cand, metrics=["precision@10"], by_category=False)

    primary, late = found.rows
    assert (primary.role, primary.verdict) == ("primary", "better")
    assert (late.role, late.verdict, late.confirmed) == ("chosen after looking", None, None)
    assert late.ci95[0] > 0
    worse = ["compare", str(cand.path), str(base.path), "--metrics", "precision@10"]
    assert invoke(worse) == 1  # by the declared metrics
    assert "exploratory (chosen after looking), no verdict: precision@10" in capsys.readouterr().out
    # A declared metric alone, and nothing else, cannot be made the primary one.
    assert compare(base, cand, metrics=["hit@10"]).row("hit@10").role == "secondary"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(*[st.sampled_from([-1.0, 0.0, 0.5, 1.0])] * 3), min_size=6, max_size=40),
    st.sampled_from([1, 3, 6, 40]),
)
def test_p_and_interval_never_disagree(
    changes: list[tuple[float, float, float]], clusters: int
) -> None:
    names = ["recall@10", "hit@10", "mrr@10"]
    deltas = np.array(changes)
    n = len(deltas)
    values = PairedValues(
        names,
        [str(place) for place in range(n)],
        np.maximum(-deltas, 0),
        np.maximum(deltas, 0),
        [""] * n,
        [f"c{place % clusters}" for place in range(n)],
    )
    roles = dict(zip(names, ("primary", "secondary", "secondary"), strict=True))
    declared = Declared(names[0], names[1:], "here")
    found = rows_of("overall", values, roles, declared, None)
    mirrored = rows_of(
        "overall", replace(values, base=values.cand, cand=values.base), roles, declared, None
    )
    for row, other in zip(found, mirrored, strict=True):
        low, high = row.ci95
        at_zero = min(abs(low), abs(high)) < 1e-9
        assert at_zero or (row.p <= 0.05) == (row.verdict != "cannot tell")
        assert at_zero or (row.verdict == "cannot tell") == (low <= 0 <= high)
        assert high > low
        assert other.ci95 == pytest.approx((-high, -low), abs=1e-12)
        assert other.p == row.p


def test_a_row_agrees_with_an_independent_computation(make_run: Make, tmp_path: Path) -> None:
    from scipy.stats import nct
    from scipy.stats import t as student
    from statsmodels.api import OLS

    dice = random.Random(5)
    before = [dice.random() < 0.6 for _ in range(180)]
    after = [old if dice.random() < 0.8 else not old for old in before]
    runs = [
        make_run(tmp_path / name, hits, clusters=9)
        for name, hits in (("base", before), ("cand", after))
    ]

    row = compare(*runs).row("recall@10")

    deltas = np.array(after, dtype=float) - np.array(before, dtype=float)
    clusters = np.arange(180) % 9
    # Cluster-robust variance of an intercept, CR1 without the factor (n - 1) / (n - 1).
    fit = OLS(deltas, np.ones(180)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
    )
    se = math.sqrt(float(fit.bse[0]) ** 2 * 9 / 8 + 2 / 180**2)
    t = student(8)
    assert (row.n, row.clusters) == (180, 9)
    assert row.delta == pytest.approx(deltas.mean())
    assert row.se == pytest.approx(se)
    assert row.p == pytest.approx(2 * t.sf(abs(deltas.mean()) / se))
    reach = t.isf(0.025) * se
    assert row.ci95 == pytest.approx((deltas.mean() - reach, deltas.mean() + reach))
    assert row.detectable is not None
    power = nct(8, row.detectable / se).sf(t.isf(0.025))
    assert power == pytest.approx(0.8, abs=1e-3)
    assert row.p_sign_flips is not None


def test_the_guard_uses_simultaneous_intervals_and_needs_all_metrics_within_their_margin(
    make_run: Make, tmp_path: Path
) -> None:
    base, cand = make_run(tmp_path / "base", hits(200)), make_run(tmp_path / "cand", hits(203))

    found = compare(base, cand)

    assert [one.metric for one in found.guarded] == [
        row.metric for row in found.rows if row.scope == "overall"
    ]
    widths = [[high - low for low, high in (one.simultaneous, one.own)] for one in found.guarded]
    assert all(together >= 0.97 * own for together, own in widths)
    assert found.guard().verdict == "cannot tell"
    assert found.guard(0.05) == ("no regression", [], [])
    assert found.guard(0.0001).verdict == "cannot tell"
    margins = {one.metric: 0.05 for one in found.guarded} | {"recall@10": 0.0001}
    assert found.guard(margins) == ("cannot tell", [], ["recall@10"])
    held = compare(make_run(tmp_path / "a", hits(240)), make_run(tmp_path / "b", hits(160))).guard()
    assert held.verdict == "hold"
    assert "recall@10" in held.regressed


def test_a_worse_primary_metric_is_a_regression_also_where_the_guard_cannot_tell(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """decision-engine.md §6: one question lost in five of ten conversations has p 0.0480."""
    runs = [
        make_run(tmp_path / name, [number >= lost for number in range(1000)], clusters=10)
        for name, lost in (("base", 0), ("cand", 5))
    ]

    found = compare(*runs)

    assert found.row("recall@10").p == pytest.approx(0.0480, abs=5e-5)
    assert found.row("recall@10").verdict == "worse"
    assert found.guard().regressed == []
    assert found.regressed
    assert found.regressions == ["recall@10"]
    assert invoke(["compare", *(str(run.path) for run in runs)]) == 1
    assert "regression: recall@10, the primary metric (its own interval)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"data": "e" * 64}, "sha256"),
        ({"scope": "dataset"}, "options.scope: 'own' → 'dataset'"),
        ({"depth": 5}, "depth"),
    ],
)
@pytest.mark.parametrize("tests", ["paired", "seed"])
def test_different_data_scope_or_depth_is_refused_by_name(
    make_run: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    other: dict[str, Any],
    named: str,
    tests: str,
) -> None:
    base = make_run(tmp_path / "base", hits(20, 40))
    cand = make_run(tmp_path / "cand", hits(20, 40), **other)

    with pytest.raises(NotComparable):
        compare(base, cand)
    assert invoke(["compare", str(base.path), str(cand.path), "--tests", tests]) == 3
    assert named in " ".join(capsys.readouterr().err.split())


def test_an_unfinished_or_unreadable_run_is_not_comparable(make_run: Make, tmp_path: Path) -> None:
    base, cand = (make_run(tmp_path / name, hits(20, 40)) for name in ("base", "cand"))
    both = ["compare", str(base.path), str(cand.path)]

    manifest = cand.manifest()
    manifest.state = "interrupted"
    cand.save(manifest)
    assert invoke(both) == 3

    manifest.state = "complete"
    cand.save(manifest)
    cand.trials_path.write_text("{torn")
    assert invoke(both) == 4


def test_runs_without_shared_questions_are_not_comparable(make_run: Make, tmp_path: Path) -> None:
    base, cand = (make_run(tmp_path / name, hits(20, 40)) for name in ("base", "cand"))
    renamed = cand.trials_path.read_text().replace('"question":"q', '"question":"other')
    cand.trials_path.write_text(renamed)

    with pytest.raises(NotComparable, match="share no questions"):
        compare(base, cand)


def test_runs_with_the_same_label_are_told_apart_by_their_paths(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, cand = (
        make_run(tmp_path / name / "mine", hits(count))
        for name, count in (("before", 300), ("after", 100))
    )

    found = compare(base, cand)

    assert (found.base, found.cand) == ("before/mine", "after/mine")
    assert invoke(["compare", str(base.path), str(cand.path)]) == 1
    assert "after/mine is worse than before/mine" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        ["--metrics", "recall@7"],
        ["--discordant", "mrr@10"],
        ["--band", "0"],
        ["--tests", "seed", "--discordant", "hit@10"],
        ["--tests", "guess"],
    ],
)
def test_wrong_usage_has_exit_code_2(make_run: Make, tmp_path: Path, wrong: list[str]) -> None:
    both = [str(make_run(tmp_path / name, hits(20, 40)).path) for name in ("base", "cand")]

    assert invoke(["compare", *both, *wrong]) == 2


def test_a_path_that_does_not_exist_is_wrong_usage_not_a_regression(tmp_path: Path) -> None:
    assert invoke(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 2


def test_aggregates_cannot_be_paired(make_run: Make, tmp_path: Path) -> None:
    run = make_run(tmp_path / "base", hits(20, 40))
    file = str(run.path / "metrics.json")

    assert invoke(["compare", file, str(run.path)]) == 0
    assert invoke(["compare", file, str(run.path), "--tests", "paired"]) == 2
    assert invoke(["compare", file, str(run.path), "--discordant", "hit@10"]) == 2


def test_a_significant_drop_in_aggregates_is_a_regression(make_run: Make, tmp_path: Path) -> None:
    base, cand = make_run(tmp_path / "base", hits(240)), make_run(tmp_path / "cand", hits(160))
    files = [str(run.path / "metrics.json") for run in (base, cand)]

    assert invoke(["compare", *files]) == 1
    assert invoke(["compare", *reversed(files)]) == 0


def test_questions_that_failed_are_left_out_and_counted(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = make_run(tmp_path / "base", hits(20, 40))
    cand = make_run(tmp_path / "cand", hits(20, 40), failed=5)

    found = compare(base, cand)

    assert (found.paired, found.failed) == (35, 5)
    invoke(["compare", str(base.path), str(cand.path)])
    assert "5 questions failed in one of the runs and are left out" in capsys.readouterr().out


def test_questions_of_only_one_run_are_left_out_and_counted(make_run: Make, tmp_path: Path) -> None:
    base = make_run(tmp_path / "base", hits(20, 42))
    cand = make_run(tmp_path / "cand", hits(20, 40))
    note = "questions are only in the base, {} only in the candidate; they are left out"

    found, turned = compare(base, cand), compare(cand, base)

    assert (found.paired, found.only_base, found.only_cand) == (40, 2, 0)
    assert found.notes == ["2 " + note.format(0)]
    assert turned.notes == ["0 " + note.format(2)]


def test_a_comparison_without_left_out_questions_has_no_notes(
    make_run: Make, tmp_path: Path
) -> None:
    base, cand = (make_run(tmp_path / name, hits(20, 40)) for name in ("base", "cand"))

    assert compare(base, cand).notes == []


def test_the_page_shows_overall_first_then_categories_by_name_then_the_questions(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, cand = make_run(tmp_path / "base", hits(160)), make_run(tmp_path / "cand", hits(164))
    page = tmp_path / "page.md"
    both = [str(base.path), str(cand.path)]

    invoke(["compare", *both, "--full", "--discordant", "hit@10", "--markdown", str(page)])

    printed, written = capsys.readouterr().out, page.read_text()
    for text in (printed, written):
        order = ["Overall, 400 questions", "even of even number, 200", "odd, 200", "Gained 4, lost"]
        places = [text.index(part) for part in order]
        assert places == sorted(places)
        assert "What of 163?" in text
    assert max(map(len, printed.splitlines())) <= 80
    assert "…" not in printed
    assert "| metric | base | cand | Δ | interval | p | verdict |" in written


def test_json_contains_the_whole_comparison(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [str(make_run(tmp_path / name, hits(20, 40)).path) for name in ("base", "cand")]

    invoke(["compare", *both, "--json", "--no-by-category"])

    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"schema", "answer", "regressed", *Comparison.__struct_fields__}
    assert {row["scope"] for row in found["rows"]} == {"overall"}


def test_one_question_gives_no_test_and_an_interval_of_everything(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run(tmp_path / name, [name == "cand"]) for name in ("base", "cand")]
    found = compare(*runs)
    assert {row.shown for row in found.rows} == {(-1.0, 1.0)}
    assert {row.verdict for row in found.rows if row.scope == "overall"} == {"cannot tell"}
    assert invoke(["compare", *(str(run.path) for run in runs)]) == 0
    assert "nan" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        (1, "in one conversation; .*these conversations only and says nothing of others$"),
        (2, "these conversations only .*; for other conversations the interval is "),
        (8, r"in 8 conversations; at worst -\d+\.\d pp, at best \+\d+\.\d pp$"),
    ],
)
def test_the_answer_says_to_what_it_generalises(
    make_run: Make, tmp_path: Path, clusters: int, said: str
) -> None:
    runs = [
        make_run(tmp_path / name, [dice.random() < 0.5 for _ in range(40)], clusters=clusters)
        for name, dice in (("base", random.Random(1)), ("cand", random.Random(2)))
    ]
    found = compare(*runs)
    assert found.clusters == clusters
    assert re.search(said, answer(found))
    overall = [row for row in found.rows if row.scope == "overall"]
    assert all(row.these_only == (clusters < 5) for row in overall)
    assert all((row.beyond_these is None) == (clusters != 2) for row in overall)
    assert all(-1 <= end <= 1 for row in found.rows for end in row.shown)


def test_no_change_in_few_questions_is_not_equivalence(make_run: Make, tmp_path: Path) -> None:
    few = [make_run(tmp_path / name, [True] * 10) for name in ("a", "b")]
    many = [make_run(tmp_path / name, [True] * 1000) for name in ("c", "d")]

    small = compare(*few, metrics=["hit@10"], band=0.01).row("hit@10")
    large = compare(*many, metrics=["hit@10"], band=0.01).row("hit@10")

    # Ten unchanged questions leave room for a change of 0.3, as by the rule of three.
    assert (small.verdict, large.verdict) == ("cannot tell", "equivalent")
    assert small.shown == pytest.approx((-0.32, 0.32), abs=0.01)
    assert small.detectable is None


def test_a_file_changed_after_the_run_is_refused(make_run: Make, tmp_path: Path) -> None:
    base, cand = (make_run(tmp_path / name, [True, False] * 20) for name in ("a", "b"))
    cand.trials_path.write_bytes(cand.trials_path.read_bytes().replace(b"m0", b"m1", 1))

    with pytest.raises(EditedRun, match=r"b/trials\.jsonl was changed after the run"):
        compare(base, RunDirectory(cand.path))


def test_runs_without_measured_questions_are_not_comparable(make_run: Make, tmp_path: Path) -> None:
    base = make_run(tmp_path / "a", [True] * 5)
    dead = make_run(tmp_path / "b", [True] * 5, failed=5)

    with pytest.raises(NotComparable, match="share no measured questions"):
        compare(base, dead)


def test_aggregates_of_other_data_are_refused(make_run: Make, tmp_path: Path) -> None:
    base = make_run(tmp_path / "a", [True, False] * 20)
    other = make_run(tmp_path / "b", [True, False] * 20, data="e" * 64)
    copied = tmp_path / "copied.json"
    copied.write_bytes((other.path / "metrics.json").read_bytes())

    assert invoke(["compare", str(base.path), str(copied)]) == 3


@pytest.mark.parametrize("figure", ['{"mean": 1.4, "n": 9}', '{"mean": 0.5, "n": -3}', "{}"])
def test_impossible_figures_are_not_comparable(tmp_path: Path, figure: str) -> None:
    file = tmp_path / "metrics.json"
    file.write_text(f'{{"overall": {{"recall@10": {figure}}}}}')

    assert invoke(["compare", str(file), str(file)]) == 3
