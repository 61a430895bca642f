"""Writes the generated pages of docs/: `python tools/docs.py`; `--check` only says which are stale.

The pages come from docstrings, registries, the command line's help and the table of import rules,
so that they cannot say anything else than the code does. A test fails when one is stale.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "mnemoscope"
DOCS = ROOT / "docs"
NOTICE = "<!-- Written by tools/docs.py; edit the source that it names, not this page. -->\n"

sys.path.insert(0, str(ROOT))
from tools import import_rules, trace_run  # noqa: E402


def docstring(path: Path) -> str:
    """The first paragraph of a module's docstring, in one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def room_file(room: str) -> Path:
    """The file whose docstring says what a room is for."""
    module = PACKAGE / f"{room}.py"
    return module if module.exists() else PACKAGE / room / "__init__.py"


def architecture() -> str:
    """The map: rooms, what each is for and may import; the modules; one traced run."""
    allowed = import_rules.allowed_imports()
    lines = [
        "# Architecture",
        "",
        NOTICE,
        "Data goes one way: datasets → runner (systems, readers, judges) → run directory →",
        "analysis → reports and release. A *room* is a package or module directly below",
        "`mnemoscope`. The table is `[tool.mnemoscope.imports]` of pyproject.toml. `make lint`",
        "and a test enforce it, and refuse import cycles, imports inside functions included.",
        "",
        "## Rooms",
        "",
        "| room | what it is for | may import |",
        "|---|---|---|",
    ]
    for room, may in allowed.items():
        imports = (
            "everything" if may == [import_rules.ANY] else ", ".join(f"`{one}`" for one in may)
        )
        lines.append(f"| `{room}` | {docstring(room_file(room))} | {imports or 'nothing'} |")
    lines += [
        "",
        "## One run, from the command to the report",
        "",
        "`mnemoscope run strata --system hybrid --no-baselines --workers 1` on the example corpus,",
        "recorded by `tools/trace_run.py`: each first call from one room into another, in order.",
        "Indentation shows how many calls between rooms lead to it.",
        "",
    ]
    for process, calls in trace_run.trace().items():
        lines += [f"### {process}", "", "```", *calls, "```", ""]
    lines += ["## Modules", ""]
    for room in allowed:
        folder = PACKAGE / room
        if not folder.is_dir():
            continue
        lines += [f"### {room}", "", "| module | what it is for |", "|---|---|"]
        for path in sorted(folder.rglob("*.py")):
            if path.name == "__init__.py" or path.name.endswith("_pb2.py"):
                continue
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            lines.append(f"| `{name}` | {docstring(path)} |")
        lines.append("")
    return "\n".join(lines)


def cli_reference() -> str:
    """Every command with its options, from the docstrings of the commands."""
    from mnemoscope.cli.app import app

    # The usage lines of some commands begin with how this process was started.
    started, sys.argv = sys.argv, ["mnemoscope"]
    try:
        _, _, rest = app.generate_docs(recursive=True).partition("\n")
    finally:
        sys.argv = started
    return "\n".join(["# Command line", "", NOTICE, rest.strip(), ""])


PAGES: dict[str, Callable[[], str]] = {
    "architecture.md": architecture,
    "reference/cli.md": cli_reference,
}


def stale() -> list[str]:
    """The pages whose text is not what would be written now."""
    return [
        name
        for name, make in PAGES.items()
        if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != make()
    ]


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        old = stale()
        print("\n".join(f"docs/{name} is stale: run tools/docs.py" for name in old) or "up to date")
        return int(bool(old))
    for name, make in PAGES.items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(make(), encoding="utf-8")
        print(f"docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
