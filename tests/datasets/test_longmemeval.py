"""LongMemEval: oracle and S counted as in datasets.md §2, ids that tell nothing, streaming.

S is read once, in a process of its own that measures its memory and reports what it saw.
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets.longmemeval import LongMemEval
from mnemoscope.systems.loader import Driver
from mnemoscope.types import Hit, Memory, Query, Question, Scenario

Shared = Callable[[str], Path]
Row = dict[str, Any]
MEGABYTE = 1 << 20

TYPES = {
    "type temporal-reasoning": 133,
    "type multi-session": 133,
    "type knowledge-update": 78,
    "type single-session-user": 70,
    "type single-session-assistant": 56,
    "type single-session-preference": 30,
}


@pytest.fixture(scope="module")
def folder(shared_data: Shared) -> Path:
    return shared_data("longmemeval")


@pytest.fixture(scope="module")
def raw(folder: Path) -> list[Row]:
    packed = (folder / "longmemeval_oracle.json.xz").read_bytes()
    items: list[Row] = json.loads(lzma.decompress(packed))
    return items


@pytest.fixture(scope="module")
def oracle(folder: Path) -> list[Scenario]:
    return list(LongMemEval(folder, variant="oracle").scenarios())


def test_the_oracle_file_holds_what_was_counted(folder: Path) -> None:
    dataset = LongMemEval(folder, variant="oracle")
    scenarios = list(dataset.scenarios())
    assert dataset.counts() == {
        "questions": 500,
        "sessions": 948,
        "turns": 10_960,
        "memories": 948,
        "abstention, not measured": 30,
        "sessions after the question": 65,
        **TYPES,
    }
    assert dataset.findings.counts == {
        "haystack not in date order, sorted": 34,
        "haystack with sessions after the question": 43,
    }
    assert len(scenarios) == 500
    [file] = dataset.files()
    assert file.matches_pin is True


@pytest.mark.parametrize(
    ("granularity", "memories"), [("session", 948), ("round", 5_484), ("turn", 10_960)]
)
def test_470_questions_are_measured_at_every_granularity(
    folder: Path, granularity: Any, memories: int
) -> None:
    dataset = LongMemEval(folder, variant="oracle", granularity=granularity)
    questions = [scenario.questions[0] for scenario in dataset.scenarios()]
    assert sum(bool(question.evidence) for question in questions) == 470
    assert dataset.counts()["memories"] == memories


def test_abstention_questions_are_measured_only_on_request(folder: Path) -> None:
    for abstention, measured in (("skip", 0), ("score", 30)):
        dataset = LongMemEval(folder, variant="oracle", abstention=abstention)  # type: ignore[arg-type]
        own = [one.questions[0] for one in dataset.scenarios()]
        abstaining = [question for question in own if question.id.endswith("_abs")]
        assert len(abstaining) == 30
        assert {question.expects for question in abstaining} == {"abstain"}
        assert sum(bool(question.evidence) for question in abstaining) == measured
        assert sum(bool(question.evidence) for question in own) == 470 + measured


def test_evidence_sessions_are_those_the_file_names(oracle: list[Scenario], raw: list[Row]) -> None:
    for scenario, item in zip(oracle, raw, strict=True):
        ids = item["haystack_session_ids"]
        named = {n for n, id in enumerate(ids) if id in item["answer_session_ids"]}
        expected = set() if item["question_id"].endswith("_abs") else named
        found = {int(id.rpartition("/s")[2]) for id in scenario.questions[0].evidence}
        assert found == expected


@pytest.mark.parametrize("granularity", ["round", "turn"])
def test_finer_evidence_is_where_the_answer_is_said(
    folder: Path, raw: list[Row], granularity: Any
) -> None:
    """842 user and 54 assistant turns say an answer; a round holds one or two of them."""
    dataset = LongMemEval(folder, variant="oracle", granularity=granularity, abstention="score")
    evidence = 0
    for scenario, item in zip(dataset.scenarios(), raw, strict=True):
        texts = {memory.id: memory.text for memory in scenario.memories}
        said = [
            f"{turn['role']}: {turn['content']}"
            for session in item["haystack_sessions"]
            for turn in session
            if turn.get("has_answer")
        ]
        own = [texts[id] for id in scenario.questions[0].evidence]
        evidence += len(own)
        assert all(any(line in text for text in own) for line in said)
        assert all(any(line in text for line in said) for text in own)
    if granularity == "turn":
        assert evidence == 842 + 54
    assert dataset.findings.counts[f"no evidence at {granularity} granularity"] == 21


def test_rounds_begin_with_the_user_and_hold_every_turn_once(folder: Path, raw: list[Row]) -> None:
    scenarios = LongMemEval(folder, variant="oracle", granularity="round").scenarios()
    for scenario, item in zip(scenarios, raw, strict=True):
        rounds: dict[str, list[Memory]] = {}
        for memory in scenario.memories:
            rounds.setdefault(memory.session, []).append(memory)
        for number, session in enumerate(item["haystack_sessions"]):
            own = sorted(rounds[f"{scenario.id}/s{number:03}"], key=lambda memory: memory.id)
            whole = "\n".join(f"{turn['role']}: {turn['content']}" for turn in session)
            assert "\n".join(memory.text for memory in own) == whole
            assert all(memory.text.startswith("user: ") for memory in own[1:])


def test_answers_that_are_numbers_become_text(oracle: list[Scenario], raw: list[Row]) -> None:
    assert sum(isinstance(item["answer"], int) for item in raw) == 32
    for scenario, item in zip(oracle, raw, strict=True):
        assert scenario.questions[0].reference == str(item["answer"])


def test_memories_come_in_order_of_time(oracle: list[Scenario]) -> None:
    moved = 0
    for scenario in oracle:
        times = [memory.at for memory in scenario.memories if memory.at is not None]
        assert len(times) == len(scenario.memories)
        assert times == sorted(times)
        ids = [memory.id for memory in scenario.memories]
        moved += ids != sorted(ids)
    assert moved == 34


def test_dates_stand_in_a_line_above_the_text_on_request(folder: Path, raw: list[Row]) -> None:
    scenario = next(iter(LongMemEval(folder, variant="oracle", dates=True).scenarios()))
    stamps = {f"[{stamp}]" for stamp in raw[0]["haystack_dates"]}
    assert {memory.text.partition("\n")[0] for memory in scenario.memories} == stamps


class Spy:
    """Keeps everything it is given, the texts apart."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def reset(self, scope: str) -> None:
        self.told.append(scope)

    def remember(self, memories: Sequence[Memory]) -> None:
        for memory in memories:
            bare = msgspec.structs.replace(memory, text="")
            self.told.append(msgspec.json.encode(bare).decode())

    def recall(self, query: Query, k: int) -> list[Hit]:
        self.told.append(msgspec.json.encode(msgspec.structs.replace(query, text="")).decode())
        return []


