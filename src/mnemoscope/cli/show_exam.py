"""The output of `mnemoscope judges exam` with a benchmark or labelled answers."""

from __future__ import annotations

from typing import Any

import msgspec

from mnemoscope.api.examine import Examination
from mnemoscope.cli.console import err, out, print_table, say
from mnemoscope.judges.exam_record import ExamRecord
from mnemoscope.reports.tables import Cell, numeric
from mnemoscope.stats.judge_errors import (
    MOST_OF_A_KIND,
    MOST_UNJUDGED,
    MOST_WRONG,
    length_rates,
)

_LENGTHS = {"plain": "the same length", "sentence": "a sentence", "long": "a long reply"}
_SHOWN = 5
_REASON = 120


def as_json(spec: str, found: Examination) -> dict[str, Any]:
    """The summary, and every mistake."""
    record = found.record
    return {
        "judge": spec,
        "file": str(found.file) if found.file else None,
        "reused": found.reused,
        **record.summary(),
        "in_any_mix": {
            "false_accept": list(record.any_mix(acceptable=False)),
            "false_reject": list(record.any_mix(acceptable=True)),
        },
        "mistakes": [
            {"kind": one.kind, "what": one.mistake, "probe": one.id, "reasoning": one.reasoning}
            for one in record.mistakes
        ],
        "usage": None if record.usage is None else msgspec.to_builtins(record.usage),
    }


def print_record(spec: str, found: Examination) -> None:
    record = found.record
    _kinds(record)
    for label, acceptable in (("accepts wrong answers", False), ("rejects right answers", True)):
        rate = record.rate(acceptable=acceptable)
        say(
            out,
            f"{label:22} {rate.rate:6.1%}  [{rate.low:.1%}, {rate.high:.1%}]  {rate.text}; "
            f"the upper end may be at most {MOST_WRONG:.0%}",
        )
        own = [cell for cell in record.cells() if cell.acceptable is acceptable]
        for length, part in length_rates(own, record.shares).items():
            about = f"  of {_LENGTHS.get(length, length)}"
            say(out, f"{about:22} {part.rate:6.1%}  [{part.low:.1%}, {part.high:.1%}]  {part.text}")
        low, high = record.any_mix(acceptable=acceptable)
        say(out, f"{'  in any mix':22} {'':6}  [{low:.1%}, {high:.1%}]")
    unjudged = sum(one.accepted is None for one in record.verdicts)
    say(
        out,
        f"{'gives no verdict':22} {unjudged / len(record.verdicts):6.1%}  {unjudged} of "
        f"{len(record.verdicts)}, at most {MOST_UNJUDGED:.0%} allowed",
    )
    say(
        out,
        "Rates over all kinds are weighted by the questions of the benchmark and by how many words "
        "real answers share with references and have beside them; each kind may "
        f"have an upper end of {MOST_OF_A_KIND:.0%}. In any mix: if these shares are not known, as "
        "for answers that were made to be nearly right.",
    )
    for one in record.mistakes[:_SHOWN]:
        because = " ".join(one.reasoning.split())[:_REASON]
        say(out, f"  {one.mistake} of an answer of the kind {one.kind}{because and f': {because}'}")
    if record.usage is not None:
        usage = record.usage
        tokens = usage.input_tokens + usage.output_tokens
        say(err, f"{usage.requests} requests, {tokens:,} tokens, ${usage.paid:.4f} paid")
    if found.reused:
        say(err, "kept from an earlier exam; --fresh judges again")
    if found.file is not None:
        say(err, f"kept in {found.file}")
    elif not found.reused:
        say(err, "not kept: only exams drawn with the installation's own seed count for runs")
    if record.passed:
        text = f"{spec} passed the exam on {record.benchmark}."
        say(out, text, before="[bold green]PASSED:[/] ")
    else:
        text = f"{spec}: {'; '.join(record.reasons)}."
        say(out, text, before="[bold red]FAILED:[/] ")


def _kinds(record: ExamRecord) -> None:
    rows: list[list[Cell | str]] = []
    for kind, own in record.kinds().items():
        errors = own["false_accepts"] + own["false_rejects"]
        judged = own["wrong"] + own["right"]
        low, high = own["ci95"]
        style = "bold red" if high > MOST_OF_A_KIND else ""
        rows.append(
            [
                Cell(kind, style),
                "right" if own["right"] else "wrong",
                str(own["probes"]),
                f"{errors} of {judged}",
                f"{low:.3f}–{high:.3f}",
            ]
        )
    titles = ("answers", "errors", "95 % interval")
    print_table(("kind of answer", "is", *map(numeric, titles)), rows)
