"""RHELM: counts of datasets-more.md §4, its BM25 row reproduced, repairs, files as memories."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lexical_recall import lexical_recall

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets.dataset_check import check
from mnemoscope.datasets.rhelm import Rhelm
from mnemoscope.types import Scenario

Shared = Callable[[str], Path]
ROLES = re.compile(r"^user: |\nassistant: ")
TYPES = {
    "type attachment": 249,
    "type mixed": 210,
    "type fact": 207,
    "type hallucination": 197,
    "type aggregation": 192,
    "type temporal": 185,
    "type misleading": 65,
}


@pytest.fixture(scope="module")
def persons(shared_data: Shared) -> tuple[Rhelm, list[Scenario]]:
    dataset = Rhelm(shared_data("rhelm"))
    return dataset, list(dataset.scenarios())


def test_it_has_what_was_counted(persons: tuple[Rhelm, list[Scenario]]) -> None:
    """One entry that the facts count as unresolved names three turns, and is split."""
    dataset, scenarios = persons
    assert dataset.counts() == {
        "persons": 10,
        "sessions": 629,
        "turns": 11_774,
        "memories": 11_774,
        "questions": 1_305,
        **TYPES,
        "evidence: turns only": 863 + 1,
        "evidence: files only": 413,
        "evidence: turns and files": 29 - 1,
        "evidence in files, not measured": 441,
        "evidence not complete, not measured": 1,
    }
    assert dataset.findings.counts == {
        "joined evidence, split": 2,
        "dangling evidence: no such turn": 1,
        "evidence later than the question": 8,
    }
    assert sum(bool(q.evidence) for one in scenarios for q in one.questions) == 863
    [file] = dataset.files()
    assert file.matches_pin is True


def test_the_bm25_row_of_the_facts_is_reproduced(persons: tuple[Rhelm, list[Scenario]]) -> None:
    """Without the names of the speakers and without the question whose evidence we split."""
    found = lexical_recall(
        persons[1],
        text_of=lambda text: ROLES.sub(" ", text),
        counts=lambda question: question.id != "David_Reyes/aggregation_8888d3",
    )
    assert found == (862, {5: 0.2166, 10: 0.3128, 20: 0.3960})


def test_one_persons_files_become_memories(shared_data: Shared) -> None:
    dataset = Rhelm(shared_data("rhelm"), sources="all")
    checked = check(dataset)
    assert not checked.leaked
    assert (checked.counts["emails"], checked.counts["attachments"]) == (46, 38)
    assert dataset.tree_sha256 is None


def session(day: str, turns: int = 3) -> dict[str, Any]:
    return {
        "date": day,
        "conversation_summary": "the answer is Oslo",
        "conversation": [
            {
                "turn": number,
                "timestamp": f"{day}T0{number}:00:00",
                "message_type": "status_update",
                "user": f"Said {number} on {day}.",
                "assistant": "Noted.",
                **({"research_document": "out/01_notes.md"} if number == 2 else {}),
            }
            for number in range(1, turns + 1)
        ],
    }


def asked(id: str, *evidence: str, kind: str = "fact", on: str = "2024-03-01") -> dict[str, Any]:
    return {
        "id": id,
        "question": f"What of {id}?",
        "answer": "Oslo",
        "question_date": on,
        "question_type": kind,
        "supporting_evidence": list(evidence),
        "characteristics": [],
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_person(*questions: dict[str, Any]) -> Path:
        for folder in ("conversations", "emails", "attachments"):
            (tmp_path / "data" / folder / "Ann_Lee").mkdir(parents=True)
        (tmp_path / "data/QA_final").mkdir()
        for day in ("2024-02-01", "2024-02-03"):
            name = f"conversation_{day.replace('-', '_')}.json"
            path = tmp_path / "data/conversations/Ann_Lee" / name
            path.write_text(json.dumps(session(day)))
        (tmp_path / "data/emails/Ann_Lee/01_email_2024_02_02.txt").write_text("Sender: Ann")
        (tmp_path / "data/attachments/Ann_Lee/01_notes.md").write_text("# Paella\nbarley")
        lines = "\n".join(map(json.dumps, questions))
        file = tmp_path / "data/QA_final/low_score_qa_Ann_Lee_all_validated.jsonl"
        file.write_text(lines + "\n")
        return tmp_path

    return write_person


def evidence_of(dataset: Rhelm) -> dict[str, tuple[str, ...]]:
    [scenario] = dataset.scenarios()
    return {one.id.rpartition("/")[2]: one.evidence for one in scenario.questions}


QUESTIONS = (
    asked("one", "2024-02-01:2"),
    asked("joined", "2024-02-01:1,3"),
    asked("gone", "2024-02-01:2", "2024-02-01:9"),
    asked("late", "2024-02-03:1", on="2024-02-02"),
    asked("mail", "Emails_2024-02-02:Header: Email", kind="mixed"),
    asked("both", "2024-02-03:1", "01_notes.md:Paella", kind="attachment"),
    asked("bare", "01_notes:Paella", kind="attachment"),
)


def test_questions_about_files_are_measured_only_with_the_files(write: Any) -> None:
    data = write(*QUESTIONS)
    turns, every = evidence_of(Rhelm(data)), evidence_of(Rhelm(data, sources="all"))
    assert turns == {
        "one": ("Ann_Lee/2024-02-01:02",),
        "joined": ("Ann_Lee/2024-02-01:01", "Ann_Lee/2024-02-01:03"),
        "gone": (),
        "late": ("Ann_Lee/2024-02-03:01",),
        "mail": (),
        "both": (),
        "bare": (),
    }
    assert every == turns | {
        "mail": ("Ann_Lee/e000",),
        "both": ("Ann_Lee/2024-02-03:01", "Ann_Lee/f000"),
    }


def test_every_loss_is_a_finding(write: Any) -> None:
    dataset = Rhelm(write(*QUESTIONS), sources="all")
    list(dataset.scenarios())
    assert dataset.findings.counts == {
        "not all persons": 1,
        "joined evidence, split": 1,
        "dangling evidence: no such turn": 1,
        "evidence later than the question": 1,
        "dangling evidence: malformed": 1,
    }


def test_memories_are_in_time_order_and_without_summaries(write: Any) -> None:
    dataset = Rhelm(write(*QUESTIONS), sources="all", dates=True)
    [scenario] = dataset.scenarios()
    assert [memory.id.rpartition("/")[2] for memory in scenario.memories] == [
        *("2024-02-01:01", "2024-02-01:02", "f000", "2024-02-01:03"),
        *("e000", "2024-02-03:01", "2024-02-03:02", "2024-02-03:03"),
    ]
    assert not any("Oslo" in memory.text for memory in scenario.memories)
    assert scenario.memories[0].text.startswith("[2024-02-01]\nuser: Said 1")


def test_a_session_can_be_one_memory(write: Any) -> None:
    dataset = Rhelm(write(*QUESTIONS), granularity="session")
    [scenario] = dataset.scenarios()
    assert [memory.id for memory in scenario.memories] == [
        "Ann_Lee/2024-02-01",
        "Ann_Lee/2024-02-03",
    ]
    assert evidence_of(dataset)["joined"] == ("Ann_Lee/2024-02-01",)


def test_other_data_is_refused(write: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="unknown question_type 'safe'"):
        list(Rhelm(write(asked("x", "2024-02-01:1", kind="safe"))).scenarios())
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingData, match="contains no QA_final/low_score_qa_PERSON"):
        Rhelm(tmp_path / "empty")
