"""Protocols: released files never change, and a deviation needs a reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.measure import Depth
from mnemoscope.cli.app import invoke
from mnemoscope.datasets import dataset_info
from mnemoscope.protocols import deviations, load_protocol, protocol_names

RELEASED = {
    "claude-memory-strata-1": "a2f00a213edb37ec5a0f85d7e7731a07f1ddf6d0b790b7a95e0047a1ace150c3",
    "mnemoscope-lives-1": "d0e006a2c5de16a711a76ef78a50b603e55b7cfc1d2d01eb453564d82a9c2a46",
    "mnemoscope-retrieval-1": "06f45e55bb92f0b7999f107ba6c39743915649dbd406525b982f7e665104d5da",
    "mnemoscope-retrieval-2": "bb811cffd7c0034c0cdf7dd6455b4619b906f2ced0076e55dcc14a89d80e9178",
    "pgmnemo-release-1": "447fa6e1e9b6c5e78da563032dc473f0ee9190e468f3bb97d6f6961ea91abbb9",
    "pgmnemo-recall-1.0.0": "50ee9648b20bf57f17c68401cecf832914d9517a8d7b1b41b2954f00963237b6",
}
"""A released file never changes: add a new version instead of editing these lines."""


@pytest.mark.parametrize("name", RELEASED)
def test_a_released_protocol_never_changes(name: str) -> None:
    shipped = files("mnemoscope.protocols").joinpath(f"{name}.yaml").read_bytes()

    assert hashlib.sha256(shipped).hexdigest() == RELEASED[name]
    assert load_protocol(name).sha256 == RELEASED[name]
    assert load_protocol(name).protocol.id == name


def test_every_shipped_protocol_is_pinned_here() -> None:
    assert protocol_names() == sorted(RELEASED)


@pytest.mark.parametrize("name", RELEASED)
def test_every_metric_that_a_protocol_names_can_be_measured(name: str) -> None:
    protocol = load_protocol(name).protocol

    for variant in protocol.variants.values():
        for rules in variant.benchmarks.values():
            named = {rules.primary, rules.secondary, *rules.metrics, *rules.variance}
            assert named <= set(Depth(protocol.depth).names)


def test_protocols_pin_the_files_that_fetch_downloads() -> None:
    rules = load_protocol("mnemoscope-retrieval-1")

    for dataset in ("locomo", "longmemeval"):
        downloaded = {file.sha256 for file in dataset_info(dataset).files.values()}
        assert set(rules.benchmark(dataset).sha256) <= downloaded


def test_the_faithful_and_the_sound_variant_of_pgmnemos_protocol_differ() -> None:
    sound = load_protocol("pgmnemo-recall-1.0.0")
    faithful = load_protocol("pgmnemo-recall-1.0.0:faithful")

    assert (sound.id, faithful.id) == (
        "pgmnemo-recall-1.0.0:sound",
        "pgmnemo-recall-1.0.0:faithful",
    )
    assert sound.sha256 == faithful.sha256
    ours, theirs = sound.benchmark("locomo"), faithful.benchmark("locomo")
    assert (ours.primary, theirs.primary) == ("hit@10", "recall@10")
    assert (ours.options["scope"], theirs.options["scope"]) == ("conversation", "dataset")
    assert (ours.options["evidence"], theirs.options["evidence"]) == ("repaired", "naive")


PROCESS_DEPTHS = {"locomo": [5, 10, 25, 50], "longmemeval": [1, 5, 10, 20]}
"""The depths of recall in section 3.1 of pgmnemo's release process."""


@pytest.mark.parametrize("dataset", PROCESS_DEPTHS)
@pytest.mark.parametrize(("variant", "recall"), [("sound", "hit"), ("faithful", "recall")])
def test_the_release_protocol_has_exactly_the_metrics_of_the_process(
    dataset: str, variant: str, recall: str
) -> None:
    rules = load_protocol(f"pgmnemo-release-1:{variant}").benchmark(dataset)
    depths = PROCESS_DEPTHS[dataset]

    assert rules.metrics == [*(f"{recall}@{k}" for k in depths), "mrr@50", "ndcg@10"]
    assert (rules.primary, rules.secondary) == (f"{recall}@10", "mrr@50")
    assert list(load_protocol("pgmnemo-release-1").protocol.variants[variant].benchmarks) == [
        "locomo",
        "longmemeval",
    ]


