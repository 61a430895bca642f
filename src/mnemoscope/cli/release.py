"""`mnemoscope release`: decide from two sets of runs whether a version may be tagged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from cyclopts import App

from mnemoscope._store.errors import UsageError
from mnemoscope.cli import release_texts
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import print_json, say
from mnemoscope.cli.release_texts import AsJson, At, Folder, OtherAt, opened

app = App(name="release", help="The release process: report, signatures, decision, notes.")
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
    """Start a release: pair base and candidate runs by benchmark and record their hashes.

    For example:

        mnemoscope release new v0.2.0 --base runs/locomo/bm25 --cand runs/locomo/hybrid \\
            --out releases/v0.2.0 --author "the author" --waive longmemeval="no change there"

    Parameters
    ----------
    version
        The tag of the release.
    base
        Run directory of the previous version. Repeatable, one for each benchmark.
    cand
        Run directory of the new version. Repeatable.
    out
        The release folder to create.
    author
        The author of the report.
    tag_date
        The proposed tag date, `2026-11-20` or `2026-11-20T09:00`, in UTC.
    waive
        BENCHMARK=REASON for a benchmark of the protocol that was not run. Repeatable.
    """
    from mnemoscope.release.decide import comparisons
    from mnemoscope.release.state import moment, new_release, parse_time

    waived = {}
    for one in waive or []:
        name, _, reason = (part.strip() for part in one.partition("="))
        if not reason:
            raise UsageError(f"--waive {one}: write NAME=REASON")
        waived[name] = reason
    date = parse_time(tag_date) if tag_date else None
    release = new_release(
        version, base, cand, out, author=author, when=moment(at), waived=waived, tag_date=date
    )
    found = comparisons(release)
    release.save()
    for pair in found:
        say(
            stdout,
            f"{pair.benchmark}: {pair.base} → {pair.cand}, {pair.paired} questions paired",
        )
    say(stdout, f"started: {out}/release.yaml")


@app.command(name="set")
def set_words(
    release: Folder,
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
    """Write people's texts for the report into release.yaml. An editor works as well.

    For example:

        mnemoscope release set releases/v0.2.0 --internal "one seed" --external "English only" \\
            --rationale "simpler code at the same recall" --tag-date 2026-11-20

    Parameters
    ----------
    internal
        Threats to validity inside the experiment.
    external
        Threats to validity on other data.
    simulation
        Threats from parts that were simulated.
    notes
        What the working group discussed.
    rationale
        The reason for the decision.
    theory
        For a CONDITIONAL SHIP: why only the secondary metric can improve.
    accept_regression
        Why a significant regression is accepted.
    no_claim
        Why a neutral version ships without a claim.
    tag_date
        The proposed tag date.
    public
        Another public text about this release; the linter checks it too. Repeatable.
    """
    from mnemoscope.release.state import Release, parse_time

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
    folder = Release.load(release)
    for field, text in given.items():
        if text is not None:
            setattr(folder.state.words, field, text)
    if tag_date:
        folder.state.tag_date = parse_time(tag_date)
    texts = [os.path.relpath(path, release) for path in public or []]
    folder.state.public = list(dict.fromkeys([*folder.state.public, *texts]))
    folder.save()
    say(stdout, f"written: {release}/release.yaml")


@app.command
def report(release: Folder, /, *, at: At = None) -> None:
    """Write report.md and the comparisons from the runs and release.yaml.

    If the report changes, its signatures become void.

    For example:

        mnemoscope release report releases/v0.2.0
    """
    from mnemoscope.release.benchmark_report import write_report
    from mnemoscope.release.signatures import standings
    from mnemoscope.release.state import Release, moment

    folder = Release.load(release)
    write_report(folder, moment(at))
    say(stdout, f"written: {folder.report_path}")
    if void := [role for role, state in standings(folder).items() if state == "void"]:
        say(stdout, f"void signatures: {', '.join(void)}; the report changed after they were given")


@app.command
def circulate(release: Folder, /, *, evidence: str = "", at: OtherAt = None) -> None:
    """Record that the report was shared with the working group: 48 hours start.

    If the report changes, circulate it again; the 48 hours start again.

    For example:

        mnemoscope release circulate releases/v0.2.0

        mnemoscope release circulate releases/v0.2.0 --at 2026-11-16T09:00 \\
            --evidence "mail to the working group, 16 November, 9:00"

    Parameters
    ----------
    evidence
        Where it was shared, such as a mail or a pull request. With it, the time of --at counts.
    at
        The time, if not now. Without --evidence the 48 hours count from the time of recording.
    """
    from mnemoscope.release import signatures
    from mnemoscope.release.state import moment

    done = signatures.circulate(*opened(release), moment(at), evidence)
    say(stdout, f"circulated: {done}")


@app.command
def rederive(release: Folder, /, *, name: str, seed: int = 20_260_510, at: At = None) -> int:
    """Repeat the statistics with another seed and an independent implementation, and compare.

    Exit codes: 0 all agree, 1 some do not.

    For example:

        mnemoscope release rederive releases/v0.2.0 --name "name of the statistician"

    Parameters
    ----------
    name
        The person who repeats them.
    seed
        The seed of the random draws.
    """
    from mnemoscope.release import rederive as again
    from mnemoscope.release.state import moment

    folder, found = opened(release)
    done = again.rederive(folder, found, by=name, seed=seed, when=moment(at))
    folder.state.rederived = done
    folder.save()
    for line in done.disagreements:
        say(stdout, f"disagrees: {line}")
    say(stdout, f"{done.checked} statistics repeated, {len(done.disagreements)} disagree")
    return 1 if done.disagreements else 0


@app.command
def decide(release: Folder, /, *, at: At = None) -> None:
    """Apply the decision matrix to the figures and print the row.

    For example:

        mnemoscope release decide releases/v0.2.0
    """
    from mnemoscope.release import decide as matrix
    from mnemoscope.release.state import moment

    folder, found = opened(release)
    folder.state.decision = decision = matrix.decide(folder, found, moment(at))
    folder.save()
    for benchmark, row in decision.rows.items():
        say(stdout, f"{benchmark}: row “{row}”: {matrix.RATIONALE[row]}")
    say(stdout, f"decision: {decision.outcome}")
    for demand in decision.open:
        say(stdout, f"still needed in release.yaml, words.{demand}")


@app.command
def sign(
    release: Folder,
    /,
    *,
    role: Literal["pi", "architect", "statistician", "research-supervisor"],
    name: str,
    quorum_exception: str = "",
    at: At = None,
) -> None:
    """Sign the report; any later change of the report voids the signature.

    For example:

        mnemoscope release sign releases/v0.2.0 --role architect --name "name of the architect"

        mnemoscope release sign releases/v0.2.0 --role pi --name "name of the PI" \\
            --quorum-exception "the research supervisor is on leave"

    Parameters
    ----------
    role
        The role of the person who signs.
    name
        The name of the person who signs.
    quorum_exception
        The PI's reason for tagging with three signatures of four.
    """
    from mnemoscope.release import signatures
    from mnemoscope.release.state import moment

    signed = signatures.sign(*opened(release), role, name, moment(at), quorum_exception)
    signature = f"report sha256 {signed.sha256}, {signed.when}"
    say(stdout, f"signed as {role} by {signed.name}: {signature}")


@app.command
def check(release: Folder, /, *, at: OtherAt = None, json: AsJson = False) -> int:
    """Compute the checklist of the process; “tag allowed” means that all items are complete.

    Exit codes: 0 tag allowed, 1 not allowed. A check for a future time is a preview and exits 1.

    For example:

        mnemoscope release check releases/v0.2.0

    Parameters
    ----------
    at
        Check as if it were this time.
    """
    from mnemoscope.release import checklist
    from mnemoscope.release.state import Release, moment
    from mnemoscope.reports import render_terminal

    folder, now = Release.load(release), moment(at)
    found = checklist.check(folder, now)
    if json:
        allowed, preview = found.tag_allowed, found.preview
        print_json({"tag_allowed": allowed, "preview": preview, "items": found.items})
    else:
        stdout.print(render_terminal.table(checklist.table(found)))
        as_if = f"as if it were {now.at:%Y-%m-%d %H:%M} UTC: " if at else ""
        say(stdout, as_if + found.outcome(folder.state.version))
    return 0 if found.tag_allowed else 1
