"""`mnemoscope verify`: may a run's numbers be cited?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope import api
from mnemoscope.cli.console import out, print_json

if TYPE_CHECKING:
    from mnemoscope.analysis.verify import Verification

_STYLES = {"VERIFIED": "bold green", "UNVERIFIED": "bold yellow", "BLOCKED": "bold red"}


def verify(
    run: Path,
    /,
    *,
    protocol: str | None = None,
    block: str | None = None,
    json: bool = False,
) -> int:
    """Recompute a run's figures from its journal and check every gate of its protocol.

    Exit codes: 0 VERIFIED, 1 UNVERIFIED or BLOCKED.

    For example:

        mnemoscope verify runs/locomo/hybrid

        mnemoscope verify runs/mine --protocol mnemoscope-retrieval-1

        mnemoscope verify runs/mine --block "turns were ingested instead of sessions"

    Parameters
    ----------
    run
        The run directory.
    protocol
        Judge under this protocol instead of the one the run was made under.
    block
        Write BLOCKED.md with this reason: the run must not be cited any more.
    json
        Print JSON instead of a table.
    """
    found = api.verify(run, protocol=protocol, block=block)
    if json:
        print_json(found)
    else:
        out.print(_table(found))
        out.print(_conclusion(found), soft_wrap=True)
    return 0 if found.status == "VERIFIED" else 1


def _table(found: Verification) -> Table:
    table = Table("gate", "", "why", box=box.SIMPLE_HEAD, pad_edge=False)
    for gate in found.gates:
        said = Text("pass", "green") if gate.passed else Text("FAIL", "bold red")
        table.add_row(Text(gate.name), said, Text(gate.why, "dim" if gate.passed else ""))
    return table


def _conclusion(found: Verification) -> Text:
    under = f" under {found.protocol}" if found.protocol else ""
    why = f": {', '.join(found.failed)} failed" if found.failed else ""
    return Text.assemble((found.status, _STYLES[found.status]), f"{under}{why}")
