"""Skeletons of additions: a system, a dataset, a metric, a judge, each an installable package."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal, NamedTuple, get_args

from mnemoscope._store.errors import UsageError

Kind = Literal["system", "dataset", "metric", "judge"]
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Skeleton(NamedTuple):
    """What was written, and the command that checks it."""

    files: list[Path]
    check: str


def write_skeleton(kind: Kind, name: str, out: Path) -> Skeleton:
    """Write a package that adds one thing to Mnemoscope and passes its check as it is."""
    if kind not in get_args(Kind):
        raise UsageError(f"{kind!r}: choose {', '.join(get_args(Kind))}")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r}: use small letters, digits and single hyphens, as in my-{kind}")
    module = name.replace("-", "_")
    values = {
        "kind": kind,
        "name": name,
        "module": module,
        "Class": "".join(part.capitalize() for part in name.split("-")),
    }
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        raise UsageError(f"{out} exists and is not empty; choose another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for template, file in _files(kind, module).items():
        text = files(__package__).joinpath(template).read_text(encoding="utf-8")
        (out / file).write_text(Template(text).substitute(values), encoding="utf-8")
        written.append(out / file)
    spec = f"{module}:{values['Class']}"
    data = " --data sample.jsonl" if kind == "dataset" else ""
    return Skeleton(written, f"mnemoscope {kind}s check {spec}{data}")


def _files(kind: Kind, module: str) -> dict[str, str]:
    """Template to the file that it becomes."""
    found = {
        "pyproject.toml.txt": "pyproject.toml",
        f"{kind}.py.txt": f"{module}.py",
        f"test_{kind}.py.txt": f"test_{module}.py",
    }
    return {**found, "sample.jsonl.txt": "sample.jsonl"} if kind == "dataset" else found
