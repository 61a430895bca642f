"""Each row of the decision matrix, reached by a constructed pair of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.compare import NotComparable
from mnemoscope.release.decide import (
    comparisons,
    decide,
    matrix_row,
    standing,
    together,
)
from mnemoscope.release.start_release import new_release
from mnemoscope.release.state import MatrixRow, Release, moment

EXPECTED = {
    "SHIP": ("improved", "improved"),
    "SHIP with caveat": ("improved", "neutral"),
    "CONDITIONAL SHIP": ("neutral", "improved"),
    "HOLD or SHIP as no-claim": ("neutral", "neutral"),
    "HOLD": ("regressed", "regressed"),
}


@pytest.mark.parametrize("row", EXPECTED)
def test_the_row_of_the_matrix_follows_from_primary_and_secondary_metric(
    row: str, begin: Callable[..., Release]
) -> None:
    release = begin(row)
    (comparison,) = comparisons(release)
    rules = release.protocol.benchmark("strata")
    standings = [standing(comparison.row(m)) for m in (rules.primary, rules.secondary)]
    assert tuple(standings) == EXPECTED[row]
    assert matrix_row(comparison, rules) == row


def _decided(release: Release) -> tuple[str, list[str]]:
    decision = decide(release, comparisons(release), moment())
    return decision.outcome, decision.open


def test_a_clear_improvement_ships_without_further_texts(begin: Callable[..., Release]) -> None:
    assert _decided(begin("SHIP")) == ("SHIP", [])


def test_a_conditional_ship_needs_a_theory(begin: Callable[..., Release]) -> None:
    release = begin("CONDITIONAL SHIP")
    outcome, demands = _decided(release)
    assert outcome == "CONDITIONAL SHIP"
    assert demands[0].startswith("theory")
    release.state.words.theory = "a reranker moves what was found already"
    assert _decided(release) == ("CONDITIONAL SHIP", [])


def test_a_neutral_version_ships_only_as_no_claim(begin: Callable[..., Release]) -> None:
    release = begin("HOLD or SHIP as no-claim")
    outcome, demands = _decided(release)
    assert outcome == "HOLD or SHIP as no-claim"
    assert demands[0].startswith("no_claim")
    release.state.words.no_claim = "simpler code"
    assert _decided(release) == ("SHIP as no-claim", [])


def test_a_regression_holds_until_it_is_accepted_with_a_rationale(
    begin: Callable[..., Release],
) -> None:
    release = begin("HOLD")
    outcome, demands = _decided(release)
    assert outcome == "HOLD"
    assert demands[0].startswith("accept_regression")
    release.state.words.accept_regression = "half the cost, for users who asked for it"
    assert _decided(release) == ("SHIP with accepted regression", [])


def test_a_regression_in_one_category_alone_holds(
    tmp_path: Path, make_run: Callable[..., RunDirectory]
) -> None:
    # Category b is every fourth question: it falls as much as the other three gain together.
    base = [11, 11, 11, 1] * 50
    cand = [9, 9, 11, 15] * 50
    release = new_release(
        "v1",
        [make_run(tmp_path / "base", base).path],
        [make_run(tmp_path / "cand", cand, "other").path],
        tmp_path / "release",
        author="Ann",
        when=moment(),
        other_base="first",
    )
    decision = decide(release, comparisons(release), moment())
    assert decision.rows == {"strata": "HOLD"}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["SHIP", "SHIP"], "SHIP"),
        (["SHIP", "HOLD or SHIP as no-claim"], "SHIP with caveat"),
        (["SHIP", "SHIP with caveat"], "SHIP with caveat"),
        (["SHIP", "CONDITIONAL SHIP"], "CONDITIONAL SHIP"),
        (["SHIP", "HOLD"], "HOLD"),
        (["HOLD or SHIP as no-claim", "HOLD"], "HOLD"),
        (["HOLD or SHIP as no-claim"] * 2, "HOLD or SHIP as no-claim"),
    ],
)
def test_several_benchmarks_take_the_most_cautious_row(
    rows: list[MatrixRow], expected: MatrixRow
) -> None:
    assert together(rows) == expected


def test_the_benchmarks_of_a_release_share_alpha(begin: Callable[..., Release]) -> None:
    release = begin("SHIP with caveat")
    (one,) = comparisons(release)
    release.state.pairs *= 2
    first, second = comparisons(release)
    assert (one.declared.alpha, first.declared.alpha, second.declared.alpha) == (0.05, 0.025, 0.025)
    assert first.row("recall@10").p == one.row("recall@10").p
    for metric in ("recall@10", "mrr@20"):
        assert first.row(metric).critical > one.row(metric).critical


def test_runs_that_do_not_compare_are_refused(
    tmp_path: Path, make_run: Callable[..., RunDirectory]
) -> None:
    base = make_run(tmp_path / "base", [1, 2] * 10)
    cand = make_run(tmp_path / "cand", [1, 2] * 10, "other")
    manifest = cand.manifest()
    manifest.protocol = {}
    cand.save(manifest)

    def begin() -> Release:
        return new_release(
            "v1",
            [base.path],
            [cand.path],
            tmp_path / "out",
            author="Ann",
            when=moment(),
            other_base="first",
        )

    with pytest.raises(NotComparable, match="no protocol"):
        begin()
    manifest.protocol = {"id": "mnemoscope-retrieval-1:sound", "sha256": "0"}
    cand.save(manifest)
    with pytest.raises(NotComparable, match="different protocols"):
        begin()
    manifest.protocol = base.manifest().protocol
    manifest.identity["benchmark"]["sha256"] = ["cd" * 32]
    manifest.fingerprint = fingerprint(manifest.identity)
    cand.save(manifest)
    with pytest.raises(NotComparable, match="sha256"):
        comparisons(begin())


def test_a_release_is_not_started_twice_in_one_folder(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    with pytest.raises(UsageError, match="already contains a release"):
        new_release("v2", [], [], release.folder, author="Ann", when=moment())


@pytest.mark.parametrize("arm", ["oracle", "random", "none"])
def test_a_baseline_cannot_be_released(
    arm: str, tmp_path: Path, make_run: Callable[..., RunDirectory]
) -> None:
    mine = make_run(tmp_path / "mine", [1, 2] * 10).path
    other = make_run(tmp_path / "arm", [1, 2] * 10, arm).path
    for base, cand in ((mine, other), (other, mine)):
        with pytest.raises(UsageError, match="is a baseline"):
            new_release("v1", [base], [cand], tmp_path / "out", author="Ann", when=moment())


def test_a_run_is_not_compared_with_itself(
    tmp_path: Path, make_run: Callable[..., RunDirectory]
) -> None:
    run = make_run(tmp_path / "mine", [1, 2] * 10).path
    with pytest.raises(NotComparable, match="the same run"):
        new_release("v1", [run], [run], tmp_path / "out", author="Ann", when=moment())


@pytest.mark.parametrize(("version", "author"), [("", "Ann"), ("v1", " ")])
def test_a_release_has_a_version_and_an_author(version: str, author: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="version and an author"):
        new_release(version, [], [], tmp_path / "out", author=author, when=moment())
