"""PrecisionMemBench: counts of datasets-more.md §5, and every published figure of 15 reports."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import DataError
from mnemoscope.datasets.dataset_check import check
from mnemoscope.datasets.precisionmembench import (
    PrecisionMemBench,
    case_precision,
    case_recall,
    official_means,
)
from mnemoscope.types import Scenario

Shared = Callable[[str], Path]


@pytest.fixture(scope="module")
def folder(shared_data: Shared) -> Path:
    return shared_data("precisionmembench")


@pytest.fixture(scope="module")
def scenario(folder: Path) -> Scenario:
    return next(PrecisionMemBench(folder).scenarios())


def test_it_has_what_was_counted(folder: Path) -> None:
    checked = check(PrecisionMemBench(folder))
    assert not checked.problems
    assert checked.counts == {
        "beliefs": 35,
        "status active": 28,
        "status superseded": 4,
        "status exploratory": 2,
        "status inferred": 1,
        "pinned": 11,
        "memories": 34,
        "cases": 77,
        "cases that expect something": 43,
        "cases that expect nothing": 34,
        "questions": 72,
        "questions with evidence": 43,
    }
    assert checked.findings.counts == {
        "belief of another user, not stored": 1,
        "empty query, not asked": 4,
        "case of a user without beliefs, not asked": 1,
        "no expected list, read as empty": 2,
        "query asked twice in a scope": 3,
    }


def test_every_figure_of_the_published_reports_is_reproduced(
    folder: Path, scenario: Scenario
) -> None:
    """From the rankings of 15 runs: 1,155 precisions, 645 recalls, and the means."""
    cases = json.loads((folder / "retrieval.cases.json").read_text())
    wanted = {
        case["caseId"]: case["expect"].get("relevantBeliefs", {}).get("shouldOnlyInclude") or []
        for case in cases
    }
    reports = precisions = recalls = 0
    with tarfile.open(folder / "baseline_reports.tar.xz") as archive:
        for member in archive:
            name = Path(member.name).name
            if not member.isreg() or name.startswith("session-"):
                continue
            content = archive.extractfile(member)
            assert content is not None
            report = json.load(content)
            pairs = []
            for case in report["cases"]:
                pair = (case["relevantBeliefs"], wanted[case["caseId"]])
                pairs.append(pair)
                assert case_precision(*pair) == pytest.approx(case["retrievalPrecision"]), name
                assert case_recall(*pair) == pytest.approx(case["retrievalRecall"]), name
                precisions += 1
                recalls += bool(pair[1])
            means = official_means(pairs)
            assert round(means.precision, 4) == report["retrieval"]["meanPrecision"]
            assert round(means.recall, 4) == report["retrieval"]["meanRecall"]
            assert means.recall_cases == 43
            reports += 1
    assert (reports, precisions, recalls) == (15, 1_155, 645)
    # The evidence of the loader is the expected list of the file, under neutral ids.
    own = {one.id: len(one.evidence) for one in scenario.questions}
    assert own == {id: len(set(wanted[id])) for id in own}


@pytest.mark.parametrize(
    ("returned", "expected", "precision", "recall"),
    [
        ([], [], None, None),
        ([], ["a"], 0.0, 0.0),
        (["b"], [], 0.0, None),
        (["a", "b"], ["a"], 0.5, 1.0),
        (["a", "a"], ["a", "b"], 1.0, 0.5),
    ],
)
def test_the_official_rule(
    returned: list[str], expected: list[str], precision: float | None, recall: float | None
) -> None:
    assert case_precision(returned, expected) == precision
    assert case_recall(returned, expected) == recall


def test_nothing_a_system_sees_says_that_a_belief_is_superseded(
    folder: Path, scenario: Scenario
) -> None:
    beliefs = json.loads((folder / "beliefs.seed.json").read_text())
    seen = json.dumps(
        [[one.id, one.session, one.speaker, one.metadata] for one in scenario.memories]
    )
    assert "superseded" not in seen
    assert not any(belief["_id"] in seen for belief in beliefs)
    ages = [memory.at for memory in scenario.memories if memory.at]
    assert ages == sorted(ages) and len(ages) == 34


BELIEF = {
    "_id": "b-1",
    "user_id": "test-user",
    "type": "entity",
    "canonical_name": "redis",
    "aliases": ["cache"],
    "content": "Redis holds sessions.",
    "scope": ["domain:code"],
    "epistemic_status": "active",
    "pinned": False,
    "created_at": "2026-09-01T00:00:00Z",
}
CASE = {
    "caseId": "c",
    "category": "x",
    "scope": ["domain:code"],
    "query": "cache?",
    "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["b-1"]}},
}


def write(folder: Path, **changed: Any) -> Path:
    (folder / "beliefs.seed.json").write_text(json.dumps([BELIEF]))
    (folder / "retrieval.cases.json").write_text(json.dumps([CASE | changed]))
    return folder


def test_the_text_has_the_names_of_a_belief_unless_told_otherwise(tmp_path: Path) -> None:
    data = write(tmp_path)
    texts = [
        next(PrecisionMemBench(data, text=text).scenarios()).memories[0].text
        for text in ("named", "content")
    ]
    assert texts == ["redis, cache: Redis holds sessions.", "Redis holds sessions."]


def test_a_case_that_names_an_unknown_belief_is_refused(tmp_path: Path) -> None:
    data = write(tmp_path, expect={"relevantBeliefs": {"shouldOnlyInclude": ["b-2"]}})
    with pytest.raises(DataError, match="c: there is no belief 'b-2'"):
        list(PrecisionMemBench(data).scenarios())
