"""Build the registry of published results from two CSV files: the same bytes every time.

    python tools/build_published.py ../shared/published src/mnemoscope/published/results.jsonl

`published_results.csv` is a survey, `nexus_baselines.csv` the baselines of the Nexus harness.
`published_links.csv` beside this tool lists the files that were read at a commit, the day, and the
numbers that were found there: a row of that source with such a number gets the permalink. Other
rows get the DOI or the thread that their source states, or no link.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.jsonl import encode_lines, write_atomically
from mnemoscope.published.arithmetic_audit import NAMES, SIZES, recomputed, tolerance
from mnemoscope.published.published_results import (
    Category,
    Keying,
    Printed,
    Published,
    load,
    normalised,
)
from mnemoscope.published.source_links import file_link, stated_link

Line = dict[str, str]
LINKS = Path(__file__).with_name("published_links.csv")

# The survey has no column for units; these are what its names of metrics mean.
SURVEY_FRACTIONS = {"MRR", "composite_f1"}
CHANGES = ("improvement_pct", "reduction_pct")
NEXUS_DATASETS = {"locomo": "LoCoMo", "longmemeval": "LongMemEval", "tofu": "TOFU"}
NEXUS_COLUMNS = ("single_hop", "multi_hop", "temporal", "open_domain")
# Benchmarks that the Nexus file names only inside a system's or a source's name.
NAMED_BENCHMARKS = {
    "LoCoMo": "LoCoMo",
    "LongMemEval": "LongMemEval",
    "MuSiQue": "MuSiQue",
    "2Wiki": "2WikiMultiHopQA",
    "MINE": "MINE",
    "KGGen": "MINE",  # the rows beside it in its section say so
    "WebNLG": "WebNLG",
    "AppWorld": "AppWorld",
    "HotpotQA": "HotpotQA",
    "HumanEval": "HumanEval",
    "AlfWorld": "AlfWorld",
    "PDDL": "PDDL",
    "MemBench": "MemBench",
    "GraphRAG-Bench": "GraphRAG-Bench",
    "CodeQA": "CodeQA",
    "OOLONG-Pairs": "OOLONG-Pairs",
    "BrowseComp-Plus": "BrowseComp-Plus",
}
# Which part of a benchmark, where the file says so inside a name.
PART = re.compile(r"^MemBench (\w+)|\b(24 Qs x 45 runs)\b|GraphRAG-Bench \((Novel)\)")
MODEL = re.compile(r"\((?:[^)]*?\b)?(GPT-[\d.]+\w?(?:-mini)?|Qwen3-8B)\b", re.IGNORECASE)

# Which column of a LoCoMo table is which category is found by arithmetic, never by its name: five
# incompatible namings are in use. The overall is the mean of the categories weighted by their
# sizes; where only one assignment of columns to sizes gives it, the columns are known.
APART = Decimal("0.05")
"""Points by which every other assignment has to miss.

More than FIT, because sources' own overalls miss their own categories by several hundredths (the
mean of several runs beside categories of a majority vote): an assignment that is 0.03 off is not
refuted.
"""


class Assignment(NamedTuple):
    """One reading of a table's columns."""

    misses: Decimal
    """Points between the printed overall and the one recomputed."""
    categories: dict[str, int]


def assignments(columns: Mapping[str, str], overall: str) -> list[Assignment]:
    """Every assignment of four columns to the four categories, the closest first."""
    readings = []
    for order in permutations(SIZES):
        values = dict(zip(order, columns.values(), strict=True))
        misses = abs(recomputed(values) - Decimal(overall))
        readings.append(Assignment(misses, dict(zip(columns, order, strict=True))))
    return sorted(readings, key=lambda reading: reading.misses)


def only_assignment(columns: Mapping[str, str], overall: str) -> dict[str, int] | None:
    """Column to category, where one assignment alone reproduces the overall; else nothing."""
    if len(columns) != len(SIZES):
        return None
    allowed = tolerance([overall, *columns.values()])
    best, second = assignments(columns, overall)[:2]
    if best.misses <= allowed and second.misses > max(allowed, APART):
        return best.categories
    return None


