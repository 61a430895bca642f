"""What a system can count, read or time without a label says nothing of the evidence.

The file of these tests is as bad as files are: the k-th question's evidence is the k-th session. A
system that counts requests would be perfect if it were asked in that order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import pytest
from tests.isolation import hinted_systems

from mnemoscope._store.spec import Spec
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.datasets.tofu import Tofu
from mnemoscope.runner.question_loop import order_by_text
from mnemoscope.runner.run import Settings, run
from mnemoscope.systems.loader import plan
from mnemoscope.types import Query, Question, Scenario, Trial

SESSIONS, CONVERSATIONS, K = 20, 8, 4
CHEATS = ("CountsRequests", "CountsBackwards", "ReadsIds", "ReadsTheClock", "ReadsTimes")


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Locomo:
    place = write_locomo(
        tmp_path_factory.mktemp("ordered") / "locomo.json", CONVERSATIONS, SESSIONS, SESSIONS
    )
    samples = json.loads(place.read_text())
    for sample in samples:
        for number, asked in enumerate(sample["qa"], start=1):
            asked["evidence"] = [f"D{number}:1"]
    place.write_text(json.dumps(samples))
    return Locomo(place)


def recall(trials: Sequence[Trial]) -> float:
    return fmean(bool({*trial.ranking[:K]} & {*trial.evidence}) for trial in trials)


def counted(scenario: Scenario, asked: Sequence[Question], k: int, step: int = 1) -> list[float]:
    """The recall of a system that counts, asked in this order; of every `step`th question."""
    cheat = hinted_systems.CountsRequests(len(asked))
    cheat.reset(scenario.id)
    cheat.remember(scenario.memories)
    found = []
    for number, question in enumerate(asked):
        if question.evidence and number % step == 0:
            cheat.requests = number
            first = {*cheat.recall(Query(question.text), k)}
            found.append(len(first & {*question.evidence}) / len({*question.evidence}))
    return found


def test_in_the_order_of_the_file_a_count_of_requests_is_perfect(locomo: Locomo) -> None:
    """What the next test protects from."""
    for scenario in locomo.scenarios():
        assert set(counted(scenario, scenario.questions, K)) == {1.0}


def test_what_counting_is_worth_on_real_files(shared_data: Callable[[str], Path]) -> None:
    """The figures of docs/isolation.md."""
    scenarios = list(Locomo(shared_data("locomo/locomo10.json")).scenarios())
    in_file = [x for one in scenarios for x in counted(one, one.questions, 10)]
    by_text = [x for one in scenarios for x in counted(one, _mixed(one), 10)]

    assert round(fmean(in_file), 3) == 0.512
    assert round(fmean(by_text), 3) == 0.352  # chance is 0.371
    [tofu] = Tofu(shared_data("tofu")).scenarios()
    assert fmean(counted(tofu, tofu.questions, 10, step=97)) == 1.0
    assert fmean(counted(tofu, _mixed(tofu), 10, step=97)) < 0.1


def _mixed(scenario: Scenario) -> list[Question]:
    return sorted(scenario.questions, key=order_by_text)


@pytest.fixture(scope="module")
def found(locomo: Locomo, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Trial]]:
    """All cheats in one run, each with the lock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        plans = [plan(Spec(f"hinted_systems:{name}")) for name in CHEATS]
        done = run(locomo, plans, tmp_path_factory.mktemp("out"), Settings(depth=K, workers=1))
    return {name: list(one.trials()) for name, one in zip(CHEATS, done, strict=True)}


@pytest.mark.parametrize("cheat", CHEATS)
def test_hints_are_worth_as_much_as_chance(found: dict[str, list[Trial]], cheat: str) -> None:
    """The interval is four standard errors of a random ranking."""
    chance, asked = K / SESSIONS, SESSIONS * CONVERSATIONS
    error = (chance * (1 - chance) / asked) ** 0.5

    assert len(found[cheat]) == asked
    assert abs(recall(found[cheat]) - chance) < 4 * error


def test_the_journal_has_the_order_of_the_file(
    locomo: Locomo, found: dict[str, list[Trial]]
) -> None:
    questions = [one.id for scenario in locomo.scenarios() for one in scenario.questions]

    for trials in found.values():
        assert [trial.question for trial in trials] == questions


def test_another_run_asks_in_the_same_order(
    locomo: Locomo,
    found: dict[str, list[Trial]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the figures of systems that remember requests would differ from run to run."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    planned = plan(Spec("hinted_systems:CountsRequests"))

    [done] = run(locomo, [planned], tmp_path, Settings(depth=K, workers=2, isolation=1))

    assert list(done.trials()) == found["CountsRequests"]


def test_built_in_systems_are_asked_in_the_order_of_the_file(
    locomo: Locomo, tmp_path: Path
) -> None:
    [done] = run(locomo, [plan(Spec("recency"))], tmp_path, Settings(depth=K, workers=1))

    timed = [timing.question for timing in done.timings() if timing.question]
    assert timed == [one.id for scenario in locomo.scenarios() for one in scenario.questions]
