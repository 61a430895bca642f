"""`mnemoscope release`: decide from two sets of runs whether a version may be tagged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App

from mnemoscope._store.errors import UsageError
from mnemoscope.cli import release_signing, release_texts
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import say
from mnemoscope.cli.release_texts import At, Folder, loaded, opened

app = App(name="release", help="The release process: report, signatures, decision, notes.")
for _command in (release_signing.circulate, release_signing.sign, release_signing.check):
    app.command(_command)
app.command(release_signing.tag)
app.command(release_signing.process)
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
    other_base: str = "",
    changed: list[str] | None = None,
    extra: list[str] | None = None,
    at: At = None,
) -> None:
    """Start a release: pair base and candidate runs by benchmark and record their hashes.

    The base is the candidate of the last release that was tagged in a neighbouring folder of --out.

    For example:

        mnemoscope release new v0.2.0 --base runs/locomo/bm25 --cand runs/locomo/hybrid \\
            --out releases/v0.2.0 --author "the author" --waive longmemeval="no change there" \\
            --other-base "the first release under this process" --changed none

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
        BENCHMARK=REASON for a mandatory benchmark that was not run; the PI must accept it.
        Repeatable.
    other_base
        The reason for another base than the previous release; the PI must accept it.
    changed
        What changed that makes another benchmark mandatory: graph-retrieval (hipporag),
        episodic-memory (memorybank), vertical-feature (domain-eval), or none. Repeatable.
    extra
        BENCHMARK=FILE, the report of a benchmark that a change made mandatory. Repeatable.
    """
    from mnemoscope.release.decide import comparisons
    from mnemoscope.release.start_release import new_release, start
    from mnemoscope.release.state import moment, parse_time

    release = new_release(
        version,
        base,
        cand,
        out,
        author=author,
        when=moment(at),
        waived=_named(waive, "--waive"),
        tag_date=parse_time(tag_date) if tag_date else None,
        other_base=other_base,
        changed=changed or [],
        extras={name: Path(file) for name, file in _named(extra, "--extra").items()},
    )
    found = comparisons(release)
    start(release)
    for pair in found:
        say(
            stdout,
            f"{pair.benchmark}: {pair.base} → {pair.cand}, {pair.paired} questions paired",
        )
    say(stdout, f"started: {out}/release.yaml")


@app.command
def amend(
    release: Folder,
    /,
    *,
    by: str,
    why: str,
    base: list[Path] | None = None,
    cand: list[Path] | None = None,
    waive: list[str] | None = None,
    other_base: str | None = None,
    changed: list[str] | None = None,
    extra: list[str] | None = None,
    process: str = "",
    author: str = "",
    at: At = None,
) -> None:
    """Change a release that was started. What changed, why and by whom is appended to its log.

    The report must be written and circulated again, and signatures that were given are void.

    For example:

        mnemoscope release amend releases/v0.2.0 --by "the author" --cand runs/fixed/hybrid \\
            --why "the first run used a wrong index"

        mnemoscope release amend releases/v0.2.0 --by "the author" --waive longmemeval= \\
            --why "it was run after all" --base runs/lme/bm25 --cand runs/lme/hybrid

    Parameters
    ----------
    by
        The person who amends it.
    why
        The reason.
    base
        Another base run; it replaces that of its benchmark. Repeatable.
    cand
        Another candidate run; it replaces that of its benchmark. Repeatable.
    waive
        BENCHMARK=REASON as in `release new`; without a reason the waiver is taken back.
    other_base
        The reason for another base than the previous release.
    changed
        What changed, as in `release new`. Repeatable.
    extra
        BENCHMARK=FILE as in `release new`. Repeatable.
    process
        The version of the process that is in force now.
    author
        Another author of the report.
    """
    from mnemoscope.release.start_release import amend_release
    from mnemoscope.release.state import moment

    found = amend_release(
        loaded(release),
        by=by,
        why=why,
        when=moment(at),
        base=base or [],
        cand=cand or [],
        waived=_named(waive, "--waive", optional=True),
        other_base=other_base,
        changed=changed or [],
        extras={name: Path(file) for name, file in _named(extra, "--extra").items()},
        process=process,
        author=author,
    )
    for line in found:
        say(stdout, f"amended: {line}")
    say(stdout, "write the report again, circulate it and collect the signatures again")


def _named(given: Sequence[str] | None, option: str, *, optional: bool = False) -> dict[str, str]:
    """NAME=TEXT of a repeatable option."""
    found = {}
    for one in given or []:
        name, sign, text = (part.strip() for part in one.partition("="))
        if not sign or not (text or optional):
            raise UsageError(f"{option} {one}: write NAME=TEXT")
        found[name] = text
    return found


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
    from mnemoscope.release.state import parse_time

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
    folder = loaded(release)
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
    from mnemoscope.release.state import moment

    folder = loaded(release)
    write_report(folder, moment(at))
    say(stdout, f"written: {folder.report_path}")
    if void := [role for role, state in standings(folder).items() if state == "void"]:
        say(stdout, f"void signatures: {', '.join(void)}; the report changed after they were given")


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
    from mnemoscope.release.release_log import record
    from mnemoscope.release.state import moment

    folder, found = opened(release)
    done = again.rederive(folder, found, by=name, seed=seed, when=moment(at))
    folder.state.rederived = done
    record(folder, "rederived", done.when, by=done.by)
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
    from mnemoscope.release.release_log import record
    from mnemoscope.release.state import moment

    folder, found = opened(release)
    folder.state.decision = decision = matrix.decide(folder, found, moment(at))
    record(folder, "decided", decision.when, by=folder.state.author, what=decision.outcome)
    for benchmark, row in decision.rows.items():
        say(stdout, f"{benchmark}: row “{row}”: {matrix.RATIONALE[row]}")
    say(stdout, f"decision: {decision.outcome}")
    for comparison in found:
        rules = folder.protocol.benchmark(comparison.benchmark)
        state = matrix.guard(comparison, matrix.margins(rules))
        say(stdout, f"guard on {comparison.benchmark}: {state}. {matrix.POLICY[state]} (policy)")
    for demand in decision.open:
        say(stdout, f"still needed in release.yaml, words.{demand}")
