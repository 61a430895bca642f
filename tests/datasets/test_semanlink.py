"""The collection that benchmarks/semanlink_beir.py makes, as the BEIR loader reads it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.datasets import open_dataset

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import semanlink_beir

PAPERS = [
    {"arxiv_num": "1", "arxiv_title": "A\n title", "arxiv_summary": "On\n  dogs.", "tag": ["d"]},
    {"arxiv_num": "2", "arxiv_title": "Cats", "arxiv_summary": "On cats.", "tag": ["c"]},
    {"arxiv_num": "3", "arxiv_title": "Both", "arxiv_summary": "On both.", "tag": ["c", "d"]},
]
TAGS = {"c": {"prefLabel": ["Cat"]}, "d": {"prefLabel": ["Dog"]}, "all": {"prefLabel": ["Doc"]}}


def made(papers: list[dict[str, Any]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(semanlink_beir, "read", lambda _: (papers, TAGS))
    semanlink_beir.main(Path("archive"), folder)
    return folder


def test_tags_are_queries_and_the_papers_under_them_relevant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = [paper | {"tag": [*paper["tag"], "all"]} for paper in PAPERS]
    folder = made(papers, tmp_path, monkeypatch)
    (scenario,) = open_dataset("beir", folder, {}).scenarios()
    assert [memory.text for memory in scenario.memories] == [
        "A title\nOn dogs.",
        "Cats\nOn cats.",
        "Both\nOn both.",
    ]
    asked = {question.text: set(question.evidence) for question in scenario.questions}
    assert asked == {"Cat": {"2", "3"}, "Dog": {"1", "3"}}  # not the tag of all papers


def test_another_archive_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "cherche-2.2.1.tar.gz"
    other.write_bytes(b"another")
    with pytest.raises(SystemExit, match="not that of cherche"):
        semanlink_beir.read(other)