def test_the_release_protocol_has_the_baselines_of_v021_and_their_variance_bands() -> None:
    chosen = load_protocol("pgmnemo-release-1:faithful")
    locomo, longmemeval = map(chosen.benchmark, ("locomo", "longmemeval"))

    figures = longmemeval.baselines["v0.2.1"].figures
    assert (figures["recall@10"].mean, figures["recall@10"].ci95) == (0.933, (0.914, 0.952))
    assert (figures["mrr@50"].mean, figures["mrr@50"].ci95) == (0.855, (0.829, 0.882))
    figures = locomo.baselines["v0.2.1"].figures
    assert [(one.mean, one.ci95) for one in figures.values()] == [(0.795, None), (0.548, None)]
    assert longmemeval.variance == {"recall@10": 0.005, "mrr@50": 0.010}
    assert locomo.variance == {"recall@10": 0.010, "mrr@50": 0.015}


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match="choose one of claude-memory-strata-1, mnemoscope-l"):
        load_protocol("locomo-1")
    with pytest.raises(UsageError, match="sound, faithful"):
        load_protocol("pgmnemo-recall-1.0.0:best")
    with pytest.raises(UsageError, match="it has rules for locomo, longmemeval"):
        load_protocol("mnemoscope-retrieval-1").benchmark("strata")


def test_deviations_name_what_differs() -> None:
    chosen = load_protocol("mnemoscope-retrieval-1")
    rules = chosen.benchmark("locomo")

    assert deviations(chosen.protocol, rules, rules.options, 50) == []
    turns = {**rules.options, "granularity": "turn"}
    assert deviations(chosen.protocol, rules, turns, 20) == [
        "granularity=turn instead of session",
        "depth=20 instead of 50",
    ]


class TestOnTheCommandLine:
    @pytest.fixture
    def run(self, write_locomo: Callable[..., Path], tmp_path: Path) -> Callable[..., int]:
        data = write_locomo(tmp_path / "locomo10.json", conversations=2, sessions=5, questions=5)

        def run(*arguments: str) -> int:
            where = ["--data", str(data), "--out", str(tmp_path / "runs")]
            under = ["--protocol", "mnemoscope-retrieval-1", "--system", "recency", "--no-arms"]
            return invoke(["run", "locomo", *where, *under, *arguments])

        return run

    def test_a_deviation_without_a_reason_is_refused(
        self, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("--granularity", "turn") == 2

        error = " ".join(capsys.readouterr().err.split())
        assert "granularity=turn instead of session" in error
        assert "--deviation REASON" in error
        assert not (tmp_path / "runs").exists()

    def test_a_declared_deviation_is_recorded_and_shown_in_the_report(
        self, run: Callable[..., int], tmp_path: Path
    ) -> None:
        assert run("--granularity", "turn", "--deviation", "sessions are too long for it") == 0

        deviation = "granularity=turn instead of session: sessions are too long for it"
        folder = RunDirectory(tmp_path / "runs" / "recency")
        assert folder.manifest().deviations == [deviation]
        report = (folder.path / "report.md").read_text()
        assert f"- deviates from mnemoscope-retrieval-1:sound: {deviation}" in report
        assert "- protocol: mnemoscope-retrieval-1:sound" in report

    def test_the_protocol_fixes_the_options_and_its_hash_is_recorded(
        self, run: Callable[..., int], tmp_path: Path
    ) -> None:
        assert run() == 0

        manifest = RunDirectory(tmp_path / "runs" / "recency").manifest()
        chosen = load_protocol("mnemoscope-retrieval-1")
        assert manifest.protocol == {"id": chosen.id, "sha256": chosen.sha256}
        assert manifest.identity["benchmark"]["options"] == chosen.benchmark("locomo").options
        assert manifest.identity["depth"] == chosen.protocol.depth

    def test_list_shows_them_all(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert invoke(["protocols", "list", "--json"]) == 0

        found = json.loads(capsys.readouterr().out)
        assert {one["id"]: one["sha256"] for one in found} == RELEASED

    def test_show_prints_the_rules_of_the_variant(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert invoke(["protocols", "show", "pgmnemo-recall-1.0.0:faithful"]) == 0

        page = capsys.readouterr().out
        assert RELEASED["pgmnemo-recall-1.0.0"] in page
        assert "scope=dataset" in page
        assert "recall@10 ±0.01" in page
        assert invoke(["protocols", "show", "nothing"]) == 2