def survey(lines: list[Line]) -> list[Published]:
    rows = [_survey_row(line) for line in lines]
    tables: dict[tuple[object, ...], list[Published]] = defaultdict(list)
    for row in rows:
        tables[row.table].append(row)
    by_arithmetic = {key: _confirmed(table) for key, table in tables.items()}
    # A source keeps to one naming in one table: what arithmetic decides for one of its rows holds
    # for the others, unless it decides otherwise for a third.
    of_source: dict[str, set[tuple[tuple[str, int], ...]]] = defaultdict(set)
    for key, mapping in by_arithmetic.items():
        if mapping:
            of_source[tables[key][0].source].add(tuple(sorted(mapping.items())))
    return [_keyed(row, by_arithmetic[row.table], of_source[row.source]) for row in rows]


def _survey_row(line: Line) -> Published:
    metric = line["metric"].removesuffix("_x100")
    unit = "fraction" if line["metric"] in SURVEY_FRACTIONS else "percent"
    printed = Printed(line["metric"], line["value"], unit)
    category = None
    if found := re.match(r"category (\d) \(([\w-]+),", line["split_variant"]):
        key = int(found[1])
        if NAMES[key] != found[2]:
            raise SystemExit(f"category {key} is {NAMES[key]}, not {found[2]}")
        column = re.match(r"source column '(\w+)'", line["notes"])
        named: Keying = "survey" if key in SIZES else "named"
        category = Category(column[1] if column else "", named, key, NAMES[key])
    return Published(
        collection="survey",
        system=line["system"],
        benchmark=line["benchmark"],
        variant=line["split_variant"],
        metric=metric,
        value=normalised(printed),
        unit="fraction",
        as_printed=printed,
        category=category,
        n=_questions(line["split_variant"]),
        answer_model=line["answer_model"] or None,
        judge_model=line["judge_model"] or None,
        source=line["source"],
        source_basis="stated",
        year=int(line["year"]),
        reported_by=line["reported_by"],
        notes=line["notes"],
    )


def _confirmed(table: list[Published]) -> dict[str, int] | None:
    """Column to category, where arithmetic alone decides, and as the survey has it."""
    keyed = {row.category.column: row for row in table if row.category and row.category.column}
    overalls = [row for row in table if row.category is None]
    # An overall that somebody made from the categories says nothing about them.
    if len(overalls) != 1 or "overall recomputed" in overalls[0].notes:
        return None
    columns = {column: row.as_printed.value for column, row in keyed.items()}
    found = only_assignment(columns, overalls[0].as_printed.value)
    says = {column: row.category.id for column, row in keyed.items() if row.category}
    return found if found == says else None


def _keyed(
    row: Published,
    mapping: dict[str, int] | None,
    of_source: set[tuple[tuple[str, int], ...]],
) -> Published:
    if row.category is None or row.category.keying != "survey":
        return row
    keying: Keying = "survey"
    if mapping:
        keying = "arithmetic"
    elif len(of_source) == 1:
        (same,) = of_source
        if dict(same).get(row.category.column) == row.category.id:
            keying = "same table"
    category = msgspec.structs.replace(row.category, keying=keying)
    return msgspec.structs.replace(row, category=category)


def nexus(lines: list[Line]) -> list[Published]:
    datasets: dict[str, set[str]] = defaultdict(set)
    tables: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for line in lines:
        if line["dataset"]:
            datasets[line["source"]].add(line["dataset"])
        tables[line["category"], line["dataset"], line["system"]][line["metric"]] = line["value"]
    rows = []
    for line in lines:
        place = line["category"], line["dataset"], line["system"]
        table = dict(tables[place]) if line["dataset"] == "locomo" else {}
        mapping = only_assignment(table, table.pop("overall")) if len(table) == 5 else None
        rows.append(_nexus_row(line, _benchmark(line, datasets[line["source"]]), mapping))
    return rows


