"""`mnemoscope new`: write the skeleton of a plug-in package."""

from __future__ import annotations

from pathlib import Path

from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import say
from mnemoscope.templates import Kind


def new(kind: Kind, name: str, /, *, out: Path | None = None) -> None:
    """Write a package that adds a system, a dataset, a metric or a judge.

    The package passes its check at once; then change it step by step. After `pip install -e FOLDER`
    all commands accept its name.

    For example:

        mnemoscope new system my-memory

        mnemoscope new metric f1 --out packages/f1

    Parameters
    ----------
    kind
        The kind of addition.
    name
        Its name: lower-case letters, digits and hyphens.
    out
        The folder to write. Default: the name.
    """
    from mnemoscope.templates import write_skeleton

    written = write_skeleton(kind, name, out or Path(name))
    for file in written.files:
        say(stdout, str(file))
    say(stdout, f"check it: cd {written.files[0].parent} && {written.check}")
