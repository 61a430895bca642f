"""Exams drawn from a benchmark: their probes, the rule for passing, and cheats against both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.judges import lenient_judges
from tests.judges.lenient_judges import KEY, Knows, LooksForExams, SaysYes
from tests.passed_exams import exam_record

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.api.examine import examine
from mnemoscope.cli.app import invoke
from mnemoscope.datasets import open_dataset
from mnemoscope.judges import Case, EachCaseAlone, Judge
from mnemoscope.judges.drawn_exam import RULES, DrawnExam, draw
from mnemoscope.judges.exam_record import ExamRecord, combined
from mnemoscope.judges.exam_store import exam_identity, installation_seed, keep, kept
from mnemoscope.judges.sit_exam import read_labelled, sit
from mnemoscope.stats.judge_errors import ErrorCell, error_rate, mix_range
from mnemoscope.text.reference_types import find_date, find_number, list_items, type_of
from mnemoscope.types import Grade, Memory, Question, Scenario

LENIENT = "tests.judges.lenient_judges"
MONTHS = ("May", "June", "July", "August")


def scenarios(conversations: int = 10, each: int = 60) -> list[Scenario]:
    """Invented conversations with dates, numbers, lists, texts and questions without an answer."""
    found = []
    for c in range(conversations):
        memories, questions = [], []
        for n in range(each):
            name = ("Ada", "Bo", "Cy", "Di")[n % 4]
            made = ("copper", "velvet", "marble", "birch")[n % 4]
            thing = f"{made} {('lamp', 'desk', 'vase')[n % 3]}"
            kind = n % 5
            if kind == 0:
                asked = f"When did {name} repair item {n}?"
                reference = f"{n % 27 + 1} {MONTHS[n % 4]} 202{c}"
            elif kind == 1:
                asked, reference = f"How many kites did {name} fly on trip {n}?", f"{n + 2} kites"
            elif kind == 2:
                asked = f"Which crops did {name} plant in field {n}?"
                reference = f"barley {n}, oats, beans and kale"
            elif kind == 3:
                asked, reference = f"What did {name} buy at fair {n}?", f"a {thing} from stall {n}"
            else:
                asked, reference = f"What did {name} sing at wedding {n}?", ""
            id = f"c{c}/m{n}"
            said = (
                f"{name}: I will tell you about it. It was {reference or 'lovely weather'} there."
            )
            memories.append(
                Memory(id, f"{said}\n{name}: The {thing} of item {n} is quite new now.")
            )
            questions.append(
                Question(
                    f"c{c}/q{n}",
                    asked,
                    reference=reference,
                    evidence=(id,),
                    expects="answer" if reference else "abstain",
                    cluster=f"c{c}",
                )
            )
        found.append(Scenario(f"c{c}", tuple(memories), tuple(questions)))
    return found


@pytest.fixture(scope="module")
def exam() -> DrawnExam:
    return draw(scenarios(), seed="one", per_kind=120)


def sat(judge: Judge, exam: DrawnExam, **more: Any) -> ExamRecord:
    about = {"benchmark": "strata", "data": ["d"], "seed": "one", "seed_given": False}
    return sit(judge, exam, **{**about, **more})


class Errs(EachCaseAlone):
    """Knows the key, and errs on every n-th answer of some kinds."""

    def __init__(self, exam: DrawnExam, every: dict[str, int]) -> None:
        self._key = {(p.question.text, p.answer): p.acceptable for p in exam.probes}
        self._wrong = set()
        seen: Counter[str] = Counter()
        for probe in exam.probes:
            n = every.get(probe.kind, 0)
            seen[probe.kind] += 1
            if n and seen[probe.kind] % n == 0:
                self._wrong.add((probe.question.text, probe.answer))

    def judge(self, case: Case) -> Grade:
        key = (case.question.text, case.answer)
        return Grade(float(self._key[key] != (key in self._wrong)))


def test_every_kind_that_the_data_hold_is_drawn(exam: DrawnExam) -> None:
    kinds = Counter(probe.kind for probe in exam.probes)
    assert {
        "right-same-words", "right-date-format", "right-number-format", "right-list-order",
        "correct-refusal", "other-date", "other-number", "other-entity", "negated", "vaguer",
        "part-of-list", "superset", "refusal", "injection", "right-topic", "confabulated",
    } <= set(kinds)  # fmt: skip
    assert max(kinds.values()) == 120
    assert exam.held == dict(kinds)


def test_the_draw_depends_on_the_seed_alone() -> None:
    again = draw(scenarios(), seed="one", per_kind=20)
    assert again.probes == draw(scenarios(), seed="one", per_kind=20).probes
    assert again.probes != draw(scenarios(), seed="two", per_kind=20).probes


def test_wrong_answers_differ_from_the_reference_and_formats_mean_the_same(exam: DrawnExam) -> None:
    for probe in exam.probes:
        reference = probe.question.reference
        if probe.kind in ("other-date", "right-date-format") and find_date(probe.answer):
            dates = find_date(reference), find_date(probe.answer)
            assert dates[0] and dates[1]
            assert dates[0].same_as(dates[1]) == probe.acceptable, probe
        is_bare = reference.split()[-1:] and len(probe.answer.split()) <= len(reference.split())
        in_words = ":" in probe.answer or probe.answer.split()[0] in ("As", "On")
        if probe.kind == "part-of-list" and is_bare and not in_words:
            assert set(list_items(reference)) > set(list_items(probe.answer) or [probe.answer])
        if probe.kind == "right-list-order" and is_bare:
            assert sorted(list_items(probe.answer)) == sorted(list_items(reference))
        if probe.kind == "other-number" and probe.stratum == "number, plain":
            assert find_number(probe.answer) != find_number(reference)


def test_probes_look_like_cases_of_a_run(exam: DrawnExam) -> None:
    own = {question.id: question for one in scenarios() for question in one.questions}
    for probe in exam.probes:
        assert probe.case.question == own[probe.question.id]
        assert probe.case.memories == 60
    assert all(scenario.memories for scenario in exam.scenarios)


def test_a_budget_is_spread_evenly_over_the_kinds(exam: DrawnExam) -> None:
    few = draw(scenarios(), seed="one", per_kind=20, budget=100)
    kinds = Counter(probe.kind for probe in few.probes)
    assert sum(kinds.values()) == 100
    assert max(kinds.values()) - min(kinds.values()) <= 1
    assert {p.id for p in few.probes} < {p.id for p in exam.probes}


def test_a_judge_with_the_key_passes(exam: DrawnExam) -> None:
    record = sat(Errs(exam, {}), exam)
    assert record.passed and not record.mistakes


def test_a_judge_that_accepts_half_of_the_vague_answers_fails(exam: DrawnExam) -> None:
    record = sat(Errs(exam, {"vaguer": 2}), exam)
    assert record.rate(acceptable=False).rate < 0.10
    assert "it accepts wrong answers of the kind vaguer too often (60 of 120)" in record.reasons


def test_a_judge_that_says_yes_fails_with_its_counts(exam: DrawnExam) -> None:
    record = sat(SaysYes(), exam)
    wrong = sum(not probe.acceptable for probe in exam.probes)
    assert f"it accepts wrong answers too often ({wrong} of {wrong})" in record.reasons


def test_passing_is_by_the_upper_end_so_few_probes_do_not_do() -> None:
    few = draw(scenarios(), seed="one", per_kind=20, budget=60)
    record = sat(Errs(few, {}), few)
    assert not record.mistakes and not record.passed
    assert "needs more exam answers" in record.reasons[0]
    wide = record.rate(acceptable=False)
    narrow = sat(Errs(few, {}), draw(scenarios(), seed="one", per_kind=3)).rate(acceptable=False)
    assert wide.high > 0.05 and narrow.rate == 0


def test_a_judge_that_looks_for_exams_finds_none(exam: DrawnExam) -> None:
    KEY.clear()
    KEY.update({(p.question.text, p.answer): p.acceptable for p in exam.probes})
    assert sat(Knows(), exam).passed
    assert not sat(LooksForExams(), exam).passed


def test_a_judge_that_memorised_another_exam_fails(exam: DrawnExam) -> None:
    known = draw(scenarios(), seed="published", per_kind=120)
    KEY.clear()
    KEY.update({(p.question.text, p.answer): p.acceptable for p in known.probes})
    assert sat(lenient_judges.Memorised(), known).passed
    assert not sat(lenient_judges.Memorised(), exam).passed


# Kept records


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MNEMOSCOPE_DATA_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_kept_exam_is_found_by_judge_and_data_and_a_timeout_is_no_part_of_it(home: Path) -> None:
    identity = {"name": "binary", "arguments": {"model": "openai:m?timeout=5&temperature=1"}}
    keep(exam_record(judge=exam_identity(identity), data=["d"]))
    slower = {"name": "binary", "arguments": {"model": "openai:m?temperature=1&timeout=500"}}
    assert kept(identity, "locomo", ["d"]).record is not None
    assert kept({**slower, "timeout": 3}, "locomo", ["d"]).record is not None
    other = {"name": "binary", "arguments": {"model": "openai:m?temperature=2"}}
    assert kept(other, "locomo", ["d"]).record is None
    assert kept(identity, "longmemeval", ["d"]).record is None
    assert kept(identity, "locomo", ["e"]).record is None


def test_an_exam_of_older_rules_is_not_reused(home: Path) -> None:
    for rules, counts in ((RULES, True), (RULES - 1, False)):
        keep(exam_record(judge={"name": "a"}, data=["d"], rules=rules))
        assert (kept({"name": "a"}, "locomo", ["d"]).record is not None) == counts


def test_an_edited_exam_does_not_count(home: Path) -> None:
    place = keep(exam_record(judge={"name": "a"}, data=["d"], false_accepts=300))
    content = msgspec.json.decode(place.read_bytes())
    for verdict in content["verdicts"]:
        verdict["accepted"] = verdict["acceptable"]
    place.write_bytes(msgspec.json.encode(content))
    found = kept({"name": "a"}, "locomo", ["d"])
    assert found.record is None and "edited" in found.problem


@pytest.mark.parametrize("vouched", [False, True])
def test_the_exam_of_another_judge_or_benchmark_does_not_count(home: Path, vouched: bool) -> None:
    good = keep(exam_record(judge={"name": "good"}, data=["d"]))
    bad = keep(exam_record(judge={"name": "bad"}, data=["d"], false_accepts=300))
    other = keep(exam_record("strata", judge={"name": "good"}, data=["d"], false_accepts=300))
    for place in (bad, other):
        place.write_bytes(good.read_bytes())
        if vouched:  # even with the hash of the copied file in the list
            lines = home / "home" / "exams.jsonl"
            last = msgspec.json.decode(lines.read_bytes().splitlines()[0])
            with lines.open("ab") as file:
                file.write(msgspec.json.encode({**last, "exam": place.name}) + b"\n")
    copied = kept({"name": "bad"}, "locomo", ["d"])
    moved = kept({"name": "good"}, "strata", ["d"])
    assert copied.record is None and moved.record is None
    if vouched:
        assert "another judge" in copied.problem and "another benchmark" in moved.problem


def test_the_seed_is_secret_and_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = installation_seed("locomo", ["d"])
    assert installation_seed("locomo", ["d"]) == first != installation_seed("strata", ["d"])
    monkeypatch.setenv("MNEMOSCOPE_DATA_HOME", str(home / "elsewhere"))
    assert installation_seed("locomo", ["d"]) != first


def test_a_panel_and_an_appeal_are_examined_by_the_verdicts_of_all() -> None:
    yes = exam_record(false_accepts=300)
    good, other = exam_record(), exam_record(false_rejects=300)
    panel = combined([yes, good, other], rule="majority")
    assert panel is not None and panel.passed
    appeal = combined([good, yes], rule="appeal")
    assert appeal is not None and not appeal.passed
    assert appeal.rate(acceptable=False).errors == 300
    assert combined([good, exam_record("strata")], rule="majority") is None


# The command's function


def test_an_exam_is_kept_and_reused(home: Path, write_locomo: Callable[..., Path]) -> None:
    data = write_locomo(home / "locomo10.json", conversations=2)
    first = examine("exact", benchmark="locomo", data=data)
    assert first.file is not None and not first.record.passed
    assert first.record.data == tuple(file.sha256 for file in open_dataset("locomo", data).files())
    again = examine("exact", benchmark="locomo", data=data)
    assert again.reused and again.record == first.record
    assert examine("exact", benchmark="locomo", data=data, seed="7").file is None
    with pytest.raises(UsageError, match="either a benchmark or a file"):
        examine("exact")


def test_an_exam_cannot_leave_out_the_questions_at_which_a_judge_fails(
    home: Path, write_locomo: Callable[..., Path]
) -> None:
    data = write_locomo(home / "locomo10.json", conversations=2)
    content = json.loads(data.read_text())
    content[0]["qa"][0] |= {"category": 5, "adversarial_answer": "wrong"}
    data.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"--adversarial leaves out 9 of 40 questions"):
        examine("exact", benchmark="locomo", data=data, options={"adversarial": "off"})
    found = examine("exact", benchmark="locomo", data=data, options={"granularity": "turn"})
    assert found.file is not None


def test_a_labelled_set_gives_errors_but_is_not_kept(home: Path) -> None:
    lines = [
        {"question": "Where?", "reference": "Oslo", "answer": "Oslo", "correct": True},
        {"question": "Where?", "reference": "Oslo", "answer": "Rome", "correct": False},
        {"question": "Who?", "reference": "Eve", "answer": "EVE", "correct": False, "kind": "odd"},
    ]
    place = home / "own.jsonl"
    place.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    found = examine("exact", probes=place)
    assert found.file is None
    assert {k: v["false_accepts"] for k, v in found.record.kinds().items()} == {
        "odd": 1,
        "right": 0,
        "wrong": 0,
    }
    place.write_text('{"question": "Where?"}\n')
    with pytest.raises(DataError, match=r"own\.jsonl, line 1.*reference"):
        examine("exact", probes=place)


@pytest.mark.parametrize(
    ("question", "reference", "expected"),
    [
        ("When?", "The Friday before 15 July 2023", "date"),
        ("When?", "June, 2023", "date"),
        ("How many?", "three times", "number"),
        ("What?", "soda, candy", "list"),
        ("Would she?", "Likely no; she left", "yes-no"),
        ("What?", "a blue vase", "text"),
    ],
)
def test_types_of_references(question: str, reference: str, expected: str) -> None:
    assert type_of(question, reference) == expected


def test_a_run_records_the_exam_that_its_judge_really_sat(
    home: Path, write_locomo: Callable[..., Path]
) -> None:
    data = write_locomo(home / "locomo10.json", conversations=6)
    sat = examine(f"{LENIENT}:SaysYes", benchmark="locomo", data=data).record
    parts = ["--reader", "extractive", "--judge", f"{LENIENT}:SaysYes", "--no-arms"]
    run = ["run", "locomo", "--data", str(data), "--system", "bm25", "--workers", "1"]
    assert invoke([*run, *parts, "--out", str(home / "out")]) == 0
    sheet = RunDirectory(home / "out/bm25").read_json("answers.json")
    wrong = sat.rate(acceptable=False)
    assert sheet["withheld"] == (
        f"withheld: the judge accepts wrong answers too often ({wrong.text})"
    )


def test_the_answers_written_by_hand_are_many_and_apart_from_the_rules() -> None:
    place = Path(__file__).with_name("wrong_by_hand.jsonl")
    found = read_labelled(place)
    assert len({(one.question.text, one.answer) for one in found.probes}) >= 200
    assert not any(one.acceptable for one in found.probes)
    record = sat(lenient_judges.SaysYes(), found)
    assert record.rate(acceptable=False).rate == 1.0


def test_the_answers_written_to_locomo_hold_none_of_its_text() -> None:
    lines = Path(__file__).with_name("wrong_to_locomo.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len({row["question"] for row in rows}) == len(rows) >= 200
    assert all(set(row) == {"question", "answer"} for row in rows)


def cells(*parts: tuple[str, int, float]) -> list[ErrorCell]:
    """Wrong answers by shared words, with errors of 100 and a weight."""
    return [
        ErrorCell("vaguer", False, "text, plain", 100, errors, 0, weight, shared)
        for shared, errors, weight in parts
    ]


def test_a_judge_that_errs_on_near_misses_has_a_wide_range_over_mixes() -> None:
    shares = {"text, plain": 1.0}
    alike = cells(("none", 10, 0.8), ("most", 10, 0.2))
    words = cells(("none", 0, 0.9), ("most", 100, 0.1))
    drawn = [error_rate(own, shares) for own in (alike, words)]
    ranges = [mix_range(own, shares) for own in (alike, words)]
    assert drawn[0].rate == pytest.approx(drawn[1].rate) == pytest.approx(0.1)
    # Where every answer has the same rate, the mix does not matter.
    assert ranges[0].low == pytest.approx(drawn[0].low, abs=0.005)
    assert ranges[0].high == pytest.approx(drawn[0].high, abs=0.005)
    assert ranges[1].low < 0.02 and ranges[1].high > 0.4
    assert mix_range(cells(("none", 0, 1.0)), shares).low == 0.0
    assert mix_range([], shares) == (0.0, 1.0)


def test_a_judge_that_always_errs_has_a_rate_of_one_whatever_the_weights_add_up_to() -> None:
    """Weights of a third, and of 0.1, do not add up to one in binary."""
    shares = {f"text, {number}": 0.1 for number in range(10)}
    many = [
        ErrorCell(kind, True, stratum, 300, 300, 0, 1 / 3, "most")
        for stratum in shares
        for kind in "abc"
    ]
    found = error_rate(many, shares)
    assert (found.rate, found.high) == (1.0, 1.0) and 0.9 < found.low < 1
    assert mix_range(many, shares).high == 1.0
