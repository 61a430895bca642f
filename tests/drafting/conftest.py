"""A small store of two conversations, in which every stratum has something to ask about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

SAID = {
    ("2024-01-05", "s1"): [
        ("Ana", "I rented a pottery kiln from Harlow Street, and my hands are full with clay now."),
        ("Ben", "We took the kids to the museum, and they drew the castle on a napkin."),
        ("Ana", "I want to open a bakery near the old tram depot before the winter."),
    ],
    ("2024-02-10", "s2"): [
        ("Ana", "Yesterday I signed the lease, so I finally opened my bakery with two ovens."),
        ("Ben", "The pottery kiln at Harlow Street exploded during the night of the blackout."),
        ("Ben", "My mom flew in with a suitcase, and we walked the dog along the beach."),
    ],
    ("2024-03-15", "s3"): [
        ("Ana", "The doctor looked at the injury and told me to avoid the stairs for a month."),
        ("Ben", "I found the spare napkin holder under the workbench in Harlow Street."),
    ],
    ("2024-01-20", "t1"): [
        ("Cleo", "Our choir sang a requiem in the granite chapel above the village."),
        ("Dirk", "I repaired the paddle of the kayak with epoxy resin from the harbour shop."),
        ("Cleo", "I bought a telescope lens for the observation of double stars in April."),
    ],
    ("2024-02-21", "t2"): [
        ("Dirk", "The movie about the lighthouse keeper made the audience cry at the festival."),
        ("Cleo", "The telescope lens arrived with a scratch, and Lensworks Bremen took it back."),
        ("Cleo", "The telescope lens came back from Lensworks Bremen without a single scratch."),
        ("Cleo", "The telescope lens came back from Lensworks Bremen, without a single scratch!"),
    ],
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A dataset folder without questions."""
    lines = []
    for (day, session), said in SAID.items():
        for number, (speaker, text) in enumerate(said):
            line = {
                "id": f"{session}.{number}",
                "content": f"{speaker}: {text}",
                "at": f"{day}T10:00:00Z",
                "session": session,
                "speaker": speaker,
            }
            lines.append(json.dumps(line) + "\n")
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture
def questions_of() -> Callable[[Path], list[dict[str, object]]]:
    """The lines of queries.jsonl."""

    def read(folder: Path) -> list[dict[str, object]]:
        return [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]

    return read
