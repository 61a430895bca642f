"""Signatures of runs: SSH keys sign the manifest, which has the hashes of all other files.

`ssh-keygen -Y` reads the manifest from stdin and writes the signature to stdout: given a file whose
signature exists, it would ask, and without a terminal keep the old signature with exit code 0.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import MissingExtra, MnemoscopeError, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.seal import SIGNATURE

NAMESPACE = "mnemoscope"
_SECONDS = 60.0
SignatureState = Literal["none", "good", "unknown signer", "bad"]


class RunSignature(msgspec.Struct, frozen=True):
    """Whether a run is signed, and by whom."""

    state: SignatureState
    why: str
    """One sentence for the reader."""

    @property
    def is_bad(self) -> bool:
        return self.state not in ("none", "good")


def sign_run(run: RunDirectory, key: Path) -> RunSignature:
    """Sign the manifest of a finished run with a private SSH key, or a public one of ssh-agent."""
    if (state := run.manifest().state) != "complete":
        raise UsageError(f"{run.path} is not complete (state {state}); finish it first")
    run.write_files({SIGNATURE: sign_bytes(run.manifest_path.read_bytes(), key, NAMESPACE)})
    return signature_of(run)


def sign_bytes(content: bytes, key: Path, namespace: str) -> bytes:
    """The signature of a content; `namespace` keeps it from being used for something else."""
    if not key.is_file():
        raise UsageError(f"no such key: {key}; `ssh-keygen -t ed25519` makes one")
    done = _ssh_keygen(["-Y", "sign", "-f", str(key), "-n", namespace], content)
    if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise MnemoscopeError(f"ssh-keygen cannot sign with {key}: {_last_line(done.stderr)}")
    return done.stdout


def signature_of(run: RunDirectory, allowed_signers: Path | None = None) -> RunSignature:
    """Check the signature of a run; with a list of allowed signers, also who signed."""
    file = run.path / SIGNATURE
    if not file.is_file():
        return RunSignature("none", "not signed")
    checked = check_signature(
        run.manifest_path.read_bytes(), file.read_bytes(), NAMESPACE, allowed_signers
    )
    if checked.state == "bad":
        return RunSignature("bad", f"{file} is not a signature of manifest.json")
    if checked.state == "unknown signer":
        return RunSignature("unknown signer", f"the key {checked.key} is not in {allowed_signers}")
    if allowed_signers is None:
        why = f"signed with the key {checked.key}; give --allowed-signers to check whose it is"
        return RunSignature("good", why)
    return RunSignature("good", f"signed by {checked.signer} with the key {checked.key}")


class CheckedSignature(NamedTuple):
    """Whether a signature is of a content, and of which key."""

    state: SignatureState
    key: str = ""
    signer: str = ""
    """The name in the list of allowed signers."""


def check_signature(
    content: bytes, armoured: bytes, namespace: str, allowed_signers: Path | None = None
) -> CheckedSignature:
    """Check a signature; with a list of allowed signers, also who signed."""
    if allowed_signers is not None and not allowed_signers.is_file():
        raise UsageError(f"no such file of allowed signers: {allowed_signers}")
    with TemporaryDirectory(prefix="mnemoscope-signature-") as folder:
        # A copy: a path that begins with a dash or has a percent sign is read as an option.
        signature = Path(folder) / SIGNATURE
        signature.write_bytes(armoured)
        given = ["-n", namespace, "-s", str(signature)]
        checked = _ssh_keygen(["-Y", "check-novalidate", *given], content)
        if checked.returncode:
            return CheckedSignature("bad")
        key = _key_of(checked.stdout)
        if allowed_signers is None:
            return CheckedSignature("good", key)
        signers = ["-f", str(allowed_signers.resolve())]
        found = _ssh_keygen(["-Y", "find-principals", *signers, "-s", str(signature)], content)
        for name in found.stdout.decode(errors="replace").split("\n"):
            by = [*signers, "-I", name]
            if name and not _ssh_keygen(["-Y", "verify", *by, *given], content).returncode:
                return CheckedSignature("good", key, name)
    return CheckedSignature("unknown signer", key)


def _key_of(told: bytes) -> str:
    found = re.search(rb"with (\S+) key (SHA256:\S+)", told)
    return b" ".join(found.groups()).decode() if found else "of an unknown kind"


def _ssh_keygen(arguments: Sequence[str], content: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", *arguments],
            input=content,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except FileNotFoundError:
        raise MissingExtra(
            "signing and checking signatures", "install OpenSSH (ssh-keygen)"
        ) from None
    except subprocess.TimeoutExpired:
        raise MnemoscopeError(f"ssh-keygen did not end within {_SECONDS:g} s") from None


def _last_line(told: bytes) -> str:
    lines = told.decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")
