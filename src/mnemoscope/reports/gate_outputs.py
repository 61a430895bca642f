"""The result of `mnemoscope gate` for a build server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mnemoscope.analysis.aggregates import GateRow
from mnemoscope.reports.ci_outputs import Check, junit_xml, markdown_summary

GATE_SCHEMA = "mnemoscope-gate-1"


class GateReport(msgspec.Struct, frozen=True):
    """What `gate --json` prints."""

    schema: str
    run: str
    baseline: str
    passed: bool
    rows: list[GateRow]


def gate_report(run: str, baseline: str, rows: Sequence[GateRow]) -> GateReport:
    return GateReport(GATE_SCHEMA, run, baseline, all(row.passed for row in rows), list(rows))


def gate_schema() -> dict[str, Any]:
    """The JSON Schema of `gate --json`."""
    (_,), parts = msgspec.json.schema_components([GateReport], ref_template="#/$defs/{name}")
    own = parts.pop("GateReport")
    own["properties"]["schema"] = {"const": GATE_SCHEMA}
    start = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": GATE_SCHEMA}
    return {**start, **own, "$defs": parts}


def gate_junit(found: GateReport) -> str:
    """A test case for each metric; a drop too large is a failure."""
    checks = [
        Check(row.metric, _figures(row), "" if row.passed else f"dropped too far: {_figures(row)}")
        for row in found.rows
    ]
    return junit_xml(f"gate {found.run} against {found.baseline}", checks)


def gate_summary(found: GateReport) -> str:
    """The gate in six lines."""
    failed = [row for row in found.rows if not row.passed]
    largest = max(found.rows, key=lambda row: row.drop - row.allowed, default=None)
    return markdown_summary(
        f"gate {'passed' if found.passed else 'failed'}: {found.run}",
        [
            f"baseline: {found.baseline}",
            f"{len(found.rows) - len(failed)} of {len(found.rows)} metrics within their limits",
            f"dropped too far: {'; '.join(map(_named, failed)) or 'none'}",
            f"nearest to its limit: {_named(largest) if largest else 'none'}",
            "limits on means, no significance test; failed questions count as wrong",
        ],
    )


def _figures(row: GateRow) -> str:
    means = f"{row.baseline:.4f} → {row.current:.4f}"
    return f"{means}, drop {row.drop:+.4f}, allowed {row.allowed:.4f}"


def _named(row: GateRow) -> str:
    return f"{row.metric} {_figures(row)}"
