"""BEIR's layout: documents, queries and the judgments of one split."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.beir import Beir
from mnemoscope.types import Scenario

Row = dict[str, Any]
HEADER = "query-id\tcorpus-id\tscore\n"
DOCUMENTS: list[Row] = [
    {"_id": "d1", "title": "Tea", "text": "is hot"},
    {"_id": "d2", "title": "", "text": "coffee", "metadata": {"url": "x"}},
    {"_id": "d3", "text": "milk"},
]
QUERIES: list[Row] = [{"_id": "q1", "text": "hot?"}, {"_id": "q2", "text": "cold?"}]


def folder(
    path: Path,
    qrels: str = f"{HEADER}q1\td1\t1\n",
    corpus: Iterable[Row] = DOCUMENTS,
    queries: Iterable[Row] = QUERIES,
    split: str = "test",
) -> Path:
    (path / "qrels").mkdir(exist_ok=True)
    for name, rows in (("corpus", corpus), ("queries", queries)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (path / "qrels" / f"{split}.tsv").write_bytes(qrels.encode())
    return path


def read(dataset: Dataset) -> Scenario:
    [scenario] = dataset.scenarios()
    return scenario


def refusal(data: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(Beir(data))
    return str(caught.value)


def test_titles_stand_above_the_text_where_there_are_any(tmp_path: Path) -> None:
    dataset = Beir(folder(tmp_path))
    scenario = read(dataset)
    assert scenario.id == "beir"
    assert [memory.text for memory in scenario.memories] == ["Tea\nis hot", "coffee", "milk"]
    assert dataset.options == {"split": "test"}
    assert [file.path.name for file in dataset.files()] == [
        "corpus.jsonl",
        "queries.jsonl",
        "test.tsv",
    ]
    assert dataset.counts() == {"memories": 3, "questions": 1, "evidence": 1}


def test_only_queries_of_the_split_are_asked(tmp_path: Path) -> None:
    folder(tmp_path, split="dev", qrels="q2\td2\t1\n")
    folder(tmp_path)
    assert [q.id for q in read(Beir(tmp_path)).questions] == ["q1"]
    assert [q.id for q in read(Beir(tmp_path, split="dev")).questions] == ["q2"]


@pytest.mark.parametrize("header", [HEADER, "", "Query-Id\tCorpus-Id\tScore\n"])
def test_the_header_is_optional(tmp_path: Path, header: str) -> None:
    [question] = read(Beir(folder(tmp_path, f"{header}q1\td2\t1\n"))).questions
    assert question.evidence == ("d2",)


def test_positive_scores_are_evidence_and_others_are_not(tmp_path: Path) -> None:
    data = folder(tmp_path, "q1\td1\t2\nq1\td2\t0\nq1\td3\t1\nq2\td1\t-1\nq2\td2\t1\n")
    first, second = read(Beir(data)).questions
    assert (first.evidence, first.grades) == (("d1", "d3"), {"d1": 2, "d3": 1})
    assert (second.evidence, second.grades) == (("d2",), {})


def test_a_judged_document_that_the_corpus_lacks_stays_evidence_and_is_found(
    tmp_path: Path,
) -> None:
    dataset = Beir(folder(tmp_path, f"{HEADER}q1\td1\t1\nq1\tghost\t1\n"))
    assert read(dataset).questions[0].evidence == ("d1", "ghost")
    [place] = dataset.findings.examples["judgment for a document missing from the corpus"]
    assert place.endswith("test.tsv, line 3: ghost")


def test_a_question_left_without_relevant_documents_is_found(tmp_path: Path) -> None:
    dataset = Beir(folder(tmp_path, "q1\td1\t-1\nq2\td1\t0\n"))
    assert [q.evidence for q in read(dataset).questions] == [(), ()]
    assert dataset.findings.examples["question without relevant memory"] == ["q1", "q2"]


def test_judgments_of_unknown_queries_are_found(tmp_path: Path) -> None:
    dataset = Beir(folder(tmp_path, "q1\td1\t1\nghost\td1\t1\n"))
    read(dataset)
    assert dataset.findings.examples == {"judgments for an unknown query": ["ghost"]}


def test_a_judgment_written_twice_is_found(tmp_path: Path) -> None:
    dataset = Beir(folder(tmp_path, "q1\td1\t1\nq1\td1\t1\n"))
    assert read(dataset).questions[0].evidence == ("d1",)
    assert dataset.findings.counts == {"duplicate judgment": 1}


def test_empty_texts_are_found(tmp_path: Path) -> None:
    data = folder(
        tmp_path,
        corpus=[{"_id": "d1", "title": "", "text": ""}],
        queries=[{"_id": "q1", "text": ""}],
    )
    dataset = Beir(data)
    read(dataset)
    assert dataset.findings.counts == {"empty memory text": 1, "empty question text": 1}


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (folder(tmp_path) / name).unlink()
    with pytest.raises(MissingData, match=name):
        Beir(tmp_path)


def test_a_missing_split_lists_those_there(tmp_path: Path) -> None:
    folder(tmp_path, split="train")
    with pytest.raises(MissingData, match=r"'dev'; available in qrels/: test, train"):
        Beir(folder(tmp_path), split="dev")


def test_a_split_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.tsv").write_text("q1\td1\t1\n")
    with pytest.raises(MissingData):
        Beir(folder(tmp_path), split="../elsewhere")


@pytest.mark.parametrize(
    ("qrels", "line", "problem"),
    [
        ("q1\td1\n", 1, "2 columns, expected 3"),
        ("q1\td1\t1\t1\n", 1, "4 columns, expected 3"),
        ("q1 d1 1\n", 1, "1 columns, expected 3"),
        (f"{HEADER}q1\td1\t1\n\nq1\td2\tgood\n", 4, "'good' is not an integer"),
        ("q1\td1\t1.5\n", 1, "'1.5' is not an integer"),
        ("q1\td1\t1_0\n", 1, "'1_0' is not an integer"),
        (f"q1\td1\t{'9' * 5000}\n", 1, "is not an integer"),
        (f"{HEADER}{HEADER}", 2, "'score' is not an integer"),
        ("q1\td1\t1\nq1\td1\t2\n", 2, "graded 2 here and 1 in line 1"),
        ("q1\td\0\t1\n", 1, "NUL"),
    ],
)
def test_a_malformed_judgment_is_named(tmp_path: Path, qrels: str, line: int, problem: str) -> None:
    message = refusal(folder(tmp_path, qrels))
    assert f"test.tsv, line {line}: " in message
    assert problem in message


def test_judgments_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    (folder(tmp_path) / "qrels" / "test.tsv").write_bytes(b"q1\td1\t1\nq1\t\xff\t1\n")
    assert re.search(r"test\.tsv, line 2: .*utf-8", refusal(tmp_path))


@pytest.mark.parametrize("qrels", ["", HEADER, "\n\n"])
def test_a_split_without_judgments_is_refused(tmp_path: Path, qrels: str) -> None:
    assert "test.tsv: contains no judgments" in refusal(folder(tmp_path, qrels))


def test_a_split_that_judges_no_known_query_is_refused(tmp_path: Path) -> None:
    assert "test.tsv: contains no judgment for any query" in refusal(
        folder(tmp_path, "ghost\td1\t1\n")
    )


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("corpus", b'{"_id": 1, "text": "x"}'),
        ("corpus", b'{"_id": "d9"}'),
        ("corpus", b'{"_id": "", "text": "x"}'),
        ("corpus", b'{"_id": "d9", "text": "\xff"}'),
        ("corpus", b'{"_id": "d9", "text": "a\x00"}'),
        ("corpus", b'{"_id": "d9", "title": 3, "text": "x"}'),
        ("queries", b'{"_id": "q9"}'),
        ("queries", b"nonsense"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, name: str, bad: bytes) -> None:
    path = folder(tmp_path) / f"{name}.jsonl"
    line = path.read_bytes().count(b"\n") + 1
    path.write_bytes(path.read_bytes() + bad)
    assert f"{name}.jsonl, line {line}: " in refusal(tmp_path)


@pytest.mark.parametrize("name", ["corpus", "queries"])
def test_an_id_used_twice_is_refused(tmp_path: Path, name: str) -> None:
    path = folder(tmp_path) / f"{name}.jsonl"
    line = path.read_bytes().count(b"\n") + 1
    path.write_bytes(path.read_bytes() * 2)
    assert f"{name}.jsonl, line {line}: duplicate ids" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["corpus", "queries"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    (folder(tmp_path) / f"{name}.jsonl").write_bytes(b"")
    assert f"{name}.jsonl: contains no records" in refusal(tmp_path)


def test_windows_files_are_read_and_their_marks_found(tmp_path: Path) -> None:
    folder(tmp_path)
    for path in tmp_path.rglob("*.*"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    dataset = Beir(tmp_path)
    assert read(dataset).questions[0].evidence == ("d1",)
    assert dataset.findings.counts == {"byte order mark skipped": 3}


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=50,
)
@given(data=st.data())
def test_what_is_written_is_read_back(tmp_path: Path, data: st.DataObject) -> None:
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    name = st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\r\n"),
        min_size=1,
        max_size=20,
    ).filter(str.strip)
    texts = data.draw(st.dictionaries(name, text, min_size=1, max_size=6))
    grades = data.draw(
        st.dictionaries(
            name,
            st.dictionaries(st.sampled_from(sorted(texts)), st.integers(-2, 3), min_size=1),
            min_size=1,
            max_size=4,
        )
    )
    rows = [(q, d, grade) for q, judged in grades.items() for d, grade in judged.items()]
    scenario = read(
        Beir(
            folder(
                tmp_path,
                corpus=[{"_id": id, "text": content} for id, content in texts.items()],
                queries=[{"_id": id, "text": id} for id in grades],
                qrels=HEADER + "".join(f"{q}\t{d}\t{grade}\n" for q, d, grade in rows),
            )
        )
    )
    assert {memory.id: memory.text for memory in scenario.memories} == texts
    assert {q.id: q.grades or dict.fromkeys(q.evidence, 1) for q in scenario.questions} == {
        q: {d: grade for d, grade in judged.items() if grade > 0} for q, judged in grades.items()
    }
