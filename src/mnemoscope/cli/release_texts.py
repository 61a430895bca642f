"""Texts of a release: notes, the linter for public texts, the methodology log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from mnemoscope.cli.console import out, print_json, say

if TYPE_CHECKING:
    from mnemoscope.analysis.comparison import Comparison
    from mnemoscope.release.state import Release

history = App(name="history", help="The log of methodology changes, newest first.")

Folder = Annotated[Path, Parameter(help="The release folder.")]
At = Annotated[str | None, Parameter(name="--at", help="The time, if not now; recorded as given.")]
OtherAt = Annotated[str | None, Parameter(name="--at")]
"""A time with another meaning, which the command explains."""
AsJson = Annotated[bool, Parameter(help="Print JSON.")]
Log = Annotated[Path, Parameter(help="The log.")]


def loaded(folder: Path) -> Release:
    """A release whose release.yaml was not edited where only commands may write."""
    from mnemoscope.release.release_log import ensure_recorded
    from mnemoscope.release.state import Release

    return ensure_recorded(Release.load(folder))


def opened(folder: Path) -> tuple[Release, list[Comparison]]:
    """A release and its figures."""
    from mnemoscope.release.decide import comparisons

    release = loaded(folder)
    return release, comparisons(release)


def notes(release: Folder, /) -> None:
    """Write notes.md with the five sections of the process, unless they make prohibited claims.

    For example:

        mnemoscope release notes releases/v0.2.0
    """
    from mnemoscope.release.notes import write_notes

    say(out, f"written: {write_notes(*opened(release))}")


def lint(file: Path, /, *, release: Path | None = None, json: AsJson = False) -> int:
    """Find prohibited claims in a text, by line and rule. Code blocks are not checked.

    Exit codes: 0 none found, 1 some found.

    For example:

        mnemoscope release lint README.md

        mnemoscope release lint announcement.md --release releases/v0.2.0

    Parameters
    ----------
    file
        The text, plain or Markdown.
    release
        Also check the text against the figures of this release.
    """
    from mnemoscope.release.claims import lint_file
    from mnemoscope.release.release_facts import Facts

    found = lint_file(file, Facts(*opened(release)) if release else None)
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
    file: Log = Path("HISTORY.md"),
    at: At = None,
) -> None:
    """Add an entry to the methodology log, before all others.

    For example:

        mnemoscope release history add --change "sessions instead of turns" \\
            --reason "turns were a bug" --release releases/v0.2.0

    Parameters
    ----------
    change
        What changes in the methodology.
    reason
        Why it changes.
    author
        The author of the entry.
    release
        Show the effect on the figures of this release.
    """
    from mnemoscope.release.history import add_entry
    from mnemoscope.release.state import moment

    impact = opened(release)[1] if release else None
    add_entry(file, change=change, reason=reason, when=moment(at), author=author, impact=impact)
    say(out, f"added to {file}")


@history.command
def show(*, file: Log = Path("HISTORY.md")) -> None:
    """Print the methodology log, newest first.

    For example:

        mnemoscope release history show
    """
    from mnemoscope.release.history import read_history

    say(out, read_history(file).rstrip("\n"), lines=True)
