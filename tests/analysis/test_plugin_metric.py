"""A metric from another package: it appears everywhere, and a run without it still verifies."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis import measure
from mnemoscope.analysis.compare import compare
from mnemoscope.analysis.verify import verify
from mnemoscope.cli.app import invoke
from mnemoscope.metrics import METRICS, headline, installed, metric_names, metric_of, ranking, score

Make = Callable[..., RunDirectory]

PLUGIN = '''
from mnemoscope.metrics import Metric, RandomTopK, TopK


class F1(Metric):
    """Harmonic mean of precision@k and recall@k."""

    name = "f1"
    headline = (10,)
    reference = "van Rijsbergen, Information Retrieval, 1979"

    def value(self, top: TopK) -> float:
        precision, recall = top.relevant / top.k, top.found / top.total
        return 2 * precision * recall / (precision + recall)


class Broken(Metric):
    name = "another name"
    value = None
'''
HITS = [number % 3 > 0 for number in range(30)]


def forget_what_is_installed() -> None:
    for cached in (
        installed.installed_metrics,
        installed.metric_columns,
        installed.metric_names,
        ranking.values_at,
        installed.metrics_at,
        measure._ceilings,
        measure._chances,
    ):
        cached.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Pretend that a package with these entry points of the group was installed."""
    (tmp_path / "other_package.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def pretend(*classes: str) -> None:
        points = [
            EntryPoint(name.lower(), f"other_package:{name}", METRICS.group) for name in classes
        ]
        monkeypatch.setattr(
            metadata, "entry_points", lambda group: points if group == METRICS.group else []
        )
        forget_what_is_installed()

    yield pretend
    monkeypatch.undo()
    sys.modules.pop("other_package", None)
    forget_what_is_installed()


def test_the_columns_of_a_plugin_follow_the_built_in_ones(install: Callable[..., None]) -> None:
    ours = metric_names((1, 5), (10,))
    install("F1")

    assert metric_names((1, 5), (10,)) == (*ours, "f1@1", "f1@5")
    assert score(["x", "a"], {"a", "b"}, ks=(1, 2), cuts=(2,))["f1@2"] == 0.5
    assert headline(["mrr@50", "f1@10", "recall@10"]) == ["recall@10", "mrr@50", "f1@10"]


def test_a_plugin_that_is_not_a_metric_is_left_out_with_a_warning(
    install: Callable[..., None],
) -> None:
    install("Broken", "F1")

    with pytest.warns(
        UserWarning, match="the metric 'broken' is left out: the metric 'broken' must be"
    ):
        assert metric_of("broken@5") is None
    assert metric_of("f1@5") is not None


def test_a_plugin_is_measured_compared_gated_shown_and_verified(
    make_run: Make,
    install: Callable[..., None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install("F1")
    old = make_run(tmp_path / "old", HITS)
    new = make_run(tmp_path / "new", [True] * 30)

    metrics = old.read_json("metrics.json")
    figure = metrics["overall"]["f1@10"]
    assert figure["mean"] == pytest.approx(20 / 30 * 2 / 11)
    assert (figure["chance"], figure["lift"]) == (None, None)
    assert figure["ceiling"] == pytest.approx(2 / 11)
    assert "f1@10" in metrics["by_category"]["odd"]
    many = [
        make_run(tmp_path / name, hits * 20) for name, hits in (("a", HITS), ("b", [True] * 30))
    ]
    row = compare(*many).row("f1@10")
    assert (row.verdict, row.role, row.confirmed) == ("better", "secondary", True)
    limits = ["--baseline", str(old.path), "--max-drop", "f1@10=0.01"]
    assert invoke(["gate", str(new.path), *limits]) == 0
    capsys.readouterr()
    assert invoke(["report", str(old.path)]) == 0
    assert "f1@10" in capsys.readouterr().out
    assert verify(old).gate("figures").passed


def test_verify_says_which_metrics_it_cannot_recompute(
    make_run: Make, install: Callable[..., None], tmp_path: Path
) -> None:
    install("F1")
    run = make_run(tmp_path / "with", HITS)
    install()

    gate = verify(run).gate("figures")

    assert gate.passed
    assert (
        "not recomputed, because the metric is not installed: f1@1, f1@3, f1@5, f1@10" in gate.why
    )


def test_a_run_that_was_made_without_a_plugin_still_verifies_and_compares(
    make_run: Make, install: Callable[..., None], tmp_path: Path
) -> None:
    run = make_run(tmp_path / "without", HITS)
    other = make_run(tmp_path / "other", HITS)
    install("F1")

    gate = verify(run).gate("figures")

    assert gate.why == "recomputed from 30 trials, all equal"
    assert compare(run, other, metrics=["f1@10"]).row("f1@10").delta == 0


def test_a_plugin_does_not_hide_that_one_of_our_metrics_was_removed(
    make_run: Make, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "cut", HITS)
    content = run.read_json("metrics.json")
    del content["overall"]["hit@1"]
    (run.path / "metrics.json").write_text(json.dumps(content), encoding="utf-8")

    assert not verify(run).gate("figures").passed
