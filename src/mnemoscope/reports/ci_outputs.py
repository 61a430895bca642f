"""What a build server reads: JUnit XML, a Markdown summary of six lines, and JSON with a schema."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from mnemoscope.analysis.comparison import OVERALL, Comparison, Row
from mnemoscope.reports.comparison_tables import answer, figure, p_value, sample
from mnemoscope.text.display import as_markdown, one_line

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
COMPARISON_SCHEMA = "mnemoscope-compare-1"


class Check(NamedTuple):
    """One test case: a metric that was checked."""

    name: str
    said: str
    """The figures in one line."""
    failure: str = ""
    """Why it failed; empty if it did not."""
    skipped: str = ""
    """Why it was not checked; empty if it was."""


def junit_xml(suite: str, checks: Iterable[Check]) -> str:
    """The checks as one test suite of JUnit XML."""
    cases = list(checks)
    root = ElementTree.Element("testsuites")
    counts = {
        "tests": len(cases),
        "failures": sum(bool(case.failure) for case in cases),
        "errors": 0,
        "skipped": sum(bool(case.skipped) for case in cases),
    }
    attributes = {name: str(count) for name, count in counts.items()}
    holder = ElementTree.SubElement(root, "testsuite", {"name": _xml(suite), **attributes})
    for case in cases:
        names = {"classname": _xml(suite), "name": _xml(case.name)}
        item = ElementTree.SubElement(holder, "testcase", names)
        if case.failure:
            ElementTree.SubElement(item, "failure", {"message": _xml(case.failure)})
        if case.skipped:
            ElementTree.SubElement(item, "skipped", {"message": _xml(case.skipped)})
        ElementTree.SubElement(item, "system-out").text = _xml(case.said)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


def _xml(text: str) -> str:
    """The text in one line, without characters that XML 1.0 does not allow."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", one_line(text))


def markdown_summary(title: str, lines: Sequence[str]) -> str:
    """A title and five lines, with texts from elsewhere escaped."""
    if len(lines) != 5:
        raise ValueError(f"a summary has five lines below its title, got {len(lines)}")
    return (
        "\n".join([f"### {as_markdown(title)}", *(f"- {as_markdown(one)}" for one in lines)]) + "\n"
    )


def comparison_junit(found: Comparison) -> str:
    """A test case for each metric over all questions; a regression is a failure."""
    regressed = set(found.regressions)
    checks = []
    for row in (row for row in found.rows if row.scope == OVERALL):
        failure = "regressed: its interval lies below zero"
        checks.append(
            Check(
                row.metric,
                f"{figure(row)}, p {p_value(row.p)}, {_standing(row)}, {sample(row)}",
                failure if row.metric in regressed else "",
                "exploratory: no verdict" if row.verdict is None else "",
            )
        )
    return junit_xml(f"compare {found.base} → {found.cand} on {found.benchmark}", checks)


def comparison_summary(found: Comparison) -> str:
    """The comparison in six lines."""
    regressed = found.regressions
    secondaries = [row for row in found.rows if row.role == "secondary"]
    primary = found.primary
    others = "; ".join(f"{row.metric} {row.delta:+.4f} {_standing(row)}" for row in secondaries)
    power = "unknown"
    if primary is not None and primary.detectable is not None:
        power = f"{primary.detectable:.4f} in {primary.metric}"
    return markdown_summary(
        f"{found.base} → {found.cand} on {found.benchmark}",
        [
            answer(found),
            f"secondary metrics: {others or 'none'}",
            f"regression: {', '.join(regressed) if regressed else 'none found'}",
            f"smallest difference found with power 0.8: {power}",
            f"declared by {found.declared.source}; {len(found.notes)} notes"
            + (f": {found.notes[0]}" if found.notes else ""),
        ],
    )


def comparison_json(found: Comparison) -> dict[str, Any]:
    """The comparison as `compare --json` prints it."""
    content: dict[str, Any] = msgspec.to_builtins(found)
    return {
        "schema": COMPARISON_SCHEMA,
        "answer": answer(found),
        "regressed": found.regressed,
        **content,
    }


def comparison_schema() -> dict[str, Any]:
    """The JSON Schema of `compare --json`."""
    (_,), parts = msgspec.json.schema_components([Comparison], ref_template="#/$defs/{name}")
    own = parts.pop("Comparison")
    first = {
        "schema": {"const": COMPARISON_SCHEMA},
        "answer": {"type": "string", "description": "The comparison in one sentence."},
        "regressed": {"type": "boolean", "description": "Whether the exit code is 1."},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": COMPARISON_SCHEMA,
        **own,
        "properties": {**first, **own["properties"]},
        "required": [*first, *own["required"]],
        "$defs": parts,
    }


def _standing(row: Row) -> str:
    if row.verdict is None:
        return "exploratory"
    if row.confirmed is False and row.verdict != "cannot tell":
        return f"{row.verdict} (not confirmed)"
    return row.verdict
