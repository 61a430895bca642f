"""Real answer files of others: every printed figure is reproduced, and ours stands beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mnemoscope as ms
from mnemoscope.runner.foreign_answers import read_answers

Shared = Callable[[str], Path]
LOCOMO = {
    "gpt-4o-mini-memos": (0.7429, 0.7435),
    "gpt-4o-mini-cot": (0.7989, 0.7994),
    "gpt-4.1-mini-memos": (0.8195, 0.8208),
}
RECALL_BENCH = {
    "ea-180d-openclaw": ("180d", 19, 5.3077),
    "ea-180d-recall-baseline": ("180d", 30, 4.5538),
    "ea-60d-recall-rerank-on": ("18d", 3, 5.0476),
    "ea-60d-recall-supersession-on": ("24d", 4, 5.4054),
}


@pytest.mark.parametrize("name", LOCOMO)
def test_the_headlines_of_full_context_are_reproduced(name: str, shared_data: Shared) -> None:
    file = shared_data("answers") / f"locomo-full-context/{name}.eval_results.json.xz"
    found = read_answers(file)
    assert (found.format, len(found.answers), len(found.figures)) == ("mem0", 1540, 5)
    assert all(figure.is_reproduced for figure in found.figures)
    assert tuple(round(one.recomputed, 4) for one in found.figures[:2]) == LOCOMO[name]
    assert len(found.notes) == 1 and "beside it an accuracy" in found.notes[0]


@pytest.mark.parametrize("name", RECALL_BENCH)
def test_every_checkpoint_of_recall_bench_is_reproduced(name: str, shared_data: Shared) -> None:
    file = shared_data("answers") / f"recall-bench-results/{name}.result.json.xz"
    found = read_answers(file)
    label, points, score = RECALL_BENCH[name]
    assert (found.format, found.asked_at, len(found.figures)) == ("recall-bench", label, points)
    assert all(figure.is_reproduced for figure in found.figures)
    assert round(found.figures[0].recomputed, 4) == score


def test_a_real_file_is_judged_again_beside_its_headline(
    shared_data: Shared, tmp_path: Path
) -> None:
    file = shared_data("answers") / "locomo-full-context/gpt-4.1-mini-memos.eval_results.json.xz"
    where = {"dataset": "locomo", "data": shared_data("locomo"), "out": tmp_path / "run"}
    found = ms.score_answers(file, judge="f1", progress=False, **where)  # type: ignore[arg-type]
    content, figures = found.imported, found.answers
    assert figures is not None
    mine = figures["figures"]
    assert mine["answerable"]["mean"] == pytest.approx(0.606921, abs=1e-6)
    assert mine["answerable"]["n"] == 1540
    assert mine["all"]["missing"] == 446
    agreement = content["agreement"]
    assert agreement is not None and agreement["n"] == 1540
    assert agreement["kappa"] == pytest.approx(0.404866, abs=1e-6)
    assert "came from outside" in ms.verify(found).gate("system").why


def test_recall_bench_answers_are_judged_again(shared_data: Shared, tmp_path: Path) -> None:
    file = shared_data("answers") / "recall-bench-results/ea-60d-recall-rerank-on.result.json.xz"
    data = shared_data("recall-bench/executive-assistant")
    where = {"dataset": "personas", "data": data, "out": tmp_path / "run"}
    found = ms.score_answers(file, judge="f1", progress=False, **where)  # type: ignore[arg-type]
    counts = found.imported["counts"]
    assert (counts["matched"], counts["missing"], counts["elsewhere"]) == (21, 0, 18)
    assert found.imported["theirs_here"] == pytest.approx(17 / 21)
