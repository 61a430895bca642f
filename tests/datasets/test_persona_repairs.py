"""The repairs of the published 180 days: what they are, and what they refuse."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mnemoscope import api
from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.analysis.compare import NotComparable
from mnemoscope.cli.list_repairs import repairs as list_repairs
from mnemoscope.datasets.persona_folder import PersonaFolder, QuestionEntry, find_personas
from mnemoscope.datasets.persona_repairs import (
    KINDS,
    REPAIRS_FILE,
    REPAIRS_SHA256,
    Repair,
    RepairedQuestions,
    RepairList,
    StatedFacts,
    apply_repairs,
    read_repairs,
    repairs_for,
)
from mnemoscope.datasets.personas import Personas
from mnemoscope.datasets.repair_check import RepairCheck
from mnemoscope.types import Scenario

Shared = Callable[[str], Path]

COUNTS = {
    "log-date": 113,
    "question-date": 13,
    "answer-date": 6,
    "day-number": 22,
    "unnamed-window": 93,
    "bare-weekday": 15,
    "whole-week": 13,
    "loose-evidence": 10,
    "absent-evidence": 2,
    "category": 2,
    "answer-wording": 10,
}
ENTRY = QuestionEntry("ann-q001", "What was agreed?", "A budget of $5M.", "factual-recall", (2, 3))
DATES = {
    "ann/day-0002": (2, date(2026, 1, 2)),
    "ann/day-0003": (3, date(2026, 1, 3)),
    "ann/day-0004": (4, date(2026, 1, 4)),
}
LOGS = {
    2: "Friday, 2026-01-02\n- nothing new",
    3: "Friday, 2026-01-02 again\n- the budget was **$5M**",
    4: "- the budget of $5M stands",
}


def repairs(*listed: Repair) -> RepairList:
    return RepairList("test", "ann", "", "", {}, listed, ())


def evidence(*new: int, facts: tuple[str, ...] = ("budget & $5m",)) -> Repair:
    return Repair("ann-q001", "evidence", (2, 3), new, "loose-evidence", "", facts)


def problems(*listed: Repair) -> list[str]:
    done = apply_repairs(repairs(*listed), [ENTRY], DATES)
    return list(RepairCheck(LOGS, dict(DATES.values()), done).unjustified(repairs(*listed)))


def refused(*listed: Repair) -> str:
    with pytest.raises(DataError) as error:
        apply_repairs(repairs(*listed), [ENTRY], DATES)
    return str(error.value)


# --- what a repair does, and what stops it


def test_a_repair_changes_the_field_and_nothing_else() -> None:
    new = "What was agreed on 2026-01-02?"
    text = Repair("ann-q001", "question", ENTRY.question, new, "question-date", "")
    moved = Repair("ann/day-0003", "date", "2026-01-03", "2026-01-02", "log-date", "")
    done = apply_repairs(repairs(text, evidence(3), moved), [ENTRY], DATES)
    assert done.entries == [replace(ENTRY, question=new)]
    assert done.evidence == {"ann-q001": (3,)}
    assert done.dates == {3: date(2026, 1, 2)}


def test_an_unknown_id_is_refused() -> None:
    assert "ann-q009, field `evidence`: the history has no such id" in refused(
        replace(evidence(3), id="ann-q009")
    )
    day = Repair("ann/day-0009", "date", "2026-01-09", "2026-01-08", "log-date", "")
    assert "ann/day-0009, field `date`: the history has no such id" in refused(day)


def test_a_changed_old_value_is_refused() -> None:
    text = Repair("ann-q001", "question", "What was said?", "What?", "day-number", "")
    assert "the old value is 'What was said?', but it is 'What was agreed?'" in refused(text)
    assert "the old value is (1, 2), but it is (2, 3)" in refused(replace(evidence(3), old=(1, 2)))
    day = Repair("ann/day-0003", "date", "2026-01-04", "2026-01-03", "log-date", "")
    assert "the old value is '2026-01-04', but it is '2026-01-03'" in refused(day)


def test_a_second_repair_of_one_field_and_an_unknown_kind_are_refused() -> None:
    assert "is repaired twice" in refused(evidence(3), evidence(2))
    assert "unknown kind 'taste'" in refused(replace(evidence(3), kind="taste"))


# --- cheats: repairs that the logs do not confirm


def test_evidence_that_the_logs_confirm_has_no_problem() -> None:
    assert problems(evidence(3)) == []


@pytest.mark.parametrize(
    ("cheat", "found"),
    [
        (evidence(2), "day 2 does not state budget & $5m"),
        (evidence(3, facts=("nothing new|budget",)), "day 2 states the answer, too"),
        (evidence(2, facts=("friday",)), "friday is neither in the question nor in the answer"),
        (evidence(2, facts=()), "names no facts"),
        (evidence(3, 4), "the question is asked from day 3, before day 4"),
        (evidence(3, facts=("budget & nothing",)), "day 3 does not state"),
        (
            Repair("ann/day-0003", "date", "2026-01-03", "2026-01-04", "log-date", ""),
            "its log does not name 2026-01-04",
        ),
        (
            Repair("ann/day-0002", "date", "2026-01-02", "2026-01-01", "log-date", ""),
            "its log does not name 2026-01-01",
        ),
        (
            Repair("ann-q001", "question", ENTRY.question, "On 2026-02-01?", "day-number", ""),
            "2026-02-01 is the date of no log near days 2 to 3",
        ),
        (
            Repair(
                "ann-q001", "answer", "A budget of $5M.", "Monday, 2026-01-02", "answer-date", ""
            ),
            "2026-01-02 is not a Monday",
        ),
    ],
)
def test_a_repair_that_the_logs_contradict_is_found(cheat: Repair, found: str) -> None:
    assert any(found in problem for problem in problems(cheat))


def test_day_numbers_become_the_dates_of_these_days() -> None:
    entry = replace(ENTRY, question="What was agreed on days 2–3?")
    check = RepairCheck(LOGS, dict(DATES.values()), RepairedQuestions([entry], {}, {}))
    for last, found in (("03", []), ("02", ["ann-q001: days 2–3 are 2026-01-02 and 2026-01-03"])):
        new = f"What was agreed from 2026-01-02 through 2026-01-{last}?"
        one = Repair("ann-q001", "question", entry.question, new, "day-number", "")
        assert list(check.unjustified(repairs(one))) == found


def test_an_edited_list_is_not_as_pinned() -> None:
    assert sha256_file(REPAIRS_FILE) == REPAIRS_SHA256


def test_confirmed_evidence_is_checked_like_repaired_evidence() -> None:
    listed = replace(repairs(), confirmed=(StatedFacts("ann-q001", ("budget & $5m",)),))
    check = RepairCheck(LOGS, dict(DATES.values()), RepairedQuestions([ENTRY], {}, {}))
    assert list(check.unjustified(listed)) == ["ann-q001: day 2 does not state budget & $5m"]


# --- the list that comes with the package


def test_each_kind_has_as_many_repairs_as_the_docs_say() -> None:
    listed = read_repairs()
    assert listed.counts() == COUNTS
    assert sum(COUNTS.values()) == len(listed.repairs) == 299
    assert set(COUNTS) == set(KINDS)
    questions = {repair.id for repair in listed.repairs if repair.field != "date"}
    assert len(questions) == 163
    texts = [repair for repair in listed.repairs if repair.field == "question"]
    assert sum("2026-" in str(one.new) and "2026-" not in str(one.old) for one in texts) == 127
    assert all(repair.reason and repair.old != repair.new for repair in listed.repairs)


@pytest.fixture(scope="module")
def published(shared_data: Shared) -> PersonaFolder:
    [folder] = find_personas(shared_data("recall-bench"))
    return folder


@pytest.fixture(scope="module")
def both(published: PersonaFolder) -> tuple[Scenario, Scenario]:
    """The history as published and repaired."""
    data = published.arcs.parent
    found = [list(Personas(data, ranges="6-180/6", repairs=on).scenarios()) for on in (False, True)]
    return found[0][0], found[1][0]


def test_a_repaired_log_has_the_date_that_it_names(both: tuple[Scenario, Scenario]) -> None:
    before, after = ({m.id[-4:]: m.at for m in one.memories} for one in both)
    assert all(before[day] == after[day] for day in before if int(day) < 68)
    assert f"{before['0068']:%F} {after['0068']:%F}" == "2026-03-09 2026-03-08"
    assert f"{before['0180']:%F} {after['0180']:%F}" == "2026-06-29 2026-06-28"
    assert [one.text for one in both[0].memories] == [one.text for one in both[1].memories]


def test_repairs_leave_no_day_number_and_no_unnamed_window(
    both: tuple[Scenario, Scenario],
) -> None:
    vague = re.compile(r"\b(?:the|this) (?:checkpoint )?window|\bdays \d|in these days")
    left = [[q.id for q in one.questions if vague.search(q.text)] for one in both]
    assert (len(left[0]), left[1]) == (107, [])


def test_repairs_change_no_time_and_no_order_of_asking(both: tuple[Scenario, Scenario]) -> None:
    before, after = both
    assert [q.relevant_days for q in before.questions] == [q.relevant_days for q in after.questions]
    assert [c.memories for c in before.checkpoints] == [c.memories for c in after.checkpoints]
    same = [set(c.questions) for c in before.checkpoints]
    assert same == [set(c.questions) for c in after.checkpoints]
    last = after.checkpoints[-1]
    assert last.now is not None
    assert all(memory.at is not None and memory.at < last.now for memory in after.memories)


def test_repairs_are_refused_for_other_files(published: PersonaFolder, tmp_path: Path) -> None:
    """One byte of one log, of a question or of the epoch is enough."""
    home = tmp_path / "executive-assistant"
    shutil.copytree(published.arcs.parent, home, ignore=shutil.ignore_patterns("tools*"))
    [copy] = find_personas(home)
    assert repairs_for(copy).name == "recall-bench-180d-1"
    changes = {
        "memories-180d": copy.memories / "day-0070.md",
        "qa-180d/questions.yaml": copy.questions,
        "arcs-180d.yaml": copy.arcs,
    }
    for named, file in changes.items():
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        with pytest.raises(UsageError, match=f"{named} is missing or has another sha256"):
            Personas(home, repairs=True)
        file.write_bytes(content)


def test_repairs_are_refused_for_a_simulated_history(histories: Path) -> None:
    with pytest.raises(UsageError, match="there are no repairs for this history"):
        Personas(histories, repairs=True)


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mnemoscope.personas.simulate.history_files import write_history
    from mnemoscope.personas.simulate.simulator import simulate
    from mnemoscope.personas.simulate.story import shipped_story

    folder = tmp_path_factory.mktemp("histories")
    write_history(simulate(shipped_story("executive-assistant"), 30, 1), folder)
    return folder


# --- runs


@pytest.fixture(scope="module")
def runs(
    published: PersonaFolder, tmp_path_factory: pytest.TempPathFactory
) -> dict[bool, dict[str, Any]]:
    """bm25 over all questions, without and with repairs: the path and the figures."""
    folder = tmp_path_factory.mktemp("repairs")
    found: dict[bool, dict[str, Any]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(folder / "cache"))
        for on in (False, True):
            [run] = api.run(
                "personas",
                systems=["bm25"],
                data=published.arcs.parent,
                out=folder / str(on),
                baselines=False,
                ranges="none",
                repairs=on,
            ).runs
            path = run.directory.path
            figures = json.loads((path / "metrics.json").read_text())
            found[on] = {"path": path, "figures": figures["overall"]}
    return found


def test_repairs_move_the_figures_of_bm25(runs: dict[bool, dict[str, Any]]) -> None:
    """As docs/datasets.md and benchmarks/repaired_history.py have them."""
    moved = [
        [round(runs[on]["figures"][name]["mean"], 3) for on in (False, True)]
        for name in ("recall@10", "mrr@50")
    ]
    assert moved == [[0.307, 0.417], [0.315, 0.506]]


def test_a_run_with_repairs_is_another_benchmark(runs: dict[bool, dict[str, Any]]) -> None:
    with pytest.raises(NotComparable, match=r"benchmark\.options\.repairs"):
        api.compare(runs[False]["path"], runs[True]["path"])


def test_the_manifest_has_the_option_and_the_hash_of_the_list(
    runs: dict[bool, dict[str, Any]],
) -> None:
    read = (json.loads((runs[on]["path"] / "manifest.json").read_text()) for on in (False, True))
    before, after = (manifest["identity"]["benchmark"] for manifest in read)
    assert after["options"] == {**before["options"], "repairs": True}
    assert after["sha256"][:-1] == before["sha256"]


# --- the command


def test_the_command_lists_every_repair_with_its_old_and_new_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    list_repairs(json=True)
    shown = json.loads(capsys.readouterr().out)
    assert shown["counts"] == COUNTS
    assert len(shown["repairs"]) == 299
    list_repairs(kind="category")
    told = capsys.readouterr().out
    assert told.count("old: negative-recall") == told.count("new: factual-recall") == 2


def test_the_logs_confirm_every_repair_as_the_command_says(
    published: PersonaFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    list_repairs(data=published.arcs.parent, kind="category")
    told = " ".join(capsys.readouterr().out.split())
    assert "the logs confirm all 299 repairs. 155 questions keep their evidence" in told
    assert "(107 are whole weeks). 72 questions name no date" in told


def test_an_unknown_kind_is_told_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"unknown kind 'taste': use one of log-date, "):
        list_repairs(kind="taste")
