"""The conformance kit finds each flaw, says how to fix it, and passes correct systems."""

from __future__ import annotations

import datetime
import json
import shlex
import sys
import time
from pathlib import Path

import pytest

from mnemoscope._store.spec import Spec
from mnemoscope.cli.app import invoke
from mnemoscope.runner.conformance import CHECKS, Result, check_system
from mnemoscope.systems import BUILT_IN
from mnemoscope.systems.loader import plan
from mnemoscope.systems.machine_clock import machine_clock


@pytest.fixture(autouse=True)
def _flawed_systems_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def checked(
    name: str, *only: str, timeout: float = 30.0, patience: float = 0.3
) -> dict[str, Result]:
    spec = Spec.parse(name if name in BUILT_IN else f"flawed_systems:{name}")
    names = only or tuple(CHECKS)
    results = check_system(plan(spec), timeout=timeout, patience=patience, names=names)
    assert [result.check for result in results] == list(names)
    return {result.check: result for result in results}


def failing(results: dict[str, Result]) -> set[str]:
    return {name for name, result in results.items() if result.verdict == "failed"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_system_passes(name: str) -> None:
    results = checked(name)
    assert failing(results) == set(), results
    advised = {check for check, result in results.items() if result.verdict == "advice"}
    assert advised == ({"k"} if name == "full-context" else set())


def test_a_system_without_memory_passes_only_checks_that_need_no_hits() -> None:
    results = checked("none")
    passed = {check for check, result in results.items() if result.verdict == "passed"}
    assert passed == {"k", "edges"}
    assert results["isolation"].seen == "it recalls nothing, by design"


def test_a_sound_system_passes_everything() -> None:
    assert {result.verdict for result in checked("Sound").values()} == {"passed"}


@pytest.mark.parametrize(
    ("name", "caught_by", "seen"),
    [
        ("LeaksBetweenScopes", "isolation", "given in scope 'kit one', found in scope"),
        ("LeaksByWording", "isolation", "given in scope 'kit one', found in scope"),
        ("KeepsWhatItHad", "fresh", "given before reset('kit one'), found after it"),
        ("SharesOneStore", "side by side", "lost when another system was reset"),
        ("StampsWithTheMachinesClock", "machine clock", "change with the machine's clock"),
        (
            "ExpiresByTheMachinesClock",
            "dates",
            "found with dates in 2019, not found with dates in 1993",
        ),
        ("SearchesBeforeIndexing", "read-back", "not found right after ready(), found a moment"),
        ("ForgetsNothing", "forget", "still recalled after forget"),
        ("ForgetsTooMuch", "forget", "forgotten although it was not in the selector"),
        ("ReturnsOtherIds", "ids", "which no memory has, and no sources"),
        ("LosesSilently", "losses", "6 of 12 never found, and not in the receipt"),
        ("MergesSilently", "duplicates", "two memories with the same words: one is not found"),
        ("LearnsFromQuestions", "steady", "asked twice in a row, has two different rankings"),
        ("CopiesShareTheStore", "fork", "ingested by the copy only, found in both"),
        ("CutsLongTexts", "long", "is not found by its last sentence"),
        ("NeedsDates", "undated", "found with a date, not found without"),
        ("ParsesTheQuestion", "unicode", "raised ValueError: unbalanced quotes"),
        ("ReturnsNothingButNone", "edges", "an empty question"),
        (
            "Exits",
            "edges",
            "a memory with no text: remember(1 memories) or ready() raised Adap",
        ),
    ],
)
def test_a_flaw_is_found_with_advice_to_its_author(name: str, caught_by: str, seen: str) -> None:
    results = checked(name, caught_by, patience=10.0 if caught_by == "read-back" else 0.3)
    assert caught_by in failing(results), results
    assert seen in results[caught_by].seen
    assert results[caught_by].fix


ALONE = ("KeepsWhatItHad", "ForgetsNothing", "ReturnsOtherIds", "LosesSilently", "NeedsDates")


@pytest.mark.parametrize("name", [*ALONE, "CopiesShareTheStore"])
def test_one_flaw_fails_one_check_and_unclear_checks_say_so(name: str) -> None:
    results = checked(name)
    assert len(failing(results)) == 1, results
    unclear = [result for result in results.values() if result.verdict == "not applicable"]
    assert all("cannot be checked" in r.seen or "see losses" in r.seen for r in unclear), unclear


@pytest.mark.parametrize("name", ["NamesItsSources", "LosesAndSaysSo"])
def test_sources_and_receipts_are_accepted(name: str) -> None:
    assert failing(checked(name)) == set()


def test_a_nondeterministic_system_gets_advice_and_fails_no_check() -> None:
    results = checked("NeverTheSame")
    assert failing(results) == set()
    assert results["determinism"].verdict == "advice"
    assert "see determinism" in results["steady"].seen


def test_a_call_that_hangs_fails_its_check_only() -> None:
    results = checked("Hangs", timeout=1.5)
    assert failing(results) == {"forget"}
    assert results["forget"].seen == "forget(1 memories) or ready() did not return within 1.5 s"


def test_the_remaining_checks_are_skipped_if_a_system_always_hangs() -> None:
    results = checked("HangsAlways", timeout=0.3)
    assert len(failing(results)) == 3
    assert "skipped" in results["duplicates"].seen


def test_checks_of_missing_methods_are_not_applicable() -> None:
    results = checked("first_three")
    assert failing(results) == set()
    assert results["read-back"].seen == "it has no remember"
    assert results["steady"].verdict == "not applicable"
    assert results["edges"].verdict == "passed"


def test_a_shared_object_is_checked_where_possible() -> None:
    results = checked("only_one")
    assert failing(results) == set()
    assert "it is one object" in results["side by side"].seen


def test_answers_are_checked_if_there_is_no_recall() -> None:
    assert checked("AnswersOnly", "isolation")["isolation"].verdict == "passed"
    leaky = checked("AnswersFromEverywhere", "isolation")["isolation"]
    assert "given in scope 'kit one'" in leaky.seen


def test_a_system_behind_a_connector_gets_the_same_checks() -> None:
    adapter = Path(__file__).parents[2] / "examples" / "adapters" / "python_adapter.py"
    connected = plan(Spec.parse(f"stdio:{shlex.join([sys.executable, str(adapter)])}"))
    results = check_system(connected, names=("read-back", "isolation", "machine clock", "forget"))
    verdicts = [result.verdict for result in results]
    assert verdicts == ["passed", "passed", "not applicable", "passed"]
    assert "it runs in another process" in results[2].seen


def test_the_command_prints_a_line_a_check_and_fails_for_a_flaw(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["systems", "check", "flawed_systems:ForgetsNothing"]) == 1
    table = " ".join(capsys.readouterr().out.split())
    assert all(check in table for check in CHECKS)
    assert "does not fulfil the contract: forget (17 passed, 1 failed)" in table
    assert "→ forget(selector) must delete" in table


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["systems", "check", "recency", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["conforms"]
    assert [check["check"] for check in report["checks"]] == list(CHECKS)


def test_the_command_refuses_what_it_cannot_build(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["systems", "check", "bm52"]) == 2
    assert "did you mean 'bm25'?" in capsys.readouterr().err
    assert invoke(["systems", "check", "bm25", "--timeout", "0"]) == 2


def test_the_machines_clock_is_replaced_in_all_modules_and_restored() -> None:
    real, before, days = datetime.datetime, time.time(), 400 * 86400.0
    with machine_clock() as clock:
        clock.put(days)
        assert time.time() - before >= days
        assert time.time() < time.time()
        assert time.gmtime() > time.gmtime(before)
        later = datetime.datetime.now(datetime.UTC)
        assert later.timestamp() - before >= days
        assert type(later) is real
        assert isinstance(real(2019, 3, 4, tzinfo=datetime.UTC), datetime.datetime)
        assert type(datetime.datetime.fromisoformat("2019-03-04")) is real
    assert datetime.datetime is real
    assert time.time() - before < days
