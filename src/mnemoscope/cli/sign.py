"""`mnemoscope sign`: sign a finished run with an SSH key."""

from __future__ import annotations

from pathlib import Path

from mnemoscope import api
from mnemoscope.cli.console import out, say


def sign(run: Path, /, *, key: Path) -> None:
    """Sign the manifest of a finished run with an SSH key, as manifest.json.sig.

    The manifest contains the hashes of the journal and of all figures. `mnemoscope verify` checks
    the signature. A later change of the manifest voids it.

    For example:

        mnemoscope sign runs/locomo/hybrid --key ~/.ssh/id_ed25519

        mnemoscope verify runs/locomo/hybrid --allowed-signers allowed_signers

    Parameters
    ----------
    run
        The run directory.
    key
        The private SSH key, or the public one if ssh-agent holds the private one.
    """
    say(out, f"{api.sign(run, key=key).why}: {run}/manifest.json.sig")
