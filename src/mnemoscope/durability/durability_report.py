"""The table and the sentences of a durability test."""

from __future__ import annotations

from mnemoscope.durability.durability_result import DurabilityResult, is_loss
from mnemoscope.durability.kill_rounds import Kind, RoundOutcome
from mnemoscope.reports.tables import (
    Block,
    Cell,
    Heading,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    numeric,
)

_ENDS: dict[Kind, str] = {
    "clean": "ended in the usual way",
    "after": "killed after writes",
    "during": "killed during writes",
}
_COUNTS = {
    "rounds": "rounds",
    "written": "memories acknowledged",
    "gone": "of them gone",
    "in flight": "not acknowledged",
    "there": "of them there",
    "forgot": "forgotten",
    "back": "of them back",
}
"""The columns in the terminal and in Markdown."""
_LIMITS = (
    "SIGKILL ends processes: it shows what a system acknowledged before it gave it to the "
    "operating system. Power loss is not tested: written data that was not synchronised to the "
    "disk survives a kill and not a power loss"
)
_MOST_LISTED = 5


def blocks(result: DurabilityResult) -> list[Block]:
    """The page of a durability test."""
    found: list[Block] = [
        Heading(f"Durability: {result.system}", 1, only="markdown"),
        Paragraph(sentence(result), style="bold"),
    ]
    if result.rounds:
        found.append(
            ReportTable(
                [
                    TableColumn("the system was", wrap=False),
                    *(numeric(short, markdown=title) for short, title in _COUNTS.items()),
                ],
                [row for kind in _ENDS if (row := _row(result, kind))],
            )
        )
    return [*found, NoteList(notes(result))]


def sentence(result: DurabilityResult) -> str:
    """The answer in one sentence."""
    if result.verdict == "not durable by design":
        why = result.reason or (
            "nothing was there after it ended in the usual way and was started again; if it has "
            "a storage, name it: {storage} in the system or the command is replaced by a folder"
        )
        return f"{result.system} is not durable by design: {why}."
    if result.verdict == "unknown":
        return f"{result.system}: no memory could be found by its own text, so none can be missed."
    kills = result.kills
    if result.verdict == "kept":
        return (
            f"{result.system} kept all {sum(one.acknowledged for one in result.rounds):,} "
            f"acknowledged memories in {len(kills)} kills (with 95 % confidence, at most "
            f"{100 * result.most_losing_kills:.0f} % of such kills lose something)."
        )
    written = sum(one.acknowledged for one in result.rounds)
    missing = sum(len(one.missing) for one in result.rounds)
    back = sum(len(one.came_back) for one in result.rounds)
    failed = sum(not one.usable_again for one in result.rounds)
    parts = [
        f"lost {missing:,} of {written:,} acknowledged memories" if missing else "",
        f"brought {back:,} forgotten memories back" if back else "",
        f"could not be used after {failed} of the restarts" if failed else "",
    ]
    losing = sum(map(is_loss, kills))
    found = ", ".join(part for part in parts if part)
    return f"{result.system} {found}; {losing} of {len(kills)} kills lost something."


def notes(result: DurabilityResult) -> list[str]:
    """What a reader must know beside the counts."""
    found = []
    for one in result.rounds:
        name = f"round {one.number} ({_ENDS[one.kind]})"
        if one.missing and one.usable_again and result.verdict == "lost":
            found.append(f"{name}: gone {_listed(one.missing)}")
        if one.came_back:
            found.append(f"{name}: came back {_listed(one.came_back)}")
        if one.error:
            found.append(f"{name}: {one.error}")
        if one.writes_again is False:
            found.append(f"{name}: a memory written after the restart could not be found")
    for text, count in (
        ("were rejected or merged and do not count", sum(r.not_stored for r in result.rounds)),
        ("could not be found before either, and do not count", _total(result, "never_found")),
        ("were still found after forget returned", _total(result, "still_found")),
    ):
        if count:
            found.append(f"{count:,} memories {text}")
    if result.rounds and not any(one.forgotten for one in result.rounds):
        found.append("forget was not tested: the system has none, or too little was stored")
    if not result.is_complete:
        found.append("interrupted: rounds are missing")
    return [*found, *([_LIMITS] if result.rounds else [])]


def _total(result: DurabilityResult, name: str) -> int:
    return sum(getattr(one, name) for one in result.rounds)


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - _MOST_LISTED:,} more" if len(ids) > _MOST_LISTED else ""
    return ", ".join(ids[:_MOST_LISTED]) + more


def _row(result: DurabilityResult, kind: Kind) -> list[Cell | str]:
    own: list[RoundOutcome] = [one for one in result.rounds if one.kind == kind]
    if not own:
        return []
    gone = sum(len(one.missing) for one in own)
    back = sum(len(one.came_back) for one in own)
    return [
        _ENDS[kind],
        str(len(own)),
        f"{sum(one.acknowledged for one in own):,}",
        Cell(f"{gone:,}", "bold red" if gone else ""),
        f"{sum(one.unacknowledged for one in own):,}",
        f"{sum(one.appeared for one in own):,}",
        f"{sum(one.forgotten for one in own):,}",
        Cell(f"{back:,}", "bold red" if back else ""),
    ]
