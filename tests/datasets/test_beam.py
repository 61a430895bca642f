"""BEAM: counted as in datasets-more.md §2, its BM25 row reproduced, repairs, both layouts, 10M."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lexical_recall import lexical_recall

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.beam import ABILITIES, Beam
from mnemoscope.datasets.dataset_check import check
from mnemoscope.types import Scenario

Shared = Callable[[str], Path]
Write = Callable[..., Path]


@pytest.fixture(scope="module")
def chats(shared_data: Shared) -> tuple[Beam, list[Scenario]]:
    """All of 100K, read once."""
    dataset = Beam(shared_data("beam"))
    return dataset, list(dataset.scenarios())


def test_100k_has_what_was_counted(chats: tuple[Beam, list[Scenario]]) -> None:
    dataset, scenarios = chats
    assert dataset.counts() == {
        "chats": 20,
        "sessions": 90,
        "messages": 5_732,
        "memories": 5_732,
        "questions": 400,
        "rubric items": 1_051,
        "abstention, not measured": 40,
        "questions with halves of evidence": 120,
        **dict.fromkeys(ABILITIES, 40),
    }
    assert dataset.findings.counts == {
        "marker of the generator, cut": 2_199,
        "evidence cited twice": 14,
        "nested list of evidence, flattened": 7,
        "empty evidence, not measured": 5,
    }
    asked = [question for one in scenarios for question in one.questions]
    assert sum(bool(question.evidence) for question in asked) == 355
    assert all(question.reference and question.rubric for question in asked)
    [file] = dataset.files()
    assert file.matches_pin is True


def test_sessions_have_dates_that_never_go_back(chats: tuple[Beam, list[Scenario]]) -> None:
    for scenario in chats[1]:
        dates = [memory.at for memory in scenario.memories]
        assert None not in dates and dates == sorted(
            dates, key=lambda at: at.timestamp() if at else 0
        )
        assert {question.now for question in scenario.questions} == {dates[-1]}


def test_the_bm25_row_of_the_facts_is_reproduced(chats: tuple[Beam, list[Scenario]]) -> None:
    """With its tokens: \\w+, lower case, nothing stemmed or left out."""
    assert lexical_recall(chats[1]) == (355, {5: 0.3351, 10: 0.4198, 20: 0.4830})


def test_the_eight_chats_of_500k(shared_data: Shared) -> None:
    dataset = open_dataset("beam", shared_data("beam_500K"), {"size": "500K"})
    checked = check(dataset)
    counts = checked.counts
    assert (counts["chats"], counts["messages"], counts["questions"]) == (8, 7_802, 160)
    assert counts["questions with evidence"] == 160 - 16 - 1
    assert checked.findings.counts["chat missing: 8 of 35 found"] == 27
    assert checked.findings.counts["evidence missing, not measured"] == 1
    assert not checked.problems


def message(id: int, text: str, anchor: str | None = None) -> dict[str, Any]:
    own = {"role": ("user", "assistant")[id % 2], "id": id, "content": text, "index": "1,1"}
    return own | ({"time_anchor": anchor} if anchor else {})


CHAT = [
    {
        "batch_number": 1,
        "time_anchor": None,
        "turns": [
            [message(0, "I live in Oslo. ->-> 1,1", "March-15-2024"), message(1, "Noted.")],
            [
                message(2, "Rent is 900. ->-> 1,2) note to the generator"),
                message(3, "Yes ->-> 5,N/A"),
            ],
        ],
    },
    {
        "batch_number": 2,
        "time_anchor": None,
        "turns": [[message(4, "Rent is 950 now.", "April-1-2024"), message(5, "Updated.")]],
    },
]
PROBES: dict[str, list[dict[str, Any]]] = {
    "knowledge_update": [
        {
            "question": "What is the rent?",
            "answer": 950,
            "rubric": ["states 950"],
            "source_chat_ids": {"original_info": [2], "updated_info": [4]},
            "difficulty": "easy",
        }
    ],
    "event_ordering": [
        {
            "question": "Which order?",
            "answer": "a",
            "rubric": ["x"],
            "source_chat_ids": [[0, 2], 99],
        }
    ],
    "abstention": [{"question": "My shoe size?", "ideal_response": "Unknown.", "rubric": ["none"]}],
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_chat(size: str = "100K", chat: Any = CHAT, probes: Any = PROBES) -> Path:
        folder = tmp_path / "chats" / size / "1"
        (folder / "probing_questions").mkdir(parents=True)
        (folder / "chat.json").write_text(json.dumps(chat))
        (folder / "chat.pickle").write_bytes(b"never read")
        (folder / "probing_questions/probing_questions.json").write_text(json.dumps(probes))
        return tmp_path

    return write_chat


def test_markers_are_cut_from_all_texts_and_counted(write: Write) -> None:
    dataset = Beam(write())
    [scenario] = dataset.scenarios()
    texts = [memory.text for memory in scenario.memories]
    assert texts[:4] == ["I live in Oslo.", "Noted.", "Rent is 900.", "Yes"]
    assert dataset.findings.counts["marker of the generator, cut"] == 3
    assert not check(dataset).leaked


def test_halves_are_kept_and_the_newest_can_be_the_only_evidence(write: Write) -> None:
    data = write()
    both, newest = Beam(data), Beam(data, evidence="newest")
    asked = {one.category: one for one in next(both.scenarios()).questions}
    update = asked["knowledge_update"]
    assert update.evidence == ("100K/1/s01:00002", "100K/1/s02:00004")
    assert both.halves == {
        update.id: {
            "original_info": ("100K/1/s01:00002",),
            "updated_info": ("100K/1/s02:00004",),
        }
    }
    assert update.reference == "950"
    newer = {one.category: one for one in next(newest.scenarios()).questions}
    assert newer["knowledge_update"].evidence == ("100K/1/s02:00004",)
    assert newer["event_ordering"].evidence == asked["event_ordering"].evidence


def test_losses_are_findings_and_abstention_stands_apart(write: Write) -> None:
    dataset = Beam(write())
    asked = {one.category: one for one in next(dataset.scenarios()).questions}
    assert asked["event_ordering"].evidence == ("100K/1/s01:00000", "100K/1/s01:00002")
    assert dataset.findings.examples["dangling evidence: no such message"] == [
        "100K/1/event_ordering-1 99"
    ]
    assert dataset.findings.counts["nested list of evidence, flattened"] == 1
    assert (asked["abstention"].expects, asked["abstention"].evidence) == ("abstain", ())


@pytest.mark.parametrize(("granularity", "memories"), [("message", 6), ("turn", 3), ("session", 2)])
def test_larger_memories_keep_the_evidence(write: Write, granularity: Any, memories: int) -> None:
    dataset = Beam(write(), granularity=granularity, dates=True)
    [scenario] = dataset.scenarios()
    texts = {memory.id: memory.text for memory in scenario.memories}
    assert len(texts) == memories
    update = next(one for one in scenario.questions if one.category == "knowledge_update")
    assert [("900" in texts[id], "950" in texts[id]) for id in update.evidence] == [
        (True, False),
        (False, True),
    ]
    assert texts[update.evidence[1]].startswith("[April-1-2024]\n")


def test_an_archive_and_a_folder_are_the_same_dataset(write: Write, tmp_path: Path) -> None:
    folder = write()
    packed = tmp_path / "packed" / "beam.tar.xz"
    packed.parent.mkdir()
    with tarfile.open(packed, "w:xz") as archive:
        archive.add(folder / "chats" / "100K", "./100K")
    plain, inside = Beam(folder / "chats"), Beam(packed)
    assert list(plain.scenarios()) == list(inside.scenarios())
    assert plain.files()[0].sha256 == inside.files()[0].sha256
    assert list(Beam(folder / "chats" / "100K").scenarios()) == list(plain.scenarios())
    # What a system may not read: the folders of the labels, or the archive.
    assert set(inside.paths.values()) == {packed}
    assert {path.name for path in plain.paths.values()} == {"1", "probing_questions"}


def test_a_changed_file_changes_the_hash_of_the_tree(write: Write) -> None:
    folder = write()
    before = Beam(folder).files()[0].sha256
    probes = folder / "chats/100K/1/probing_questions/probing_questions.json"
    probes.write_text(probes.read_text().replace("[2]", "[3]"))
    assert Beam(folder).files()[0].sha256 != before


def test_the_truncated_chat_is_read_on_request(write: Write) -> None:
    folder = write()
    shorter = folder / "chats/100K/1/chat_trunecated.json"
    shorter.write_text(json.dumps(CHAT[1:]))
    whole, cut = Beam(folder), Beam(folder, chat="truncated")
    assert [len(next(one.scenarios()).memories) for one in (whole, cut)] == [6, 2]
    assert cut.counts()["truncated chats"] == 1
    assert whole.files()[0].sha256 != cut.files()[0].sha256


def test_the_plans_of_10m_follow_each_other(write: Write) -> None:
    plans = [{"plan-1": CHAT[:1]}, {"plan-2": CHAT[1:]}]
    nested, flat = Beam(write("10M", plans), size="10M"), write("100K")
    [own], [other] = nested.scenarios(), Beam(flat).scenarios()
    assert [memory.text for memory in own.memories] == [memory.text for memory in other.memories]


def test_evidence_that_several_messages_match_is_dropped(write: Write) -> None:
    """The ids of 10M may begin again in each plan: no guess is made."""
    dataset = Beam(write("10M", [{"plan-1": CHAT}, {"plan-2": CHAT}]), size="10M")
    [scenario] = dataset.scenarios()
    assert not any(question.evidence for question in scenario.questions)
    assert dataset.findings.counts["evidence that several messages match, dropped"] == 4
    assert len({memory.id for memory in scenario.memories}) == 12


def test_hostile_files_are_refused_by_name(write: Write, tmp_path: Path) -> None:
    folder = write()
    chat = folder / "chats/100K/1/chat.json"
    chat.write_text(chat.read_text().replace("March-15-2024", "15 March"))
    with pytest.raises(DataError, match=r"chat\.json: cannot read the date '15 March'"):
        list(Beam(folder).scenarios())
    chat.write_text("[{")
    with pytest.raises(DataError, match=r"chat\.json"):
        list(Beam(folder).scenarios())
    probes = folder / "chats/100K/1/probing_questions/probing_questions.json"
    chat.write_text(json.dumps(CHAT))
    probes.write_text(json.dumps({"guessing": []}))
    with pytest.raises(DataError, match="unknown ability 'guessing'"):
        list(Beam(folder).scenarios())
    probes.unlink()
    with pytest.raises(DataError, match=r"probing_questions\.json is missing"):
        list(Beam(folder).scenarios())
    with pytest.raises(MissingData, match="no chat of the size 1M"):
        Beam(folder, size="1M")
    broken = tmp_path / "beam.tar.xz"
    broken.write_bytes(b"\xfd7zXZ\x00 cut")
    with pytest.raises(DataError, match="cannot unpack"):
        Beam(broken)


def test_members_that_point_elsewhere_are_not_followed(tmp_path: Path) -> None:
    """A link in an archive cannot make the loader read a file of the machine."""
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(CHAT))
    packed = tmp_path / "beam.tar"
    with tarfile.open(packed, "w") as archive:
        link = tarfile.TarInfo("100K/1/chat.json")
        link.type, link.linkname = tarfile.SYMTYPE, str(secret)
        archive.addfile(link)
        content = json.dumps(PROBES).encode()
        probes = tarfile.TarInfo("100K/1/probing_questions/probing_questions.json")
        probes.size = len(content)
        archive.addfile(probes, io.BytesIO(content))
    with pytest.raises(DataError, match=r"100K/1/chat\.json is missing"):
        list(Beam(packed).scenarios())


def test_pins_are_those_of_the_files(shared_data: Shared) -> None:
    dataset = Beam(shared_data("beam"))
    for name in ("100K/1/chat.json", "100K/20/probing_questions/probing_questions.json"):
        pinned = dataset.info.files[name]
        content = dataset.tree.content(name)
        assert hashlib.sha256(content).hexdigest() == pinned.sha256
        assert len(content) == pinned.bytes
        assert pinned.url.endswith(f"/chats/{name}")
