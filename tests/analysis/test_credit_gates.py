"""The gates `sources` and `ceiling`: hits that name too much, and figures that cannot be true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnemoscope._store.jsonl import Journal
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.checked_run import CheckedRun
from mnemoscope.analysis.compare import compare
from mnemoscope.analysis.credit_gates import below_ceiling, sources_in_bounds
from mnemoscope.analysis.measure import Depth
from mnemoscope.analysis.verify import verify
from mnemoscope.results import RunResult
from mnemoscope.runner.finish import finish
from mnemoscope.types import Question, Trial

POOL = tuple(f"m{number}" for number in range(30))


def recorded(path: Path, *trials: Trial) -> RunDirectory:
    """A finished run with these trials."""
    run = RunDirectory(path)
    benchmark = {"name": "made", "options": {}, "sha256": ["d" * 64]}
    about: dict[str, Any] = {"benchmark": benchmark, "system": {"spec": path.name}}
    manifest = run.open({**about, "depth": 10, "seed": 42, "versions": {"mnemoscope": "0"}})
    questions = {trial.question: Question(trial.question, "What?") for trial in trials}
    with Journal(run.trials_path) as journal:
        for trial in trials:
            journal.append(trial)
    finish(run, manifest, questions, Depth(10))
    run.release()
    return run


def trial(number: int = 0, **fields: Any) -> Trial:
    about = {"evidence": ("m0",), "pool": 30, "reachable": 1, "cluster": f"c{number}"}
    return Trial("s", f"q{number}", "answered", **{**about, **fields})


def checked(run: RunDirectory) -> CheckedRun:
    return CheckedRun(run, run.manifest(), None, None)


def test_single_memories_pass(tmp_path: Path) -> None:
    case = checked(recorded(tmp_path / "mine", trial(ranking=POOL[:10], tokens=(9,) * 10)))
    assert sources_in_bounds(case) == (
        True,
        "a hit names 1 memory in the median and at most 1",
    )
    assert below_ceiling(case) == (True, "no figure is above its ceiling")


def test_one_hit_with_most_of_its_pool_is_named_with_the_figure(tmp_path: Path) -> None:
    all_in_one = trial(ranking=("all", *POOL[:9]), tokens=(1,) * 10, sources={"all": POOL})
    run = recorded(tmp_path / "mine", all_in_one)
    passed, why = sources_in_bounds(checked(run))
    assert not passed
    assert "at most 30, 100% of its pool" in why
    assert "sources" in verify(run).failed


def test_hits_that_all_name_many_memories_are_named_with_the_median(tmp_path: Path) -> None:
    hits = {f"h{n}": POOL[n : n + 12] for n in range(3)}
    many = trial(ranking=tuple(hits), tokens=(1,) * 3, sources=hits)
    passed, why = sources_in_bounds(checked(recorded(tmp_path / "mine", many)))
    assert not passed and why.startswith("a hit names 12 memories in the median")


def test_evidence_for_too_few_tokens_fails_beside_an_oracle(tmp_path: Path) -> None:
    recorded(tmp_path / "oracle", trial(ranking=("m0",), tokens=(200,)))
    cheap = trial(ranking=("m0",), tokens=(3,))
    passed, why = below_ceiling(checked(recorded(tmp_path / "mine", cheap)))
    assert not passed
    assert why.startswith("evidence of 200 tokens came back in 3 tokens (1.5%)")
    honest = trial(ranking=("m0",), tokens=(80,))
    assert below_ceiling(checked(recorded(tmp_path / "honest", honest))) == (
        True,
        "no figure is above its ceiling; evidence came back in 40% of its tokens",
    )


def test_a_figure_above_its_ceiling_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = checked(recorded(tmp_path / "mine", trial(ranking=("m0",), tokens=(9,))))
    names = len(Depth(10).names)
    monkeypatch.setattr(Depth, "all_ceilings", lambda self, trials: np.full((1, names), 0.4))
    passed, why = below_ceiling(case)
    assert not passed and why.endswith("@1 is 1.0000, above its ceiling of 0.4000")


def test_no_number_of_sources_beats_the_oracle(tmp_path: Path) -> None:
    """Whatever a hit claims, every figure stays at or below its ceiling."""
    for size in (2, 10, 30):
        claims = trial(
            ranking=("h",),
            tokens=(1,),
            evidence=("m0", "m1"),
            reachable=2,
            sources={"h": POOL[:size]},
        )
        assert below_ceiling(checked(recorded(tmp_path / str(size), claims)))[0]


@pytest.fixture
def overclaims(tmp_path: Path) -> RunDirectory:
    """A run in which half of the texts do not carry what they name."""
    sources = {"h": ("m0",)}
    trials = [
        trial(n, ranking=("h",), tokens=(9,), sources=sources, carried={"h": ()} if n % 2 else {})
        for n in range(10)
    ]
    return recorded(tmp_path / "claims", *trials)


def test_compare_says_what_is_claimed_and_compares_what_is_carried(
    overclaims: RunDirectory, tmp_path: Path
) -> None:
    base = recorded(tmp_path / "base", *(trial(n, ranking=("m0",), tokens=(9,)) for n in range(10)))
    found = compare(base, overclaims, metrics=["recall@10"])
    assert found.row("recall@10").cand == 0.5
    assert any("recall@10 claimed 1.0000, carried 0.5000" in note for note in found.notes)


def test_frames_have_the_three_figures(overclaims: RunDirectory) -> None:
    rows = {row.metric: row for row in RunResult(overclaims.path).figures()}
    assert rows["recall@10"].mean == 0.5
    assert rows["claimed_recall@10"].mean == 1.0
    assert rows["recall_per_1000_tokens"].mean == pytest.approx(1000 * 0.5 / 9)


def test_reports_show_the_three_figures_side_by_side(
    overclaims: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    from mnemoscope.reports.render_markdown import render
    from mnemoscope.reports.run_report import report
    from mnemoscope.reports.run_tables import summary
    from mnemoscope.reports.run_view import RunView

    view = RunView.of(overclaims)
    console = Console(width=100)
    console.print(summary([view]))
    shown = capsys.readouterr().out
    page = render(report(view))
    for text in (shown, page):
        assert "claimed recall@10" in text and "carried recall@10" in text
        assert "recall per 1,000 tokens" in text
        assert "differ in 5 questions" in " ".join(text.split())
    assert "55.556" in shown


def test_gate_compares_what_is_carried(overclaims: RunDirectory) -> None:
    from mnemoscope.analysis.aggregates import gate

    carried, claimed = gate(
        overclaims, overclaims.path, {"recall@10": 0.0, "claimed_recall@10": 0.0}
    )
    assert (carried.current, claimed.current) == (0.5, 1.0)


def test_the_figures_follow_from_the_journal(overclaims: RunDirectory) -> None:
    assert verify(overclaims).gate("figures").passed
