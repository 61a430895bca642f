"""Strata: one's own corpus with exact, paraphrase and multihop questions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.near_duplicates import NearDuplicates
from mnemoscope.datasets.strata import Strata
from mnemoscope.types import Memory, Scenario

Row = dict[str, Any]

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"


def memory(id: int, content: str = "", **fields: Any) -> Row:
    return {"id": id, "content": content or f"memory number {id}", **fields}


def query(id: str, stratum: str = "exact", **fields: Any) -> Row:
    return {"query_id": id, "text": f"what about {id}?", "stratum": stratum, **fields}


def relevant(id: str, *memories: int) -> Row:
    return {"query_id": id, "relevant_ids": list(memories)}


def jsonl(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def folder(
    path: Path,
    corpus: Iterable[Row] = (memory(1), memory(2), memory(3)),
    queries: Iterable[Row] = (query("q1"),),
    qrels: Iterable[Row] = (relevant("q1", 1),),
) -> Path:
    path.mkdir(exist_ok=True)
    (path / "corpus.jsonl").write_text(jsonl(corpus), encoding="utf-8")
    (path / "queries.jsonl").write_text(jsonl(queries), encoding="utf-8")
    (path / "qrels.jsonl").write_text(jsonl(qrels), encoding="utf-8")
    return path


def read(dataset: Dataset) -> Scenario:
    [scenario] = dataset.scenarios()
    return scenario


def refusal(data: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(Strata(data))
    return str(caught.value)


def test_memories_and_questions_are_read_as_they_stand(tmp_path: Path) -> None:
    data = folder(
        tmp_path,
        corpus=[
            memory(137, "we chose tea", category="decisions", tags="a,b", importance=0.85),
            memory(7, "nulls", tags=None, expanded_keywords=None, category=None, importance=None),
        ],
        queries=[query("para_1", "paraphrase", relevant_ids=[137], _note="why", _jaccard=0.02)],
        qrels=[relevant("para_1", 137)],
    )
    dataset = Strata(data)
    scenario = read(dataset)

    assert scenario.id == "strata"
    assert scenario.memories[0] == Memory(
        id="137",
        text="we chose tea",
        metadata={
            "category": "decisions",
            "tags": "a,b",
            "expanded_keywords": "",
            "importance": 0.85,
        },
    )
    assert set(scenario.memories[1].metadata.values()) == {""}
    [question] = scenario.questions
    assert (question.id, question.category) == ("para_1", "paraphrase")
    assert question.evidence == ("137",)
    assert dataset.options == {"twins": "none"}
    assert dataset.category_names == {}
    assert [file.path.name for file in dataset.files()] == [
        "corpus.jsonl",
        "queries.jsonl",
        "qrels.jsonl",
    ]


def test_counts_cover_memories_questions_evidence_and_strata(tmp_path: Path) -> None:
    data = folder(
        tmp_path,
        queries=[query("e"), query("m", "multihop")],
        qrels=[relevant("m", 1, 2), relevant("e", 3)],
    )
    dataset = Strata(data)
    read(dataset)
    assert dataset.counts() == {
        "memories": 3,
        "questions": 2,
        "evidence": 3,
        "exact": 1,
        "multihop": 1,
    }


def test_reading_twice_gives_the_same_scenario_and_the_same_findings(tmp_path: Path) -> None:
    data = folder(tmp_path, corpus=[memory(1, "same"), memory(2, "Same!")])
    dataset = Strata(data)
    first, findings = read(dataset), dataset.findings
    assert read(dataset) == first
    assert dataset.findings == findings


def test_repeated_qrels_rows_are_united(tmp_path: Path) -> None:
    data = folder(tmp_path, qrels=[relevant("q1", 2, 2), relevant("q1", 1, 2)])
    assert read(Strata(data)).questions[0].evidence == ("2", "1")


def test_qrels_win_over_the_copy_in_the_query_and_the_difference_is_found(tmp_path: Path) -> None:
    data = folder(tmp_path, queries=[query("q1", relevant_ids=[2])])
    dataset = Strata(data)
    assert read(dataset).questions[0].evidence == ("1",)
    assert dataset.findings.counts == {"relevant_ids differ from qrels": 1}
    assert (
        "queries.jsonl, line 1: q1"
        in dataset.findings.examples["relevant_ids differ from qrels"][0]
    )


def test_a_copy_in_another_order_is_no_difference(tmp_path: Path) -> None:
    data = folder(
        tmp_path, queries=[query("q1", relevant_ids=[2, 1])], qrels=[relevant("q1", 1, 2)]
    )
    dataset = Strata(data)
    read(dataset)
    assert not dataset.findings.counts


def test_empty_texts_are_found(tmp_path: Path) -> None:
    rows = [{"query_id": "q1", "text": " ", "stratum": "exact"}]
    data = folder(tmp_path, corpus=[memory(1, "  ")], queries=rows)
    dataset = Strata(data)
    read(dataset)
    assert dataset.findings.counts == {"empty memory text": 1, "empty question text": 1}


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.jsonl"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (folder(tmp_path) / name).unlink()
    with pytest.raises(MissingData, match=name):
        Strata(tmp_path)


def test_an_unknown_twins_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none, expand"):
        open_dataset("strata", folder(tmp_path), {"twins": "both"})


def test_a_query_without_qrels_is_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, queries=[query("q1"), query("q2")])
    assert re.search(r"queries\.jsonl, line 2: .*no line in qrels.*q2 \(line 2\)", refusal(data))


def test_qrels_without_a_query_are_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, qrels=[relevant("q1", 1), relevant("ghost", 1)])
    assert re.search(r"qrels\.jsonl, line 2: .*ghost \(line 2\)", refusal(data))


def test_empty_qrels_are_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, qrels=[relevant("q1")])
    assert re.search(r"qrels\.jsonl, line 1: .*without relevant memories.*q1", refusal(data))


def test_an_unknown_memory_is_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, qrels=[relevant("q1", 1), relevant("q1", 99)])
    assert re.search(r"qrels\.jsonl, line 2: .*99 of q1 \(line 2\)", refusal(data))


def test_a_memory_id_used_twice_is_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, corpus=[memory(1), memory(2), memory(1)])
    assert re.search(r"corpus\.jsonl, line 3: .*'1', first in line 1", refusal(data))


def test_a_query_id_used_twice_is_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, queries=[query("q1"), query("q1")])
    assert re.search(r"queries\.jsonl, line 2: .*'q1', first in line 1", refusal(data))


@pytest.mark.parametrize("mark", [True, 1])
def test_sensitive_memories_are_refused(tmp_path: Path, mark: object) -> None:
    data = folder(tmp_path, corpus=[memory(1), memory(2, is_sensitive=mark)])
    assert re.search(r"corpus\.jsonl, line 2: .*export.*again.*2 \(line 2\)", refusal(data))


@pytest.mark.parametrize("mark", [False, 0, None])
def test_memories_marked_as_not_sensitive_are_read(tmp_path: Path, mark: object) -> None:
    data = folder(tmp_path, corpus=[memory(1, is_sensitive=mark)])
    assert len(read(Strata(data)).memories) == 1


def test_at_most_ten_offenders_are_named(tmp_path: Path) -> None:
    data = folder(tmp_path, corpus=[memory(id, is_sensitive=1) for id in range(1, 14)])
    message = refusal(data)
    assert "10 (line 10) and 3 more" in message
    assert "(line 11)" not in message


def test_an_unknown_stratum_is_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, queries=[query("q1"), query("q2", "vague")])
    assert re.search(
        r"queries\.jsonl, line 2: stratum 'vague'.*exact, paraphrase, multihop", refusal(data)
    )


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("corpus.jsonl", b'{"id": "1", "content": "x"}'),
        ("corpus.jsonl", b'{"id": 1.5, "content": "x"}'),
        ("corpus.jsonl", b'{"id": 9}'),
        ("corpus.jsonl", b'{"id": 9, "content": null}'),
        ("corpus.jsonl", b'{"id": 9, "content": "x", "is_sensitive": "yes"}'),
        ("corpus.jsonl", b'{"id": 9, "content": "x", "importance": NaN}'),
        ("corpus.jsonl", b'{"id": 9, "content": "\xff"}'),
        ("corpus.jsonl", b'{"id": 9, "content": "a\x00b"}'),
        ("corpus.jsonl", b"{torn"),
        ("corpus.jsonl", b"[]"),
        ("queries.jsonl", b'{"query_id": "", "text": "x", "stratum": "exact"}'),
        ("queries.jsonl", b'{"query_id": 5, "text": "x", "stratum": "exact"}'),
        ("qrels.jsonl", b'{"query_id": "q1", "relevant_ids": [1.5]}'),
        ("qrels.jsonl", b'{"query_id": "q1"}'),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, name: str, bad: bytes) -> None:
    path = folder(tmp_path) / name
    path.write_bytes(path.read_bytes() + b"\n" + bad + b"\n")
    lines = path.read_bytes().count(b"\n")
    assert f"{name}, line {lines}: " in refusal(tmp_path)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.jsonl"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    (folder(tmp_path) / name).write_bytes(b"")
    assert ".jsonl" in refusal(tmp_path)


def test_windows_line_ends_and_blank_lines_are_read(tmp_path: Path) -> None:
    path = folder(tmp_path) / "corpus.jsonl"
    path.write_bytes(b"\r\n" + path.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert len(read(Strata(tmp_path)).memories) == 3


def test_a_byte_order_mark_is_skipped_and_found(tmp_path: Path) -> None:
    path = folder(tmp_path) / "corpus.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    dataset = Strata(tmp_path)
    assert read(dataset).memories[0].id == "1"
    assert dataset.findings.counts == {"byte order mark skipped": 1}


def test_huge_and_negative_ids_stay_exact(tmp_path: Path) -> None:
    huge = 10**30 + 1
    data = folder(tmp_path, corpus=[memory(huge), memory(-3)], qrels=[relevant("q1", huge, -3)])
    assert read(Strata(data)).questions[0].evidence == (str(huge), "-3")


def test_near_duplicates_are_only_counted_by_default(tmp_path: Path) -> None:
    data = folder(tmp_path, corpus=[memory(1, "Same text."), memory(2), memory(3, "same  TEXT")])
    dataset = Strata(data)
    assert read(dataset).questions[0].evidence == ("1",)
    assert dataset.findings.examples == {"near-duplicate memory": ["3 repeats 1"]}


def test_expanded_twins_join_the_evidence_and_are_found(tmp_path: Path) -> None:
    data = folder(
        tmp_path,
        corpus=[memory(1, LONG), memory(2), memory(3, LONG.upper()), memory(4, f"{LONG}, sixteen")],
        qrels=[relevant("q1", 1, 3)],
    )
    dataset = Strata(data, twins="expand")
    assert read(dataset).questions[0].evidence == ("1", "3", "4")
    assert dataset.findings.examples["near-duplicate added to evidence"] == ["q1: 4, twin of 1"]
    assert dataset.options == {"twins": "expand"}


def test_a_jaccard_overlap_of_nine_tenths_makes_twins_and_less_does_not() -> None:
    nine, ten = "a b c d e f g h i", "a b c d e f g h i j"
    memories = [Memory(id=text, text=text) for text in (nine, ten, "a b c d e f g h x")]
    assert NearDuplicates(memories).of(nine) == [ten]


def test_blank_texts_have_no_twins_and_emoji_have_their_own() -> None:
    texts = ["", " ", "🙂", "🙂 ", "🙃"]
    memories = [Memory(id=str(index), text=text) for index, text in enumerate(texts)]
    assert list(NearDuplicates(memories).repeats()) == [("3", "2")]


@given(
    st.lists(
        st.sets(st.sampled_from("abcdefghijkl"), max_size=2)
        | st.sets(st.sampled_from("abcdefghijkl"), max_size=2).map(set("abcdefghijkl").difference),
        max_size=25,
    )
)
def test_twins_are_those_that_comparing_every_pair_would_find(texts: list[set[str]]) -> None:
    memories = [
        Memory(id=str(index), text=" ".join(sorted(text))) for index, text in enumerate(texts)
    ]
    twins = NearDuplicates(memories)
    sets = [set(memory.text.split()) for memory in memories]
    expected = {
        a.id: [
            b.id
            for b, words in zip(memories, sets, strict=True)
            if a.id != b.id and mine and 10 * len(mine & words) >= 9 * len(mine | words)
        ]
        for a, mine in zip(memories, sets, strict=True)
    }
    assert {memory.id: twins.of(memory.id) for memory in memories} == expected
    repeats = dict(twins.repeats())
    assert set(repeats) == {
        id for id, found in expected.items() if any(int(twin) < int(id) for twin in found)
    }
    assert all(twin in expected[id] and int(twin) < int(id) for id, twin in repeats.items())


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=50,
)
@given(data=st.data())
def test_what_is_written_is_read_back(tmp_path: Path, data: st.DataObject) -> None:
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    ids = data.draw(st.lists(st.integers(), min_size=1, max_size=8, unique=True))
    texts = {id: data.draw(text) for id in ids}
    names = data.draw(st.lists(text.filter(bool), min_size=1, max_size=5, unique=True))
    gold = {
        name: data.draw(st.lists(st.sampled_from(ids), min_size=1, unique=True)) for name in names
    }
    strata = {
        name: data.draw(st.sampled_from(["exact", "paraphrase", "multihop"])) for name in gold
    }
    scenario = read(
        Strata(
            folder(
                tmp_path,
                corpus=[{"id": id, "content": content} for id, content in texts.items()],
                queries=[query(name, strata[name]) for name in names],
                qrels=[relevant(name, *memories) for name, memories in gold.items()],
            )
        )
    )
    assert {int(m.id): m.text for m in scenario.memories} == texts
    assert {q.id: [int(id) for id in q.evidence] for q in scenario.questions} == gold
    assert {q.id: q.category for q in scenario.questions} == strata


def test_the_example_corpus_is_sound() -> None:
    dataset = Strata(Path(__file__).parents[2] / "examples" / "strata")
    scenario = read(dataset)
    assert dataset.counts() == {
        "memories": 82,
        "questions": 48,
        "evidence": 65,
        "exact": 15,
        "multihop": 15,
        "paraphrase": 18,
    }
    assert not dataset.findings.counts
    hops = [len(q.evidence) for q in scenario.questions if q.category == "multihop"]
    assert set(hops) == {2, 3}


def test_an_imported_line_keeps_time_session_speaker_and_metadata(tmp_path: Path) -> None:
    data = folder(
        tmp_path,
        corpus=[
            memory(1, at="2024-05-01T10:00:00+02:00", session="s", speaker="Ann"),
            {"id": "n1", "content": "a note", "at": "2024-05-01T09:00:00", "metadata": {"n": 2}},
            memory(3),
        ],
        queries=[query("q1", relevant_ids=["n1"]), query("q2")],
        qrels=[
            {"query_id": "q1", "relevant_ids": ["n1"]},
            {"query_id": "q2", "relevant_ids": ["1"]},
        ],
    )
    first, second, third = read(dataset := Strata(data)).memories

    assert (first.at, first.session, first.speaker) == (
        datetime(2024, 5, 1, 8, tzinfo=UTC),
        "s",
        "Ann",
    )
    assert (second.id, second.at) == ("n1", datetime(2024, 5, 1, 9, tzinfo=UTC))
    assert second.metadata == {"n": 2, **third.metadata}
    assert (third.at, third.session, third.speaker) == (None, "", "")
    assert [question.evidence for question in read(dataset).questions] == [("n1",), ("1",)]
    assert not dataset.findings.counts


def test_an_id_as_a_number_and_as_text_is_one_id(tmp_path: Path) -> None:
    data = folder(tmp_path, corpus=[memory(1), {"id": "1", "content": "other"}])
    assert "duplicate ids: '1', first in line 1" in refusal(data)
