"""`mnemoscope verify`: check whether the figures of a run may be cited."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from mnemoscope import api
from mnemoscope.cli.console import out, pass_cell, print_json, print_table
from mnemoscope.reports.tables import Cell

_STYLES = {
    "VERIFIED": "bold green",
    "CONSISTENT": "bold cyan",
    "UNVERIFIED": "bold yellow",
    "BLOCKED": "bold red",
}
_CONSISTENT = ": figures follow from the journal; labels were within the system's reach"


def verify(
    run: Path,
    /,
    *,
    protocol: str | None = None,
    block: str | None = None,
    replay: int | None = None,
    data: Path | None = None,
    allowed_signers: Path | None = None,
    json: bool = False,
) -> int:
    """Recompute a run's figures from its journal and check every gate of its protocol.

    CONSISTENT means that the figures follow from the journal, but that the system's code could
    have read the labels.

    Exit codes: 0 VERIFIED, 1 CONSISTENT, UNVERIFIED or BLOCKED. All other commands that print a
    figure check the files of a run first. If a file was edited, deleted or added, they name it,
    print no figure and exit with 4.

    For example:

        mnemoscope verify runs/locomo/hybrid

        mnemoscope verify runs/mine --protocol mnemoscope-retrieval-1

        mnemoscope verify runs/mine --block "turns were ingested instead of sessions"

        mnemoscope verify runs/mine --replay 50 --data locomo10.json

        mnemoscope verify runs/mine --allowed-signers allowed_signers

    Parameters
    ----------
    run
        The run directory.
    protocol
        Check against this protocol instead of the run's own.
    block
        Write BLOCKED.md with this reason: the run must not be cited.
    replay
        Ask the system again for so many questions, drawn at random now, and compare its rankings
        with the recorded ones. All memories of their scenarios are ingested again.
    data
        The dataset's file or folder, for --replay. Default: as of `mnemoscope run`.
    allowed_signers
        The run must be signed by one of these SSH keys; the format is that of ssh-keygen.
    json
        Print JSON instead of a table.
    """
    found = api.verify(
        run,
        protocol=protocol,
        block=block,
        replay=replay,
        data=data,
        allowed_signers=allowed_signers,
    )
    if json:
        print_json(found)
    else:
        rows = [
            (gate.name, pass_cell(gate.passed), Cell(gate.why, "dim" if gate.passed else ""))
            for gate in found.gates
        ]
        print_table(("gate", "", "why"), rows, frame="dense")
        under = f" under {found.protocol}" if found.protocol else ""
        why = f": {', '.join(found.failed)} failed" if found.failed else ""
        why = _CONSISTENT if found.status == "CONSISTENT" else why
        status = (found.status, _STYLES[found.status])
        out.print(Text.assemble(status, f"{under}{why}"), soft_wrap=True)
    return 0 if found.status == "VERIFIED" else 1
