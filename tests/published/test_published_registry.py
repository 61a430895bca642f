"""The registry holds every row of both collections, each with a source, in equal units."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tools.check_published import recompute

from mnemoscope._store.errors import DataError
from mnemoscope.published import load
from mnemoscope.published.arithmetic_audit import SIZES
from mnemoscope.published.published_results import GROUPS

REPOSITORY = Path(__file__).resolve().parents[2]
FILE = REPOSITORY / "src/mnemoscope/published/results.jsonl"

ROW: dict[str, Any] = {
    "collection": "survey",
    "system": "S",
    "benchmark": "B",
    "variant": "all (n=10)",
    "metric": "accuracy_llm_judge",
    "value": 0.5,
    "unit": "fraction",
    "as_printed": {"metric": "accuracy_llm_judge", "value": "50", "unit": "percent"},
    "n": 10,
    "source": "a paper",
    "source_basis": "stated",
    "reported_by": "self",
}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_row_of_both_collections_is_there() -> None:
    rows = load()
    assert Counter(row.collection for row in rows) == {"survey": 696, "nexus": 131}
    entries = {(row.group, row.benchmark, row.system) for row in rows if row.group}
    counts = Counter(group for group, _, _ in entries)
    # answers.md §4.3: 61 entries in seven categories.
    assert [counts[group] for group in GROUPS] == [15, 5, 16, 11, 5, 4, 5]


def test_the_file_is_what_the_tool_builds(
    tmp_path: Path, shared_data: Callable[[str], Path]
) -> None:
    tool, built = REPOSITORY / "tools/build_published.py", tmp_path / "results.jsonl"
    subprocess.run([sys.executable, tool, shared_data("../published"), built], check=True)
    assert built.read_bytes() == FILE.read_bytes()


def test_rows_follow_from_the_verdicts_of_their_source(shared_data: Callable[[str], Path]) -> None:
    checks = list(recompute(load(), shared_data("answers/locomo-full-context")))
    assert len(checks) == 15 and all(one.agrees for one in checks)


def test_a_row_that_differs_from_its_verdicts_is_found(tmp_path: Path) -> None:
    rows = [row for row in load() if row.system.endswith("gpt-4o-mini, CoT prompt")]
    answers = [
        {"category": str(key), "llm_judgments": {"a": True, "b": True, "c": number % 3 > 0}}
        for key, count in SIZES.items()
        for number in range(count)
    ]
    content = json.dumps({"detailed_results": {"conversation": answers}}).encode()
    (tmp_path / "gpt-4o-mini-cot.eval_results.json.xz").write_bytes(lzma.compress(content))
    checks = list(recompute(rows, tmp_path))
    assert [one.n for one in checks] == [1540, 841, 282, 96, 321]
    assert all(one.found == pytest.approx(800 / 9, abs=0.2) for one in checks)
    assert not any(one.agrees for one in checks)


def test_scores_are_fractions_and_the_print_is_kept() -> None:
    rows = {(row.system, row.as_printed.metric, row.group): row for row in load()}
    percent = rows["HippoRAG2 (MuSiQue)", "f1", "knowledge_graph"]
    fraction = rows["MAGMA (graph)", "f1", "knowledge_graph"]
    assert (percent.value, percent.as_printed.value, percent.unit) == (0.519, "51.9", "fraction")
    assert (fraction.value, fraction.as_printed.value, fraction.unit) == (
        0.467,
        "0.467",
        "fraction",
    )
    assert rows["RLM (GPT-5, OOLONG-Pairs)", "base_f1", "rlm"].value == 0.0004
    tokens = rows["SimpleMem", "tokens_per_query", "consolidation"]
    assert (tokens.value, tokens.unit) == (531, "tokens")
    gain = rows["ACE (AppWorld)", "tgc_improvement_pct", "consolidation"]
    assert (gain.value, gain.unit) == (0.17, "change")


def test_names_of_metrics_do_not_carry_units() -> None:
    assert not [row for row in load() if row.metric.endswith(("_x100", "_pct", "_s"))]


def test_a_benchmark_is_never_taken_from_another_dataset_of_the_system() -> None:
    (zep,) = [
        row
        for row in load()
        if row.group == "core" and row.system == "Zep" and row.benchmark == "LongMemEval"
    ]
    assert (zep.variant, zep.n, zep.category) == ("unstated", None, None)


def test_only_what_was_withdrawn_is_retracted() -> None:
    assert {row.system for row in load() if row.retracted} == {
        "Zep (2025-05 self, retracted)",
        "MenteDB (RETRACTED composite)",
    }


def test_rows_without_citation_in_their_collection_say_so() -> None:
    uncited = [row for row in load() if not row.cited]
    assert {row.source_basis for row in uncited} == {"none in file"}
    assert len(uncited) == 6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": " "}, "has no source"),
        ({"unit": "parsecs"}, "use one of fraction, change, x, s, tokens"),
        ({"value": 50.0}, "must lie between 0 and 1"),
        ({"value": 0.6}, "as_printed gives 0.5"),
        ({"as_printed": {"metric": "m", "value": "half", "unit": "percent"}}, "not a number"),
        (
            {"as_printed": {"metric": "m", "value": "50", "unit": "tokens"}},
            "does not fit the unit fraction",
        ),
        ({"collection": "nexus", "group": "misc"}, "use one of core"),
        ({"category": {"column": "multi", "keying": "survey"}}, "either an id or the keying"),
        ({"colour": "red"}, "unknown field"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = write(tmp_path / "results.jsonl", ROW, {**ROW, "system": "T", **change})
    with pytest.raises(DataError, match=said) as refused:
        load(path)
    assert refused.value.line == 2


def test_a_row_that_lacks_the_field_source_is_refused(tmp_path: Path) -> None:
    bare = {key: value for key, value in ROW.items() if key != "source"}
    with pytest.raises(DataError, match="source") as refused:
        load(write(tmp_path / "results.jsonl", bare))
    assert refused.value.line == 1


def test_a_result_stands_there_once_even_with_another_value(tmp_path: Path) -> None:
    printed = {**ROW["as_printed"], "value": "60"}
    path = write(tmp_path / "results.jsonl", ROW, {**ROW, "value": 0.6, "as_printed": printed})
    with pytest.raises(DataError, match="same result as in line 1"):
        load(path)
