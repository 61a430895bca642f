"""What `compare` writes for build servers: JUnit XML, six lines of Markdown, JSON with a schema."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from msgspec.structs import replace
from tests.conftest import REPOSITORY

from mnemoscope.analysis.comparison import Comparison, Declared, Guarded, Role, Row
from mnemoscope.reports.ci_outputs import (
    comparison_json,
    comparison_junit,
    comparison_schema,
    comparison_summary,
)
from mnemoscope.stats.verdicts import verdict_of

SCHEMA = REPOSITORY / "docs" / "schemas" / "compare.json"
HOSTILE = "a\x00\x1b[31m]]><script>alert(1)</script>\n# x\u202e](http://x) | `b` &amp; \ud7ff\ufffe"


def row(metric: str, role: Role, low: float, high: float, scope: str = "overall") -> Row:
    decides = role in ("primary", "secondary")
    return Row(
        scope=scope,
        metric=metric,
        role=role,
        n=1_000,
        clusters=10,
        base=0.8,
        cand=0.8 + (low + high) / 2,
        delta=(low + high) / 2,
        se=(high - low) / 4.5,
        ci95=(low, high),
        critical=2.25,
        p=0.01,
        verdict=verdict_of((low, high)) if decides else None,
        confirmed=True if role == "secondary" else None,
        effect=0.1,
        effect_name="d_z",
        effect_label="small",
        detectable=0.02,
        detectable_range=(0.01, 0.03),
        these_only=False,
        beyond_these=None,
        effective_clusters=10.0,
        largest_share=0.1,
    )


def found(name: str = "mine", note: str = "", metric: str = "mrr@50") -> Comparison:
    """The primary metric is worse, a secondary one better, a third was chosen after looking."""
    rows = [
        row("recall@10", "primary", -0.05, -0.01),
        row(metric, "secondary", 0.01, 0.05),
        row("hit@1", "chosen after looking", -0.9, -0.8),
        row("recall@10", "category", -0.9, -0.8, scope=f"category {name}"),
    ]
    return Comparison(
        base=f"old {name}",
        cand=name,
        benchmark="made",
        paired=1_000,
        only_base=0,
        only_cand=0,
        failed=0,
        clusters=10,
        band=None,
        declared=Declared("recall@10", [metric], f"protocol {name}"),
        rows=rows,
        guarded=[
            Guarded(one.metric, one.delta, (one.ci95[0] - 0.02, one.ci95[1] + 0.02), one.ci95)
            for one in rows[:2]
        ],
        by_cluster=[],
        notes=[note] if note else [],
    )


def cases(text: str) -> dict[str, list[str]]:
    """The names of the test cases, each with the tags below it."""
    (suite,) = ElementTree.fromstring(text)
    return {case.get("name", ""): [part.tag for part in case] for case in suite}


def test_a_regression_is_a_failure_and_exploration_is_skipped() -> None:
    told = comparison_junit(found())

    (suite,) = ElementTree.fromstring(told)
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["3", "1", "0", "1"]
    assert cases(told) == {
        "recall@10": ["failure", "system-out"],
        "mrr@50": ["system-out"],
        "hit@1": ["skipped", "system-out"],
    }
    assert suite[0].findtext("system-out") == (
        "recall@10 -0.0300 [-0.0500, -0.0100], p 0.0100, worse, 1,000 questions in 10 conversations"
    )


def test_a_secondary_metric_that_the_guard_names_fails_also_if_it_is_not_confirmed() -> None:
    one = found()
    rows = [
        row("recall@10", "primary", -0.01, 0.02),
        replace(row("mrr@50", "secondary", -0.09, -0.05), confirmed=False),
    ]
    guarded = [
        Guarded("recall@10", 0.005, (-0.02, 0.03), (-0.01, 0.02)),
        Guarded("mrr@50", -0.07, (-0.1, -0.04), (-0.09, -0.05)),
    ]
    told = comparison_junit(replace(one, rows=rows, guarded=guarded))

    assert cases(told) == {"recall@10": ["system-out"], "mrr@50": ["failure", "system-out"]}
    assert "worse (not confirmed)" in told


def test_without_a_regression_nothing_fails() -> None:
    better = [row("recall@10", "primary", 0.01, 0.05)]
    guarded = [Guarded("recall@10", 0.03, (0.0, 0.06), (0.01, 0.05))]

    assert cases(comparison_junit(replace(found(), rows=better, guarded=guarded))) == {
        "recall@10": ["system-out"]
    }


def test_hostile_texts_stay_text_in_junit() -> None:
    told = comparison_junit(found(HOSTILE, metric=HOSTILE))

    (suite,) = ElementTree.fromstring(told)
    assert [case.tag for case in suite] == ["testcase"] * 3
    assert "<script>" in suite.get("name", "")
    assert "]]>" in suite.get("name", "")
    assert "<script" not in told
    assert not {"\x00", "\x1b", "\u202e", "\ufffe"} & set(told)
    assert all("\n" not in case.get("name", "") for case in suite)


@pytest.mark.parametrize("text", ["", "plain", HOSTILE])
def test_the_summary_has_six_lines_whatever_the_texts(text: str) -> None:
    told = comparison_summary(found(text, text, text or "mrr@50"))

    lines = told.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("### ")
    assert all(line.startswith("- ") for line in lines[1:])
    assert lines[3] == "- regression: recall@10"
    assert "<script" not in told
    assert "](http" not in told
    assert not {"\x00", "\x1b", "\u202e"} & set(told)


def test_the_published_schema_is_the_present_one() -> None:
    """Write it again with json.dumps(comparison_schema(), indent=2, ensure_ascii=False)."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))

    assert schema == comparison_schema()
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", ["mine", HOSTILE])
def test_json_follows_the_published_schema(name: str) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    told: dict[str, Any] = json.loads(json.dumps(comparison_json(found(name, name))))

    jsonschema.validate(told, schema)
    assert told["regressed"] is True
    wrong: dict[str, Any]
    for wrong in (
        {**told, "schema": "other"},
        {**told, "regressed": "no"},
        {**told, "rows": [{"metric": "recall@10"}]},
        {**told, "rows": [{**told["rows"][0], "verdict": "much better"}]},
        {name: value for name, value in told.items() if name != "answer"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
