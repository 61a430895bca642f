"""`mnemoscope gate`: fail if a run, or a store that changed, is worse than a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli import console
from mnemoscope.cli.console import pass_cell, print_json, print_table, say, watched
from mnemoscope.reports.tables import Cells, numeric

if TYPE_CHECKING:
    from mnemoscope.analysis.store_gate import StoreGate

_SHOWN = 10
_MEANS = ("baseline", "current", "drop", "allowed")


def gate(
    target: Path,
    /,
    *,
    baseline: Path,
    max_drop: list[str] | None = None,
    missing_gold: Literal["fail", "leave-out"] = "fail",
    system: str | None = None,
    id_map: Path | None = None,
    bridge: Literal["content", "exact"] = "content",
    baseline_data: Path | None = None,
    out: Path | None = None,
    workers: int | None = None,
    junit: Path | None = None,
    summary: Path | None = None,
    comment: Path | None = None,
    badge: Path | None = None,
    ids_only: bool = False,
    json: bool = False,
) -> int:
    """Fail if a run, or a store that changed, is worse than a baseline.

    For a run, each --max-drop is a limit on a mean, not a significance test; `mnemoscope compare`
    is one. For a store, the system of the baseline is asked the baseline's questions again. They
    follow their memories by content: renumbered, reworded, merged, split. The gate fails if a
    memory that a question needs is missing, if a metric is worse by its interval, or by --max-drop.
    Failed questions count as wrong. Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 not
    comparable.

    For example:

        mnemoscope gate runs/mine --baseline baseline/metrics.json --max-drop recall@10=0.02

        mnemoscope gate runs/mine --baseline runs/old \\
            --max-drop recall@10=0.02 --max-drop mrr@50=0.03

        mnemoscope gate notes --baseline runs/notes/bm25

        mnemoscope gate notes --baseline runs/notes/bm25 --missing-gold leave-out \\
            --junit gate.xml --summary gate.md --comment comment.md --badge gate.svg

    Parameters
    ----------
    target
        The run directory to check, or a store: a folder with corpus.jsonl, or such a file.
    baseline
        A run directory; for a run also a metrics.json in our format or in that of pgmnemo.
    max_drop
        A metric and the largest drop allowed: METRIC=DROP. Repeatable. A run needs one.
    missing_gold
        Stores: fail if a memory that a question needs is missing, or leave it out on both sides.
    system
        Stores: the system to ask. Default: that of the baseline.
    id_map
        Stores: a JSON file that maps ids of the baseline to ids of the store, to lists of them, or
        to null for a memory that is gone.
    bridge
        Stores: follow memories in other words by their content, or only by their exact text.
    baseline_data
        Stores: the data of a baseline that kept nothing of its memories.
    out
        Stores: the folder for the new run. Default: one below runs/gate for each version.
    workers
        Stores: the number of processes; 0 means one per core.
    junit
        Also write the outcome to this file as JUnit XML: a test case for each metric.
    summary
        Also write six lines of Markdown to this file.
    comment
        Stores: also write a comment for a pull request, with gained and lost questions.
    badge
        Also write a badge to this file: .svg, or .json for a badge server.
    ids_only
        Stores: show ids of questions, without their texts.
    json
        Print JSON instead of a table; docs/schemas has gate.json and store-gate.json.
    """
    from mnemoscope._store.run_directory import is_run
    from mnemoscope.datasets.changed_store import is_store

    if badge is not None and badge.suffix not in (".svg", ".json"):
        raise UsageError(f"--badge {badge}: write a file that ends in .svg or .json")
    if is_run(target) or not is_store(target):
        given = {"--system": system, "--id-map": id_map, "--comment": comment, "--out": out}
        if used := [name for name, value in given.items() if value is not None]:
            raise UsageError(f"{used[0]} is for a store, and {target} has no corpus.jsonl")
        return _gate_run(target, baseline, max_drop or [], junit, summary, badge, json)
    from mnemoscope.reports.store_gate_outputs import (
        store_gate_comment,
        store_gate_json,
        store_gate_junit,
        store_gate_summary,
        without_texts,
    )

    with watched() as progress:
        found = api.gate_store(
            target,
            baseline=baseline,
            system=system,
            id_map=id_map,
            missing_gold=missing_gold,
            bridge=bridge,
            max_drop=_allowed(max_drop or []),
            baseline_data=baseline_data,
            out=out,
            workers=workers,
            progress=progress,
        )
    told = without_texts(found) if ids_only else found
    for file, write in (
        (junit, store_gate_junit),
        (summary, store_gate_summary),
        (comment, store_gate_comment),
    ):
        if file is not None:
            _write(file, write(told))
    row = found.primary
    _write_badge(badge, told.passed, f", {row.metric} {row.cand:.2f}" if row else "")
    if json:
        print_json(store_gate_json(told))
    else:
        _show(told)
    return 0 if told.passed else 1


def _show(told: StoreGate) -> None:
    from mnemoscope.reports.comparison_tables import figure
    from mnemoscope.reports.store_gate_outputs import memory_line, missing_line, sentence

    worse = set(told.worse)
    rows: list[Cells] = [
        [
            *(row.metric, f"{row.base:.4f}", f"{row.cand:.4f}"),
            figure(row).removeprefix(row.metric).strip(),
            pass_cell(row.metric not in worse),
        ]
        for row in told.rows
    ]
    if rows:
        columns = ("metric", numeric("baseline"), numeric("now"), numeric("difference"), "")
        print_table(columns, rows, frame="dense")
    for limit in told.limits:
        said = f"{limit.metric}: drop {limit.drop:+.4f}, allowed {limit.allowed:g}"
        say(console.out, f"{said}: {'pass' if limit.passed else 'FAIL'}")
    for kind, changed in (("lost", told.lost), ("gained", told.gained)):
        for one in changed[:_SHOWN]:
            say(console.out, f"{kind}: {one.question} {one.text} {one.base:.2f} → {one.cand:.2f}")
        if len(changed) > _SHOWN:
            say(console.out, f"{kind}: and {len(changed) - _SHOWN} more")
    for gone in told.missing[:_SHOWN]:
        say(console.out, f"missing: {missing_line(gone, told)}")
    if len(told.missing) > _SHOWN:
        say(console.out, f"missing: and {len(told.missing) - _SHOWN} more")
    say(console.out, memory_line(told))
    say(console.out, sentence(told))


def _gate_run(
    run: Path,
    baseline: Path,
    max_drop: list[str],
    junit: Path | None,
    summary: Path | None,
    badge: Path | None,
    json: bool,
) -> int:
    """The gate for a run: limits on means."""
    from mnemoscope.reports.gate_outputs import gate_junit, gate_report, gate_summary

    found = api.gate(run, baseline=baseline, max_drop=_allowed(max_drop))
    told = gate_report(str(run), str(baseline), found.rows)
    for file, write in ((junit, gate_junit), (summary, gate_summary)):
        if file is not None:
            _write(file, write(told))
    _write_badge(badge, found.passed, f", {found.rows[0].metric} {found.rows[0].current:.2f}")
    if json:
        print_json(told)
    else:
        rows: list[Cells] = [
            [row.metric, *(f"{getattr(row, name):.4f}" for name in _MEANS), pass_cell(row.passed)]
            for row in found.rows
        ]
        print_table(("metric", *map(numeric, _MEANS), ""), rows, frame="dense")
        say(console.out, "gate passed" if found.passed else "gate failed: a metric dropped too far")
    return 0 if found.passed else 1


def _write_badge(file: Path | None, passed: bool, figure: str) -> None:
    if file is None:
        return
    from mnemoscope.reports.gate_badge import badge_json, badge_svg

    write = badge_svg if file.suffix == ".svg" else badge_json
    _write(file, write(passed, f"{'passed' if passed else 'failed'}{figure}"))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None


def _allowed(texts: list[str]) -> dict[str, float]:
    allowed: dict[str, float] = {}
    for text in texts:
        metric, _, drop = text.partition("=")
        try:
            allowed[metric.strip()] = float(drop)
        except ValueError:
            raise UsageError(
                f"--max-drop {text}: write METRIC=DROP, such as recall@10=0.02"
            ) from None
    if len(allowed) < len(texts):
        raise UsageError("--max-drop names a metric twice")
    return allowed
