"""The texts of a release: notes, the linter for any public text, the methodology log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from mnemoscope.cli.console import out, print_json, say

history = App(name="history", help="The log of methodology changes, newest first.")

At = Annotated[str | None, Parameter(name="--at")]
"""When it happened, if not now; recorded as given, beside what the clock said."""


def notes(release: Path, /) -> None:
    """Write notes.md with the process's five sections; refuses prohibited claims.

    For example:

        mnemoscope release notes releases/v0.2.0

    Parameters
    ----------
    release
        The release folder.
    """
    from mnemoscope.release.decide import comparisons
    from mnemoscope.release.notes import write_notes
    from mnemoscope.release.state import Release

    opened = Release.load(release)
    say(out, f"written: {write_notes(opened, comparisons(opened))}")


def lint(file: Path, /, *, release: Path | None = None, json: bool = False) -> int:
    """Find prohibited claims in a text, by line and rule. Code blocks are not read.

    Exit codes: 0 none, 1 some.

    For example:

        mnemoscope release lint README.md

        mnemoscope release lint announcement.md --release releases/v0.2.0

    Parameters
    ----------
    file
        The text, plain or Markdown.
    release
        Hold it to the figures of this release, not only to what it says itself.
    json
        Print JSON.
    """
    from mnemoscope.release.claims import lint_file
    from mnemoscope.release.release_facts import Facts
    from mnemoscope.release.state import Release

    facts = Facts.of(Release.load(release)) if release else None
    found = lint_file(file, facts)
    if json:
        print_json(found)
    else:
        for one in found:
            say(out, f"{file}:{one.line}: {one.rule}: {one.what}")
        say(out, f"{len(found)} prohibited claims" if found else "no prohibited claim found")
    return 1 if found else 0


@history.command
def add(
    *,
    change: str,
    reason: str,
    author: str = "",
    release: Path | None = None,
    file: Path = Path("HISTORY.md"),
    at: At = None,
) -> None:
    """Add an entry to the methodology log, before all others.

    For example:

        mnemoscope release history add --change "sessions instead of turns" \\
            --reason "turns were a bug" --release releases/v0.2.0

    Parameters
    ----------
    change
        What is done otherwise from now on.
    reason
        Why.
    author
        Who says so.
    release
        Show the impact on the figures of this release.
    file
        The log.
    at
        When, if not now; recorded as given.
    """
    from mnemoscope.release.decide import comparisons
    from mnemoscope.release.history import add_entry
    from mnemoscope.release.state import Release, moment

    impact = comparisons(Release.load(release)) if release else None
    add_entry(file, change=change, reason=reason, when=moment(at), author=author, impact=impact)
    say(out, f"added to {file}")


@history.command
def show(*, file: Path = Path("HISTORY.md")) -> None:
    """Print the methodology log, newest first.

    For example:

        mnemoscope release history show

    Parameters
    ----------
    file
        The log.
    """
    from mnemoscope.release.history import read_history

    say(out, read_history(file).rstrip("\n"))
