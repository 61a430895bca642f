"""Check rows of the registry of published results against their sources.

    python tools/check_published.py ../shared

FOLDER/published has the two CSV files that the registry was built from: the registry must be what
they give, byte for byte. FOLDER/data/answers/locomo-full-context has the verdicts behind rows of
dial481/locomo-audit: their figures are recomputed, the mean of three verdicts for each question.
The tool fails if a row differs. Sources that are not in the folder are counted, not checked.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mnemoscope.published.published_results import Published, load

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tools.build_published import build  # noqa: E402

REGISTRY = ROOT / "src/mnemoscope/published/results.jsonl"
SOURCE = "dial481/locomo-audit fc-baseline/README.md"
FILES = {
    "Full-context gpt-4o-mini, 5-6 word prompt": "gpt-4o-mini-memos",
    "Full-context gpt-4o-mini, CoT prompt": "gpt-4o-mini-cot",
    "Full-context gpt-4.1-mini, 5-6 word prompt": "gpt-4.1-mini-memos",
}
"""The system of a row to the file with its verdicts."""


class Recomputed(NamedTuple):
    """A row beside the figure that its source's own verdicts give, in percent."""

    row: Published
    found: float
    n: int

    @property
    def agrees(self) -> bool:
        return (
            self.n == self.row.n
            and f"{float(self.row.as_printed.value):.2f}" == f"{self.found:.2f}"
        )


def recompute(rows: Sequence[Published], folder: Path) -> Iterator[Recomputed]:
    """The rows whose verdicts are in the folder."""
    for row in rows:
        file = folder / f"{FILES.get(row.system, '')}.eval_results.json.xz"
        if row.source != SOURCE or not file.is_file():
            continue
        with lzma.open(file) as content:
            answers = [
                one for own in json.load(content)["detailed_results"].values() for one in own
            ]
        wanted = str(row.category.id) if row.category else None
        shares = [
            sum(one["llm_judgments"].values()) / len(one["llm_judgments"])
            for one in answers
            if wanted in (None, str(one["category"]))
        ]
        yield Recomputed(row, 100 * sum(shares) / len(shares) if shares else 0.0, len(shares))


def main(folder: Path) -> int:
    with TemporaryDirectory() as scratch:
        again = Path(scratch) / "results.jsonl"
        build(folder / "published", again)
        is_same = again.read_bytes() == REGISTRY.read_bytes()
    print(f"registry against its two CSV files: {'the same' if is_same else 'DIFFERS'}")
    rows = load(REGISTRY)
    checks = list(recompute(rows, folder / "data/answers/locomo-full-context"))
    for one in checks:
        asked = one.row.category.name if one.row.category else "all"
        said = "agrees" if one.agrees else "DIFFERS"
        printed = one.row.as_printed.value
        print(f"{said}  {one.row.system}, {asked}: printed {printed}, verdicts {one.found:.2f}")
    wrong = sum(not one.agrees for one in checks)
    read = sum(row.link_kind == "permalink" for row in rows)
    print(
        f"{len(checks) - wrong} of {len(checks)} rows follow from verdicts. Of {len(rows)} rows "
        f"{read} were read in a file at a commit; the others are quoted and not checked."
    )
    return int(not is_same or wrong > 0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
