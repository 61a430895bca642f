"""Environments of integrations: made from pinned packages alone, replaced as a whole."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.cli.app import invoke
from mnemoscope.integrations import environments
from mnemoscope.integrations.catalog import ITEMS, CatalogItem

NAME = "toy-memory"


@pytest.fixture
def pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Put a wheel into pip's folder and pin it; returns its hash. pip finds no other package."""
    wheels, locks = tmp_path / "wheels", tmp_path / "locks"
    wheels.mkdir()
    locks.mkdir()
    monkeypatch.setenv("MNEMOSCOPE_ENVIRONMENTS", str(tmp_path / "environments"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    item = CatalogItem(summary="a toy", licence="none", packages=("toymemory",), adapter="toy:Toy")
    monkeypatch.setitem(ITEMS, NAME, item)
    monkeypatch.setattr(environments, "lock_file", lambda name: locks / f"{name}.txt")

    def write(version: str) -> str:
        wheel = wheels / f"toymemory-{version}-py3-none-any.whl"
        about = f"toymemory-{version}.dist-info"
        with zipfile.ZipFile(wheel, "w") as packed:
            packed.writestr("toymemory.py", f"version = '{version}'\n")
            head = f"Metadata-Version: 2.1\nName: toymemory\nVersion: {version}\n"
            packed.writestr(f"{about}/METADATA", head)
            packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            packed.writestr(f"{about}/RECORD", "")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lock = f"toymemory=={version} \\\n    --hash=sha256:{digest}\n"
        (locks / f"{NAME}.txt").write_text(lock)
        return digest

    return write


def _installed_version() -> str:
    asked = [str(environments.python_of(NAME)), "-c", "import toymemory; print(toymemory.version)"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def test_an_environment_is_created_replaced_and_removed(
    pin: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pin("2.0")
    assert environments.state(NAME) == "not installed"
    with pytest.raises(UsageError, match=f"run: mnemoscope systems install {NAME}"):
        environments.require(NAME)
    earlier = environments.folder(NAME) / "of-an-earlier-one"
    earlier.mkdir(parents=True)
    assert environments.state(NAME) == "not installed", "without its receipt it does not count"
    receipt = earlier.with_name("mnemoscope.json")
    receipt.write_text('{"lock_sha256": "of other pins", "python": "python3"}')
    assert environments.state(NAME) == "outdated"
    with pytest.raises(UsageError, match="made from other versions"):
        environments.require(NAME)

    assert invoke(["systems", "install", NAME]) == 0
    assert f"{NAME} is installed" in capsys.readouterr().out
    assert environments.state(NAME) == "installed"
    environments.require(NAME)
    assert _installed_version() == "2.0"
    assert not earlier.exists()

    monkeypatch.setitem(ITEMS, "lodger", CatalogItem(summary="", licence="", environment=NAME))
    assert invoke(["systems", "remove", NAME]) == 0
    assert f"{NAME} and lodger removed" in capsys.readouterr().out
    assert environments.state(NAME) == "not installed"
    assert not environments.folder(NAME).exists()


def test_a_wrong_hash_is_refused_and_leaves_no_environment(
    pin: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    digest = pin("1.0")
    lock = environments.lock_file(NAME)
    lock.write_text(lock.read_text().replace(digest, "0" * 64))
    assert invoke(["systems", "install", NAME]) == 1
    said = capsys.readouterr().err
    assert "could not be installed" in said
    assert "hash" in said.lower()
    assert not environments.folder(NAME).exists()
    assert environments.state(NAME) == "not installed"


def test_a_name_that_is_not_an_integration_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["systems", "install", "qdrnt"]) == 2
    assert "did you mean 'qdrant'" in capsys.readouterr().err
    assert invoke(["systems", "install", "bm25"]) == 2
    assert "bm25 is part of Mnemoscope" in capsys.readouterr().err
    assert invoke(["systems", "install"]) == 2
    assert "name at least one system: " in capsys.readouterr().err


def test_a_python_that_can_load_extensions_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_pythons", lambda: iter(["/bin/false"]))
    wanting = CatalogItem(summary="", licence="", loadable_sqlite=True)
    with pytest.raises(MnemoscopeError, match=r"no Python 3\.11 or later whose sqlite3 can load"):
        environments.find_python(wanting)


def test_untested_systems_are_listed_with_a_reason_and_cannot_be_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    untested = [name for name, item in ITEMS.items() if item.untested]
    assert untested
    assert invoke(["systems", "install", untested[0]]) == 1
    assert ITEMS[untested[0]].untested.split()[0] in capsys.readouterr().err
    assert invoke(["systems", "check", untested[0]]) == 2
    assert "cannot be run" in capsys.readouterr().err
    monkeypatch.setenv("COLUMNS", "200")
    assert invoke(["systems", "list", "--json"]) == 0
    assert f'"{untested[0]}"' in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name, item in ITEMS.items() if not item.untested])
def test_every_system_has_a_lock_with_hashes_and_no_index(name: str) -> None:
    lock = environments.lock_file(name).read_text()
    if ITEMS[name].npm:
        assert '"integrity": "sha512-' in lock
        assert '"resolved"' not in lock
    else:
        assert "--hash=sha256:" in lock
        assert "://" not in lock


def test_installing_an_mcp_server_names_the_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environments, "state", lambda name: "not installed")
    monkeypatch.setattr(environments, "install", lambda name, say: tmp_path)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert invoke(["systems", "install", "server-memory", "qdrant"]) == 0
    of_mcp, of_qdrant = capsys.readouterr().out.split("qdrant is installed")
    assert 0 < of_mcp.index("pip install 'mnemoscope[mcp]'") < of_mcp.index("try: ")
    assert "pip install" not in of_qdrant
