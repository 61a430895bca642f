"""The environments of integrations: their folders, how they are created, and with which Python.

Each system has its own folder, made from pinned and hashed requirements, because the dependencies
of memory systems conflict. A folder counts as installed once its receipt is written.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import platformdirs

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.integrations.catalog import ITEMS, CatalogItem

_HERE = Path(__file__).parent
_RECEIPT = "mnemoscope.json"
_OLDEST = (3, 11)
_PINNED = re.compile(r"^([\w.-]+)(?:\[[^\]]*\])?==([^\s;]+)", re.MULTILINE)
# What a Python must have; the second line tests whether its SQLite can load extensions.
_PROBE = (
    "import sys, sqlite3, venv, ensurepip\n"
    "loads = hasattr(sqlite3.Connection, 'enable_load_extension')\n"
    "print(sys.version_info[0], sys.version_info[1], int(loads))"
)

State = Literal["installed", "outdated", "not installed", "untested"]


class InstallReceipt(msgspec.Struct, frozen=True):
    """What an environment was made from."""

    lock_sha256: str
    python: str


def root() -> Path:
    """MNEMOSCOPE_ENVIRONMENTS, or a folder among the user's data."""
    chosen = os.environ.get("MNEMOSCOPE_ENVIRONMENTS")
    if chosen:
        return Path(chosen).expanduser()
    return Path(platformdirs.user_data_dir("mnemoscope")) / "environments"


def folder(name: str) -> Path:
    return root() / (ITEMS[name].environment or name)


def lock_file(name: str) -> Path:
    """The pinned requirements that the environment is made from."""
    if ITEMS[name].npm:
        return _HERE / "npm" / name / "package-lock.json"
    return _HERE / "requirements" / f"{ITEMS[name].environment or name}.txt"


def other_versions(name: str, running: Mapping[str, object]) -> dict[str, str]:
    """The running packages whose version is not the pinned one, each with both versions."""
    if ITEMS[name].npm:
        return {}
    pinned = {
        _canonical(found[1]): found[2]
        for found in _PINNED.finditer(lock_file(name).read_text(encoding="utf-8"))
    }
    return {
        package: f"{version} instead of {pinned[_canonical(package)]}"
        for package, version in running.items()
        if pinned.get(_canonical(package), str(version)) != str(version)
    }


def _canonical(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def lock_sha256(name: str) -> str:
    return sha256_file(lock_file(name))


def state(name: str) -> State:
    if ITEMS[name].untested:
        return "untested"
    try:
        content = (folder(name) / _RECEIPT).read_bytes()
        receipt = msgspec.json.decode(content, type=InstallReceipt)
    except (OSError, msgspec.DecodeError):
        return "not installed"
    return "installed" if receipt.lock_sha256 == lock_sha256(name) else "outdated"


def python_of(name: str) -> Path:
    return folder(name) / "bin" / "python"


def require(name: str) -> None:
    """Raise UsageError if the environment is missing or made from other requirements."""
    found = state(name)
    if found == "untested":
        raise UsageError(f"{name} cannot be run: {ITEMS[name].untested}")
    if found == "not installed":
        raise UsageError(f"{name} is not installed; run: mnemoscope systems install {name}")
    if found == "outdated":
        raise UsageError(
            f"the environment of {name} was made from other versions; "
            f"run: mnemoscope systems install {name}"
        )


def install(name: str, say: Callable[[str], None]) -> Path:
    """Create the environment; an existing one is replaced."""
    item = ITEMS[name]
    if item.untested:
        raise UsageError(f"{name} cannot be installed: {item.untested}")
    place = folder(name)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        made_with = _install_npm(name, place, say) if item.npm else _install_pip(name, place, say)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    receipt = InstallReceipt(lock_sha256(name), made_with)
    (place / _RECEIPT).write_bytes(msgspec.json.encode(receipt))
    return place


def remove(name: str) -> bool:
    """Delete the environment; returns whether there was one."""
    place = folder(name)
    there = place.exists()
    shutil.rmtree(place, ignore_errors=True)
    return there


def _install_pip(name: str, place: Path, say: Callable[[str], None]) -> str:
    python = find_python(ITEMS[name])
    say(f"creating {place} with {python}")
    _run([python, "-m", "venv", str(place)], name)
    # The lock is complete: pip resolves nothing and installs only what it pins.
    lock = str(lock_file(name))
    pip = [str(python_of(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    say(f"installing the packages of {lock_file(name).name}")
    _run([*pip, "--no-deps", "--require-hashes", "-r", lock], name)
    return python


def _install_npm(name: str, place: Path, say: Callable[[str], None]) -> str:
    if shutil.which("npm") is None:
        raise UsageError(f"{name} comes from npm, which is not on the PATH; install Node.js first")
    for file in lock_file(name).parent.iterdir():
        shutil.copy(file, place)
    say(f"installing the packages of {lock_file(name).name} into {place}")
    _run(["npm", "ci", "--omit=dev", "--no-audit", "--no-fund", "--prefix", str(place)], name)
    return "npm"


def find_python(item: CatalogItem) -> str:
    """An interpreter that can run the system; ours if possible."""
    seen = []
    for candidate in _pythons():
        made = subprocess.run(
            [candidate, "-c", _PROBE], capture_output=True, text=True, check=False, timeout=60
        )
        if made.returncode:
            continue
        major, minor, loads = map(int, made.stdout.split())
        if (major, minor) >= _OLDEST and (loads or not item.loadable_sqlite):
            return candidate
        seen.append(f"{candidate} ({major}.{minor})")
    wanted = "3.11 or later"
    if item.loadable_sqlite:
        wanted += " whose sqlite3 can load extensions (Debian's python3 can, pyenv's cannot)"
    found = f"; found only {', '.join(seen)}" if seen else ""
    raise MnemoscopeError(f"found no Python {wanted} with venv; install one{found}")


def _pythons() -> Iterator[str]:
    known = [getattr(sys, "_base_executable", sys.executable)]
    names = [f"python3.{minor}" for minor in range(11, 15)]
    known += [found for name in ("python3", *names) if (found := shutil.which(name))]
    known += [f"/usr/bin/{name}" for name in ("python3", *names)]
    known += sorted(map(str, Path.home().glob(".pyenv/versions/3.1[1-9]*/bin/python")))
    yield from dict.fromkeys(path for path in known if path and Path(path).exists())


def _run(words: Sequence[str], name: str) -> None:
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode:
        last = " | ".join((ended.stderr or ended.stdout).strip().splitlines()[-5:])
        raise MnemoscopeError(
            f"{name} could not be installed: {Path(words[0]).name} ended with exit code "
            f"{ended.returncode}: {last[-800:]}"
        )