@pytest.mark.parametrize("granularity", ["session", "round", "turn"])
def test_nothing_a_system_sees_tells_evidence_or_abstention(
    folder: Path, raw: list[Row], granularity: Any
) -> None:
    spy = Spy()
    driver = Driver(lambda: spy)
    for scenario in LongMemEval(folder, variant="oracle", granularity=granularity).scenarios():
        driver.begin(scenario.id)
        driver.remember(scenario.memories)
        driver.recall(scenario.questions[0], 10)
    told = "\n".join(spy.told)
    assert len(spy.told) > 1_900
    for word in ("answer", "abs", "evidence", "ultrachat", "sharegpt"):
        assert word not in told
    question_ids = [item["question_id"] for item in raw]
    assert not [id for id in question_ids if id in told]


def test_abstention_does_not_show_in_the_scenario_ids(oracle: list[Scenario]) -> None:
    assert [scenario.id for scenario in oracle] == [f"q{number:03}" for number in range(500)]


READ_S = """
import json, sys
from collections import Counter
from pathlib import Path
from mnemoscope.datasets.longmemeval import LongMemEval

dataset = LongMemEval(Path(sys.argv[1]), variant="s")
ids, measured, told, unsorted_now, repeated_text = Counter(), 0, 0, 0, Counter()
for scenario in dataset.scenarios():
    ids.update(memory.id for memory in scenario.memories)
    measured += bool(scenario.questions[0].evidence)
    seen = [scenario.id, *(x for m in scenario.memories for x in (m.id, m.session, m.speaker))]
    told += any("answer" in x or "abs" in x for x in seen)
    times = [memory.at for memory in scenario.memories]
    unsorted_now += times != sorted(times)
    repeated_text[len(scenario.memories) - len({memory.text for memory in scenario.memories})] += 1
peak = next(
    int(line.split()[1]) * 1024
    for line in Path("/proc/self/status").read_text().splitlines()
    if line.startswith("VmHWM")
)
print(json.dumps({
    "counts": dict(dataset.counts()),
    "findings": dict(dataset.findings.counts),
    "examples": dataset.findings.examples,
    "measured": measured,
    "repeated ids": sum(n > 1 for n in ids.values()),
    "told": told,
    "unsorted": unsorted_now,
    "haystacks with a text twice": sum(n for extra, n in repeated_text.items() if extra),
    "peak": peak,
}))
"""


