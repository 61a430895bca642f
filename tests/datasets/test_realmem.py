"""RealMem, on small files of its format: neutral ids, only earlier sessions, no labels ingested."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets import dataset_info
from mnemoscope.datasets.dataset_check import check
from mnemoscope.datasets.realmem import RealMem

Write = Callable[..., Path]


def session(number: int, day: str, *turns: dict[str, Any], filler: bool = False) -> dict[str, Any]:
    name = f"Enhanced:chat_{number}" if filler else f"Travel_Planning_2:S1_{number:02}"
    said = {"speaker": "User", "content": f"Topic {number}.", "is_query": False}
    noted = {"speaker": "Assistant", "content": "Noted.", "is_query": False}
    return {
        "session_identifier": name,
        "session_uuid": f"uuid-{number}",
        "current_time": f"{day} (Monday)",
        "dialogue_turns": [said, noted, *turns],
        "extracted_memory": [{"index": 1, "content": {"a": "LABEL"}, "session_uuid": "x"}],
    }


def query(text: str, *uuids: str, is_query: bool = True) -> list[dict[str, Any]]:
    used = [{"session_uuid": uuid, "content": "LABEL"} for uuid in uuids]
    return [
        {
            "speaker": "User",
            "content": text,
            "is_query": is_query,
            "query_id": "Q1",
            "topic": "travel",
            "category_name": "Dynamic Updating",
        },
        {
            "speaker": "Assistant",
            "content": f"Reply to {text}",
            "memory_used": used,
            "memory_session_uuids": list(uuids),
        },
    ]


SESSIONS = [
    session(0, "2025-12-01"),
    session(1, "2025-12-08", filler=True),
    session(2, "2025-12-05", *query("Where to?", "uuid-0")),
    session(
        3,
        "2025-12-15",
        *query("And then?", "uuid-2", "uuid-0", "uuid-3"),
        *query("Unmarked?", "uuid-0", is_query=False),
    ),
]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_person(sessions: Any = SESSIONS) -> Path:
        content = {"_metadata": {"person_name": "Ann Lee"}, "dialogues": sessions}
        (tmp_path / "Ann_Lee_dialogues_256k.json").write_text(json.dumps(content))
        return tmp_path

    return write_person


def test_a_query_is_asked_of_the_sessions_before_its_own(write: Write) -> None:
    dataset = RealMem(write())
    first, second = dataset.scenarios()
    assert [len(one.memories) for one in (first, second)] == [2, 3]
    [question] = second.questions
    assert question.evidence == ("Ann_Lee-003/s002", "Ann_Lee-003/s000")
    assert (question.reference, question.cluster) == ("Reply to And then?", "Ann_Lee")
    assert dataset.findings.counts == {
        "not all persons": 1,
        "unsorted dates, in file order": 1,
        "evidence in the session of the query, dropped": 1,
        "turn with evidence that is no query, not asked": 1,
    }
    assert dataset.counts() == {
        "persons": 1,
        "sessions": 4,
        "fillers": 1,
        "turns": 14,
        "scenarios": 2,
        "memories": 5,
        "questions": 2,
        "category Dynamic Updating": 2,
        "evidence: one session": 1,
        "evidence: several sessions": 1,
    }


def test_nothing_that_a_system_sees_tells_fillers_or_labels(write: Write) -> None:
    """The cheat: drop what is named Enhanced, or search the extracted memories."""
    for granularity in ("session", "turn"):
        dataset = RealMem(write(), granularity=granularity)
        for scenario in dataset.scenarios():
            seen = str(scenario.memories)
            assert not any(word in seen for word in ("Enhanced", "Travel", "uuid", "LABEL"))
        assert not check(dataset, subset=True).problems


def test_turns_are_parts_of_their_session(write: Write) -> None:
    *_, scenario = RealMem(write(), granularity="turn").scenarios()
    assert {memory.part_of for memory in scenario.memories} >= set(scenario.questions[0].evidence)
    assert len(scenario.memories) == 8


def test_the_order_of_dates_is_an_option(write: Write) -> None:
    dataset = RealMem(write(), order="date", dates=True)
    first, _ = dataset.scenarios()
    assert [memory.text.partition("]")[0] for memory in first.memories] == ["[2025-12-01 (Monday)"]
    assert first.questions[0].evidence == ("Ann_Lee-001/s000",)


def test_later_and_unknown_sessions_are_no_evidence(write: Write) -> None:
    changed = [
        SESSIONS[0],
        session(1, "2025-12-08", *query("When?", "uuid-2", "uuid-9")),
        SESSIONS[2],
    ]
    dataset = RealMem(write(changed))
    scenario = next(dataset.scenarios())
    assert scenario.questions[0].evidence == ()
    assert dataset.findings.counts["evidence after the query, dropped"] == 1
    assert dataset.findings.counts["dangling evidence: no such session"] == 1
    assert dataset.findings.counts["no evidence before the query, not measured"] == 1


def test_ten_files_are_pinned_and_a_part_does_not_pass_for_the_whole(write: Write) -> None:
    pinned = dataset_info("realmem").files
    assert len(pinned) == 10
    assert all(file.url and file.sha256 and file.bytes for file in pinned.values())
    [file] = RealMem(write()).files()
    assert file.matches_pin is False


def test_other_files_are_refused(write: Write, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="contains no PERSON_dialogues_256k"):
        RealMem(tmp_path)
    with pytest.raises(DataError, match="cannot read the date 'Monday"):
        list(RealMem(write([{**SESSIONS[0], "current_time": "Monday"}])).scenarios())
    with pytest.raises(DataError, match="duplicate session_uuid 'uuid-0'"):
        list(RealMem(write([SESSIONS[0], SESSIONS[0]])).scenarios())
