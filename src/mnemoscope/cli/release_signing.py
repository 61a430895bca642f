"""Signing a release: circulation, signatures, the checklist, the tag, and the process."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cyclopts import App

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import print_json, say
from mnemoscope.cli.release_texts import AsJson, At, Folder, OtherAt, loaded, opened

process = App(name="process", help="The versions of the release process.")


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


def sign(
    release: Folder,
    /,
    *,
    role: Literal["pi", "architect", "statistician", "research-supervisor"],
    name: str,
    key: Path | None = None,
    accept: list[str] | None = None,
    quorum_exception: str = "",
    at: At = None,
) -> None:
    """Sign the report; any later change of the report voids the signature.

    With --key the signature is of an SSH key. Without it the name is typed, which proves nothing;
    the report says so.

    For example:

        mnemoscope release sign releases/v0.2.0 --role architect --name "name of the architect" \\
            --key ~/.ssh/id_ed25519

        mnemoscope release sign releases/v0.2.0 --role pi --name "name of the PI" \\
            --accept waiver:longmemeval --quorum-exception "the research supervisor is on leave"

    Parameters
    ----------
    role
        The role of the person who signs.
    name
        The name of the person who signs.
    key
        The private SSH key, or the public one if ssh-agent holds the private one.
    accept
        A departure from the process that the signer accepts: waiver:BENCHMARK, or base. The PI must
        accept all that the release declares. Repeatable.
    quorum_exception
        The PI's reason for tagging with three signatures of four.
    """
    from mnemoscope.release import signatures
    from mnemoscope.release.state import moment

    signed = signatures.sign(
        *opened(release), role, name, moment(at), quorum_exception, accepts=accept or [], key=key
    )
    proof = f"SSH key {signed.key}" if signed.key else "typed name only, not proven"
    signature = f"report sha256 {signed.sha256}, {signed.when}, {proof}"
    say(stdout, f"signed as {role} by {signed.name}: {signature}")


def check(
    release: Folder,
    /,
    *,
    allowed_signers: Path | None = None,
    at: OtherAt = None,
    json: AsJson = False,
) -> int:
    """Compute the checklist of the process; “tag allowed” means that all items are complete.

    Exit codes: 0 tag allowed, 1 not allowed. A check for a future time is a preview and exits 1.

    For example:

        mnemoscope release check releases/v0.2.0

        mnemoscope release check releases/v0.2.0 --allowed-signers allowed_signers

    Parameters
    ----------
    allowed_signers
        Every signature must be of one of these SSH keys; the format is that of ssh-keygen.
    at
        Check as if it were this time.
    """
    from mnemoscope.release import checklist
    from mnemoscope.release.state import Release, moment
    from mnemoscope.reports import render_terminal

    folder, now = Release.load(release), moment(at)
    found = checklist.check(folder, now, allowed_signers)
    if json:
        allowed, preview = found.tag_allowed, found.preview
        print_json({"tag_allowed": allowed, "preview": preview, "items": found.items})
    else:
        stdout.print(render_terminal.table(checklist.table(found)))
        as_if = f"as if it were {now.at:%Y-%m-%d %H:%M} UTC: " if at else ""
        say(stdout, as_if + found.outcome(folder.state.version))
    return 0 if found.tag_allowed else 1


def tag(release: Folder, /, *, allowed_signers: Path | None = None, at: At = None) -> None:
    """Record that the version is tagged, if the checklist allows it. Cut the tag with git.

    The next release is compared with the candidate of this one.

    For example:

        mnemoscope release tag releases/v0.2.0

    Parameters
    ----------
    allowed_signers
        Every signature must be of one of these SSH keys.
    """
    from mnemoscope.release import checklist
    from mnemoscope.release.release_log import record
    from mnemoscope.release.state import moment

    folder, now = loaded(release), moment(at)
    found = checklist.check(folder, now, allowed_signers)
    if not found.tag_allowed:
        missing = [
            f"{item.name}: {'; '.join(item.missing)}" for item in found.items if item.missing
        ]
        raise MnemoscopeError(f"{found.outcome(folder.state.version)}. {' / '.join(missing)}")
    folder.state.tagged = now
    record(folder, "tagged", now, by=folder.state.author)
    say(stdout, f"recorded: {folder.state.version} tagged {now}; cut the tag with git")


@process.command
def show(releases: Path = Path("releases"), /) -> None:
    """List the versions of the release process, and the releases that used them (§7).

    For example:

        mnemoscope release process show releases

    Parameters
    ----------
    releases
        The folder of the release folders.
    """
    from mnemoscope.release.process import process_versions

    for one in process_versions(releases):
        kind = " (breaking)" if one.breaking else ""
        approved = f"; approved by {one.approved_by}, {one.initials}" if one.approved_by else ""
        say(stdout, f"{one.version} {one.effective}{kind}: {one.change}{approved}")
        if one.used_the_prior:
            say(stdout, f"  under the version before it: {', '.join(one.used_the_prior)}")


@process.command
def add(
    releases: Path = Path("releases"),
    /,
    *,
    version: str,
    change: str,
    breaking: bool = False,
    approved_by: str = "",
    initials: str = "",
    at: At = None,
) -> None:
    """Add a version of the release process. A breaking change needs an approval and initials (§7).

    Releases that used the version before are listed with it.

    For example:

        mnemoscope release process add releases --version 2.0.0 --breaking \\
            --change "five signatures" --approved-by "name of the founder" --initials NF

    Parameters
    ----------
    releases
        The folder of the release folders.
    version
        The new version; a breaking change raises the first number.
    change
        What changes.
    breaking
        Whether releases under the version before would not pass.
    approved_by
        The founder, or who has this authority.
    initials
        The initials under the dated entry.
    """
    from mnemoscope.release.claims import refuse_claims
    from mnemoscope.release.process import ProcessVersion, add_version
    from mnemoscope.release.state import moment

    refuse_claims(change, "--change")
    new = ProcessVersion(version, "", change, breaking, approved_by, initials)
    added = add_version(releases, new, moment(at))
    say(stdout, f"added: process {added.version}, in force since {added.effective}")