@pytest.fixture(scope="module")
def s_file(folder: Path) -> Row:
    """What a process saw that read all of S."""
    done = subprocess.run(
        [sys.executable, "-c", READ_S, folder], capture_output=True, text=True, check=True
    )
    seen: Row = json.loads(done.stdout)
    return seen


def test_s_holds_499_of_500_and_names_the_absent_one(s_file: Row) -> None:
    assert s_file["counts"] == {
        "questions": 499,
        "sessions": 23_806,
        "turns": 246_189,
        "memories": 23_806,
        "abstention, not measured": 30,
        "sessions after the question": 1_475,
        **TYPES,
        "type temporal-reasoning": 132,
    }
    assert s_file["examples"]["question missing: 499 of 500 found"] == ["gpt4_7a0daae1"]
    assert s_file["measured"] == 469


def test_s_has_its_known_oddities_and_each_is_a_finding(s_file: Row) -> None:
    assert s_file["findings"] == {
        "haystack not in date order, sorted": 210,
        "haystack with sessions after the question": 76,
        "duplicate session id in a haystack": 13,
        "empty turn": 12,
        "question missing: 499 of 500 found": 1,
    }


def test_a_session_id_twice_in_a_haystack_is_two_memories(s_file: Row) -> None:
    assert s_file["repeated ids"] == 0
    assert s_file["haystacks with a text twice"] == 13


def test_s_is_sorted_and_tells_nothing(s_file: Row) -> None:
    assert s_file["unsorted"] == 0
    assert s_file["told"] == 0


def test_s_is_streamed(s_file: Row) -> None:
    """Measured: 130 MB, where a list of all items would take 455."""
    assert s_file["peak"] < 250 * MEGABYTE


# From here on, small files of our own.

FIRST = "gpt4_2655b836"
"""The release's first question."""


def item(id: str = FIRST, **changes: Any) -> Row:
    row: Row = {
        "question_id": id,
        "question_type": "single-session-user",
        "question": "Which degree?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "Business",
        "answer_session_ids": ["answer_1"],
        "haystack_dates": ["2023/05/21 (Sun) 02:21", "2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["other_1", "answer_1"],
        "haystack_sessions": [
            [{"role": "user", "content": "hi"}],
            [{"role": "user", "content": "I study business", "has_answer": True}],
        ],
    }
    row.update(changes)
    return {key: value for key, value in row.items() if value is not ...}


def written(folder: Path, content: Any, name: str = "longmemeval_s_cleaned.json") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def in_lines(*items: Row) -> bytes:
    """A file whose items start on lines 2, 4, 6 and so on."""
    return ("[\n" + ",\n\n".join(map(json.dumps, items)) + "\n]").encode()


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        list(LongMemEval(path, **options).scenarios())
    assert str(path) in str(caught.value)
    return str(caught.value).replace(str(path), "FILE")


def question(path: Path, **options: Any) -> Question:
    [scenario] = LongMemEval(path, **options).scenarios()
    return scenario.questions[0]


def test_a_small_file_is_read_and_says_how_much_is_missing(tmp_path: Path) -> None:
    dataset = LongMemEval(written(tmp_path, [item()]))
    [scenario] = dataset.scenarios()
    assert [memory.text for memory in scenario.memories] == ["user: I study business", "user: hi"]
    assert scenario.questions[0].evidence == (scenario.memories[0].id,)
    assert dataset.findings.counts["question missing: 1 of 500 found"] == 499


def test_a_question_outside_the_release_is_read_and_reported(tmp_path: Path) -> None:
    dataset = LongMemEval(written(tmp_path, [item("mine_abs"), item("mine")]))
    scenarios = list(dataset.scenarios())
    assert [scenario.id for scenario in scenarios] == ["q500", "q501"]
    found = dataset.findings.examples["question not in the official release"]
    assert found == ["mine_abs", "mine"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"question": 5}, r"Expected `str`, got `int` - at `\$\.question`"),
        ({"answer": None}, r"at `\$\.answer`"),
        ({"answer": ...}, "missing required field `answer`"),
        ({"haystack_sessions": ...}, "missing required field `haystack_sessions`"),
        ({"haystack_sessions": [[{"role": "user"}], []]}, "missing required field `content`"),
        ({"question_type": "riddle"}, "two: unknown question_type 'riddle'"),
        ({"haystack_dates": []}, "two: the numbers of haystack dates, ids and sessions differ"),
        ({"question_date": "2023-05-30"}, "two: cannot read the date '2023-05-30'"),
        ({"haystack_dates": ["2023/05/20 (Sat) 02:21", "x"]}, "two: cannot read the date 'x'"),
        ({"question_id": "one"}, "duplicate question_id 'one'"),
    ],
)
def test_a_bad_item_is_named_with_file_and_line(tmp_path: Path, changes: Row, said: str) -> None:
    problem = refusal(written(tmp_path, in_lines(item("one"), item("two", **changes))))
    assert problem.startswith("FILE, line 4: ")
    assert re.search(said, problem)


