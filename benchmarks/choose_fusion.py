"""Choose the hybrid system's default fusion on BEAM 100K, data that no report of ours is made on.

Usage: python benchmarks/choose_fusion.py ../shared/data/beam/beam_100K.tar.xz
A memory is one round (the user's message and the reply); evidence are the rounds that a question's
source messages are in. Prints a table; docs/decisions/0004 quotes it.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.metrics import score
from mnemoscope.systems.builtin.hybrid import Hybrid
from mnemoscope.types import Memory, Query

GRID: list[dict[str, Any]] = [
    *({"fusion": "minmax", "weight": w} for w in (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0)),
    *({"fusion": "rrf", "weight": w} for w in (0.3, 0.4, 0.5, 0.6, 0.7)),
    *({"fusion": "minmax", "weight": 0.5, "chunk": c} for c in (50, 200)),
    *({"fusion": "minmax", "weight": 0.5, "graph": g} for g in (0.1, 0.25)),
]
METRICS = ("recall@5", "recall@10", "all@10", "mrr@50")
_MARKER = re.compile(r"\s*->->\s*[\d,N/A]+\s*$")


def chats(archive: Path) -> Iterator[tuple[list[Memory], list[tuple[str, set[str]]]]]:
    """Memories and (question, evidence) pairs of each chat."""
    with tarfile.open(archive) as tar:
        files = {member.name: member for member in tar if member.isfile()}
        for name in sorted(n for n in files if n.endswith("/chat.json")):
            folder = name.removesuffix("chat.json")
            chat = content(tar, files[name])
            probes = f"{folder}probing_questions/probing_questions.json"
            asked = content(tar, files[probes])
            memories, round_of = rounds(chat)
            yield memories, list(labelled(asked, round_of))


def content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Any:
    file = tar.extractfile(member)
    assert file is not None, f"{member.name} is no file"
    return json.load(file)


def rounds(chat: Any) -> tuple[list[Memory], dict[int, str]]:
    memories: list[Memory] = []
    round_of: dict[int, str] = {}
    for batch in chat:
        for turns in batch["turns"]:
            id = str(len(memories))
            said = [f"{turn['role']}: {_MARKER.sub('', turn['content'])}" for turn in turns]
            memories.append(Memory(id, "\n".join(said)))
            round_of.update({turn["id"]: id for turn in turns})
    return memories, round_of


def labelled(asked: Any, round_of: dict[int, str]) -> Iterator[tuple[str, set[str]]]:
    for probes in asked.values():
        for probe in probes:
            sources = message_ids(probe.get("source_chat_ids"))
            evidence = {round_of[id] for id in sources if id in round_of}
            if evidence:
                yield probe["question"], evidence


def message_ids(sources: Any) -> Iterator[int]:
    """The ids in whatever shape BEAM gives them: a list, nested lists, a dict of lists, nothing."""
    if isinstance(sources, int):
        yield sources
    elif sources:
        for part in sources.values() if isinstance(sources, dict) else sources:
            yield from message_ids(part)


def main(archive: Path) -> None:
    data = list(chats(archive))
    print(f"{len(data)} chats, {sum(len(own) for _, own in data)} questions with evidence")
    print("| fusion | " + " | ".join(METRICS) + " |\n|" + "---|" * (len(METRICS) + 1))
    for arguments in GRID:
        system = Hybrid(**arguments)
        rows = []
        for memories, questions in data:
            system.reset("chat")
            system.remember(memories)
            for text, evidence in questions:
                ranking = [hit.id for hit in system.recall(Query(text), 50)]
                scores = score(ranking, evidence, ks=(5, 10), cuts=(50,))
                rows.append([scores[name] for name in METRICS])
        label = ", ".join(f"{key}={value}" for key, value in arguments.items())
        print(f"| {label} | " + " | ".join(f"{v:.4f}" for v in np.mean(rows, axis=0)) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
