"""`mnemoscope gate`: a figure may not drop further below its baseline than allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from tests.conftest import REPOSITORY

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.aggregates import GateRow, gate
from mnemoscope.analysis.compare import NotComparable
from mnemoscope.cli.app import invoke
from mnemoscope.reports.gate_outputs import gate_junit, gate_report, gate_schema, gate_summary

Make = Callable[..., RunDirectory]


def hits(good: int, of: int = 100) -> list[bool]:
    return [number < good for number in range(of)]


@pytest.fixture
def pair(make_run: Make, tmp_path: Path) -> tuple[RunDirectory, RunDirectory]:
    """A baseline with recall 0.80 and a run with 0.78."""
    return make_run(tmp_path / "old", hits(80)), make_run(tmp_path / "new", hits(78))


Pair = tuple[RunDirectory, RunDirectory]


def test_a_drop_up_to_the_limit_passes_and_a_larger_one_fails(pair: Pair) -> None:
    old, new = pair

    exact, narrow = (gate(new, old.path, {"recall@10": limit})[0] for limit in (0.02, 0.019))

    assert (exact.baseline, exact.current, exact.allowed) == (0.8, 0.78, 0.02)
    assert exact.drop == pytest.approx(0.02)
    assert exact.passed
    assert not narrow.passed


def test_a_gain_is_a_negative_drop_and_passes_any_limit(pair: Pair) -> None:
    old, new = pair

    (row,) = gate(old, new.path, {"recall@10": 0.0})

    assert row.drop == pytest.approx(-0.02)
    assert row.passed


def test_one_metric_too_low_fails_the_whole_gate(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = pair
    limits = ["--max-drop", "recall@10=0.05", "--max-drop", "hit@10=0.01"]

    code = invoke(["gate", str(new.path), "--baseline", str(old.path), *limits, "--json"])

    found = json.loads(capsys.readouterr().out)
    assert code == 1
    assert [(row["metric"], row["passed"]) for row in found["rows"]] == [
        ("recall@10", True),
        ("hit@10", False),
    ]
    assert not found["passed"]


def test_json_follows_its_published_schema(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = pair
    schema = json.loads((REPOSITORY / "docs" / "schemas" / "gate.json").read_text())

    invoke(["gate", str(new.path), "--baseline", str(old.path), "--max-drop", "hit@10=0", "--json"])

    found = json.loads(capsys.readouterr().out)
    assert schema == gate_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    wrong: dict[str, Any]
    for wrong in ({**found, "passed": "yes"}, {**found, "schema": "other"}, {"rows": []}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_junit_and_the_summary_tell_what_the_table_tells(pair: Pair, tmp_path: Path) -> None:
    old, new = pair
    files = [tmp_path / name for name in ("gate.xml", "gate.md")]
    limits = ["--max-drop", "recall@10=0.05", "--max-drop", "hit@10=0.01"]
    outputs = ["--junit", str(files[0]), "--summary", str(files[1])]

    code = invoke(["gate", str(new.path), "--baseline", str(old.path), *limits, *outputs])

    assert code == 1
    (suite,) = ElementTree.parse(files[0]).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed = {case.get("name"): case.find("failure") is not None for case in suite}
    assert failed == {"recall@10": False, "hit@10": True}
    lines = files[1].read_text().splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("### gate failed")
    assert "0.8000 → 0.7800" in lines[3]


def test_a_hostile_name_stays_text_in_every_output() -> None:
    rows = [GateRow("<b>&\x00@10", 0.8, 0.7, 0.1, 0.02, False)]
    told = gate_report("runs/](http://x) <script>", "old\n# title", rows)

    (suite,) = ElementTree.fromstring(gate_junit(told))
    assert suite[0].get("name", "").startswith("<b>&")
    page = gate_summary(told)
    assert len(page.splitlines()) == 6
    assert "<script>" not in page and "](http" not in page


def test_a_file_that_cannot_be_written_is_wrong_usage(
    pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = pair
    limit = ["--max-drop", "recall@10=0.05", "--junit", str(tmp_path / "none" / "gate.xml")]

    assert invoke(["gate", str(new.path), "--baseline", str(old.path), *limit]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_exit_code_0_within_the_limits(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = pair
    file = old.path / "metrics.json"

    code = invoke(["gate", str(new.path), "--baseline", str(file), "--max-drop", "recall@10=0.02"])

    assert code == 0
    assert "gate passed" in capsys.readouterr().out


def test_a_baseline_in_pgmnemos_format_is_accepted(pair: Pair, tmp_path: Path) -> None:
    file = tmp_path / "theirs.json"
    content = {"overall": {"recall@10": {"n": 100, "mean": 0.9, "ci95_lo": 0.8, "ci95_hi": 0.95}}}
    file.write_text(json.dumps(content))

    (row,) = gate(pair[1], file, {"recall@10": 0.05})

    assert (row.baseline, row.passed) == (0.9, False)


def test_recalls_that_failed_count_as_wrong(make_run: Make, tmp_path: Path) -> None:
    old = make_run(tmp_path / "old", [True] * 100)
    new = make_run(tmp_path / "new", [True] * 100, failed=50)

    (row,) = gate(new, old.path, {"recall@10": 0.02})

    assert new.read_json("metrics.json")["overall"]["recall@10"]["mean"] == 1.0
    assert (row.current, row.passed) == (0.5, False)


@pytest.mark.parametrize("other", [{"data": "e" * 64}, {"scope": "dataset"}, {"depth": 5}])
def test_a_baseline_of_another_benchmark_is_refused(
    make_run: Make, tmp_path: Path, other: dict[str, object]
) -> None:
    run = make_run(tmp_path / "new", hits(78))
    old = make_run(tmp_path / "old", hits(80), **other)

    for baseline in (old.path, old.path / "metrics.json"):
        with pytest.raises(NotComparable):
            gate(run, baseline, {"recall@5": 0.02})
        limit = ["--max-drop", "recall@5=0.02"]
        assert invoke(["gate", str(run.path), "--baseline", str(baseline), *limit]) == 3


def test_published_data_of_another_hash_is_refused(pair: Pair, tmp_path: Path) -> None:
    file = tmp_path / "theirs.json"
    means = {"recall@10": {"n": 100, "mean": 0.9}}
    file.write_text(json.dumps({"dataset_sha256": "e" * 64, "overall": means}))

    with pytest.raises(NotComparable, match="different data"):
        gate(pair[1], file, {"recall@10": 0.05})


def test_an_unknown_metric_is_an_error_that_lists_the_known_ones(pair: Pair) -> None:
    with pytest.raises(UsageError, match=r"has no metric 'recall@7'; it has .*recall@10"):
        gate(pair[1], pair[0].path, {"recall@7": 0.02})


@pytest.mark.parametrize("limit", ["recall@10", "recall@10=much", "recall@10=-0.1", "=0.1"])
def test_an_invalid_limit_is_wrong_usage(pair: Pair, limit: str) -> None:
    old, new = pair

    arguments = ["gate", str(new.path), "--baseline", str(old.path), "--max-drop", limit]
    assert invoke(arguments) == 2


def test_a_baseline_that_does_not_exist_is_wrong_usage(pair: Pair, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.json")

    code = invoke(["gate", str(pair[1].path), "--baseline", missing, "--max-drop", "recall@10=0"])

    assert code == 2


def test_a_baseline_without_metrics_is_not_comparable(pair: Pair, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text("[]")

    code = invoke(["gate", str(pair[1].path), "--baseline", str(file), "--max-drop", "recall@10=0"])

    assert code == 3


def test_a_metric_named_twice_is_wrong_usage(pair: Pair) -> None:
    old, new = pair
    limits = ["--max-drop", "recall@10=0.5", "--max-drop", "recall@10=0"]

    assert invoke(["gate", str(new.path), "--baseline", str(old.path), *limits]) == 2


def test_an_unfinished_run_does_not_pass(pair: Pair, tmp_path: Path) -> None:
    old, new = pair
    baseline = tmp_path / "baseline.json"
    baseline.write_bytes((old.path / "metrics.json").read_bytes())
    manifest = new.manifest()
    manifest.state = "running"
    new.save(manifest)

    with pytest.raises(NotComparable, match="not complete"):
        gate(new, baseline, {"recall@10": 0.5})


def test_failures_count_as_wrong_on_both_sides(make_run: Make, tmp_path: Path) -> None:
    half = make_run(tmp_path / "half", hits(100), failed=50)

    (row,) = gate(half, half.path, {"recall@10": 0.0})

    assert (row.baseline, row.current) == (0.5, 0.5)
