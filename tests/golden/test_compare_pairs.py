"""Two real pairs of systems under the decision rule, and what docs/compare-and-verify.md shows.

Figures of bm25 → hybrid: ../shared/spec/decision-engine.md §4. Those of pgmnemo v0.2.1 → v0.3.0
were computed by this rule from its published rankings; for v0.4 there are no rankings here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from tests.conftest import REPOSITORY

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.compare import compare
from mnemoscope.analysis.comparison import Comparison
from mnemoscope.cli.app import invoke
from mnemoscope.datasets import dataset_info, open_dataset
from mnemoscope.reports.comparison_tables import answer
from mnemoscope.runner.score_rankings import score

PAGE = REPOSITORY / "docs" / "compare-and-verify.md"
VERSIONS = {"v0.2.1": "v0.2.1_session_20260509", "v0.3.0": "v0.3.0_session_20260513"}
SENTENCES = {
    "systems": "hybrid cannot be told from bm25: recall@10 +0.0050 [-0.0033, +0.0133], 1,982 "
    "questions in 10 conversations; at worst -0.3 pp, at best +1.3 pp",
    "pgmnemo": "v0.3.0 cannot be told from v0.2.1: recall@10 +0.0042 [-0.0023, +0.0107], 1,982 "
    "questions in 10 conversations; at worst -0.2 pp, at best +1.1 pp",
}
CRITICAL = {"systems": 3.214, "pgmnemo": 3.140}
ROWS = {
    "systems": {
        "recall@10": (0.0050, -0.0033, 0.0133, 0.2066, "cannot tell"),
        "recall@5": (0.0051, -0.0106, 0.0209, 0.767, "cannot tell"),
        "hit@10": (0.0045, -0.0069, 0.0160, 0.640, "cannot tell"),
        "all@10": (0.0071, -0.0056, 0.0197, 0.366, "cannot tell"),
        "ndcg@10": (0.0084, -0.0010, 0.0178, 0.082, "cannot tell"),
        "mrr@50": (0.0104, -0.0024, 0.0233, 0.122, "cannot tell"),
    },
    "pgmnemo": {
        "recall@10": (0.0042, -0.0023, 0.0107, 0.1735, "cannot tell"),
        "recall@5": (0.0017, -0.0119, 0.0153, 0.988, "cannot tell"),
        "hit@10": (0.0066, -0.0022, 0.0154, 0.161, "cannot tell"),
        "all@10": (0.0010, -0.0115, 0.0136, 0.998, "cannot tell"),
        "ndcg@10": (0.0083, 0.0021, 0.0146, 0.011, "better"),
        "mrr@50": (0.0089, -0.0003, 0.0181, 0.057, "cannot tell"),
    },
}
DETECTABLE = {"systems": (0.0115, 0.0090, 0.0169), "pgmnemo": (0.0090, 0.0071, 0.0132)}
"""The difference that is found with power 0.8, and its 80 % limits."""

Pairs = dict[str, tuple[RunDirectory, RunDirectory]]


@pytest.fixture(scope="module")
def pairs(
    locomo_runs: dict[str, RunDirectory],
    shared_data: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Pairs:
    rules = dataset_info("locomo").published_rules["pgmnemo"].options
    dataset = open_dataset("locomo", shared_data("locomo"), rules)
    out = tmp_path_factory.mktemp("pgmnemo")
    old, new = (
        score(
            dataset,
            shared_data(f"pgmnemo/locomo/{folder}/raw_retrievals.jsonl"),
            out / version,
            format="pgmnemo",
            compat="pgmnemo",
        )
        for version, folder in VERSIONS.items()
    )
    return {"systems": (locomo_runs["bm25"], locomo_runs["hybrid"]), "pgmnemo": (old, new)}


@pytest.fixture(scope="module")
def found(pairs: Pairs) -> dict[str, Comparison]:
    return {name: compare(*both, by_category=False) for name, both in pairs.items()}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_first_sentence_is_the_answer(found: dict[str, Comparison], name: str) -> None:
    assert answer(found[name]) == SENTENCES[name]


@pytest.mark.parametrize("name", ROWS)
def test_every_declared_metric_has_these_figures(found: dict[str, Comparison], name: str) -> None:
    one = found[name]
    assert [row.metric for row in one.rows] == list(ROWS[name])
    for row in one.rows:
        delta, low, high, p, verdict = ROWS[name][row.metric]
        assert (row.n, row.clusters, row.verdict) == (1_982, 10, verdict), row.metric
        assert round(row.delta, 4) == delta, row.metric
        assert row.ci95 == pytest.approx((low, high), abs=6e-5), row.metric
        assert row.p == pytest.approx(p, abs=5e-5 if row.role == "primary" else 0.005), row.metric
    assert not one.regressed


@pytest.mark.parametrize("name", CRITICAL)
def test_the_critical_values_are_exact_for_the_primary_and_simulated_for_the_others(
    found: dict[str, Comparison], name: str
) -> None:
    primary, *secondaries = found[name].rows
    assert primary.role == "primary"
    assert primary.critical == pytest.approx(2.3022, abs=5e-5)
    for row in secondaries:
        assert row.critical == pytest.approx(CRITICAL[name], abs=0.03)
        assert (row.role, row.confirmed) == ("secondary", False)


@pytest.mark.parametrize("name", DETECTABLE)
def test_what_the_rule_could_have_found(found: dict[str, Comparison], name: str) -> None:
    primary = found[name].rows[0]
    assert primary.detectable is not None
    assert primary.detectable_range is not None
    told = (primary.detectable, *primary.detectable_range)
    assert told == pytest.approx(DETECTABLE[name], abs=6e-5)


@pytest.mark.parametrize("name", SENTENCES)
def test_the_page_shows_what_compare_prints_first_in_eighty_columns(
    pairs: Pairs, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert invoke(["compare", *(str(run.path) for run in pairs[name])]) == 0
    printed = capsys.readouterr().out
    first = [line.rstrip() for line in printed.split("\n\n")[0].splitlines()]
    assert " ".join(first) == SENTENCES[name]
    assert all(len(line.rstrip()) <= 80 for line in printed.splitlines())
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert "\n".join(first) + "\n" in shown


def test_json_of_a_real_pair_follows_the_published_schema(
    pairs: Pairs, capsys: pytest.CaptureFixture[str]
) -> None:
    invoke(["compare", *(str(run.path) for run in pairs["pgmnemo"]), "--json"])
    schema = json.loads((REPOSITORY / "docs" / "schemas" / "compare.json").read_text())
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, schema)
    assert told["answer"] == SENTENCES["pgmnemo"]
