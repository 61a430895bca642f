"""A locked system cannot change what our next process imports, starts or reads as its settings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.isolation.mechanisms import LOCKS, use

import mnemoscope as ms
from mnemoscope.isolation.lock import Mechanism
from mnemoscope.isolation.trusted_paths import trusted_paths

ADAPTER = '''
import json, os, sys
targets, opened, log = json.load(open(sys.argv[1])), sys.argv[2].split(":"), sys.argv[3]

def plant(path):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("planted = True\\n")
        return True
    except OSError:
        return False

def replace(path):
    """By a rename instead of a write."""
    try:
        made = os.environ["TMPDIR"] + "/made"
        open(made, "w").close()
        os.replace(made, path)
        return True
    except OSError:
        return False

def opens(path):
    """A file of the real installation is only opened."""
    try:
        open(path, "r+").close()
        return True
    except OSError:
        return False

planted = {path: plant(path) or replace(path) for path in targets}
planted |= {path: opens(path) for path in opened}
with open(log, "w") as file:
    json.dump(planted, file)
ids = []
for line in sys.stdin:
    call = json.loads(line)
    method, params, result = call["method"], call["params"], None
    if method == "hello":
        methods = ["reset", "remember", "recall"]
        result = {"name": "planter", "version": "1", "methods": methods, "identity": {}}
    elif method == "remember":
        ids += [memory["id"] for memory in params["memories"]]
    elif method == "recall":
        result = ids[: params["k"]]
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
'''

DENIED = (
    "import/sitecustomize.py",  # imported by every Python that has this PYTHONPATH
    "import/json.py",
    "import/existing.py",
    "import/package/new.py",
    "import/numpy/__init__.py",  # an empty folder becomes a package
    "later/sitecustomize.py",  # a folder of PYTHONPATH that does not exist yet
    "here/msgspec.py",  # the current folder
    "here/tool.py",
    "here/.git/config",
    "programs/git",
    "programs/existing",
    "home/.bashrc",
    "home/.gitconfig",
    "home/.config/git/config",
    "home/.ssh/config",
    "home/.config/pip/pip.conf",  # another index for the next installation
    "home/.cargo/env",  # read by ~/.profile
    "home/.nvm/nvm.sh",  # read by ~/.bashrc
    "home/.pdbrc",
    "home/.vimrc",
    "home/.local/bin/git",
)
ALLOWED = ("here/store/data.db", "import/store/data.db", "elsewhere/new/data.db")


@pytest.fixture
def place(tmp_path: Path, write_locomo: Callable[..., Path]) -> Path:
    for name in ("import/package", "import/numpy", "import/store", "here/store", "here/.git"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("home/.config/pip", "home/.cargo", "home/.nvm", "home/.local/bin"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("programs", "elsewhere", "data"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("import/existing.py", "import/package/__init__.py", "here/tool.py"):
        (tmp_path / name).touch()
    for name in ("home/.pdbrc", "home/.vimrc", "home/.cargo/env", "home/.nvm/nvm.sh"):
        (tmp_path / name).touch()
    for name in ("programs/existing", "home/.bashrc", "here/.git/config"):
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "adapter.py").write_text(ADAPTER)
    write_locomo(tmp_path / "data" / "locomo10.json", 1, 4, 3)
    return tmp_path


@pytest.mark.parametrize("mechanism", LOCKS)
def test_nothing_can_be_planted_for_our_next_process(
    place: Path, mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(mechanism, monkeypatch)
    monkeypatch.chdir(place / "here")
    monkeypatch.syspath_prepend(str(place / "here"))  # as the command does
    monkeypatch.setenv("PYTHONPATH", f"{place}/import{os.pathsep}{place}/later")
    monkeypatch.setenv("PATH", f"{place}/programs{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(place / "home"))
    targets = {str(place / name): name in ALLOWED for name in (*DENIED, *ALLOWED)}
    (place / "targets").write_text(json.dumps([*targets]))
    installed = [str(Path(sys.prefix, "pyvenv.cfg")), ms.__file__, json.__file__]
    log = place / "elsewhere" / "log"
    command = f"{place}/adapter.py {place}/targets {':'.join(installed)} {log}"

    found = ms.run(
        "locomo",
        systems={"planter": f"stdio:{sys.executable} -S {command},live=on"},
        data=place / "data",
        out=place / "out",
        baselines=False,
        workers=1,
        progress=False,
    )

    assert found["planter"].manifest.isolation is not None
    assert found["planter"].manifest.isolation.mechanism.startswith(mechanism)
    assert found["planter"].manifest.isolation.level == 3
    assert json.loads(log.read_text()) == {**targets, **dict.fromkeys(installed, False)}


def test_a_package_that_contains_data_is_opened_and_the_rest_of_it_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package" / "data").mkdir(parents=True)
    for name in ("package/__init__.py", "package/data/labels.json"):
        (tmp_path / name).touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    hidden = tmp_path / "package" / "data" / "labels.json"

    found = trusted_paths([hidden])

    assert {tmp_path, tmp_path / "package"} <= {*found.sealed}
    assert tmp_path / "package" / "__init__.py" in found.read_only
    # A rule for a folder above would let the hidden file be read.
    assert not {*hidden.parents} & {*found.read_only}


def test_a_hidden_folder_on_the_path_stays_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs" / "models").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "runs"))

    found = trusted_paths([tmp_path / "runs"], [tmp_path / "runs" / "models"])

    assert tmp_path / "runs" not in {*found.sealed, *found.read_only}
    assert tmp_path / "runs" / "models" in found.read_only
