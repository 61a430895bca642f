"""`mnemoscope published` as people and programs use it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cyclopts import App

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.published import app as published


def call(*arguments: str) -> None:
    app = App(name="mnemoscope")
    app.command(published)
    app(
        ["published", *arguments],
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    call("list", *arguments, "--json")
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_list_has_every_row_with_its_cohort(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys)
    assert len(found) == 827
    assert all(row["source"] and row["cohort"]["id"] for row in found)


def test_filters_narrow_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(
        capsys, "--benchmark", "locomo", "--system", "ZEP", "--category", "temporal",
        "--reported-by", "self",
    )  # fmt: skip
    assert {row["category"]["id"] for row in found} == {2}
    assert {row["system"] for row in found} == {"Zep (2025-07 self)", "Zep (2026 research page)"}
    assert rows(capsys, "--category", "2", "--system", "zep (2025-07") == found[:1]
    assert len(rows(capsys, "--category", "unknown")) == 8
    assert {row["metric"] for row in rows(capsys, "--metric", "ROUGE")} == {
        "forget_rouge",
        "retain_rouge",
    }


def test_the_table_has_a_heading_for_every_cohort(capsys: pytest.CaptureFixture[str]) -> None:
    call("list", "--benchmark", "TOFU")
    told = " ".join(capsys.readouterr().out.split())
    assert "forget ROUGE-L" in told
    assert "2 results in 2 cohorts" in told


def test_an_unknown_benchmark_is_told_what_there_is() -> None:
    with pytest.raises(UsageError, match="LoCoMo, LongMemEval"):
        call("list", "--benchmark", "LoCoMoo")
    with pytest.raises(UsageError, match="omit a filter"):
        call("list", "--system", "no such system")


def test_audit_tells_what_disagrees_and_what_cannot_be_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call("audit")
    told = " ".join(capsys.readouterr().out.split())
    assert told.count("DISAGREES") == 7
    assert "58 of 65 agree within rounding" in told
    assert "which column is which category is unknown" in told
    call("audit", "--json")
    assert len(json.loads(capsys.readouterr().out)["checks"]) == 65


def test_spread_names_who_reported_each_end(capsys: pytest.CaptureFixture[str]) -> None:
    call("spread", "--system", "zep", "--json")
    found = json.loads(capsys.readouterr().out)
    assert [one["system"] for one in found] == ["Zep"]
    assert found[0]["lowest"]["reported_by"] == "competitor"
    assert found[0]["highest"]["reported_by"] == "self"
    call("spread", "--benchmark", "LongMemEval")
    assert "does not show that a result is wrong" in capsys.readouterr().out


def test_baselines_are_the_seven_groups(capsys: pytest.CaptureFixture[str]) -> None:
    call("baselines")
    assert capsys.readouterr().out.count("### ") == 7
    call("baselines", "--json")
    assert len(json.loads(capsys.readouterr().out)) == 7
