"""What the working group does with a release: read, repeat, decide, sign."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mnemoscope.cli.console import out, say
from mnemoscope.cli.release_texts import At


def circulate(release: Path, /, *, evidence: str = "", at: At = None) -> None:
    """Record that the report was shared with the working group: 48 hours begin.

    They begin anew, with another `circulate`, if the report's content changes.

    For example:

        mnemoscope release circulate releases/v0.2.0

        mnemoscope release circulate releases/v0.2.0 --at 2026-11-16T09:00 \\
            --evidence "mail to the working group, 16 November, 9:00"

    Parameters
    ----------
    release
        The release folder.
    evidence
        Where it was shared, such as a mail or a pull request: with it the time of --at counts.
    at
        When, if not now. Without --evidence the 48 hours count from when this was recorded.
    """
    from mnemoscope.release import signatures
    from mnemoscope.release.decide import comparisons
    from mnemoscope.release.state import Release, moment

    opened = Release.load(release)
    done = signatures.circulate(opened, comparisons(opened), moment(at), evidence)
    say(out, f"circulated: {done}")


def sign(
    release: Path,
    /,
    *,
    role: Literal["pi", "architect", "statistician", "research-supervisor"],
    name: str,
    quorum_exception: str = "",
    at: At = None,
) -> None:
    """Sign the report as it stands; any later change of it voids the signature.

    For example:

        mnemoscope release sign releases/v0.2.0 --role architect --name "name of the architect"

        mnemoscope release sign releases/v0.2.0 --role pi --name "name of the PI" \\
            --quorum-exception "the research supervisor is on leave"

    Parameters
    ----------
    release
        The release folder.
    role
        In which of the four roles.
    name
        Who signs.
    quorum_exception
        The PI's reason for tagging with three signatures of four.
    at
        When, if not now; recorded as given.
    """
    from mnemoscope.release import signatures
    from mnemoscope.release.decide import comparisons
    from mnemoscope.release.state import Release, moment

    opened = Release.load(release)
    signed = signatures.sign(opened, comparisons(opened), role, name, moment(at), quorum_exception)
    say(out, f"signed as {role} by {signed.name}: report sha256 {signed.sha256}, {signed.when}")


def rederive(release: Path, /, *, name: str, seed: int = 20_260_510, at: At = None) -> int:
    """Repeat the statistics with another seed and an independent implementation, and compare.

    Exit codes: 0 all agree, 1 some do not.

    For example:

        mnemoscope release rederive releases/v0.2.0 --name "name of the statistician"

    Parameters
    ----------
    release
        The release folder.
    name
        Who repeats them.
    seed
        The seed of the repetition's draws.
    at
        When, if not now; recorded as given.
    """
    from mnemoscope.release import rederive as again
    from mnemoscope.release.decide import comparisons
    from mnemoscope.release.state import Release, moment

    opened = Release.load(release)
    done = again.rederive(opened, comparisons(opened), by=name, seed=seed, when=moment(at))
    opened.state.rederived = done
    opened.save()
    for line in done.disagreements:
        say(out, f"disagrees: {line}")
    say(out, f"{done.checked} statistics repeated, {len(done.disagreements)} disagree")
    return 1 if done.disagreements else 0


def decide(release: Path, /, *, at: At = None) -> None:
    """Apply the decision matrix to the figures, and say which row applied.

    For example:

        mnemoscope release decide releases/v0.2.0

    Parameters
    ----------
    release
        The release folder.
    at
        When, if not now; recorded as given.
    """
    from mnemoscope.release import decide as matrix
    from mnemoscope.release.decide import comparisons
    from mnemoscope.release.state import Release, moment

    opened = Release.load(release)
    decision = matrix.decide(opened, comparisons(opened), moment(at))
    opened.state.decision = decision
    opened.save()
    for benchmark, row in decision.rows.items():
        say(out, f"{benchmark}: row “{row}”: {matrix.RATIONALE[row]}")
    say(out, f"decision: {decision.outcome}")
    for demand in decision.open:
        say(out, f"still needed in release.yaml, words.{demand}")
