"""Which benchmark tells memory systems apart: figures from finished runs, and a page.

    python benchmarks/discrimination.py collect runs/beam --name beam-100k --title "BEAM, 100K" \\
        --command "mnemoscope run beam …" --commit REVISION
    python benchmarks/discrimination.py page

`collect` reads the runs of one benchmark in a folder, among them the oracle, and writes
docs/discrimination/NAME.json. `page` writes docs/discrimination.md and its plot.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from discrimination_data import benchmarks, figures, write
from discrimination_page import PICTURE, page, picture

DATA = Path(__file__).parents[1] / "docs" / "discrimination"


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parsed(arguments)
    if given.what == "collect":
        about = {name: getattr(given, name) for name in ("title", "command", "commit")}
        found = figures(given.runs, **about, notes=given.note)
        write(given.data, given.name, found)
        return 0
    shown = benchmarks(given.data)
    (given.data.parent / "discrimination.md").write_text(page(shown), encoding="utf-8")
    place = given.data.parent / PICTURE
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(picture(shown).content)
    return 0


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    commands = parser.add_subparsers(dest="what", required=True)
    collect = commands.add_parser("collect", help="the figures of one benchmark")
    collect.add_argument("runs", type=Path)
    for name in ("name", "title", "command", "commit"):
        collect.add_argument(f"--{name}", required=True)
    collect.add_argument("--note", action="append", default=[], help="a caveat; repeatable")
    commands.add_parser("page", help="write the page and its plot")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
