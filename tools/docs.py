"""Writes the generated pages of docs/: `python tools/docs.py`; `--check` only says which are stale.

The pages come from docstrings, registries, the command line's help and the table of import rules,
so that they cannot say anything else than the code does. A test fails when one is stale.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "mnemoscope"
DOCS = ROOT / "docs"
NOTICE = "<!-- Written by tools/docs.py; edit the source that it names, not this page. -->\n"

sys.path.insert(0, str(ROOT))
from tools import api_page, gallery, import_rules, schemas, trace_run  # noqa: E402


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


def metrics_reference() -> str:
    """Every built-in metric: definition, interval, where it was defined, what others call it."""
    from mnemoscope.metrics import METRICS, installed_metrics

    lines = [
        "# Metrics",
        "",
        NOTICE,
        "| metric | definition | interval | defined by | also called |",
    ]
    lines.append("|---|---|---|---|---|")
    for name, metric in installed_metrics().items():
        if name in METRICS.builtin:
            column = name if metric.at == "all" else f"{name}@k"
            cells = (metric.interval, metric.reference, ", ".join(metric.aliases))
            lines.append(f"| `{column}` | {_in_one_line(type(metric).__doc__)} | {_row(cells)} |")
    lines += ["", "Your own: `mnemoscope new metric NAME`, then `mnemoscope metrics check`.", ""]
    return "\n".join(lines)


def datasets_reference() -> str:
    """Every built-in dataset: its record and its options."""
    from mnemoscope.datasets import DATASETS

    lines = ["# Datasets", "", NOTICE]
    for name in DATASETS.builtin:
        factory = DATASETS.get(name)
        info, needs = factory.info, factory.info.answers
        facts = {
            "source": info.source,
            "licence": info.licence,
            "citation": info.citation,
            "how to get it": info.how_to_get and f"`{info.how_to_get}`",
            "one memory is": ", ".join(info.granularities),
            "categories": ", ".join(f"{key}: {told}" for key, told in info.category_names.items()),
            "questions depend on each other within a": info.cluster,
            "main metric": f"`{info.main_metric}`",
            "known defects": "; ".join(info.known_defects),
            "baselines for recall": _row(info.baselines, ", "),
            "baselines with a reader": _row(needs.baselines, ", "),
            "default reader": needs.reader,
            "default judge": needs.judge or "none: name one",
            "prompt for answers": needs.prompt,
        }
        lines += [f"## {name}", "", f"{info.summary[:1].upper()}{info.summary[1:]}.", ""]
        lines += ["| | |", "|---|---|"]
        lines += [f"| {key} | {value} |" for key, value in facts.items() if value]
        lines += _options(factory, "data")
        lines.append("")
        for file, pinned in info.files.items():
            lines.append(f"- `{file}`: sha256 `{pinned.sha256 or 'not known'}`")
        lines += [""] if info.files else []
    lines += ["Your own: `mnemoscope new dataset NAME`, then `mnemoscope datasets check`.", ""]
    return "\n".join(lines)


def systems_reference() -> str:
    """Every built-in system, connector and integration, with its options."""
    from mnemoscope.integrations.catalog import ITEMS
    from mnemoscope.systems import BUILT_IN, CONNECTORS, SYSTEMS

    lines = ["# Systems", "", NOTICE, "## Built in", ""]
    for name in BUILT_IN:
        lines += [f"### {name}", "", f"{SYSTEMS.summary(name)}", *_options(SYSTEMS.get(name)), ""]
    lines += ["## Connectors", ""]
    for name in CONNECTORS.builtin:
        summary = CONNECTORS.summary(name)
        lines += [f"### {name}", "", f"{summary}", *_options(CONNECTORS.get(name), "address"), ""]
    lines += ["## Integrations", "", "| name | what it is | packages |", "|---|---|---|"]
    for name, item in ITEMS.items():
        packages = ", ".join(f"`{package}`" for package in item.packages)
        lines.append(f"| `{name}` | {SYSTEMS.summary(name)} | {packages} |")
    lines += ["", "Your own: `mnemoscope new system NAME`, then `mnemoscope systems check`.", ""]
    return "\n".join(lines)


def judges_reference() -> str:
    """Every built-in judge: what it does, its scale and its options."""
    from mnemoscope.judges import JUDGES, scale_of

    lines = ["# Judges", "", NOTICE]
    for name in JUDGES.builtin:
        scale = scale_of(JUDGES.get(name))
        told = f"Scale: {scale.name}, {scale.range}." if scale else "It declares no scale."
        summary = JUDGES.summary(name)
        lines += [f"## {name}", "", f"{summary}. {told}", *_options(JUDGES.get(name)), ""]
    lines += ["Your own: `mnemoscope new judge NAME`, then `mnemoscope judges check`.", ""]
    return "\n".join(lines)


def _options(factory: Callable[..., object], *given: str) -> list[str]:
    """A table of a factory's options; nothing where it has none."""
    from mnemoscope._store.registry import describe_options

    found = describe_options(factory, *given)
    rows = []
    for name, values in found.items():
        shown = ", ".join(f"`{value or 'empty'}`" for value in values.split("|"))
        rows.append(f"| `{name}` | {shown} |")
    return ["", "| option | default, then other values |", "|---|---|", *rows] if rows else []


def _row(cells: Iterable[str], between: str = " | ") -> str:
    return between.join(cells)


def _in_one_line(text: str | None) -> str:
    return " ".join((text or "").split())


PAGES: dict[str, Callable[[], str]] = {
    "architecture.md": architecture,
    "reference/cli.md": cli_reference,
    "reference/api.md": lambda: api_page.api_reference(NOTICE),
    "reference/metrics.md": metrics_reference,
    "reference/datasets.md": datasets_reference,
    "reference/systems.md": systems_reference,
    "reference/judges.md": judges_reference,
    **schemas.pages(NOTICE),
    "gallery.md": lambda: gallery.gallery(DOCS, NOTICE),
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
