"""The second implementation agrees with the first on sound runs, and only on those."""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mnemoscope._store.errors import MissingExtra, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.jsonl import write_json
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.estimates import interval_of_mean
from mnemoscope.metrics import HitPlaces, score, score_merged, score_unordered
from mnemoscope.release import independent_stats
from mnemoscope.release.decide import comparisons
from mnemoscope.release.rederive import rederive
from mnemoscope.release.start_release import new_release
from mnemoscope.release.state import Release, moment
from mnemoscope.stats import cohens_h, wilson
from mnemoscope.stats.clustered import ClusterSums, cluster_sums, difference
from mnemoscope.stats.families import max_t


def _disagreements(release: Release, seed: int = 7) -> list[str]:
    found = comparisons(release)
    return rederive(release, found, by="Stan", seed=seed, when=moment()).disagreements


@pytest.mark.parametrize("row", ["SHIP", "HOLD", "HOLD or SHIP as no-claim"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sound_runs_are_repeated_with_any_seed(
    row: str, seed: int, begin: Callable[..., Release]
) -> None:
    assert _disagreements(begin(row), seed) == []


@pytest.mark.parametrize(("by", "seed"), [("ann.", 7), ("Stan", 42), (" ", 7)])
def test_the_author_and_the_seed_of_the_report_are_refused(
    by: str, seed: int, begin: Callable[..., Release]
) -> None:
    release = begin("SHIP")
    with pytest.raises(UsageError):
        rederive(release, comparisons(release), by=by, seed=seed, when=moment())


def test_a_falsified_metrics_json_is_caught_even_if_its_hash_was_redone(
    tmp_path: Path, make_world: Callable[..., Path]
) -> None:
    world = make_world(tmp_path / "runs", "SHIP")
    run = RunDirectory(world / "cand" / "mine")
    figures = run.read_json("metrics.json")
    figures["overall"]["recall@10"]["mean"] += 0.01
    write_json(run.path / "metrics.json", figures)
    manifest = run.manifest()
    manifest.files["metrics.json"] = sha256_file(run.path / "metrics.json")
    run.save(manifest)
    release = new_release(
        "v1",
        [world / "base" / "mine"],
        [run.path],
        tmp_path / "release",
        author="Ann",
        when=moment(),
        other_base="first",
    )
    (said,) = _disagreements(release)
    assert said.startswith("strata cand overall recall@10 in metrics.json: reported 0.91, repeated")


def test_rankings_that_do_not_belong_to_the_journal_are_caught(
    tmp_path: Path, make_world: Callable[..., Path]
) -> None:
    world = make_world(tmp_path / "runs", "SHIP")
    file = world / "cand" / "mine" / "raw_retrievals.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["ranking"] = lines[0]["ranking"][1:]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = RunDirectory(file.parent, checked=False)
    manifest = run.manifest()
    manifest.files[file.name] = sha256_file(file)
    run.save(manifest)
    paths = [world / side / "mine" for side in ("base", "cand")]
    release = new_release(
        "v1",
        paths[:1],
        paths[1:],
        tmp_path / "release",
        author="Ann",
        when=moment(),
        other_base="first",
    )
    assert any("recall@10 candidate" in said for said in _disagreements(release))


def test_an_interval_that_ignores_the_clusters_is_caught(begin: Callable[..., Release]) -> None:
    from msgspec.structs import replace

    release = begin("SHIP")
    (one,) = comparisons(release)
    rows = [
        replace(row, ci95=(row.delta - 0.001, row.delta + 0.001)) if row.metric == "mrr@20" else row
        for row in one.rows
    ]
    done = rederive(release, [replace(one, rows=rows)], by="Stan", seed=7, when=moment())
    ends = [said for said in done.disagreements if "mrr@20 end of the interval" in said]
    changed = [row for row in rows if row.metric == "mrr@20"]
    assert len(ends) == len(done.disagreements) == 2 * len(changed)


def test_a_critical_value_without_the_correction_is_caught(
    tmp_path: Path, make_run: Callable[..., RunDirectory]
) -> None:
    from msgspec.structs import replace

    dice = random.Random(4)
    base, cand = ([dice.randint(0, 20) for _ in range(200)] for _ in range(2))
    release = new_release(
        "v1",
        [make_run(tmp_path / "base", base).path],
        [make_run(tmp_path / "cand", cand, "other").path],
        tmp_path / "release",
        author="Ann",
        other_base="first",
        when=moment(),
    )
    assert _disagreements(release) == []
    (one,) = comparisons(release)
    single = one.row("recall@10").critical
    assert one.row("mrr@20").critical > single
    rows = [
        replace(
            row,
            critical=single,
            ci95=(row.delta - single * row.se, row.delta + single * row.se),
        )
        if row.role == "secondary"
        else row
        for row in one.rows
    ]
    done = rederive(release, [replace(one, rows=rows)], by="Stan", seed=7, when=moment())
    assert any("mrr@20 share beyond the interval" in said for said in done.disagreements)


def test_a_p_that_ignores_the_clusters_is_caught(begin: Callable[..., Release]) -> None:
    from msgspec.structs import replace

    release = begin("HOLD or SHIP as no-claim")
    (one,) = comparisons(release)
    rows = [replace(row, p=row.p / 2) if row.role == "primary" else row for row in one.rows]
    done = rederive(release, [replace(one, rows=rows)], by="Stan", seed=7, when=moment())
    assert any(said.startswith("strata overall recall@10 p:") for said in done.disagreements)


def test_the_two_implementations_agree_on_random_rankings() -> None:
    dice = random.Random(1)
    ids = [f"m{n}" for n in range(30)]
    metrics = ("hit@10", "recall@10", "all@10", "precision@10", "ndcg@10")
    for _ in range(300):
        ranking = dice.choices(ids, k=20)  # with repetitions
        evidence = dice.sample(ids, dice.randint(1, 5))
        grades = {id: dice.randint(1, 3) for id in evidence}
        sources = {id: dice.sample(ids, 3) for id in dice.sample(ids, 5)}
        unique = list(dict.fromkeys(ranking))
        plain = score(ranking, evidence, ks=(10,), cuts=(20,), grades=grades)
        question = independent_stats.MeasuredQuestion("", "", grades, [{id} for id in unique])
        merged = [sources.get(id, [id]) for id in unique]
        mixed = score_merged(merged, evidence, ks=(10,), cuts=(20,), grades=grades)
        both = {
            "plain": question,
            "mixed": question._replace(hits=[set(hit) for hit in merged]),
        }
        for metric, values in independent_stats.values((*metrics, "mrr@20"), both).items():
            assert values == pytest.approx({"plain": plain[metric], "mixed": mixed[metric]})
            # What is done by hand agrees with the library where that can do it, too.
            by_hand = independent_stats.merged_value(metric, question)
            assert by_hand == pytest.approx(plain[metric])


def test_the_two_implementations_agree_on_hits_that_take_several_places() -> None:
    dice = random.Random(3)
    ids = [f"m{n}" for n in range(30)]
    metrics = ("hit@10", "recall@10", "all@10", "precision@10", "ndcg@10", "mrr@20")
    for _ in range(100):
        hits = [dice.sample(ids, dice.randint(1, 6)) for _ in range(8)]
        evidence = dice.sample(ids, dice.randint(1, 5))
        grades = {id: dice.randint(1, 3) for id in evidence}
        groups = [HitPlaces(hit, len(hit)) for hit in hits]
        ours = score_unordered(groups, evidence, ks=(10,), cuts=(20,), grades=grades)
        credit, places = [set(hit) for hit in hits], tuple(map(len, hits))
        question = independent_stats.MeasuredQuestion("", "", grades, credit, places)
        for metric, values in independent_stats.values(metrics, {"q": question}).items():
            assert values["q"] == pytest.approx(ours[metric]), metric


@pytest.mark.parametrize("count", [1, 3, 5, 8, 12])
def test_the_two_implementations_agree_on_errors_tails_and_critical_values(count: int) -> None:
    dice = random.Random(count)
    for equal in (True, False):
        sizes = [7 if equal else dice.randint(1, 40) for _ in range(count)]
        clusters = [f"c{place}" for place, size in enumerate(sizes) for _ in range(size)]
        deltas = [dice.choice([-1.0, 0.0, 0.0, 0.5, 1.0]) for _ in clusters]
        ours = difference(cluster_sums(np.array(deltas)[:, None], clusters))
        se, found, _ = independent_stats.clustered(deltas, clusters)
        assert se == pytest.approx(ours.se, rel=1e-9)
        assert independent_stats.tail(ours.statistic, found) == pytest.approx(ours.p, abs=1e-6)
        for alpha in (0.05, 0.01):
            theirs = min(independent_stats.critical(alpha, found), 2 / se)
            assert theirs == pytest.approx(ours.critical(alpha), rel=1e-5)


@pytest.mark.parametrize("count", [8, 12, 60])
def test_the_two_implementations_agree_on_the_largest_of_several_metrics(count: int) -> None:
    random_source = np.random.default_rng(count)
    shared = random_source.normal(size=(count, 1))
    means = shared + random_source.normal(size=(count, 5))
    sizes = random_source.integers(10, 40, size=count).astype(float)
    table = ClusterSums(
        np.repeat(sizes[:, None], 5, axis=1), means * sizes[:, None], np.zeros((count, 5))
    )
    ours = max_t(table).maxima
    theirs = independent_stats.largest(means, sizes, 20_000, np.random.default_rng(1))
    for share in (0.5, 0.9, 0.95):
        assert np.quantile(theirs, share) == pytest.approx(np.quantile(ours, share), rel=0.03)


def test_the_two_implementations_agree_on_effects_and_wilsons_interval() -> None:
    dice = random.Random(2)
    for _ in range(40):
        before, after = dice.random(), dice.random()
        assert independent_stats.cohens_h(before, after) == pytest.approx(cohens_h(before, after))
        hits = [float(dice.random() < before) for _ in range(50)]
        one = ["a"] * 50
        expected_ends = pytest.approx(wilson(round(sum(hits)), 50), abs=1e-12)
        assert independent_stats.level(hits, one) == expected_ends


@pytest.mark.parametrize("groups", [1, 4, 5, 9])
def test_the_two_implementations_agree_on_levels(groups: int) -> None:
    dice = random.Random(groups)
    clusters = [f"c{min(dice.randrange(groups), dice.randrange(groups))}" for _ in range(120)]
    for values in (
        [float(dice.random() < 0.9) for _ in clusters],
        [dice.random() for _ in clusters],
        [1.0 for _ in clusters],
        [0.0 for _ in clusters],
        [0.5 for _ in clusters],
    ):
        found = interval_of_mean(np.array(values), clusters)
        assert independent_stats.level(values, clusters) == pytest.approx(found, abs=1e-7)


@pytest.mark.parametrize("library", ["ir_measures", "scipy"])
def test_without_the_extra_the_error_names_the_install_line(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("independent_stats", "rederive"):
        monkeypatch.delitem(sys.modules, f"mnemoscope.release.{name}", raising=False)
        monkeypatch.delattr(f"mnemoscope.release.{name}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=r"pip install 'mnemoscope\[rederive\]'"):
        importlib.import_module("mnemoscope.release.rederive")


def test_an_empty_ranking_scores_zero_and_is_not_dropped() -> None:
    question = independent_stats.MeasuredQuestion("", "", {"m1": 1}, [])
    found = independent_stats.values(["recall@10", "mrr@10"], {"q": question})
    assert found == {"recall@10": {"q": 0.0}, "mrr@10": {"q": 0.0}}
