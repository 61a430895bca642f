"""Choose the multigrain system's legs and weights on BEAM, data that no report of ours is made on.

Usage: python benchmarks/choose_grains.py BEAM_100K.tar.xz BEAM_500K.tar.xz
Four views of each chat: messages, the user's messages alone, rounds, and blocks of 20 messages.
The choice is made on 100K by rules that are printed with what they decide; then 500K, which took no
part, is measured once. Prints the log that docs/decisions/0042 quotes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.datasets import open_dataset
from mnemoscope.metrics import score
from mnemoscope.systems.builtin.multigrain import MemoryFacts, Multigrain, fused
from mnemoscope.systems.builtin.scored import FloatArray
from mnemoscope.text.tokenize import CHUNK_WORDS
from mnemoscope.types import Memory, Query, Question

VIEWS = ("message", "user", "turn", "block")
BLOCK = 20
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4)
DATES = (0.0, 0.25, 0.5, 1.0, 2.0)
HYBRID = ("vectors of chunks", "words of the whole")


class View(NamedTuple):
    """One chat as memories, with all leg scores of its questions."""

    chat: str
    facts: MemoryFacts
    legs: list[dict[str, FloatArray]]
    dates: list[FloatArray]
    evidence: list[set[int]]


class Mix(NamedTuple):
    """What is fused."""

    legs: tuple[str, ...]
    following: float = 0.0
    preceding: float = 0.0
    dates: float = 0.0

    def __str__(self) -> str:
        added = {"following": self.following, "preceding": self.preceding, "dates": self.dates}
        return ", ".join(self.legs) + "".join(f"; {k}={v}" for k, v in added.items() if v)


def labelled(message: Memory) -> Memory:
    text = f"{message.speaker}: {message.text}"
    return Memory(message.id, text, message.at, message.session, message.speaker)


def blocks(messages: Sequence[Memory]) -> Iterator[list[Memory]]:
    """Consecutive messages of one session, up to 20, as a stand-in for a session of usual size."""
    block: list[Memory] = []
    for message in messages:
        if block and (block[0].session != message.session or len(block) == BLOCK):
            yield block
            block = []
        block.append(message)
    yield block


def view_of(
    name: str, messages: list[Memory], rounds: list[Memory]
) -> tuple[list[Memory], dict[str, str]]:
    """The memories of a view, and which of them each cited id is in."""
    if name == "turn":
        return rounds, {memory.id: memory.id for memory in rounds}
    if name == "block":
        memories = []
        place: dict[str, str] = {}
        for block in blocks(messages):
            id = block[0].id
            memories.append(Memory(id, "\n".join(one.text for one in block), block[0].at, id))
            place |= {one.id: id for one in block}
        return memories, place
    memories = [one for one in messages if name == "message" or one.speaker == "user"]
    return memories, {memory.id: memory.id for memory in memories}


def scored_view(chat: str, memories: list[Memory], asked: list[tuple[Question, set[str]]]) -> View:
    system = Multigrain(cache=False)
    system.reset(chat)
    system.remember(memories)
    system.ready()
    places = {memory.id: place for place, memory in enumerate(memories)}
    queries = [Query(question.text, question.now) for question, _ in asked]
    return View(
        chat,
        MemoryFacts.of(system._facts.values),
        [system.legs(query) for query in queries],
        [system.of_meant_days(query) for query in queries],
        [{places[id] for id in evidence} for _, evidence in asked],
    )


def given_views(
    archive: Path, size: str
) -> Iterator[tuple[str, str, list[Memory], list[tuple[Question, set[str]]]]]:
    """The name of a view, its chat, its memories, and its questions with their evidence."""
    by_grain = [
        open_dataset("beam", archive, {"granularity": grain, "size": size}).scenarios()
        for grain in ("message", "turn")
    ]
    for whole, in_rounds in zip(*by_grain, strict=True):
        messages = [labelled(memory) for memory in whole.memories]
        for name in VIEWS:
            memories, place = view_of(name, messages, list(in_rounds.memories))
            questions = in_rounds.questions if name == "turn" else whole.questions
            asked = [(q, {place[id] for id in q.evidence if id in place}) for q in questions]
            yield name, whole.id, memories, [one for one in asked if one[1]]


def read(archive: Path, size: str) -> dict[str, list[View]]:
    found: dict[str, list[View]] = {name: [] for name in VIEWS}
    for name, chat, memories, asked in given_views(archive, size):
        found[name].append(scored_view(chat, memories, asked))
    return found


def scores_of(view: View, mix: Mix) -> Iterator[FloatArray]:
    for legs, dates in zip(view.legs, view.dates, strict=True):
        own = [legs[name] for name in mix.legs]
        total = fused(own, view.facts, mix.preceding, mix.following, CHUNK_WORDS)
        yield total + np.float32(mix.dates / len(own)) * dates


def values(view: View, mix: Mix) -> NDArray[np.float64]:
    """recall@10 and mrr@50 of each question of a chat."""
    rows = []
    for total, evidence in zip(scores_of(view, mix), view.evidence, strict=True):
        ranking = np.argsort(-total, kind="stable")[:50].tolist()
        found = score(
            [str(one) for one in ranking], {str(one) for one in evidence}, ks=(10,), cuts=(50,)
        )
        rows.append([found["recall@10"], found["mrr@50"]])
    return np.array(rows)


class Measured(NamedTuple):
    """A mix on one size of BEAM."""

    by_view: dict[str, NDArray[np.float64]]
    """recall@10 and mrr@50."""
    by_chat: NDArray[np.float64]
    """The mean of both over the views."""

    @property
    def overall(self) -> float:
        return float(np.mean(list(self.by_view.values())))


def measure(data: dict[str, list[View]], mix: Mix) -> Measured:
    rows = {name: [values(view, mix) for view in views] for name, views in data.items()}
    by_view = {name: np.concatenate(own).mean(axis=0) for name, own in rows.items()}
    chats = range(len(next(iter(rows.values()))))
    by_chat = [np.mean([own[chat].mean() for own in rows.values()]) for chat in chats]
    return Measured(by_view, np.array(by_chat))


def line(label: str, found: Measured) -> str:
    cells = " | ".join(f"{r:.3f} / {m:.3f}" for r, m in found.by_view.values())
    return f"| {label} | {found.overall:.4f} | {cells} |"


def head(title: str) -> str:
    return f"| {title} | mean | " + " | ".join(VIEWS) + " |\n" + "|---" * (len(VIEWS) + 2) + "|"


def difference(one: Measured, other: Measured) -> str:
    apart = one.by_chat - other.by_chat
    error = apart.std(ddof=1) / len(apart) ** 0.5
    return f"{apart.mean():+.4f}, standard error over chats {error:.4f}"


def choose(data: dict[str, list[View]]) -> Mix:
    every = tuple(sorted(data["message"][0].legs[0]))
    subsets = [Mix(one) for size in range(1, 7) for one in combinations(every, size)]
    found = {mix: measure(data, mix) for mix in subsets}
    whole = Mix(every)
    print(head("legs, equal weights"))
    for mix in [*(Mix((leg,)) for leg in every), Mix(HYBRID), whole]:
        print(line("all six" if mix == whole else str(mix), found[mix]))
    best = max(subsets, key=lambda mix: found[mix].overall)
    print(line(f"best of the 63 subsets: {best}", found[best]))
    print(f"\nall six against hybrid: {difference(found[whole], found[Mix(HYBRID)])}")
    print(f"best subset against all six: {difference(found[best], found[whole])}")
    apart = found[best].by_chat - found[whole].by_chat
    if apart.mean() <= 2 * apart.std(ddof=1) / len(apart) ** 0.5:
        print("rule: a subset must be better by two standard errors; all six legs are taken")
        best = whole

    print("\n" + head("share of the memories beside a short one"))
    chosen, alone = best, measure(data, best)
    for preceding in SHARES[:3]:
        for following in SHARES:
            mix = best._replace(following=following, preceding=preceding)
            now = measure(data, mix)
            print(line(f"preceding {preceding}, following {following}", now))
            loses = any(now.by_view[view].mean() < alone.by_view[view].mean() for view in VIEWS)
            if not loses and now.overall > measure(data, chosen).overall:
                chosen = mix
    print(
        "\nrule: the best mean of those with which no view loses (in `message`, a share also lifts "
        "short\nmemories above long ones; in `user`, all are short)"
    )
    print(f"preceding {chosen.preceding}, following {chosen.following} are taken")

    dated = sum(bool(one.any()) for view in data["message"] for one in view.dates)
    print(f"\n{dated} questions mean the day of a message\n\n" + head("weight of dates"))
    for weight in DATES:
        print(line(f"dates {weight}", measure(data, chosen._replace(dates=weight))))
    print("\ntoo few to choose on: half a leg is taken by judgement, not by these figures")
    return chosen._replace(dates=0.5)


def main(chosen_on: Path, held_out: Path) -> None:
    data = read(chosen_on, "100K")
    count = sum(len(view.evidence) for view in data["message"])
    print(f"BEAM 100K: {len(data['message'])} chats, {count} questions; recall@10 / mrr@50\n")
    chosen = choose(data)
    print(f"\nchosen: {chosen}\n")
    for name, other in (("100K", data), ("500K, held out", read(held_out, "500K"))):
        print(head(f"BEAM {name}"))
        rows = {
            "bm25": Mix(("words of the whole",)),
            "hybrid": Mix(HYBRID),
            "multigrain": chosen,
            "multigrain, neighbours=0, dates=0": Mix(chosen.legs),
        }
        found = {label: measure(other, mix) for label, mix in rows.items()}
        for label, one in found.items():
            print(line(label, one))
        print(f"\nagainst hybrid: {difference(found['multigrain'], found['hybrid'])}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
