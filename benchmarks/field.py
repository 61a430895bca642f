"""The page of real memory systems: data from finished surveys, and the page from the data.

    python benchmarks/field.py collect runs/turns --name table-1-turns --title "LoCoMo, turns" \\
        --command "mnemoscope systems survey …" --commit REVISION
    python benchmarks/field.py second runs/turns runs/again --title "LoCoMo, turns"
    python benchmarks/field.py page

`collect` reads folders of `mnemoscope systems survey` and writes docs/field/NAME.json. `second`
compares runs with earlier ones of the same systems and adds them to docs/field/second-run.json; the
exit code is 1 if a figure differs. `page` writes docs/field.md and a picture of each
survey, docs/img/field.png and so on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from field_data import repeated, second_runs, survey_data, tables, write
from field_page import page, picture, picture_place

DATA = Path(__file__).parents[1] / "docs" / "field"


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parsed(arguments)
    given.data.mkdir(parents=True, exist_ok=True)
    if given.what == "collect":
        found = survey_data(
            given.runs, title=given.title, command=given.command, commit=given.commit
        )
        write(given.data / f"{given.name}.json", found)
        return 0
    if given.what == "second":
        again = second_runs(given.title, given.first, given.second)
        named = {(one.table, one.system) for one in again}
        kept = [one for one in repeated(given.data) if (one.table, one.system) not in named]
        write(given.data / "second-run.json", [*kept, *again])
        for one in again:
            print(f"{one.table}, {one.system}: {'equal' if one.is_equal else 'DIFFERS'}")
        return int(not all(one.is_equal for one in again))
    (given.data.parent / "field.md").write_text(page(given.data), encoding="utf-8")
    for number, table in enumerate(tables(given.data)):
        place = given.data.parent / picture_place(number)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(picture(table).content)
    return 0


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    commands = parser.add_subparsers(dest="what", required=True)
    collect = commands.add_parser("collect", help="the data of a finished survey")
    collect.add_argument("runs", type=Path, nargs="+")
    for name in ("name", "title", "command", "commit"):
        collect.add_argument(f"--{name}", required=True)
    second = commands.add_parser("second", help="compare a second run with the first")
    second.add_argument("first", type=Path)
    second.add_argument("second", type=Path)
    second.add_argument("--title", required=True)
    commands.add_parser("page", help="write the page and its plots")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
