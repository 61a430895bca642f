"""The result of `mnemoscope gate STORE`: for the terminal, a build server and a pull request.

Questions and ids are texts from elsewhere: whatever shows them passes them through `text/display`.
In a comment texts are code, so that they call no people and link no issues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mnemoscope.analysis.comparison import Row
from mnemoscope.analysis.store_bridge import Followed
from mnemoscope.analysis.store_gate import ChangedQuestion, StoreGate
from mnemoscope.reports.ci_outputs import Check, junit_xml, markdown_summary
from mnemoscope.reports.comparison_tables import figure
from mnemoscope.text.display import as_code, as_markdown, one_line

STORE_GATE_SCHEMA = "mnemoscope-store-gate-1"
COMMENT_MARK = "<!-- mnemoscope-gate -->"
"""The first line of a comment, by which a later build finds it and replaces it."""
_SHOWN = 20
"""Questions and memories of each kind that a comment lists."""
_LONGEST = 200
"""Characters of a question that a comment shows."""


def without_texts(found: StoreGate) -> StoreGate:
    """The same with the ids of questions only."""
    gained, lost = (
        [msgspec.structs.replace(one, text="") for one in changed]
        for changed in (found.gained, found.lost)
    )
    return msgspec.structs.replace(found, gained=gained, lost=lost)


def store_gate_json(found: StoreGate) -> dict[str, Any]:
    """The result as `gate STORE --json` prints it."""
    content: dict[str, Any] = msgspec.to_builtins(found)
    first = {"schema": STORE_GATE_SCHEMA, "sentence": sentence(found), "passed": found.passed}
    return {**first, "reasons": found.reasons, **content}


def store_gate_schema() -> dict[str, Any]:
    """The JSON Schema of `gate STORE --json`."""
    (_,), parts = msgspec.json.schema_components([StoreGate], ref_template="#/$defs/{name}")
    own = parts.pop("StoreGate")
    first = {
        "schema": {"const": STORE_GATE_SCHEMA},
        "sentence": {"type": "string", "description": "The outcome in one sentence."},
        "passed": {"type": "boolean", "description": "Whether the exit code is 0."},
        "reasons": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Why the gate failed; empty if it passed.",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": STORE_GATE_SCHEMA,
        **own,
        "properties": {**first, **own["properties"]},
        "required": [*first, *own["required"]],
        "$defs": parts,
    }


def sentence(found: StoreGate) -> str:
    """The outcome in one sentence."""
    gold = sum(found.gold.values())
    parts = [*found.reasons] or [f"all {gold:,} gold memories are in the store"]
    if found.missing and found.missing_gold == "leave-out":
        parts = [*found.reasons, f"{len(found.missing):,} of {gold:,} gold memories are left out"]
    if (row := found.primary) is not None:
        asked = f"{found.compared:,} of {found.questions:,} questions"
        change = f"{len(found.gained):,} gained, {len(found.lost):,} lost"
        parts.append(f"{figure(row)} on {asked}, {change}")
    else:
        parts.append("no question could be asked")
    return f"gate {'passed' if found.passed else 'failed'}: {'; '.join(parts)}"


def memory_line(found: StoreGate) -> str:
    """How the store changed."""
    methods = ", ".join(f"{count:,} {method}" for method, count in sorted(found.gold.items()))
    return (
        f"memories: {found.unchanged:,} unchanged, {found.new:,} new, {found.gone:,} gone; "
        f"gold: {methods}"
    )


def missing_line(one: Followed, found: StoreGate) -> str:
    """A missing memory, who needs it, why it is missing, and what resembles it most."""
    nearest = f"; nearest: {one.nearest} ({one.share:.0%})" if one.nearest else ""
    needed = ", ".join(found.needed_by.get(one.memory, ()))
    return f"{one.memory} (needed by {needed}): {one.why}{nearest}"


def store_gate_junit(found: StoreGate) -> str:
    """A test case for the gold memories, for each metric, and for each limit."""
    missing = "; ".join(missing_line(one, found) for one in found.missing[:_SHOWN])
    why = f"{len(found.missing)} gold memories are missing: {missing}"
    fails = bool(found.missing) and found.missing_gold == "fail"
    checks = [Check("gold memories", memory_line(found), why if fails else "")]
    worse = set(found.worse)
    for row in found.rows:
        lost = "; ".join(map(_named, found.lost[:_SHOWN])) if row.role == "primary" else ""
        failure = f"dropped: {_means(row)}" + (f"; lost: {lost}" if lost else "")
        checks.append(Check(row.metric, _means(row), failure if row.metric in worse else ""))
    for limit in found.limits:
        said = f"{limit.baseline:.4f} → {limit.current:.4f}, allowed drop {limit.allowed:g}"
        failure = "" if limit.passed else f"dropped too far: {said}"
        checks.append(Check(f"{limit.metric} limit", said, failure))
    return junit_xml(f"gate {found.store} against {found.baseline}", checks)


def store_gate_summary(found: StoreGate) -> str:
    """The gate in six lines."""
    return markdown_summary(
        sentence(found),
        [
            f"{found.system} on {found.store}, baseline {found.baseline}",
            memory_line(found),
            f"missing: {'; '.join(missing_line(one, found) for one in found.missing[:3]) or 'none'}"
            + (f"; and {len(found.missing) - 3} more" if len(found.missing) > 3 else ""),
            f"lost: {', '.join(one.question for one in found.lost[:_SHOWN]) or 'none'}",
            f"gained: {', '.join(one.question for one in found.gained[:_SHOWN]) or 'none'}",
        ],
    )


def store_gate_comment(found: StoreGate) -> str:
    """A comment for a pull request, with the questions that were gained and lost."""
    lines = [
        COMMENT_MARK,
        f"### {'✅' if found.passed else '❌'} {as_markdown(sentence(found))}",
        "",
        as_markdown(memory_line(found), starts_line=True),
        *_listed("Lost questions", [_question(one) for one in found.lost]),
        *_listed("Gained questions", [_question(one) for one in found.gained]),
        *_listed(
            "Missing gold memories", [as_code(missing_line(one, found)) for one in found.missing]
        ),
        *_listed(
            "Gold memories found in other words, or declared to be elsewhere (please check)",
            [
                as_code(f"{one.memory} → {', '.join(one.ids)} ({_how(one)})")
                for one in found.followed
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _listed(title: str, items: Sequence[str]) -> list[str]:
    if not items:
        return []
    more = [f"- … and {len(items) - _SHOWN} more"] if len(items) > _SHOWN else []
    return ["", f"**{title}: {len(items)}**", "", *(f"- {one}" for one in items[:_SHOWN]), *more]


def _question(one: ChangedQuestion) -> str:
    text = f" {as_code(one_line(one.text, _LONGEST))}" if one.text.strip() else ""
    return f"{as_code(one.question)}{text} {one.base:.2f} → {one.cand:.2f}"


def _how(one: Followed) -> str:
    # What is declared was not compared: an id map can name any memory.
    return one.method if one.method == "declared" else f"{one.method}, {one.share:.0%}"


def _named(one: ChangedQuestion) -> str:
    return f"{one.question} {one_line(one.text, _LONGEST)}".strip()


def _means(row: Row) -> str:
    return f"{row.base:.4f} → {row.cand:.4f}, {figure(row)}"
