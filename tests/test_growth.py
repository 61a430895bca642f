"""The growth benchmark: exponents of planted costs, corpora, costs of processes, the page."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
import pytest

from mnemoscope.datasets import open_dataset
from mnemoscope.text.english import STOP_WORDS

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import growth as command
import growth_corpus as corpus
import growth_page
import growth_points
from growth_fit import growth
from growth_points import Measured, Point
from process_cost import CommandFailed, process_cost

SIZES = (10, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


# Exponents.


@pytest.mark.parametrize("planted", [0.5, 1.0, 1.05, 1.4])
def test_a_planted_exponent_is_recovered_beside_a_fixed_cost(planted: float) -> None:
    found = growth({n: 8 + 400 * (n / SIZES[-1]) ** planted for n in SIZES})
    assert found.whole is not None and found.grown is not None
    assert found.grown.value == pytest.approx(planted, abs=0.02)
    assert found.grown.low <= found.grown.value <= found.grown.high
    assert found.whole.value < found.grown.value


def test_the_interval_covers_the_exponent_of_noisy_costs() -> None:
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        noise = random.normal(1, 0.05, len(SIZES))
        found = growth(dict(zip(SIZES, 1e-4 * np.array(SIZES) * noise, strict=True)))
        assert found.whole is not None
        hits += found.whole.low <= 1 <= found.whole.high
    assert 180 <= hits <= 199  # 95 % of 200 within five standard errors, and not always


def test_only_the_upper_two_decades_are_fitted() -> None:
    costs = {n: 1e-4 * n for n in SIZES} | {10: 5.0, 1_000: 7.0}
    found = growth(costs)
    assert found.whole is not None
    assert found.whole.points == 5
    assert found.whole.value == pytest.approx(1)


def test_a_cost_that_does_not_grow_has_no_exponent_of_growth() -> None:
    found = growth({1: 100.0, 10: 101.0, 100: 99.5, 1_000: 102.0})
    assert found.grown is None
    assert found.whole is not None
    assert found.whole.value == pytest.approx(0, abs=0.02)


# Corpora.


def test_the_same_seed_gives_the_same_bytes_and_a_prefix(tmp_path: Path) -> None:
    corpus.write_collection(tmp_path / "a", 300, 20)
    corpus.write_collection(tmp_path / "b", 300, 20)
    corpus.write_collection(tmp_path / "c", 200, 20, seed=7)
    files = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
    digests = [
        [sha256((tmp_path / name / file).read_bytes()).hexdigest() for file in files]
        for name in "abc"
    ]
    assert digests[0] == digests[1]
    assert not set(digests[0]) & set(digests[2])
    assert list(corpus.memory_texts(200)) == list(corpus.memory_texts(300))[:200]


def test_questions_have_words_of_their_evidence_and_our_loader_reads_them(tmp_path: Path) -> None:
    corpus.write_collection(tmp_path / "data", 300, 50)
    dataset = open_dataset("beir", tmp_path / "data", {})
    [scenario] = dataset.scenarios()
    assert (len(scenario.memories), len(scenario.questions)) == (300, 50)
    assert not dataset.findings.counts
    texts = {memory.id: memory.text.split() for memory in scenario.memories}
    for question in scenario.questions:
        [evidence] = question.evidence
        asked = [word for word in question.text.split() if word not in STOP_WORDS]
        own = [word for word in asked if word in texts[evidence]]
        assert len(own) >= min(corpus.ASKED_WORDS, len(asked) - 2) > 0


def test_words_follow_zipfs_law() -> None:
    places = {word: place for place, word in enumerate(corpus.vocabulary())}
    assert len(places) == corpus.WORDS
    drawn = [places[word] for text in corpus.memory_texts(2_000) for word in text.split()]
    assert 20 < len(drawn) / 2_000 < 30
    counts = np.bincount(drawn, minlength=corpus.WORDS)
    assert counts[:10].sum() / counts[10:100].sum() == pytest.approx(1.31 / 2.03, rel=0.1)


def test_conversations_are_read_by_our_loader(tmp_path: Path) -> None:
    corpus.write_conversations(tmp_path / "data", 3, 20, 4)
    dataset = open_dataset("locomo", tmp_path / "data", {"granularity": "turn"})
    scenarios = list(dataset.scenarios())
    assert [len(one.memories) for one in scenarios] == [20, 20, 20]
    assert all(len(q.evidence) == 1 for one in scenarios for q in one.questions)


# Costs of processes.


def test_the_cost_of_a_command_includes_its_children(tmp_path: Path) -> None:
    child = "import time; a = bytearray(b'x') * 60_000_000; time.sleep(0.2)"
    burn = "x = sum(i * i for i in range(1_500_000))"
    script = (
        f"import subprocess, sys\n"
        f"one = subprocess.Popen([sys.executable, '-I', '-S', '-c', {child!r}])\n"
        f"two = subprocess.Popen([sys.executable, '-I', '-S', '-c', {child + '; ' + burn!r}])\n"
        f"one.wait(), two.wait()\n"
    )
    found = process_cost([sys.executable, "-I", "-S", "-c", script], {}, tmp_path)
    assert found.peak_bytes > 120_000_000
    assert found.cpu_s > 0.05
    with pytest.raises(CommandFailed, match="no such luck"):
        process_cost([sys.executable, "-c", "raise SystemExit('no such luck')"], {}, tmp_path)


# The command.


def point(size: int, cpu: float, peak: float, system: str = "bm25", recall: float = 1) -> Measured:
    return Measured(
        axis="memories",
        system=system,
        size=size,
        cpu_s=cpu,
        peak_bytes=int(peak),
        wall_s=cpu,
        memories=size,
        asked=10_000,
        recall=(recall, recall - 0.01, 1.0),
        page_bytes=10**7,
    )


def planted(exponent: float = 1.0, peak: float = 5e9, recall: float = 1.0) -> list[Measured]:
    return [point(n, 8 + 1e-4 * n**exponent, peak * n / SIZES[-1], recall=recall) for n in SIZES]


def test_goals_hold_at_the_full_size() -> None:
    assert [goal.holds for goal in growth_page.goals(planted())] == [True] * 4


@pytest.mark.parametrize(
    "bad",
    [planted(exponent=1.2), planted(peak=8.1e9), planted(recall=0.9)],
    ids=["exponent", "memory", "recall"],
)
def test_a_goal_that_does_not_hold_is_said_and_fails_the_command(
    bad: list[Measured], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "measure_all", lambda *_: bad)
    page = tmp_path / "docs" / "growth.md"
    assert command.main(["--axis", "memories", "--write", str(page)]) == 1
    assert "**Does not hold**" in page.read_text()
    assert (page.parent / "img" / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_a_part_that_grows_too_fast_is_not_hidden_by_fixed_costs() -> None:
    slow = [point(n, 200 + 1e-5 * n**1.3, 1e9) for n in SIZES]
    found = {goal.text: goal.holds for goal in growth_page.goals(slow)}
    assert [holds for text, holds in found.items() if "as measured" in text] == [True]
    assert [holds for text, holds in found.items() if "part that grows" in text] == [False]


def test_a_smaller_run_does_not_claim_the_full_size() -> None:
    small = [one for one in planted() if one.size < SIZES[-1]]
    fewer = [msgspec.structs.replace(one, asked=9_999) for one in planted()]
    for found in (small, fewer):
        assert [goal.holds for goal in growth_page.goals(found)] == [True, None]


def test_a_small_growth_run_from_end_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, page = tmp_path / "points.jsonl", tmp_path / "growth.md"
    arguments = ["--axis", "memories", "--axis", "nodes", "--system", "bm25", "--rounds", "1"]
    arguments += ["--memories", "10,1000,2000", "--questions-each", "40", "--points", str(kept)]
    arguments += ["--scratch", str(tmp_path), "--write", str(page)]
    assert command.main(arguments) == 0
    text = page.read_text()
    assert "| 2,000 | bm25 | 40 |" in text
    assert "## Nodes" in text
    assert "**Not measured**" in text.partition("## Nodes")[2]
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [line["measured"]["memories"] for line in lines] == [10, 1000, 2000]
    assert all(line["measured"]["recall"][0] > 0.95 for line in lines)
    assert not list(tmp_path.glob("mnemoscope-growth-*"))
    # The same command continues: nothing is measured again.
    monkeypatch.setattr(command, "measured", _never)
    assert command.main(arguments) == 0
    assert page.read_text() == text
    capsys.readouterr()


def _never(point: Point, rounds: int, scratch: Path | None) -> Measured:
    raise AssertionError(f"{point} is measured again")


def test_nodes_are_never_measured_without_a_cluster() -> None:
    sizes = growth_points.Sizes((10,), (1,), (1,), (1,), {}, 10, 10)
    assert not list(sizes.points(["nodes"], ["bm25"]))
    [one] = sizes._replace(nodes={2: "127.0.0.1:1"}).points(["nodes"], ["bm25"])
    assert (one.size, one.cluster) == (2, "127.0.0.1:1")
    with pytest.raises(SystemExit, match="NODES=ADDRESS"):
        command.main(["--cluster", "two"])


@pytest.mark.parametrize("sizes", ["", "0,10", "ten"])
def test_sizes_that_cannot_be_read_are_refused(
    sizes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(["--memories", sizes])
    assert "write whole numbers" in capsys.readouterr().err


def test_checkpoints_end_with_the_history() -> None:
    for checkpoints in command.DEFAULTS["checkpoints"]:
        days = growth_points.ranges(checkpoints).split(",")
        assert len(days) == checkpoints
        assert days[-1] == str(growth_points.DAYS)
