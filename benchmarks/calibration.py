"""Do the intervals and verdicts hold what they say? Simulated comparisons with a known truth.

    python benchmarks/calibration.py --write docs/calibration.md [--only Levels]

About four minutes on one core. Every simulation has its own seed, so the page is the same on every
machine and whichever part of it is run. `--only` prints one section and writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from time import process_time

import numpy as np

import calibration_families as families
import calibration_grid as grid
import calibration_systems as systems
from calibration_cells import SEED, Cell, Plan, Task
from calibration_models import DESIGNS, LOCOMO
from mnemoscope.stats.clustered import (
    ALPHA,
    FEW_CLUSTERS,
    ClusterSums,
    Floats,
    critical_value,
    difference,
    level,
)
from mnemoscope.stats.families import DRAWS, max_t
from mnemoscope.stats.families import SEED as MAX_T_SEED
from mnemoscope.stats.power import Components, power_of, simulated_power

TEXTS = Path(__file__).with_name("calibration_texts.md")
COLUMNS = {
    grid.DIFFERENCES: ("conversations", "effects", "deff"),
    grid.CHANGES: ("conversations", "effects", "changed", "difference", "spread"),
    grid.LEVELS: ("conversations", "p", "ICC"),
    grid.FEW: ("conversations", "interval", "read as a statement about"),
    families.NULL: ("conversations of LoCoMo's sizes", "procedure"),
    families.GAUSSIAN: ("conversations", "effects", "correlation"),
    families.POWER: ("clustering", "true difference", "procedure", "metrics"),
    grid.EQUIVALENCE: ("conversations", "band", "deff", "true difference"),
    systems.PAIRS: ("conversations", "systems", "rule"),
    systems.FOUND: ("conversations", "systems", "rule"),
}
SECTIONS = (*COLUMNS, families.PLANNED)

Results = dict[str, list[Cell | Plan]]


def tasks() -> list[Task]:
    """All simulations in the order of the page."""
    found = [*grid.tasks(), *families.tasks(), *systems.tasks()]
    return sorted(found, key=lambda task: SECTIONS.index(task.section))


def run(chosen: Sequence[Task]) -> Results:
    results: Results = {}
    started = process_time()
    for place, task in enumerate(chosen, 1):
        results.setdefault(task.section, []).extend(task.run())
        spent = process_time() - started
        line = f"{place}/{len(chosen)} simulations, {spent:.0f} CPU s: {task.section}, {task.name}"
        print(f"\r{line[:100]:100}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return results


def written_with() -> dict[str, float]:
    """Results of the product on fixed examples: if one changes, the page must be written again."""
    found: dict[str, float] = {
        "alpha": ALPHA,
        "fewest conversations": FEW_CLUSTERS,
        "draws of max-T": DRAWS,
        "seed of max-T": MAX_T_SEED,
        "seed of this page": SEED,
    }
    for name in ("LoCoMo", "10 very unequal (900…7)", "5 unequal (400…10)"):
        for tests in (1, 6, 190):
            found[f"critical value, {name}, 0.05 / {tests}"] = critical_value(
                ALPHA / tests, DESIGNS[name].tolist()
            )
    gained = np.array([7, 2, 6, 11, 10, 7, 6, 20, 4, 2.0])
    row = difference(_column(LOCOMO, gained))
    found |= {"difference, standard error": row.se, "difference, p": row.p}
    few = difference(_column(LOCOMO[:3], gained[:3]))
    found["difference of three conversations, standard error"] = few.se
    low, high = level(_column(LOCOMO, LOCOMO - 5 * gained))
    found |= {"level, low": low, "level, high": high}
    means = np.array([[0.02, 0.03], [0, 0.01], [0.05, 0.04], [0.01, 0], [0.03, 0.05], [0.02, 0.01]])
    table = ClusterSums(np.full((6, 2), 60.0), 60 * means, 60 * means**2)
    found["max-T, critical value"] = max_t(table).critical(row)
    found["all pairs, critical value"] = systems.rule_of_pairs("LoCoMo")[0]
    parts = Components(0.0004, 0.06)
    found["simulated power"] = simulated_power(LOCOMO, parts, 0.02).better
    found["closed power"] = power_of(2.8, critical_value(ALPHA, LOCOMO.tolist()), 9)
    return found


def _column(sizes: Floats, sums: Floats) -> ClusterSums:
    return ClusterSums(*(part[:, None] for part in (sizes, sums, sums)))


def fingerprint() -> str:
    """Sections, names and repetitions of all simulations."""
    lines = [f"{task.section} | {task.name} | {task.repetitions}" for task in tasks()]
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def row_of(cell: Cell | Plan) -> str:
    """One line of a table."""
    if isinstance(cell, Plan):
        verdict = ("yes" if cell.holds else "**no**") if cell.required else "as it is"
        columns = [
            cell.setting,
            f"{100 * cell.delta:.2f} pp",
            f"{100 * cell.actual:.1f}",
            f"{100 * cell.se:.2f}",
            f"{cell.repetitions:,}",
            f"{100 * cell.planned:.1f}",
            f"{100 * (cell.planned - cell.actual):+.1f}".replace("-", "−"),
            verdict,
            f"{100 * cell.closed:.1f}",
            cell.facts or "–",
        ]
        return f"| {' | '.join(columns)} |"
    required = "–"
    if cell.required:
        required = f"{cell.required} {'yes' if cell.holds else '**no**'}"
    columns = [
        *cell.labels,
        f"{100 * cell.rate:.2f}",
        f"{100 * cell.se:.2f}",
        f"{cell.repetitions:,}",
        required,
        str(cell.facts or "–"),
        _agreement(cell),
    ]
    return f"| {' | '.join(columns)} |"


def _agreement(cell: Cell) -> str:
    if cell.z is None:
        return "other population" if cell.facts else "–"
    z = f"{cell.z:+.1f}".replace("-", "−") if round(cell.z, 1) else "0"
    return f"yes, z {z}" if cell.agrees else f"**no**, z {z}"


def table_of(section: str, cells: Sequence[Cell | Plan]) -> Iterator[str]:
    if section == families.PLANNED:
        heads = (
            "setting,true difference,power,se,repetitions,planned,planned − true,within 3 points"
        )
        columns = [*heads.split(","), "closed form", "facts: true → planned"]
    else:
        figures = "%,se,repetitions,required,facts,agrees"
        columns = [*COLUMNS[section], *figures.split(",")]
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    yield from map(row_of, cells)


def summary(results: Results) -> Iterator[str]:
    """How many cells of each section hold what is required and agree with the facts."""
    yield "| section | cells | % | required bound holds | agrees with the facts |"
    yield "|---|---|---|---|---|"
    total = [0, 0, 0, 0, 0]
    for section, cells in results.items():
        bounds = [
            cell.holds
            for cell in cells
            if (cell.required if isinstance(cell, Plan) else cell.required is not None)
        ]
        agreed = [
            cell.agrees for cell in cells if isinstance(cell, Cell) and cell.agrees is not None
        ]
        rates = [cell.actual if isinstance(cell, Plan) else cell.rate for cell in cells]
        counts = [len(cells), sum(map(bool, bounds)), len(bounds), sum(agreed), len(agreed)]
        total = [one + other for one, other in zip(total, counts, strict=True)]
        reach = f"{100 * min(rates):.1f}–{100 * max(rates):.1f}"
        yield f"| {section} | {len(cells)} | {reach} | {_of(counts[1:3])} | {_of(counts[3:])} |"
    yield f"| all | {total[0]} | | {_of(total[1:3])} | {_of(total[3:])} |"


def _of(counts: Sequence[int]) -> str:
    return f"{counts[0]} of {counts[1]}" if counts[1] else "–"


def page(results: Results) -> str:
    """The texts of calibration_texts.md, each followed by its table."""
    texts: dict[str, str] = {}
    for part in TEXTS.read_text(encoding="utf-8").split("\n## "):
        title, _, body = part.partition("\n")
        texts[title.removeprefix("# ").strip()] = body.strip()
    lines = ["# Calibration", ""]
    lines += ["<!-- Written by benchmarks/calibration.py; do not edit this page. -->", ""]
    lines += [texts["Calibration"], "", *summary(results), ""]
    for section, cells in results.items():
        lines += [f"## {section}", "", texts[section], "", *table_of(section, cells), ""]
    lines += ["## Limits", "", texts["Limits"], "", "## Written with", "", texts["Written with"]]
    lines += ["", "| what | value |", "|---|---|", f"| simulations | {fingerprint()} |"]
    lines += [f"| {name} | {value:.6f} |" for name, value in written_with().items()]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", type=Path, metavar="FILE", help="run all and write the page")
    parser.add_argument("--only", choices=SECTIONS, help="run one section and print its table")
    given = parser.parse_args()
    if given.only:
        results = run([task for task in tasks() if task.section == given.only])
        print("\n".join(table_of(given.only, results[given.only])))
        return
    text = page(run(tasks()))
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
