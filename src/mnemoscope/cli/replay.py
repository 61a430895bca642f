"""`mnemoscope replay`: which recalls of an agent would change with another memory system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope._store.private_files import write_private
from mnemoscope.cli.console import err, out, print_json, print_table, say, tell
from mnemoscope.reports.tables import SYSTEM, numeric, system_cell
from mnemoscope.text.display import one_line

if TYPE_CHECKING:
    from mnemoscope.runner.replay_calls import Replay, ReplayedSystem

_SHOWN = 100
"""Characters of a memory's text."""


def replay(
    log: Path,
    /,
    *,
    system: Annotated[list[str], Parameter(name=["--system", "-s"])],
    k: int = 10,
    against: Literal["log", "first"] | None = None,
    field: list[str] | None = None,
    show: int = 10,
    save: Path | None = None,
    json: bool = False,
) -> int:
    """Replay what your agent wrote to and asked its memory, and say which recalls would change.

    Writes before a query are visible to it, later ones are not. There are no labels: agreement is
    not recall. The exit code is 1 if a system failed.

    For example:

        mnemoscope replay mcp-server-memory.log --system bm25 --system hybrid

        mnemoscope replay calls.jsonl -s bm25 -s dense --against first --field text=args.content

    Parameters
    ----------
    log
        MCP messages (JSON-RPC), one in a line, as clients log them; or JSON lines with `op`
        (remember, recall, forget), `at`, `id`, `text`, `query` and `hits`.
    system
        A system, as in `mnemoscope run`. Repeatable.
    k
        How many hits are compared.
    against
        What recalls are compared with: the replies in the log, or the first system. Default: the
        log, if it has replies.
    field
        Where a JSON line has a field: NAME=EXPRESSION (JMESPath). Repeatable.
    show
        How many changed recalls of each system are printed.
    save
        Also write every recall to this file, as JSON. It contains texts of the log.
    json
        Print JSON instead of tables.
    """
    if save is not None and save.exists():
        raise UsageError(f"{save} exists; remove it or give another name with --save")
    fields = dict(_pair(one) for one in field or ())
    found = api.replay(
        log,
        systems=system,
        k=k,
        against=against or "",
        fields=fields,
        done=lambda label: say(err, f"replaying on {label}"),
    )
    if save is not None:
        written = msgspec.json.format(msgspec.json.encode(_content(found)), indent=2)
        with write_private(save) as file:
            file.write(written + b"\n")
    if json:
        print_json(_content(found))
    else:
        _show(found, show)
    return int(any(one.error for one in found.systems))


def _pair(given: str) -> tuple[str, str]:
    name, equals, expression = given.partition("=")
    if not equals or not expression:
        raise UsageError(f"--field {given}: write NAME=EXPRESSION, such as text=args.content")
    return name, expression


def _show(found: Replay, shown: int) -> None:
    rows = [_row(one, found) for one in found.systems]
    titles = ("compared", "same", "changed", "overlap", "new", "gone", "errors")
    print_table(
        (SYSTEM, *map(numeric, titles)),
        rows,
        title=f"recalls beside those of {found.reference}, first {found.k} hits",
    )
    tell(out, "overlap: mean share of the longer list; + new, - gone: memories found now, or then")
    for one in found.systems:
        for recall in one.changed[:shown]:
            say(out, f"{one.system}, line {recall.line}: {recall.query}")
            for sign, ids in (("+", recall.newly_found), ("-", recall.no_longer_found)):
                for id in ids[:shown]:
                    say(out, f"  {sign} {id}: {one_line(found.memories[id], _SHOWN)}")
        if len(one.changed) > shown:
            say(out, f"{one.system}: {len(one.changed) - shown:,} more changed; --show, --save")
    for one in found.systems:
        if one.rejected or one.not_forgotten:
            text = f"{one.rejected:,} memories rejected, {one.not_forgotten:,} not deleted"
            say(out, f"{one.system}: {text}", before="[yellow]note:[/] ")
        if one.error:
            say(err, f"{one.system} stopped: {one.error}", before="[bold red]error:[/] ")
    if found.skipped:
        listed = ", ".join(f"{tool} ({number:,})" for tool, number in found.skipped.items())
        say(out, f"not replayed: {listed}", before="[yellow]note:[/] ")
    tell(out, found.caveat)


def _row(one: ReplayedSystem, found: Replay) -> list[Any]:
    name = system_cell(one.system, is_baseline=False)
    if one.system == found.reference:
        return [name, "reference", *[""] * 6]
    changed, overlap = one.changed, one.mean_overlap
    return [
        name,
        f"{len(one.compared):,}",
        f"{len(one.compared) - len(changed):,}",
        f"{len(changed):,}",
        "–" if overlap is None else f"{overlap:.2f}",
        f"{sum(len(recall.newly_found) for recall in changed):,}",
        f"{sum(len(recall.no_longer_found) for recall in changed):,}",
        f"{sum(bool(recall.error) for recall in one.recalls):,}",
    ]


def _content(found: Replay) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(found)
    for about, one in zip(content["systems"], found.systems, strict=True):
        about |= {
            "compared": len(one.compared),
            "changed": len(one.changed),
            "mean_overlap": one.mean_overlap,
        }
        for row, recall in zip(about["recalls"], one.recalls, strict=True):
            row |= {"newly_found": recall.newly_found, "no_longer_found": recall.no_longer_found}
            row |= {"overlap": recall.overlap if recall.is_compared else None}
    return content
