"""The second implementation agrees with the first on sound runs, and only on those."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.metrics import score, score_merged
from mnemoscope.release import independent_stats
from mnemoscope.release.figures import comparisons
from mnemoscope.release.rederive import rederive
from mnemoscope.release.state import Release, new_release
from mnemoscope.release.timestamps import moment
from mnemoscope.stats import cohens_h, holm, mcnemar_exact, paired_t, wilson


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
def test_neither_the_author_nor_the_reports_seed_repeats_anything(
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
    run.write_json("metrics.json", figures)
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
    paths = [world / side / "mine" for side in ("base", "cand")]
    release = new_release(
        "v1", paths[:1], paths[1:], tmp_path / "release", author="Ann", when=moment()
    )
    assert any("recall@10 candidate" in said for said in _disagreements(release))


def test_an_interval_that_forgets_the_clusters_is_caught(begin: Callable[..., Release]) -> None:
    from msgspec.structs import replace

    release = begin("SHIP")
    (one,) = comparisons(release)
    rows = [
        replace(row, ci95=(row.delta - 0.001, row.delta + 0.001)) if row.metric == "mrr@20" else row
        for row in one.rows
    ]
    done = rederive(release, [replace(one, rows=rows)], by="Stan", seed=7, when=moment())
    assert sum("lie beyond the" in said for said in done.disagreements) == 2


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
        asked = independent_stats.Asked("", "", grades, [{id} for id in unique])
        merged = [sources.get(id, [id]) for id in unique]
        mixed = score_merged(merged, evidence, ks=(10,), cuts=(20,), grades=grades)
        asked_mixed = independent_stats.Asked("", "", grades, [set(hit) for hit in merged])
        for metric in (*metrics, "mrr@20"):
            assert independent_stats.value(metric, asked) == pytest.approx(plain[metric])
            assert independent_stats.value(metric, asked_mixed) == pytest.approx(mixed[metric])


def test_the_two_implementations_agree_on_tests_and_corrections() -> None:
    dice = random.Random(2)
    for _ in range(40):
        gained, lost = dice.randint(0, 80), dice.randint(0, 80)
        assert independent_stats.mcnemar(gained, lost) == pytest.approx(mcnemar_exact(gained, lost))
        deltas = [dice.gauss(0.02, 0.3) for _ in range(dice.randint(3, 300))]
        assert independent_stats.t_test(deltas) == pytest.approx(paired_t(deltas).p, abs=1e-8)
        p_values = {str(n): dice.random() for n in range(20)}
        expected = holm(list(p_values.values())).tolist()
        assert list(independent_stats.holm(p_values).values()) == pytest.approx(expected)
        before, after = dice.random(), dice.random()
        assert independent_stats.cohens_h(before, after) == pytest.approx(cohens_h(before, after))
        hits = dice.randint(0, 50)
        low, high = wilson(hits, 50)
        assert independent_stats.wilson_error(hits / 50, 50, low) < 1e-12
        assert independent_stats.wilson_error(hits / 50, 50, high) < 1e-12


def test_differences_that_are_all_the_same_allow_no_test_in_either() -> None:
    assert independent_stats.t_test([0.0] * 5) == paired_t([0.0] * 5).p == 1.0
    assert np.isnan(independent_stats.t_test([0.5] * 5))
    assert np.isnan(paired_t([0.5] * 5).p)
