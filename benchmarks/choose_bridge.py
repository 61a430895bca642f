"""Report how often the bridge of `mnemoscope gate STORE` is wrong about a memory in other words.

    python benchmarks/choose_bridge.py --data ../shared/data/locomo

The data are those of choose_carrying.py: hits labelled by hand, of which those that keep a whole
memory must be followed and those that do not carry it must not, and facts that rules wrote from
pairs of LoCoMo's turns. Thresholds were chosen on every other labelled memory and on
conversations 1 to 5; on the rest no threshold was chosen (docs/decisions/0033 says what was seen).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT / "src"), str(_ROOT)]

from tests.fact_merger import FactMerger  # noqa: E402

from mnemoscope.datasets import open_dataset  # noqa: E402
from mnemoscope.text import memory_sketch  # noqa: E402
from mnemoscope.text.memory_sketch import MemorySketch, SketchKey, carried_by, sketches  # noqa: E402
from mnemoscope.types import Scenario  # noqa: E402

WHOLE = ("paraphrase", "format", "merge")
"""Kinds of labelled hits that keep the whole memory; a short fact leaves some of it out."""


class BridgeCase(NamedTuple):
    """A memory, texts of the new store, and whether one of them keeps the memory."""

    sketch: MemorySketch
    key: SketchKey
    texts: Sequence[str]
    keeps: bool

    @property
    def is_followed(self) -> bool:
        words = self.sketch.words
        return any(
            not carried_by(self.sketch, self.key.parts(text, words)).problem for text in self.texts
        )


def labelled(half: int) -> Iterator[BridgeCase]:
    """Hits labelled by hand."""
    lines = (_ROOT / "tests/text/carrying_hits.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    key = SketchKey("labelled")
    kept = sketches({row["id"]: row["text"] for row in rows}, [row["id"] for row in rows], key)
    for row in rows[half::2]:
        for kind, carries, text in row["hits"]:
            if not carries or kind in WHOLE:
                yield BridgeCase(kept[row["id"]], key, [text], carries)


def merged(scenarios: Sequence[Scenario]) -> Iterator[BridgeCase]:
    """Each evidence with the fact made of it, and without: only all other facts are left."""
    for scenario in scenarios:
        system, key = FactMerger(), SketchKey(scenario.id)
        system.remember(scenario.memories)
        gold = dict.fromkeys(id for question in scenario.questions for id in question.evidence)
        kept = sketches({memory.id: memory.text for memory in scenario.memories}, gold, key)
        for id, sketch in kept.items():
            own = [system.texts[fact] for fact, ids in system.made_of.items() if id in ids]
            others = [system.texts[fact] for fact, ids in system.made_of.items() if id not in ids]
            yield BridgeCase(sketch, key, own, True)
            yield BridgeCase(sketch, key, others, False)


def report(name: str, cases: Iterator[BridgeCase]) -> None:
    """Print how many memories are not followed, and how many lost ones are."""
    counts = {(keeps, followed): 0 for keeps in (True, False) for followed in (True, False)}
    for case in cases:
        counts[case.keeps, case.is_followed] += 1
    kept, lost = (counts[keeps, True] + counts[keeps, False] for keeps in (True, False))
    missed, silent = counts[True, False], counts[False, True]
    print(
        f"{name}: {kept:,} kept, {missed:,} not followed ({missed / kept:.1%}); "
        f"{lost:,} lost, {silent:,} followed ({silent / lost:.1%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of locomo10.json")
    parser.add_argument("--grid", action="store_true", help="try other thresholds")
    options = parser.parse_args()
    if options.grid:
        for share in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75):
            for denied in (0.15, 0.25, 0.4):
                memory_sketch.LEAST_SHARE, memory_sketch.DENIED_SHARE = share, denied
                report(f"chosen on, share {share}, denied {denied}", labelled(0))
        return
    for name, half in (("chosen on", 0), ("held back", 1)):
        report(f"{name}, labelled by hand", labelled(half))
    if options.data:
        scenarios = list(open_dataset("locomo", options.data, {"granularity": "turn"}).scenarios())
        report("chosen on, LoCoMo facts", merged(scenarios[:5]))
        report("held back, LoCoMo facts", merged(scenarios[5:]))


if __name__ == "__main__":
    main()