def test_malformed_json_is_named_with_file_and_line(tmp_path: Path) -> None:
    content = in_lines(item("one"), item("two")).replace(b'"two",', b'"two"')
    problem = refusal(written(tmp_path, content))
    assert problem == "FILE, line 4: malformed JSON: Expecting ',' delimiter"


def test_an_archive_that_breaks_off_is_an_error_and_no_shorter_dataset(tmp_path: Path) -> None:
    packed = lzma.compress(json.dumps([item(str(n)) for n in range(500)]).encode())
    path = written(tmp_path, packed[:-60], "longmemeval_s_cleaned.json.xz")
    assert "cannot unpack" in refusal(path)


def test_evidence_that_is_not_in_the_haystack_is_a_finding(tmp_path: Path) -> None:
    dataset = LongMemEval(written(tmp_path, [item(answer_session_ids=["answer_1", "lost"])]))
    [scenario] = dataset.scenarios()
    assert len(scenario.questions[0].evidence) == 1
    assert dataset.findings.counts["dangling evidence: session not in haystack"] == 1


@pytest.mark.parametrize(("minute", "late"), [("39", 0), ("40", 0), ("41", 1)])
def test_only_sessions_after_the_question_are_late(tmp_path: Path, minute: str, late: int) -> None:
    dates = ["2023/05/20 (Sat) 02:21", f"2023/05/30 (Tue) 23:{minute}"]
    dataset = LongMemEval(written(tmp_path, [item(haystack_dates=dates)]))
    list(dataset.scenarios())
    assert dataset.counts().get("sessions after the question", 0) == late
    assert dataset.findings.counts["haystack with sessions after the question"] == late


def test_a_mark_that_says_false_is_no_evidence(tmp_path: Path) -> None:
    """`has_answer` stands on every turn of evidence sessions, true or false."""
    session = [
        {"role": "user", "content": "hi", "has_answer": False},
        {"role": "assistant", "content": "It was business", "has_answer": True},
    ]
    path = written(tmp_path, [item(haystack_sessions=[[], session])])
    assert question(path, granularity="turn").evidence == ("q000/s001:001",)
    assert question(path, granularity="round").evidence == ("q000/s001:000",)


def test_the_files_own_ids_are_kept_for_scoring_others_rankings(tmp_path: Path) -> None:
    dataset = LongMemEval(written(tmp_path, [item()]))
    list(dataset.scenarios())
    assert dataset.original_ids == {
        ("q000", "other_1"): "q000/s000",
        ("q000", "answer_1"): "q000/s001",
    }


@pytest.mark.parametrize("variant", ["oracle", "s", "m"])
def test_a_folder_without_the_variant_says_what_was_looked_for(
    tmp_path: Path, variant: Any
) -> None:
    with pytest.raises(MissingData, match=rf"longmemeval_{variant}"):
        LongMemEval(tmp_path, variant=variant)


def test_questions_of_each_type_are_counted(oracle: list[Scenario]) -> None:
    counted = Counter(f"type {scenario.questions[0].category}" for scenario in oracle)
    assert counted == TYPES


def test_a_packed_file_that_is_replaced_after_it_was_hashed_is_read_anew(
    folder: Path, tmp_path: Path
) -> None:
    """`files` keeps what it unpacked; the scenarios must not come from a file that is gone."""
    items = json.loads(lzma.decompress((folder / "longmemeval_oracle.json.xz").read_bytes()))
    packed = tmp_path / "longmemeval_oracle.json.xz"
    packed.write_bytes(lzma.compress(json.dumps(items[:2]).encode(), preset=0))
    dataset = LongMemEval(tmp_path, variant="oracle")
    dataset.files()
    assert dataset._kept
    assert len(list(dataset.scenarios())) == 2

    packed.write_bytes(lzma.compress(json.dumps(items[:1]).encode(), preset=0))

    assert len(list(dataset.scenarios())) == 1
