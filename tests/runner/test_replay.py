"""`verify --replay`: a system is asked again for questions drawn after the run was sealed."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import mnemoscope as ms
from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.replayed import (
    ALTERED,
    QuestionKey,
    differing,
    draw_questions,
    result_of,
    share_found,
)
from mnemoscope.cli.app import invoke
from mnemoscope.runner.answer_setup import reopened
from mnemoscope.runner.replay import replay

QUESTIONS = 1982
Recorded = dict[QuestionKey, tuple[object, ...]]


def rankings(questions: int = QUESTIONS) -> Recorded:
    return {("s", "", f"q{number}"): (("a", "b"),) for number in range(questions)}


def altered(recorded: Recorded, share: float, draw: random.Random) -> Recorded:
    changed = draw.sample(sorted(recorded), round(len(recorded) * share))
    return recorded | dict.fromkeys(changed, (("b", "a"),))


def test_fifty_questions_find_five_percent_altered_rankings_in_ninety_of_a_hundred() -> None:
    """1,000 trials: their share is within four standard errors of .926, and so above .90."""
    honest, found, trials = rankings(), 0, 1000
    keys = sorted(honest)
    changed = dict.fromkeys(keys, (("b", "a"),))
    for trial in range(trials):
        draw = random.Random(f"replay {trial}")
        forged = honest | {key: changed[key] for key in draw.sample(keys, 100)}  # 5 % of 1,982
        drawn = draw_questions(forged, 50, draw)
        assert len(set(drawn)) == 50, "asks exactly so many"
        second = honest if differing(forged, honest, drawn) else None
        found += not result_of(forged, drawn, honest, second).passed

    exact = share_found(QUESTIONS, 50)
    assert found / trials >= 0.90
    assert abs(found / trials - exact) < 4 * (exact * (1 - exact) / trials) ** 0.5


@pytest.mark.parametrize(("questions", "drawn"), [(1982, 50), (1982, 20), (36, 5), (10, 10)])
def test_the_printed_power_is_that_of_the_hypergeometric_distribution(
    questions: int, drawn: int
) -> None:
    from scipy.stats import hypergeom

    recorded = rankings(questions)
    keys = sorted(recorded)[:drawn]
    altered_rankings = math.ceil(0.05 * questions)

    exact = float(hypergeom.sf(0, questions, altered_rankings, drawn))

    assert share_found(questions, drawn) == pytest.approx(exact, rel=1e-9)
    printed = result_of(recorded, keys, recorded, None).gate().why
    assert f"{ALTERED:.0%} altered rankings with probability {exact:.2f}" in printed
    others = [share_found(QUESTIONS, n, share) for n, share in ((20, 0.01), (100, 0.02))]
    assert others == pytest.approx([0.18, 0.88], abs=0.005)


def test_an_honest_record_passes_and_the_draw_covers_all_scenarios() -> None:
    honest = {(f"s{n % 10}", "", f"q{n}"): (("a",),) for n in range(200)}
    drawn = draw_questions(honest, 100)

    assert result_of(honest, drawn, honest, None).passed
    assert len(set(drawn)) == 100
    assert {scenario for scenario, _, _ in drawn} == {f"s{n}" for n in range(10)}
    assert draw_questions(honest, 100) != drawn, "the draw can be foreseen"
    assert len(draw_questions(honest, 1000)) == 200
    with pytest.raises(UsageError, match="must be 1 question or more"):
        draw_questions(honest, 0)
    with pytest.raises(UsageError, match="no rankings"):
        draw_questions({}, 5)


def varying(recorded: Recorded, share: float, draw: random.Random) -> Recorded:
    """What a system returns that gives each ranking anew with this probability."""
    return {
        key: ((f"other {draw.random()}",),) if draw.random() < share else value
        for key, value in recorded.items()
    }


@pytest.mark.parametrize(("share", "least"), [(0.1, 180), (0.3, 50)])
def test_a_varying_system_is_compared_with_itself(share: float, least: int) -> None:
    draw, alarms, found = random.Random(5), 0, 0
    truth = rankings(50)
    keys = sorted(truth)
    for _ in range(200):
        record, first, second = (varying(truth, share, draw) for _ in range(3))
        alarms += not result_of(record, keys, first, second).passed
        forged = altered(record, 0.3, draw)
        found += not result_of(forged, keys, first, second).passed

    assert alarms <= 6, "honest runs of a varying system are refused"
    assert found >= least


@pytest.fixture(scope="module")
def data(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "locomo10.json"
    return write_locomo(path, conversations=3, sessions=8, questions=12)


@pytest.fixture
def run(data: Path, tmp_path: Path) -> RunDirectory:
    where = ["--data", str(data), "--out", str(tmp_path / "out"), "--workers", "1"]
    assert invoke(["run", "locomo", "--system", "bm25", "--no-arms", *where]) == 0
    return RunDirectory(tmp_path / "out" / "bm25")


def alter(run: RunDirectory, share: float) -> None:
    path = run.trials_path
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    trials = [line for line in lines if line.get("ranking")]
    for line in random.Random(1).sample(trials, round(len(trials) * share)):
        line["ranking"].reverse()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_an_honest_run_is_replayed_and_a_forged_one_is_found(
    run: RunDirectory, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = ms.verify(run.path, replay=20, data=data).gate("replay")
    assert gate.passed
    assert gate.why.startswith("20 of 20 rankings are the same again; so many find 5% altered")
    assert sorted(path.name for path in run.path.parent.iterdir()) == [
        *("attempts.jsonl", "bm25", "summary.json", "summary.md")
    ], "a replay leaves nothing behind"

    alter(run, 0.25)
    assert invoke(["verify", str(run.path), "--replay", "20", "--data", str(data)]) == 1

    told = " ".join(capsys.readouterr().out.split())
    assert "asked twice, it agrees with itself on 20 of 20" in told
    assert "replay failed" in told


def test_the_draw_asks_only_the_drawn_questions(run: RunDirectory, data: Path) -> None:
    found = replay(run, reopened(run.manifest(), data), 5, draw=random.Random(3), workers=1)

    assert (found.drawn, found.of, found.same) == (5, 36, 5)
    assert found.would_find == share_found(36, 5)


def test_other_data_or_none_are_refused(
    run: RunDirectory, write_locomo: Callable[..., Path], tmp_path: Path
) -> None:
    other = write_locomo(tmp_path / "locomo10.json", conversations=3, seed=9)

    with pytest.raises(DataError, match="made with other data: sha256"):
        ms.verify(run.path, replay=5, data=other)
    with pytest.raises(MnemoscopeError, match="nowhere"):
        ms.verify(run.path, replay=5, data=tmp_path / "nowhere")


def test_a_system_that_changed_is_refused(data: Path, tmp_path: Path) -> None:
    class Newest:
        def remember(self, memories: list[ms.Memory]) -> None:
            self.ids = [memory.id for memory in memories]

        def recall(self, query: ms.Query, k: int) -> list[str]:
            return self.ids[::-1][:k]

    class Oldest(Newest):
        def recall(self, query: ms.Query, k: int) -> list[str]:
            return self.ids[:k]

    Oldest.__qualname__ = Newest.__qualname__
    done = ms.run(
        "locomo",
        systems={"mine": Newest},
        data=data,
        out=tmp_path / "out",
        baselines=False,
        workers=1,
        progress=False,
    )

    path = done.runs[0].path
    assert ms.verify(path, replay=5, data=data, system=Newest).gate("replay").passed
    found = ms.verify(path, replay=5, data=data, system=Oldest).gate("replay")
    assert not found.passed


def test_rankings_from_a_file_cannot_be_replayed(
    run: RunDirectory, data: Path, tmp_path: Path
) -> None:
    scored = ms.score(
        run.path / "raw_retrievals.jsonl", dataset="locomo", data=data, out=tmp_path / "scored"
    )

    with pytest.raises(UsageError, match="scored from a file"):
        ms.verify(scored.path, replay=5, data=data)
