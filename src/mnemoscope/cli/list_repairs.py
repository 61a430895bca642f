"""`mnemoscope personas repairs`: list the repairs of the published history."""

from __future__ import annotations

from pathlib import Path

from mnemoscope.cli.console import out, print_json, print_table, say


def repairs(*, data: Path | None = None, kind: str = "", json: bool = False) -> None:
    """List every repair of Recall Bench's published 180 days, and check them against the logs.

    `mnemoscope run personas --repairs on` applies them. With --data each repair is checked: the
    date of a log by what the log calls itself, evidence by the facts that each day states. For
    example:

        mnemoscope personas repairs --kind whole-week

        mnemoscope personas repairs --data recall-bench/executive-assistant --json

    Parameters
    ----------
    data
        The folder of the published history.
    kind
        Only the repairs of this kind.
    json
        Print JSON instead of tables.
    """
    from mnemoscope._store.errors import UsageError
    from mnemoscope.datasets.persona_folder import find_personas
    from mnemoscope.datasets.persona_repairs import KINDS, read_repairs
    from mnemoscope.datasets.repair_check import check_repairs

    if kind and kind not in KINDS:
        raise UsageError(f"unknown kind {kind!r}: use one of {', '.join(KINDS)}")
    listed = read_repairs()
    checked = None
    if data is not None:
        [folder] = find_personas(data, listed.persona)
        checked = check_repairs(folder)
    shown = [repair for repair in listed.repairs if kind in ("", repair.kind)]
    if json:
        print_json(
            {
                "name": listed.name,
                "files": dict(listed.files),
                "counts": listed.counts(),
                "repairs": shown,
                "checked": None if checked is None else checked._asdict(),
            }
        )
        return
    rows = [(name, f"{n:,}", KINDS[name]) for name, n in listed.counts().items()]
    print_table(("kind", "n", "what was wrong"), rows, title=listed.name)
    for one in shown:
        say(out, f"{one.id} {one.field} ({one.kind}: {one.reason})")
        say(out, f"  old: {_shown(one.old)}")
        say(out, f"  new: {_shown(one.new)}")
    if checked is not None:
        say(
            out,
            f"the logs confirm all {checked.repairs} repairs. {checked.confirmed} questions keep "
            f"their evidence, of which each day states the answer ({checked.whole_weeks} are whole "
            f"weeks). {len(checked.undetermined)} questions name no date, and other days state "
            "their answers, too: not repaired",
        )


def _shown(value: str | tuple[int, ...]) -> str:
    return value if isinstance(value, str) else ", ".join(map(str, value))
