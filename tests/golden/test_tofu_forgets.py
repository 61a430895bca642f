"""Forgetting on TOFU's real 4,000 pairs: what was to go is gone, what was to stay has stayed.

No model is asked: the extractive reader quotes what was recalled, ROUGE-L is the judge.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.scripted_server import ScriptedServer

from mnemoscope.cli.app import invoke
from mnemoscope.datasets.tofu import AUTHORS, PAIRS_EACH
from mnemoscope.systems import BUILT_IN

if TYPE_CHECKING:
    from tests.conftest import StartCommand

SEARCHING = ("fts5", "dense", "hybrid", "graph", "oracle")
"""Systems that find what is asked for; the others can lose nothing that they ever knew."""
WHOLE = "bm25"
"""The system that is asked all 4,000 questions."""
SAMPLE = 200


@pytest.fixture(scope="module")
def tofu(shared_data: Callable[[str], Path]) -> Path:
    return shared_data("tofu")


Scores = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def scores_of(
    tofu: Path, start_command: StartCommand, tmp_path_factory: pytest.TempPathFactory
) -> Scores:
    """Each system's score. In processes where numpy has one thread: with more they only wait."""

    def run(systems: tuple[str, ...], *more: object) -> dict[str, dict[str, Any]]:
        out = tmp_path_factory.mktemp("tofu")
        named = [part for system in systems for part in ("--system", system)]
        leg = start_command(
            ["run", "tofu", "--data", tofu, "--out", out, *named, "--no-arms", *more]
        )
        assert leg.wait() == 0, leg.output
        files = {system: out / system / "forgetting.json" for system in systems}
        return {system: json.loads(file.read_text())["score"] for system, file in files.items()}

    return run


@pytest.fixture(scope="module")
def whole(scores_of: Scores) -> dict[str, Any]:
    """All 4,000 questions, before and after 20 authors are forgotten."""
    return scores_of((WHOLE,))[WHOLE]


@pytest.fixture(scope="module")
def sampled(scores_of: Scores) -> dict[str, dict[str, Any]]:
    """All other built-in systems with all memories and some of the questions."""
    others = tuple(name for name in BUILT_IN if name != WHOLE)
    return scores_of(others, "--questions", SAMPLE)


def mean(score: dict[str, Any], when: str, kind: str) -> float:
    value: float = score[when][kind]["mean_rouge_l"]["mean"]
    return value


def test_none_of_the_400_forgotten_texts_is_recalled(whole: dict[str, Any]) -> None:
    leak = whole["leak"]
    assert (leak["n"], leak["leaked"], leak["by_id"], leak["by_text"]) == (400, 0, 0, 0)


def test_every_question_is_measured_before_and_after(whole: dict[str, Any]) -> None:
    for when in ("before", "after"):
        assert whole[when]["forget"]["n"] == 400
        assert whole[when]["retain"]["n"] == 3_600


def test_what_was_to_be_forgotten_is_known_before_and_not_after(whole: dict[str, Any]) -> None:
    assert mean(whole, "before", "forget") >= 0.3
    assert mean(whole, "after", "forget") <= 0.1
    assert whole["after"]["forget"]["share_above_half"]["above"] == 0
    change = whole["change"]["forget"]["mean_rouge_l"]
    assert change["ci95"][1] < -0.2
    assert whole["forget_falls"] is True


def test_what_was_to_be_kept_stays_within_its_interval(whole: dict[str, Any]) -> None:
    low, high = whole["before"]["retain"]["mean_rouge_l"]["ci95"]
    assert low <= mean(whole, "after", "retain") <= high
    # Paired over the same questions it may even grow a little, where what is gone stood in the way.
    assert abs(whole["change"]["retain"]["mean_rouge_l"]["mean"]) < 0.01
    assert whole["retain_stays"] is True


def test_forgotten_and_kept_authors_were_known_equally_well(whole: dict[str, Any]) -> None:
    before = whole["before"]
    low, high = before["forget"]["mean_rouge_l"]["ci95"]
    assert low - 0.02 <= mean(whole, "before", "retain") <= high + 0.02


def test_no_other_built_in_system_recalls_a_forgotten_text(
    sampled: dict[str, dict[str, Any]],
) -> None:
    assert len(sampled) == len(BUILT_IN) - 1
    for system, score in sampled.items():
        assert score["leak"]["n"] >= 10, system
        assert score["leak"]["leaked"] == 0, system


@pytest.mark.parametrize("system", SEARCHING)
def test_a_system_that_finds_things_loses_what_it_forgot_and_keeps_the_rest(
    sampled: dict[str, dict[str, Any]], system: str
) -> None:
    score = sampled[system]
    assert mean(score, "before", "forget") > 2 * mean(score, "after", "forget")
    assert score["forget_falls"] is True
    assert score["retain_stays"] is True


def test_a_system_without_memory_has_nothing_to_lose(sampled: dict[str, dict[str, Any]]) -> None:
    score = sampled["none"]
    assert mean(score, "before", "forget") == mean(score, "after", "forget") <= 0.02
    assert score["forget_falls"] is False


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize(("kept", "gone", "authors"), [("90", "10", 20), ("99", "01", 2)])
def test_the_full_file_is_what_is_kept_and_then_what_is_forgotten(
    tofu: Path, kept: str, gone: str, authors: int
) -> None:
    retain, forget = lines(tofu / f"retain{kept}.json"), lines(tofu / f"forget{gone}.json")
    assert len(forget) == authors * PAIRS_EACH
    assert [json.loads(line) for line in (*retain, *forget)] == [
        json.loads(line) for line in lines(tofu / "full.json")
    ]
    assert len(retain) + len(forget) == AUTHORS * PAIRS_EACH


def test_a_reader_that_is_given_everything_is_given_nothing_forgotten(
    tofu: Path, tmp_path: Path
) -> None:
    asked = 3
    with ScriptedServer(lambda request: "No information available.") as server:
        reader = f"full-context,model=scripted@{server.url}"
        command = ["run", "tofu", "--data", tofu, "--out", tmp_path, "--system", "bm25"]
        command += ["--no-arms", "--questions", asked, "--reader", reader]
        assert invoke([str(part) for part in command]) == 0
        shown = [set(request.text.splitlines()) for request in server.seen]

    def told(name: str) -> set[str]:
        questions = (json.loads(line)["question"] for line in lines(tofu / name))
        return {f"> Q: {question}" for question in questions}

    kept, gone = told("retain90.json"), told("forget10.json")
    assert len(shown) == 2 * asked
    for before in shown[:asked]:
        assert before >= kept | gone
    for after in shown[asked:]:
        assert after >= kept
        assert not after & (gone - kept)
