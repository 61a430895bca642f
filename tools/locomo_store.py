"""Write LoCoMo's turns as the corpus of a `strata` dataset, to try drafted questions on it.

    python tools/locomo_store.py locomo10.json /tmp/locomo-store

LoCoMo may not be used commercially and is not part of the project: write it outside.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mnemoscope._store.jsonl import encode_lines, write_atomically
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.strata import ImportedLine


def write_store(data: Path, folder: Path) -> int:
    """Write corpus.jsonl; returns the number of memories."""
    dataset = open_dataset("locomo", data, {"granularity": "turn", "dates": False})
    lines = [
        ImportedLine(
            id=memory.id,
            content=memory.text,
            at=memory.at,
            session=memory.session,
            speaker=memory.speaker,
        )
        for scenario in dataset.scenarios()
        for memory in scenario.memories
    ]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "corpus.jsonl", encode_lines(lines))
    return len(lines)


if __name__ == "__main__":
    print(write_store(Path(sys.argv[1]), Path(sys.argv[2])), "memories")
