"""`mnemoscope plan`: the power it promises, and plans that were made too late or changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

import mnemoscope as ms
from mnemoscope._store.attempt_ledger import ledger_path, read_ledger
from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.analysis.frozen_plan import FrozenPlan, check, read_plan
from mnemoscope.analysis.pairing import NotComparable
from mnemoscope.analysis.plan import Rule, plan, planned
from mnemoscope.cli.app import invoke
from mnemoscope.results import ComparisonResult
from mnemoscope.stats.clustered import ALPHA, cluster_sums, critical_value
from mnemoscope.stats.power import (
    Components,
    components,
    simulated_detectable,
    simulated_power,
)

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import calibration_families as families
from calibration_cells import Plan as CalibratedPlan
from calibration_models import DESIGNS, VERY_UNEQUAL

Make = Callable[..., RunDirectory]
WORDS = {"better", "worse", "equivalent", "cannot tell"}


def some(share: float, seed: int, of: int = 120) -> list[bool]:
    return [bool(one) for one in np.random.default_rng(seed).random(of) < share]


@pytest.fixture
def base(make_run: Make, tmp_path: Path) -> RunDirectory:
    return make_run(tmp_path / "base", some(0.3, 1), clusters=10)


@pytest.fixture
def frozen(base: RunDirectory, tmp_path: Path) -> Path:
    file = tmp_path / "plan.yaml"
    ms.plan(
        "made",
        base=base.path,
        primary="hit@10",
        secondaries=["ndcg@10"],
        band=0.02,
        freeze=file,
    )
    return file


@pytest.fixture
def cand(frozen: Path, make_run: Make, tmp_path: Path) -> RunDirectory:
    """A run that was begun after the plan, and is clearly better."""
    return make_run(tmp_path / "cand", some(0.95, 2), clusters=10)


def refusal(found: ComparisonResult) -> str:
    """Why the plan does not count; nothing may have a verdict then."""
    assert found.paired is not None
    assert not {row.verdict for row in found.rows()} & WORDS
    assert found.verdict == "none"
    assert not found.paired.guarded
    assert not found.regressed
    return found.paired.declared.refused


def rewritten(file: Path, **changes: Any) -> None:
    """The plan with other content and the hash of that content: what a careful cheat does."""
    changed = msgspec.structs.replace(read_plan(file), **changes)
    changed = msgspec.structs.replace(changed, sha256=changed.content_hash())
    file.write_text(dump_yaml(msgspec.to_builtins(changed)), encoding="utf-8")


# The power.


@pytest.mark.parametrize("name", list(families.SETTINGS)[:6])
def test_planned_power_is_that_of_the_rule_on_discrete_draws(name: str) -> None:
    design, model = families.SETTINGS[name]
    sizes = DESIGNS[design].tolist()
    truth, parts = model.truth()

    found = planned(
        "hit@10", "primary", sizes, parts, truth, Rule(critical_value(ALPHA, sizes), ALPHA)
    )

    assert found.power == simulated_power(sizes, parts, truth).better
    (drawn,) = families.planned_changes(name).run(6_000)
    assert isinstance(drawn, CalibratedPlan)
    assert found.power == pytest.approx(drawn.actual, abs=0.03)


@pytest.mark.parametrize("sizes", [VERY_UNEQUAL.tolist(), [200.0] * 10], ids=["unequal", "equal"])
def test_the_detectable_difference_is_found_with_power_08(sizes: list[float]) -> None:
    parts = Components(0.0004, 0.06)
    least = simulated_detectable(sizes, parts)
    assert simulated_power(sizes, parts, least).better == pytest.approx(0.8, abs=1e-3)
    if sizes[0] == sizes[-1]:  # the closed form: λ₈₀ · se
        assert least == pytest.approx(3.1496 * (0.0007 / 10) ** 0.5, rel=0.02)


def test_a_plan_from_a_pair_has_its_components(make_run: Make, tmp_path: Path) -> None:
    hits = some(0.4, 1), some(0.5, 2)
    runs = [make_run(tmp_path / f"r{i}", one, clusters=10) for i, one in enumerate(hits)]

    found = plan(*runs, detect=0.1, primary="hit@10", secondaries=["ndcg@10"], band=0.3)

    deltas = np.subtract(hits[1], hits[0], dtype=float)[:, None]
    parts = components(cluster_sums(deltas, [f"c{n % 10}" for n in range(120)]))
    row = found.primary
    assert (row.between, row.within) == pytest.approx(parts)
    assert row.power == simulated_power([12.0] * 10, parts, 0.1).better
    assert row.equivalent == simulated_power([12.0] * 10, parts, 0.0, band=0.3).equivalent
    assert row.power_range and row.power_range[0] < row.power < row.power_range[1]
    assert row.needed and row.needed > 10
    assert row.detectable and row.endless is not None and row.endless < row.detectable
    second = found.rows[1]
    assert second.role == "secondary"
    assert second.critical and row.critical and second.critical >= row.critical * 0.99


def test_looks_divide_alpha(base: RunDirectory) -> None:
    one, four = (plan(base, detect=0.1, primary="hit@10", looks=looks) for looks in (1, 4))
    assert four.declared.alpha == ALPHA / 4
    assert one.primary.power and four.primary.power
    assert four.primary.power < one.primary.power
    assert one.primary.needed and four.primary.needed
    assert four.primary.needed > one.primary.needed


def test_a_base_alone_says_what_is_assumed(base: RunDirectory) -> None:
    alone = plan(base, detect=0.1, primary="hit@10")
    assert alone.assumed.startswith("an assumption: the differences vary as the values of base")
    few = plan(base, detect=0.1, primary="hit@10", changed=0.05)
    assert "5 % of the questions change" in few.assumed
    assert few.primary.between + few.primary.within == pytest.approx(0.05)
    assert alone.primary.power and few.primary.power
    assert few.primary.power > alone.primary.power


def test_a_pair_without_differences_promises_nothing(base: RunDirectory) -> None:
    found = ms.plan("made", base=base.path, cand=base.path, primary="hit@10")
    assert {row.power for row in found.rows()} == {None}
    assert "the differences between base and base in hit@10 do not vary" in repr(found)


@pytest.mark.parametrize("clusters", [1, 4])
def test_fewer_than_five_conversations_have_no_plan(
    clusters: int, make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "few", some(0.5, 1), clusters=clusters)
    found = ms.plan("made", base=run.path)
    assert {row.power for row in found.rows()} == {None}
    assert "no plan for other conversations is possible" in repr(found)
    assert invoke(["plan", "made", "--base", str(run.path)]) == 0
    assert "no plan for other conversations is possible" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"detect": 0.0}, "--detect"),
        ({"band": -1.0}, "--band"),
        ({"looks": 0}, "--looks"),
        ({"looks": 10**15}, "--looks"),
        ({"changed": 2.0}, "--changed"),
        ({"primary": "hit@99"}, "no metric 'hit@99'"),
    ],
)
def test_wrong_numbers_and_names_are_refused(
    options: dict[str, Any], said: str, base: RunDirectory
) -> None:
    with pytest.raises(UsageError, match=said):
        ms.plan("made", base=base.path, **options)


def test_runs_of_another_benchmark_are_refused(
    base: RunDirectory, make_run: Make, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is a run of made, not of locomo"):
        ms.plan("locomo", base=base.path)
    other = make_run(tmp_path / "other", some(0.5, 3), clusters=10, data="e" * 64)
    with pytest.raises(NotComparable):
        ms.plan("made", base=base.path, cand=other.path)


# Frozen plans.


def test_a_plan_that_was_frozen_before_decides(
    base: RunDirectory, cand: RunDirectory, frozen: Path
) -> None:
    found = ms.compare(base.path, cand.path, plan=frozen, metrics=["recall@5"])

    assert found.paired is not None
    assert found.paired.declared.source.startswith("plan plan.yaml, sha256 ")
    assert not found.paired.declared.refused
    assert (found.verdict, found.paired.band) == ("better", 0.02)
    primary = found.paired.row("hit@10")
    assert (primary.role, primary.verdict) == ("primary", "better")
    # A metric that the plan does not declare has no verdict, whatever its interval says.
    late = found.paired.row("recall@5")
    assert (late.role, late.verdict) == ("chosen after looking", None)
    assert late.ci95[0] > 0


def edit(frozen: Path) -> None:
    frozen.write_text(frozen.read_text().replace("primary: hit@10", "primary: recall@5"))


def wide_alpha(frozen: Path) -> None:
    rewritten(frozen, alpha=0.5)


def backdated(frozen: Path) -> None:
    rewritten(frozen, primary="recall@5", created=read_plan(frozen).created.replace(year=2020))


@pytest.mark.parametrize(
    ("cheat", "said"),
    [
        (edit, "it was edited"),
        (wide_alpha, "its alpha of 0.5"),
        (backdated, "the ledger of attempts that it names does not know it"),
    ],
)
def test_an_edited_plan_gives_no_verdict(
    cheat: Callable[[Path], None],
    said: str,
    base: RunDirectory,
    cand: RunDirectory,
    frozen: Path,
) -> None:
    cheat(frozen)
    assert said in refusal(ms.compare(base.path, cand.path, plan=frozen))


def test_a_plan_for_the_run_that_was_looked_at_gives_no_verdict(
    base: RunDirectory, make_run: Make, tmp_path: Path
) -> None:
    seen = make_run(tmp_path / "seen", some(0.95, 2), clusters=10)
    late = tmp_path / "late.yaml"
    ms.plan("made", base=base.path, cand=seen.path, primary="hit@10", freeze=late)
    assert "it is younger than the candidate" in refusal(
        ms.compare(base.path, seen.path, plan=late)
    )


def test_a_run_that_is_repeated_after_the_plan_gives_no_verdict(
    base: RunDirectory, make_run: Make, tmp_path: Path
) -> None:
    make_run(tmp_path / "first" / "mine", some(0.95, 2), clusters=10)
    late = tmp_path / "late.yaml"
    ms.plan("made", base=base.path, primary="hit@10", freeze=late)
    again = make_run(tmp_path / "again" / "mine", some(0.95, 2), clusters=10)
    assert "first attempt of the candidate begun" in refusal(
        ms.compare(base.path, again.path, plan=late)
    )


def test_a_plan_from_elsewhere_is_judged_by_its_own_time(
    base: RunDirectory, cand: RunDirectory, frozen: Path
) -> None:
    ledger_path().unlink()  # as on another machine
    found = ms.compare(base.path, cand.path, plan=frozen)
    assert found.verdict == "better"
    assert found.paired is not None
    assert "is only what its file says" in found.paired.notes[0]


class Described(RunDirectory):
    """A run whose identity has more parts."""

    more: ClassVar[dict[str, Any]] = {}

    def manifest(self) -> Manifest:
        found = super().manifest()
        return msgspec.structs.replace(found, identity={**found.identity, **self.more})


def test_a_run_that_contains_an_earlier_one_gives_no_verdict(
    base: RunDirectory, cand: RunDirectory, frozen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Described, "more", {"derived_from": "0" * 64})
    found = check(read_plan(frozen), frozen, base, Described(cand.path))
    assert "the candidate contains an earlier run" in found.declared.refused
    monkeypatch.setattr(Described, "more", {"system": {"format": "trec"}})
    found = check(read_plan(frozen), frozen, base, Described(cand.path))
    assert not found.declared.refused
    assert "rankings are from a file" in found.notes[0]


def test_a_plan_for_another_benchmark_or_base_gives_no_verdict(
    base: RunDirectory, cand: RunDirectory, frozen: Path, make_run: Make, tmp_path: Path
) -> None:
    others = [
        make_run(tmp_path / name, some(0.3, 4), clusters=10, data="e" * 64) for name in ("a", "b")
    ]
    assert "another benchmark" in refusal(ms.compare(*(one.path for one in others), plan=frozen))
    weak = make_run(tmp_path / "weak", some(0.01, 5), clusters=10)
    assert "its base is another run, base" in refusal(ms.compare(weak.path, cand.path, plan=frozen))


def test_another_band_or_seed_gives_no_verdict(
    base: RunDirectory, cand: RunDirectory, frozen: Path, tmp_path: Path
) -> None:
    assert "--band 0.5 was asked for" in refusal(
        ms.compare(base.path, cand.path, plan=frozen, band=0.5)
    )
    assert ms.compare(base.path, cand.path, plan=frozen, band=0.02).verdict == "better"
    other = tmp_path / "seed.yaml"
    ms.plan("made", base=base.path, primary="hit@10", seed=7, freeze=other)
    assert "ran with seed 42" in refusal(ms.compare(base.path, cand.path, plan=other))


def test_each_candidate_is_a_look(
    base: RunDirectory, cand: RunDirectory, frozen: Path, make_run: Make, tmp_path: Path
) -> None:
    for _ in range(2):  # the same candidate again is no new look
        assert ms.compare(base.path, cand.path, plan=frozen).verdict == "better"
    assert len(read_ledger().looks_under(read_plan(frozen).sha256)) == 1
    second = make_run(tmp_path / "second", some(0.9, 6), clusters=10)
    assert "it allows 1 look" in refusal(ms.compare(base.path, second.path, plan=frozen))
    assert len(read_ledger().looks_under(read_plan(frozen).sha256)) == 1


def test_a_frozen_plan_is_not_overwritten(base: RunDirectory, frozen: Path) -> None:
    with pytest.raises(UsageError, match="choose another name"):
        ms.plan("made", base=base.path, freeze=frozen)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("primary: [recall@10", "line"),
        ("", "is not a plan"),
        ("format: mnemoscope-plan-1\n", "missing required field"),
        ("- 1\n", "is not a plan"),
    ],
)
def test_a_file_that_is_no_plan_is_one_clear_error(
    content: str, said: str, base: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content)
    assert invoke(["compare", str(base.path), str(base.path), "--plan", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.count("error:") == 1
    assert "bad.yaml" in error
    assert said in error


def test_a_time_without_a_zone_is_one_clear_error(frozen: Path) -> None:
    content = load_yaml(frozen)
    content["created"] = "2026-01-01T00:00:00"
    frozen.write_text(dump_yaml(content))
    with pytest.raises(UsageError, match="created"):
        read_plan(frozen)


# The command line.


def test_plan_freeze_and_compare_on_the_command_line(
    base: RunDirectory, make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pilot = make_run(tmp_path / "pilot", some(0.4, 9), clusters=10)
    file, page = tmp_path / "p.yaml", tmp_path / "page.md"
    freezing = ["--freeze", str(file), "--primary", "hit@10", "--secondary", "ndcg@10,recall@5"]
    runs = ["plan", "made", "--base", str(base.path), "--cand", str(pilot.path)]

    code = invoke([*runs, "--detect", "0.1", *freezing, "--band", "0.01", "--markdown", str(page)])

    printed = capsys.readouterr().out
    assert code == 0
    assert printed.startswith("a true difference of 0.1 in hit@10 is found with probability 0.")
    assert "docs/repeats.md" in printed
    table = printed.partition("frozen: ")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table
    assert "called equivalent within ±0.01: hit@10 0." in " ".join(table.split())
    assert "| hit@10 |" in page.read_text()
    content = msgspec.convert(load_yaml(file), FrozenPlan)
    assert (content.primary, content.secondaries) == ("hit@10", ["ndcg@10", "recall@5"])
    assert (content.band, content.alpha, content.looks, content.seed) == (0.01, 0.05, 1, 42)
    assert content.sha256 in printed

    cand = make_run(tmp_path / "cand", some(0.95, 2), clusters=10)
    compared = ["compare", str(base.path), str(cand.path), "--plan", str(file)]
    assert invoke([*compared]) == 0
    assert capsys.readouterr().out.startswith("cand is better than base: hit@10")

    assert invoke([*compared, "--band", "0.2", "--json"]) == 0
    refused = json.loads(capsys.readouterr().out)
    assert refused["answer"].startswith("no verdict on cand against base: the plan p.yaml does not")
    assert {row["verdict"] for row in refused["rows"]} == {None}

    assert invoke([*runs, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["rows"][0]["metric"] == "recall@10"
    assert invoke([*runs, "--seed", "3"]) == 2
