"""What makes two runs attempts at the same thing: the fingerprint is too strict for that.

A comment in the file of a system changes its fingerprint, and so does a better system. The first
must not start the count of attempts anew; the second is named beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

from mnemoscope._store.fingerprint import fingerprint, sha256_file
from mnemoscope._store.import_path import path_of_hosts

_CODE = ("source_sha256", "files_sha256", "code_sha256")
"""The parts of a system's identity that stand for its code."""


class AttemptKeys(NamedTuple):
    """Hashes over parts of a run's identity; empty for systems whose code is ours."""

    same: str
    """Of runs that differ only in comments, docstrings or formatting of the system's code."""
    experiment: str
    """Of all runs of this system on this benchmark, whatever its code and the versions are."""
    code: tuple[str, ...] = ()
    """One for each file of its code, on this benchmark, whatever the system is called and however
    it is set."""


def attempt_keys(identity: Mapping[str, Any]) -> AttemptKeys:
    system = identity.get("system")
    if not isinstance(system, Mapping) or not any(part in system for part in _CODE):
        return AttemptKeys("", "")
    spec = str(system.get("spec", ""))
    code: dict[str, Any] = {part: system[part] for part in _CODE if part in system}
    if isinstance(files := code.get("files_sha256"), Mapping):
        code["files_sha256"] = {name: _plain(Path(name), str(own)) for name, own in files.items()}
    if source := str(code.get("source_sha256") or ""):
        code["source_sha256"] = _plain(_module_file(spec), source)
    benchmark = identity.get("benchmark")
    asked = {part: identity.get(part) for part in ("benchmark", "depth", "reader", "judge")}
    return AttemptKeys(
        fingerprint({**identity, "system": {**system, **code}}),
        fingerprint({**asked, "spec": spec}),
        tuple(
            fingerprint({"benchmark": benchmark, "code": one})
            for one in _contents(code, spec, source)
        ),
    )


def _contents(code: Mapping[str, Any], spec: str, source: str) -> list[str]:
    """The hashes of the files of a system, without their names and the name of its class."""
    program = spec.partition(":")[2].partition(" ")[0]
    files = code.get("files_sha256")
    found = [own for name, own in files.items() if name != program] if files else []
    if source:
        name = spec.partition(",")[0].partition(":")[2]
        found.append(_plain(_module_file(spec), source, name))
    if known := code.get("code_sha256"):
        found.append(known)
    return sorted(set(map(str, found)))


def _plain(file: Path | None, known: str, name: str = "") -> str:
    """The hash of a Python file without comments, docstrings and formatting; else the known one.

    With a `name`, also without this name of a class or function.
    """
    with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        if file is not None and sha256_file(file) == known:
            tree = _without_docstrings(file.read_bytes())
            return fingerprint({"code": ast.dump(_without_name(tree, name) if name else tree)})
    return known


def _without_name(tree: ast.Module, name: str) -> ast.Module:
    for node in ast.walk(tree):
        for field in ("name", "id"):
            if getattr(node, field, None) == name:
                setattr(node, field, "_")
    return tree


def _without_docstrings(source: bytes) -> ast.Module:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(ast.Constant(str())), *rest]:
                    node.body = rest
    return tree


def _module_file(spec: str) -> Path | None:
    """The file of a system given as `module:Name`, found without importing its packages."""
    module, colon, _ = spec.partition(",")[0].partition(":")
    places: Sequence[str] | None = path_of_hosts()
    file, name = None, ""
    for part in module.split(".") if colon else ():
        name = f"{name}.{part}" if name else part
        with suppress(ImportError, ValueError):
            found = PathFinder.find_spec(name, places)
            if found is None:
                return None
            places, file = found.submodule_search_locations, found.origin
    return Path(file) if file else None
