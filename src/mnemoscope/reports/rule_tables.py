"""The table of judging rules: which rule moves the figure by how much on the same answers."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.analysis.rule_effects import RuleEffect
from mnemoscope.reports.tables import MISSING, ReportTable, TableColumn, brackets, numeric


def rule_table(effects: Sequence[RuleEffect]) -> ReportTable:
    columns = [
        TableColumn("rules", wrap=False),
        numeric("figure"),
        numeric("change"),
        numeric("95 % interval"),
        numeric("gained"),
        numeric("lost"),
        numeric("unjudged"),
    ]
    rows = [
        [
            one.rules,
            MISSING if one.mean is None else f"{one.mean:.3f}",
            "" if one.delta is None else f"{one.delta:+.3f}",
            brackets(one.ci95, 3),
            "" if one.delta is None else f"{one.to_right:,}",
            "" if one.delta is None else f"{one.to_wrong:,}",
            f"{one.unjudged:,}",
        ]
        for one in effects
    ]
    return ReportTable(columns, list(rows))


def rule_notes(effects: Sequence[RuleEffect]) -> list[str]:
    """What each rule is about, in the order of the table."""
    return [f"{one.rules}: {one.about}" for one in effects if one.about]
