"""TREC's files: judgments and rankings as trec_eval understands them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.trec import Trec, read_run


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def qrels(tmp_path: Path, content: str | bytes) -> Path:
    return written(tmp_path / "qrels.txt", content)


def run(tmp_path: Path, *hits: tuple[str, str]) -> Path:
    lines = (f"t1 Q0 {document} 1 {score} me\n" for document, score in hits)
    return written(tmp_path / "run.txt", "".join(lines))


def order(path: Path) -> list[str]:
    return [document for document, _ in read_run(path).topics["t1"]]


def relevant(path: Path) -> dict[str, tuple[str, ...]]:
    """The relevant documents of each topic."""
    [scenario] = Trec(path).scenarios()
    return {question.id: question.evidence for question in scenario.questions}


def test_judgments_are_read_by_topic_and_document(tmp_path: Path) -> None:
    path = qrels(tmp_path, "301 0 A 1\n301\tx\tB\t0\n301 0 C 2\n  302 0 A -2  \n")
    assert relevant(path) == {"301": ("A", "C"), "302": ()}
    [scenario] = Trec(path).scenarios()
    assert [memory.id for memory in scenario.memories] == ["A", "B", "C"]
    assert scenario.questions[0].grades == {"A": 1, "C": 2}


def test_a_ranking_follows_the_scores_and_not_the_rank_column(tmp_path: Path) -> None:
    assert order(run(tmp_path, ("low", "-1e2"), ("high", "3"), ("middle", "2.5"))) == [
        "high",
        "middle",
        "low",
    ]


def test_ties_go_to_the_document_that_is_last_in_the_alphabet(tmp_path: Path) -> None:
    assert order(run(tmp_path, ("a", "1"), ("c", "1"), ("b", "1.0"))) == ["c", "b", "a"]


def test_scores_that_a_c_float_cannot_tell_apart_are_tied(tmp_path: Path) -> None:
    assert order(run(tmp_path, ("a", "1.00000000002"), ("b", "1.00000000001"))) == ["b", "a"]


def test_the_score_is_kept_as_it_was_written(tmp_path: Path) -> None:
    assert read_run(run(tmp_path, ("a", "0.1"))).topics == {"t1": [("a", 0.1)]}


def test_a_document_ranked_twice_keeps_its_better_rank_and_is_found(tmp_path: Path) -> None:
    path = run(tmp_path, ("a", "1"), ("b", "2"), ("a", "3"), ("a", "0"))
    rankings = read_run(path)
    assert rankings.topics == {"t1": [("a", 3.0), ("b", 2.0)]}
    assert rankings.findings.counts == {"duplicate document in a ranking": 2}
    assert rankings.findings.examples["duplicate document in a ranking"][0] == "t1: a"


@pytest.mark.parametrize("score", ["nan", "inf", "-inf", "1e999", "x", "1_0", "१", "0x1p3"])
def test_a_score_that_is_no_finite_number_is_refused(tmp_path: Path, score: str) -> None:
    path = run(tmp_path, ("a", "1"), ("b", score))
    with pytest.raises(DataError, match=r"run\.txt, line 2: score .* is not a finite number"):
        read_run(path)


@pytest.mark.parametrize("line", ["t1 Q0 a 1 0.5", "t1 Q0 a 1 0.5 me too", "nonsense"])
def test_a_run_line_with_other_columns_is_named(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "run.txt", f"t1 Q0 b 1 0.5 me\n\n{line}\n")
    with pytest.raises(DataError, match=r"run\.txt, line 3: \d columns, expected 6"):
        read_run(path)


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("301 0 A 1\n301 0 A\n", 2, "3 columns, expected 4"),
        ("301 0 A 1 extra\n", 1, "5 columns, expected 4"),
        ("301 0 A yes\n", 1, "'yes' is not an integer"),
        ("301 0 A 1\n\n301 0 A 0\n", 3, "graded 0 here and 1 in line 1"),
        (b"301 0 A\x00 1\n", 1, "NUL"),
        (b"301 0 A 1\n301 0 \xff 1\n", 2, "utf-8"),
    ],
)
def test_a_malformed_judgment_is_named(
    tmp_path: Path, content: str | bytes, line: int, problem: str
) -> None:
    with pytest.raises(DataError, match=rf"qrels\.txt, line {line}: .*{re.escape(problem)}"):
        relevant(qrels(tmp_path, content))


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_empty_files_are_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataError, match="contains no judgments"):
        relevant(qrels(tmp_path, content))
    with pytest.raises(DataError, match="contains no rankings"):
        read_run(written(tmp_path / "run.txt", content))


def test_missing_files_are_named(tmp_path: Path) -> None:
    for read in (relevant, read_run, Trec):
        with pytest.raises(MissingData, match=r"absent\.txt"):
            read(tmp_path / "absent.txt")


def test_windows_files_and_huge_ids_are_read(tmp_path: Path) -> None:
    huge = "9" * 10_000
    path = qrels(tmp_path, b"\xef\xbb\xbf" + f"301 0 {huge} 1\r\n".encode())
    dataset = Trec(path)
    [scenario] = dataset.scenarios()
    assert scenario.questions[0].evidence == (huge,)
    assert dataset.findings.counts["byte order mark skipped"] == 1


def test_the_dataset_holds_the_judged_documents_without_texts(tmp_path: Path) -> None:
    dataset: Dataset = Trec(qrels(tmp_path, "t1 0 A 2\nt1 0 B 0\nt2 0 A 1\nt3 0 C 0\n"))
    [scenario] = dataset.scenarios()
    assert scenario.id == "trec"
    assert [(memory.id, memory.text) for memory in scenario.memories] == [
        ("A", ""),
        ("B", ""),
        ("C", ""),
    ]
    assert [(q.id, q.text, q.evidence, q.grades) for q in scenario.questions] == [
        ("t1", "t1", ("A",), {"A": 2}),
        ("t2", "t2", ("A",), {}),
        ("t3", "t3", (), {}),
    ]
    assert dataset.findings.counts == {
        "pool contains judged documents only": 1,
        "question without relevant memory": 1,
    }
    assert dataset.options == {}
    assert dataset.counts() == {"memories": 3, "questions": 3, "evidence": 2}


def test_a_folder_must_hold_exactly_one_qrels_file(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="starts with 'qrels'"):
        Trec(tmp_path)
    only = written(tmp_path / "qrels.a", "t1 0 A 1\n")
    assert [file.path for file in Trec(tmp_path).files()] == [only]
    written(tmp_path / "qrels.b", "t1 0 A 1\n")
    with pytest.raises(UsageError, match=r"qrels\.a, qrels\.b"):
        Trec(tmp_path)


def test_the_order_of_hits_gives_the_numbers_that_trec_eval_gives(
    shared_data: Callable[[str], Path],
) -> None:
    """Golden numbers: test/out.test of trec_eval 9, its own output for these two files."""
    data = shared_data("trec_eval")
    official = {
        fields[0]: fields[2]
        for fields in map(str.split, (data / "out.test").read_text().splitlines())
    }
    judged, rankings = relevant(data / "qrels.test"), read_run(data / "results.test")
    precisions, reciprocals, found = [], [], 0
    for topic, ranking in rankings.topics.items():
        right = judged[topic]
        ranks = [rank for rank, (document, _) in enumerate(ranking, 1) if document in right]
        found += len(ranks)
        precisions.append(sum(n / rank for n, rank in enumerate(ranks, 1)) / len(right))
        reciprocals.append(1 / ranks[0] if ranks else 0.0)

    assert not rankings.findings.counts
    assert sum(map(len, rankings.topics.values())) == int(official["num_ret"])
    assert found == int(official["num_rel_ret"])
    assert f"{sum(precisions) / len(precisions):.4f}" == official["map"]
    assert f"{sum(reciprocals) / len(reciprocals):.4f}" == official["recip_rank"]


def test_the_official_judgments_make_a_dataset(shared_data: Callable[[str], Path]) -> None:
    dataset = Trec(shared_data("trec_eval"))
    [scenario] = dataset.scenarios()
    assert [question.id for question in scenario.questions] == ["301", "302", "303"]
    assert dataset.counts()["evidence"] == 561


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=50,
)
@given(
    st.dictionaries(
        name := st.text(
            st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\v\f\r "),
            min_size=1,
            max_size=12,
        ),
        st.dictionaries(
            name, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6
        ),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_written_is_read_back(tmp_path: Path, topics: dict[str, dict[str, float]]) -> None:
    rows = [(topic, d, score) for topic, scores in topics.items() for d, score in scores.items()]
    path = written(tmp_path / "run.txt", "".join(f"{t} Q0 {d} 0 {s!r} r\n" for t, d, s in rows))
    assert {topic: dict(hits) for topic, hits in read_run(path).topics.items()} == topics
    path = qrels(tmp_path, "".join(f"{t} 0 {d} 1\n" for t, d, _ in rows))
    assert relevant(path) == {topic: tuple(scores) for topic, scores in topics.items()}
