"""A module name and a class name mean one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "mnemoscope"
STANDALONE = "serve_stdio.py"
"""Runs in environments without Mnemoscope, so it repeats three types; its old path is a shim."""
FOREIGN = {("UsageError", "postgres_server.py")}
"""Adapters run in environments without Mnemoscope; the class name is part of the message."""


def modules() -> Iterator[Path]:
    for path in PACKAGE.rglob("*.py"):
        if not path.name.endswith("_pb2.py") and path.name != STANDALONE:
            yield path


def test_no_module_name_recurs_except_that_commands_are_named_after_what_they_do() -> None:
    places = defaultdict(list)
    for path in modules():
        if path.name != "__init__.py" and path.parent.name != "cli":
            places[path.stem].append(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_class_name_recurs() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and (node.name, path.name) not in FOREIGN:
                places[node.name].append(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
