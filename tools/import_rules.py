"""Checks the import rules: `python tools/import_rules.py`.

Each room (a package or module directly below `mnemoscope`) may import what its line in
pyproject.toml, `[tool.mnemoscope.imports]`, lists; no modules may import each other in a circle.
Imports inside functions count; imports for type checkers only do not.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
PACKAGE = "mnemoscope"
ANY = "*"


def allowed_imports() -> dict[str, list[str]]:
    """The table: room to the rooms that it may import."""
    tables = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    return dict(tables["tool"]["mnemoscope"]["imports"])


def module_imports() -> dict[str, set[str]]:
    """Module to the modules of the package that it imports."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def problems(allowed: Mapping[str, list[str]], imports: Mapping[str, set[str]]) -> list[str]:
    """What breaks the rules, one line each."""
    found = []
    for module, targets in sorted(imports.items()):
        room = _room(module)
        if room and room not in allowed:
            found.append(f"{module}: the room {room!r} has no line in [tool.mnemoscope.imports]")
            continue
        for target in sorted(targets):
            other = _room(target)
            if not room or other in {room, ""} or {other, ANY} & set(allowed[room]):
                continue
            found.append(f"{module} imports {target}, and {room} may not import {other}")
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found.append(f"import cycle: {' -> '.join(error.args[1])}")
    return found


def _room(module: str) -> str:
    """The part of the package that a module belongs to; empty for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else ""


if __name__ == "__main__":
    broken = problems(allowed_imports(), module_imports())
    print("\n".join(broken) or "import rules: kept")
    sys.exit(bool(broken))
