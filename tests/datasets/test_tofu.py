"""TOFU: the real files counted as datasets.md §3 counts them, ids that tell nothing, bad files."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.dataset_check import check
from mnemoscope.datasets.tofu import Tofu
from mnemoscope.types import Scenario

Shared = Callable[[str], Path]
Forget = Literal["10", "05", "01"]
Lines = list[dict[str, Any]]
SPLITS: tuple[Forget, ...] = ("10", "05", "01")


@pytest.fixture(scope="module")
def folder(shared_data: Shared) -> Path:
    return shared_data("tofu")


@pytest.fixture(scope="module")
def raw(folder: Path) -> Lines:
    return [json.loads(line) for line in (folder / "full.json").read_text().splitlines()]


@pytest.fixture(scope="module")
def real(folder: Path) -> Scenario:
    return only(Tofu(folder))


def only(dataset: Tofu) -> Scenario:
    [scenario] = dataset.scenarios()
    return scenario


def made(pairs: int = 4_000) -> Lines:
    """Pairs that nobody wrote, twenty to an author."""
    return [
        {"question": f"What is thing {n} of author {n // 20}?", "answer": f"It is thing {n}."}
        for n in range(pairs)
    ]


def write(folder: Path, lines: Lines, name: str = "full.json") -> Path:
    path = folder / name
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


@pytest.mark.parametrize("split", SPLITS)
def test_the_real_files_hold_what_was_counted(folder: Path, split: Forget) -> None:
    forgotten = 4 * int(split) * 10
    checked = check(Tofu(folder, forget=split))
    assert checked.problems == []
    assert checked.counts == {
        "authors": 200,
        "memories": 4_000,
        "memories to be forgotten": forgotten,
        "questions": 4_000,
        "forget": forgotten,
        "retain": 4_000 - forgotten,
        "questions with evidence": 4_000,
    }
    assert checked.findings.counts == {"question text asked twice": 1}
    pinned = {file.path.name: file.matches_pin for file in checked.files}
    assert pinned.pop("full.json") is True
    assert set(pinned.values()) <= {True}
    assert Tofu.info.licence == "MIT"


def test_all_pairs_are_asked_before_and_again_after_the_last_ones_are_to_be_forgotten(
    real: Scenario, raw: Lines
) -> None:
    before, after = real.checkpoints
    asked = {question.id: question for question in real.questions}
    texts = {memory.id: memory.text for memory in real.memories}

    assert (before.label, after.label) == ("before", "after")
    assert before.questions == after.questions == tuple(asked)
    assert before.memories == after.memories == len(real.memories) == 4_000
    assert before.forget == ()
    last = {f"Q: {pair['question']}\nA: {pair['answer']}" for pair in raw[-400:]}
    assert {texts[id] for id in after.forget} == last
    assert Counter((q.text, q.reference) for q in real.questions) == Counter(
        (pair["question"], pair["answer"]) for pair in raw
    )
    for question in real.questions:
        [memory] = question.evidence
        assert texts[memory] == f"Q: {question.text}\nA: {question.reference}"
        assert question.category == ("forget" if memory in after.forget else "retain")


def test_a_cluster_is_an_author_with_twenty_consecutive_pairs(real: Scenario, raw: Lines) -> None:
    blocks = {
        tuple(pair["question"] for pair in raw[start : start + 20]) for start in range(0, 4_000, 20)
    }
    own: dict[str, list[str]] = {}
    for question in real.questions:
        own.setdefault(question.cluster, []).append(question.text)
    assert len(own) == 200
    assert {tuple(texts) for texts in own.values()} == blocks


@pytest.mark.parametrize("granularity", ["pair", "author"])
def test_neither_ids_nor_their_order_tell_what_is_to_be_forgotten(
    folder: Path, granularity: Literal["pair", "author"]
) -> None:
    scenario = only(Tofu(folder, granularity=granularity))
    for id in [*(m.id for m in scenario.memories), *(q.id for q in scenario.questions)]:
        assert re.fullmatch(r"tofu/author-\d{3}(/[pq]\d{2})?", id)
    assert len({memory.id for memory in scenario.memories}) == len(scenario.memories)
    gone = set(scenario.checkpoints[1].forget)
    places = [n / len(scenario.memories) for n, m in enumerate(scenario.memories) if m.id in gone]
    assert 0.3 < sum(places) / len(places) < 0.7
    assert max(places) - min(places) > 0.8


def test_a_pair_has_the_same_id_whatever_is_to_be_forgotten(folder: Path) -> None:
    known = {
        split: {m.id: m.text for m in only(Tofu(folder, forget=split)).memories} for split in SPLITS
    }
    assert known["10"] == known["05"] == known["01"]


def test_smaller_forget_sets_are_part_of_larger_ones(folder: Path) -> None:
    ten, five, one = (
        set(only(Tofu(folder, forget=split)).checkpoints[1].forget) for split in SPLITS
    )
    assert one < five < ten
    assert (len(one), len(five), len(ten)) == (40, 200, 400)


def test_a_profile_holds_an_authors_twenty_pairs_and_is_forgotten_whole(folder: Path) -> None:
    scenario = only(Tofu(folder, granularity="author", text="answer"))
    profiles = {memory.id: memory.text for memory in scenario.memories}
    assert len(profiles) == 200
    assert len(scenario.checkpoints[1].forget) == 20
    assert scenario.checkpoints[0].memories == 200
    told: dict[str, list[str]] = {}
    for question in scenario.questions:
        [memory] = question.evidence
        told.setdefault(memory, []).append(question.reference)
    assert profiles == {memory: "\n\n".join(answers) for memory, answers in told.items()}


def test_memories_can_be_answers_without_their_questions(folder: Path) -> None:
    scenario = only(Tofu(folder, text="answer"))
    texts = {memory.id: memory.text for memory in scenario.memories}
    assert all(texts[q.evidence[0]] == q.reference for q in scenario.questions)


def test_reading_twice_gives_the_same_and_the_same_counts(folder: Path) -> None:
    dataset = Tofu(folder)
    first, counted = only(dataset), dict(dataset.counts())
    assert only(dataset) == first
    assert dataset.counts() == counted
    assert dataset.findings.counts.total() == 1


def test_options_are_checked_by_name(tmp_path: Path) -> None:
    write(tmp_path, made())
    assert open_dataset("tofu", tmp_path, {"forget": "05"}).options == {
        "forget": "05",
        "granularity": "pair",
        "text": "qa",
    }
    with pytest.raises(UsageError, match="10, 05, 01"):
        open_dataset("tofu", tmp_path, {"forget": "20"})


def test_a_packed_file_is_read_and_hashed_as_its_content(tmp_path: Path) -> None:
    plain = write(tmp_path, made())
    [expected] = Tofu(tmp_path).files()
    (tmp_path / "full.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    dataset = Tofu(tmp_path)
    assert len(only(dataset).questions) == 4_000
    [file] = dataset.files()
    assert (file.sha256, file.matches_pin) == (expected.sha256, False)


def test_a_torn_packed_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    packed = gzip.compress(write(tmp_path, made()).read_bytes())
    (tmp_path / "full.json").unlink()
    (tmp_path / "full.json.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"full\.json\.gz: cannot unpack"):
        only(Tofu(tmp_path))


@pytest.mark.parametrize(
    "bad",
    [
        '{"question": "Who?"}',
        '{"question": "Who?", "answer": 3}',
        '{"question": "Who?", "answer": "   "}',
        '{"question": "Who?", "answer": "She',
        '["Who?", "She."]',
        '{"question": "Who?", "answer": "\\ud800"}',
        "[" * 5_000,
        "not JSON",
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, bad: str) -> None:
    path = write(tmp_path, made())
    lines = path.read_text().splitlines()
    lines[1_234] = bad
    path.write_text("\n".join(lines))
    with pytest.raises(DataError) as caught:
        only(Tofu(tmp_path))
    assert (Path(caught.value.file), caught.value.line) == (path, 1_235)


@pytest.mark.parametrize("pairs", [0, 20, 3_999, 4_001])
def test_another_number_of_pairs_is_refused(tmp_path: Path, pairs: int) -> None:
    write(tmp_path, made(pairs))
    with pytest.raises(DataError, match="200 authors with 20 each"):
        only(Tofu(tmp_path))


def test_a_forget_file_that_lists_other_pairs_is_refused(tmp_path: Path) -> None:
    pairs = made()
    write(tmp_path, pairs)
    write(tmp_path, pairs[-400:], "forget10.json")
    assert len(only(Tofu(tmp_path)).checkpoints[1].forget) == 400

    write(tmp_path, pairs[:400], "forget10.json")
    with pytest.raises(DataError, match=r"forget10\.json: pair 1 is 'What is thing 0 "):
        only(Tofu(tmp_path))
    write(tmp_path, pairs[-399:], "forget10.json")
    with pytest.raises(DataError, match="399 pairs; this forget set has 400"):
        only(Tofu(tmp_path))
    assert len(only(Tofu(tmp_path, forget="05")).checkpoints[1].forget) == 200


def test_repeated_pairs_are_findings_and_stay(tmp_path: Path) -> None:
    pairs = made()
    pairs[7] = dict(pairs[3])
    pairs[9] = {**pairs[5], "answer": "Something else."}
    write(tmp_path, pairs)
    dataset = Tofu(tmp_path)
    assert len(only(dataset).memories) == 4_000
    assert dataset.findings.counts == {
        "duplicate question-answer pair": 1,
        "question text asked twice": 1,
    }


def test_authors_with_the_same_pairs_stay_apart(tmp_path: Path) -> None:
    pairs = made()
    write(tmp_path, pairs[:20] * 200)
    scenario = only(Tofu(tmp_path))
    assert len({memory.id for memory in scenario.memories}) == 4_000
    assert len(scenario.checkpoints[1].forget) == 400


def test_a_folder_without_the_full_file_says_what_is_missing(tmp_path: Path) -> None:
    write(tmp_path, made(400), "forget10.json")
    with pytest.raises(MissingData, match=r"full\.json"):
        Tofu(tmp_path)


def test_every_combination_of_options_asks_every_pair(tmp_path: Path) -> None:
    write(tmp_path, made())
    granularities: tuple[Literal["pair", "author"], ...] = ("pair", "author")
    texts: tuple[Literal["qa", "answer"], ...] = ("qa", "answer")
    for split, granularity, text in product(SPLITS, granularities, texts):
        scenario = only(Tofu(tmp_path, forget=split, granularity=granularity, text=text))
        held = {memory.id for memory in scenario.memories}
        assert all(set(question.evidence) <= held for question in scenario.questions)
        assert len(scenario.checkpoints[1].forget) == len(held) * int(split) // 100