def _nexus_row(line: Line, benchmark: str, mapping: dict[str, int] | None) -> Published:
    printed = Printed(line["metric"], line["value"], line["unit"])
    unit = "fraction" if line["unit"] == "percent" else line["unit"]
    if line["metric"].endswith(CHANGES):
        unit = "change"
    category, n = None, _questions(line["source"])
    metric, variant, notes = line["metric"], "", []
    if metric in NEXUS_COLUMNS:
        key = mapping[metric] if mapping else None
        notes.append("category re-keyed by arithmetic" if mapping else "category unknown")
        category = Category(
            metric, "arithmetic" if key else "unknown", key, NAMES[key] if key else ""
        )
        n = SIZES[key] if key else None
    elif mapping:
        notes.append("that it is over categories 1-4 follows from arithmetic")
        n = sum(SIZES.values())
    if mapping:
        variant = "cats 1-4 (n=1540)"
    elif found := PART.search(f"{line['system']}; {line['source']}"):
        variant = next(filter(None, found.groups()))
    if metric == "overall" or metric in NEXUS_COLUMNS:
        metric = "accuracy"
    model = MODEL.search(line["system"]) or MODEL.search(line["source"])
    return Published(
        collection="nexus",
        group=line["category"],
        system=line["system"],
        benchmark=benchmark,
        variant=variant or "unstated",
        metric=metric.replace("recall_at_", "recall@").removesuffix("_pct").removesuffix("_s"),
        value=normalised(printed),
        unit=unit,
        as_printed=printed,
        category=category,
        n=n,
        answer_model=model[1].lower() if model else None,
        source=line["source"],
        source_basis=line["source_basis"],
        year=_year(line["source"]),
        reported_by="unstated",
        notes="; ".join(notes),
    )


def _benchmark(line: Line, of_source: set[str]) -> str:
    """As the file's column says; else as a name in brackets, the source, or its other rows say."""
    if line["dataset"]:
        return NEXUS_DATASETS[line["dataset"]]
    for text in (line["system"], line["source"]):
        for name, benchmark in NAMED_BENCHMARKS.items():
            if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE):
                return benchmark
    if len(of_source) == 1:
        return NEXUS_DATASETS[next(iter(of_source))]
    return "unstated"


def _questions(text: str) -> int | None:
    found = re.search(r"\bn=(\d+)|\b(\d+) qs?\b|\bq(\d+)\b", text, re.IGNORECASE)
    return int(next(filter(None, found.groups()))) if found else None


def _year(source: str) -> int | None:
    if found := re.search(r"arXiv:(\d\d)\d\d\.", source):
        return 2000 + int(found[1])
    found = re.search(r"\b(20\d\d)\b", source)
    return int(found[1]) if found else None


class ReadFile(NamedTuple):
    """A file that was read at a commit, and the numbers in it."""

    link: str
    read_on: str
    numbers: frozenset[Decimal]


def read_files(path: Path) -> dict[str, ReadFile]:
    """Source to the file in which its numbers were found."""
    found = {}
    for line in _read(path):
        numbers = frozenset(map(Decimal, line["numbers"].split()))
        link = file_link(line["repository"], line["path"], line["commit"])
        for source in line["sources"].split(" | "):
            found[source] = ReadFile(link, line["read_on"], numbers)
    return found


def linked(row: Published, files: Mapping[str, ReadFile]) -> Published:
    """The row with the permalink of its file, or with what its source states."""
    stated = stated_link(row.source)
    file, printed = files.get(row.source), Decimal(row.as_printed.value)
    if file and (printed in file.numbers or printed / 100 in file.numbers):
        return msgspec.structs.replace(
            row, link_kind="permalink", link=file.link, where=stated.where, read_on=file.read_on
        )
    if not row.cited:
        return row
    return msgspec.structs.replace(
        row, link_kind=stated.kind, link=stated.address, where=stated.where
    )


def _read(path: Path) -> list[Line]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def build(folder: Path, target: Path) -> None:
    rows: Iterable[Published] = [
        *survey(_read(folder / "published_results.csv")),
        *nexus(_read(folder / "nexus_baselines.csv")),
    ]
    files = read_files(LINKS)
    write_atomically(target, encode_lines([linked(row, files) for row in rows]))
    load(target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    build(Path(sys.argv[1]), Path(sys.argv[2]))
