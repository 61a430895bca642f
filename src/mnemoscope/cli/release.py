"""`mnemoscope release`: from two sets of runs to a version that may be tagged, or may not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope.cli import release_review, release_texts
from mnemoscope.cli.console import out, print_json, say
from mnemoscope.cli.release_texts import At

if TYPE_CHECKING:
    from mnemoscope.release.checklist import Checklist

app = App(name="release", help="The release process: report, signatures, decision, notes.")
app.command(release_review.circulate)
app.command(release_review.rederive)
app.command(release_review.decide)
app.command(release_review.sign)
app.command(release_texts.notes)
app.command(release_texts.lint)
app.command(release_texts.history)


@app.command
def new(
    version: str,
    /,
    *,
    base: list[Path],
    cand: list[Path],
    out: Path,
    author: str,
    tag_date: str | None = None,
    waive: list[str] | None = None,
    at: At = None,
) -> None:
    """Begin a release: pair base and candidate runs by benchmark and record their hashes.

    For example:

        mnemoscope release new v0.2.0 --base runs/locomo/bm25 --cand runs/locomo/hybrid \\
            --out releases/v0.2.0 --author "the author" --waive longmemeval="no change there"

    Parameters
    ----------
    version
        The tag that is to be cut.
    base
        Run directory of the previous version. Repeatable, one for each benchmark.
    cand
        Run directory of the new version. Repeatable.
    out
        The release folder to make.
    author
        Who answers for the report.
    tag_date
        The proposed tag date, `2026-11-20` or `2026-11-20T09:00`, in UTC.
    waive
        BENCHMARK=REASON for a benchmark of the protocol that was not run. Repeatable.
    at
        When, if not now; recorded as given.
    """
    from mnemoscope.release.decide import comparisons
    from mnemoscope.release.state import moment, new_release, parse_time

    waived = dict(_split(one, "--waive") for one in waive or [])
    date = parse_time(tag_date) if tag_date else None
    release = new_release(
        version, base, cand, out, author=author, when=moment(at), waived=waived, tag_date=date
    )
    found = comparisons(release)
    release.save()
    for one in found:
        _say(f"{one.benchmark}: {one.base} → {one.cand}, {one.paired} questions paired")
    _say(f"begun: {out}/release.yaml")


@app.command(name="set")
def set_words(
    release: Path,
    /,
    *,
    internal: str | None = None,
    external: str | None = None,
    simulation: str | None = None,
    notes: str | None = None,
    rationale: str | None = None,
    theory: str | None = None,
    accept_regression: str | None = None,
    no_claim: str | None = None,
    tag_date: str | None = None,
    public: list[Path] | None = None,
) -> None:
    """Write what only people can say into release.yaml; an editor does as well.

    For example:

        mnemoscope release set releases/v0.2.0 --internal "one seed" --external "English only" \\
            --rationale "simpler code at the same recall" --tag-date 2026-11-20

    Parameters
    ----------
    release
        The release folder.
    internal
        Threats to validity inside the experiment.
    external
        Threats to carrying the result over to other data.
    simulation
        Threats from whatever was simulated instead of run.
    notes
        What the working group discussed.
    rationale
        Why the decision is what it is.
    theory
        For a CONDITIONAL SHIP: why the secondary metric can gain without the primary one.
    accept_regression
        Why a significant regression is accepted.
    no_claim
        Why a neutral version is shipped, without any claim.
    tag_date
        The proposed tag date.
    public
        Another public text about this release, to be linted with it. Repeatable.
    """
    import os

    from mnemoscope.release.state import Release, parse_time

    opened = Release.load(release)
    given = {
        "internal": internal,
        "external": external,
        "simulation": simulation,
        "notes": notes,
        "rationale": rationale,
        "theory": theory,
        "accept_regression": accept_regression,
        "no_claim": no_claim,
    }
    for field, text in given.items():
        if text is not None:
            setattr(opened.state.words, field, text)
    if tag_date:
        opened.state.tag_date = parse_time(tag_date)
    texts = [os.path.relpath(path, release) for path in public or []]
    opened.state.public = list(dict.fromkeys([*opened.state.public, *texts]))
    opened.save()
    _say(f"written: {release}/release.yaml")


@app.command
def report(release: Path, /, *, at: At = None) -> None:
    """Write report.md and the comparisons from the runs and release.yaml.

    A report that says anything new voids the signatures under the old one.

    For example:

        mnemoscope release report releases/v0.2.0

    Parameters
    ----------
    release
        The release folder.
    at
        When, if not now; recorded as given.
    """
    from mnemoscope.release.benchmark_report import write_report
    from mnemoscope.release.signatures import standings
    from mnemoscope.release.state import Release, moment

    opened = Release.load(release)
    write_report(opened, moment(at))
    _say(f"written: {opened.report_path}")
    if void := [role for role, state in standings(opened).items() if state == "void"]:
        _say(f"void signatures: {', '.join(void)}; the report changed since they were given")


@app.command
def check(release: Path, /, *, at: At = None, json: bool = False) -> int:
    """Go through the process's checklist; says “tag allowed” only if nothing is missing.

    Exit codes: 0 tag allowed, 1 not, and for a time yet to come always 1: that is a preview.

    For example:

        mnemoscope release check releases/v0.2.0

    Parameters
    ----------
    release
        The release folder.
    at
        As if it were this time.
    json
        Print JSON.
    """
    from mnemoscope.release import checklist
    from mnemoscope.release.state import Release, moment

    opened = Release.load(release)
    now = moment(at)
    found = checklist.check(opened, now)
    if json:
        said = {"tag_allowed": found.tag_allowed, "preview": found.preview, "items": found.items}
        print_json(said)
        return 0 if found.tag_allowed else 1
    table = Table("", "item", "missing", box=box.SIMPLE_HEAD, pad_edge=False)
    for item in found.items:
        mark = Text("[x]", "green") if item.ok else Text("[ ]", "bold red")
        shown = Text("\n".join(item.missing)) if item.missing else Text(item.remark, "dim")
        table.add_row(mark, Text(item.name), shown)
    out.print(table)
    as_if = f"as if it were {now.at:%Y-%m-%d %H:%M} UTC: " if at else ""
    _say(as_if + _outcome(found, opened.state.version))
    return 0 if found.tag_allowed else 1


def _outcome(found: Checklist, version: str) -> str:
    if not found.complete:
        missing = sum(not item.ok for item in found.items)
        return f"tag not allowed: {missing} items are missing"
    return f"the tag {version} would be allowed" if found.preview else f"tag allowed: {version}"


def _say(text: str) -> None:
    say(out, text)


def _split(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not value.strip():
        raise UsageError(f"{option} {text}: write NAME=REASON")
    return name.strip(), value.strip()
