"""The files of simulated histories, byte for byte as they were when they were frozen.

After an intended change: `python -m tests.personas.test_frozen_histories` computes the hashes anew.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from mnemoscope.personas.simulate.history_files import history_files
from mnemoscope.personas.simulate.simulator import simulate
from mnemoscope.personas.simulate.story import SHIPPED, Story, shipped_story

FROZEN = Path(__file__).with_name("frozen_histories.json")
DAYS = (60, 200)
SEEDS = (42, 7)


def file_hashes(story: Story) -> dict[str, str]:
    """One hash over all files, by days and seed."""
    found = {}
    for days in DAYS:
        for seed in SEEDS:
            total = sha256()
            for name, content in sorted(history_files(simulate(story, days, seed)).items()):
                total.update(f"{name} {len(content)}\n".encode() + content)
            found[f"{days} days, seed {seed}"] = total.hexdigest()
    return found


@pytest.mark.parametrize("story", SHIPPED)
def test_the_same_story_days_and_seed_give_the_frozen_bytes(story: str) -> None:
    assert file_hashes(shipped_story(story)) == json.loads(FROZEN.read_text())[story]


if __name__ == "__main__":
    hashes = {story: file_hashes(shipped_story(story)) for story in SHIPPED}
    FROZEN.write_text(json.dumps(hashes, indent=2) + "\n")
