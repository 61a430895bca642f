"""`mnemoscope systems install` and `remove`: environments for the systems on the shelf."""

from __future__ import annotations

from mnemoscope._store.errors import MissingExtra, MnemoscopeError, UsageError
from mnemoscope.cli.console import err, out, say


def install(*names: str, again: bool = False) -> int:
    """Install memory systems from the shelf, each in an environment of its own.

    What is installed is pinned, file by file. Systems that are there already are left as they are.
    Environments lie in $MNEMOSCOPE_ENVIRONMENTS, or in a folder among the user's data.

    For example:

        mnemoscope systems install qdrant

        mnemoscope systems install mem0 chroma langgraph

        mnemoscope systems install mem0 --again

    Parameters
    ----------
    names
        Which; `mnemoscope systems list` shows them all.
    again
        Make the environment anew, even if it is there.
    """
    from mnemoscope.integrations import environments

    failed = []
    for name in _known(names):
        if environments.state(name) == "installed" and not again:
            say(out, f"{name} is installed: {environments.folder(name)}{_lacks(name)}")
            continue
        try:
            place = environments.install(name, lambda text: say(err, text))
        except MnemoscopeError as error:
            failed.append(name)
            say(err, str(error), before="[bold red]error:[/] ")
        else:
            say(out, f"{name} is installed: {place}{_lacks(name)}")
            say(out, f"try: mnemoscope systems check {name}")
    return 1 if failed else 0


def remove(*names: str) -> None:
    """Remove the environments of memory systems from the shelf.

    For example:

        mnemoscope systems remove qdrant

    Parameters
    ----------
    names
        Which; `mnemoscope systems list` shows what is installed.
    """
    from mnemoscope.integrations import environments
    from mnemoscope.integrations.catalog import ITEMS

    for name in _known(names):
        lost = [other for other in ITEMS if environments.folder(other) == environments.folder(name)]
        was = "removed" if environments.remove(name) else "was not installed"
        say(out, f"{' and '.join(lost)} {was}")


def _lacks(name: str) -> str:
    """What Mnemoscope itself needs to drive the system and has not got, to be hung on a line."""
    from mnemoscope.connectors.mcp.session import require_mcp
    from mnemoscope.integrations.catalog import ITEMS

    if ITEMS[name].mapping:
        try:
            require_mcp()
        except MissingExtra as error:
            return f"; but {error}"
    return ""


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    from mnemoscope.integrations.catalog import ITEMS
    from mnemoscope.systems import SYSTEMS

    if not names:
        raise UsageError(
            f"say which: {', '.join(name for name in ITEMS if not ITEMS[name].untested)}"
        )
    for name in names:
        if name in ITEMS:
            continue
        SYSTEMS.get(name)  # its error knows the names
        raise UsageError(f"{name} needs no installation: it comes with Mnemoscope")
    return names
