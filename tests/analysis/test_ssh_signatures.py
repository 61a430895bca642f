"""`mnemoscope sign` and `verify`: whose signature a run has, and when it does not hold."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.optional import missing

import mnemoscope as ms
from mnemoscope._store.errors import EditedRun, MissingExtra, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.seal import SIGNATURE
from mnemoscope.analysis.ssh_signatures import NAMESPACE, signature_of
from mnemoscope.analysis.verify import verify
from mnemoscope.cli.app import invoke

Make = Callable[..., RunDirectory]


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two keys, and a list of signers that knows the first."""
    if shutil.which("ssh-keygen") is None:
        missing("no ssh-keygen")
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ann", "bob"):
        arguments = ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(["ssh-keygen", *arguments], check=True)
    public = (folder / "ann.pub").read_text()
    (folder / "signers").write_text(f'ann@example.org namespaces="{NAMESPACE}" {public}')
    return folder


@pytest.fixture
def run(make_run: Make, tmp_path: Path) -> RunDirectory:
    return make_run(tmp_path / "out" / "mine", [True, False] * 5)


def test_a_signed_run_says_by_whom(
    run: RunDirectory, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(run).gate("signature").why == "not signed"
    before = run.manifest_path.read_bytes()

    assert invoke(["sign", str(run.path), "--key", str(keys / "ann")]) == 0

    assert "signed with the key ED25519 SHA256:" in capsys.readouterr().out
    assert run.manifest_path.read_bytes() == before
    gate = verify(run, allowed_signers=keys / "signers").gate("signature")
    assert gate.passed
    assert gate.why.startswith("signed by ann@example.org with the key ED25519 SHA256:")
    assert verify(run).gate("signature").passed


def test_signing_again_replaces_the_signature(run: RunDirectory, keys: Path) -> None:
    """ssh-keygen would keep the old one, if it were given the file."""
    ms.sign(run.path, key=keys / "bob")
    ms.sign(run.path, key=keys / "ann")

    assert signature_of(run, keys / "signers").state == "good"
    assert ms.load(run.path).runs


def test_an_unknown_signer_fails(run: RunDirectory, keys: Path) -> None:
    ms.sign(run.path, key=keys / "bob")

    found = verify(run, allowed_signers=keys / "signers")

    assert not found.gate("signature").passed
    assert "is not in" in found.gate("signature").why
    assert invoke(["verify", str(run.path), "--allowed-signers", str(keys / "signers")]) == 1


def test_an_unsigned_run_fails_if_signers_are_demanded(run: RunDirectory, keys: Path) -> None:
    gate = verify(run, allowed_signers=keys / "signers").gate("signature")

    assert (gate.passed, gate.why) == (False, "not signed")


def test_an_altered_manifest_voids_the_signature(run: RunDirectory, keys: Path) -> None:
    ms.sign(run.path, key=keys / "ann")
    manifest = run.manifest()
    manifest.notes = ["an honest run"]
    run.save(manifest)

    gate = verify(run).gate("signature")

    assert not gate.passed
    assert "is not a signature of manifest.json" in gate.why


def test_a_signature_for_another_purpose_fails(run: RunDirectory, keys: Path) -> None:
    done = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-f", str(keys / "ann"), "-n", "git"],
        input=run.manifest_path.read_bytes(),
        capture_output=True,
        check=True,
    )
    run.write_files({SIGNATURE: done.stdout})

    assert signature_of(run).state == "bad"


@pytest.mark.parametrize("content", [b"", b"no signature", b"\xff" * 40])
def test_a_damaged_signature_fails(content: bytes, run: RunDirectory, keys: Path) -> None:
    run.write_files({SIGNATURE: content})

    assert signature_of(run, keys / "signers").state == "bad"


def test_an_edited_run_is_not_signed(run: RunDirectory, keys: Path) -> None:
    (run.path / "metrics.json").write_text("{}")

    with pytest.raises(EditedRun, match=r"metrics\.json"):
        ms.sign(run.path, key=keys / "ann")


def test_mistakes_are_one_sentence(
    run: RunDirectory, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no such key"):
        ms.sign(run.path, key=tmp_path / "none")
    with pytest.raises(ms.MnemoscopeError, match="ssh-keygen cannot sign with"):
        ms.sign(run.path, key=keys / "signers")
    ms.sign(run.path, key=keys / "ann")
    with pytest.raises(UsageError, match="no such file of allowed signers"):
        verify(run, allowed_signers=tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra, match="install OpenSSH"):
        ms.sign(run.path, key=keys / "ann")
    assert "install OpenSSH" in verify(run).gate("signature").why
