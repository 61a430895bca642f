"""The store of examples/strata, rewritten in ten ways: once so that nothing is lost, once with
planted losses.

rewordings.jsonl has gold memories in other words, and the same with information gone. In the set
`first` two losses were not found at first; the rule for names and a threshold were changed then.
The set `second` was written after that, and nothing was changed since.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import REPOSITORY

Line = dict[str, Any]
Lines = list[Line]

EXAMPLE = REPOSITORY / "examples" / "strata"

MERGED = ((121, 126), (133, 134), (160, 161), (166, 168), (112, 145))
"""Memories that are merged into one each."""

SPLIT = {
    118: (
        "2 February 2027: double booking at Saltmere, two families in cabin one at 18:00.",
        "On 2 February 2027 the reservation at Saltmere was confirmed before the lock was taken.",
        "Tolu shipped the fix for the double booking that night, 2 February 2027.",
    ),
    123: (
        "11 May 2027: Paylark was down for three hours, no card went through.",
        "When Paylark was down, Yusuf took bookings by phone.",
        "When no card went through on 11 May 2027, 14 guests paid cash on arrival.",
    ),
    139: (
        "The spring offsite is 13 to 15 May 2027.",
        "The spring offsite takes place in a lodge on Lake Venn.",
        "Maren booked the lodge for the spring offsite; there are nine bunks.",
    ),
}


class Rewritten(NamedTuple):
    """A changed store, the map that belongs to it, and the gold memories that were lost."""

    lines: Lines
    lost: frozenset[int] = frozenset()
    id_map: dict[str, Any] | None = None


def example() -> Lines:
    text = (EXAMPLE / "corpus.jsonl").read_text(encoding="utf-8")
    lines: Lines = [json.loads(line) for line in text.splitlines()]
    # Copies that a later clean-up removes: of some gold memories, and of one that is no gold.
    for id, of in ((901, 109), (902, 142), (903, 107)):
        (copied,) = [line for line in lines if line["id"] == of]
        lines.append({**copied, "id": id, "content": f"  {copied['content'].lower()} "})
    return lines


def gold() -> set[int]:
    text = (EXAMPLE / "qrels.jsonl").read_text(encoding="utf-8")
    return {id for line in text.splitlines() for id in json.loads(line)["relevant_ids"]}


def write(folder: Path, lines: Lines) -> Path:
    """A store as it is after a change: its corpus alone."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "corpus.jsonl").write_text(text, encoding="utf-8")
    return folder


def _with_texts(lines: Lines, texts: dict[int, str]) -> Lines:
    return [{**line, "content": texts.get(line["id"], line["content"])} for line in lines]


def _without(lines: Lines, ids: set[int]) -> Lines:
    return [line for line in lines if line["id"] not in ids]


def rewordings(set: str) -> list[Line]:
    """Each with `id`, `kept` and `gone`."""
    text = (Path(__file__).parent / "rewordings.jsonl").read_text(encoding="utf-8")
    return [line for line in map(json.loads, text.splitlines()) if line["set"] == set]


def reworded(lines: Lines, *, loses: bool) -> Rewritten:
    """With losses, the copy of a memory in lower case is deleted, too."""
    texts = {one["id"]: one["gone" if loses else "kept"] for one in rewordings("first")}
    return Rewritten(_with_texts(_without(lines, {901}), texts), _lost(loses, texts))


def merged(lines: Lines, *, loses: bool) -> Rewritten:
    """With losses, the second memory of each pair is left out of the merged one."""
    texts = {line["id"]: line["content"] for line in lines}
    kept = _without(lines, {id for pair in MERGED for id in pair})
    for number, (one, other) in enumerate(MERGED):
        rest = "More on this later." if loses else texts[other]
        kept.append({"id": 500 + number, "content": f"{texts[one]} {rest}"})
    return Rewritten(kept, _lost(loses, [other for _, other in MERGED]))


def split(lines: Lines, *, loses: bool) -> Rewritten:
    """With losses, the last part of each memory is not written."""
    kept = _without(lines, set(SPLIT))
    written = [part for parts in SPLIT.values() for part in (parts[:-1] if loses else parts)]
    kept += [{"id": 600 + number, "content": part} for number, part in enumerate(written)]
    return Rewritten(kept, _lost(loses, SPLIT))


def renumbered(lines: Lines, *, loses: bool) -> Rewritten:
    """Ids now belong to other memories; with losses, two texts are gone but their ids are not."""
    ids = [line["id"] for line in lines]
    moved = [{**line, "id": id} for line, id in zip(lines, ids[7:] + ids[:7], strict=True)]
    if loses:
        texts = {lines[place]["id"]: moved[place] for place in range(len(lines))}
        for id in (142, 169):
            texts[id]["content"] = f"This line had the id {id} once."
    # The copy of 142 in lower case carries it, so that one is not lost.
    return Rewritten(moved, _lost(loses, [169]))


def pruned(lines: Lines, *, loses: bool) -> Rewritten:
    """Memories that no question needs are deleted; with losses, three others, too."""
    useless = {line["id"] for line in lines} - gold() - {901, 902}
    lost = {120, 149, 181}
    return Rewritten(_without(lines, useless | (lost if loses else set())), _lost(loses, lost))


def superseded(lines: Lines, *, loses: bool) -> Rewritten:
    """Values change. The store says what supersedes what; with losses, it does not say so."""
    texts = {
        113: "20 July 2027: the stand-up is on Tuesday and Thursday only, at 9:45.",
        152: "From 1 January 2028 new customers pay 39 euros per cabin and month.",
    }
    kept = list(lines)
    for number, (id, text) in enumerate(texts.items()):
        new = 700 + number
        if loses:
            kept = [*_without(kept, {id}), {"id": new, "content": text}]
        elif number:  # the old line is gone, the new one names it
            kept = [*_without(kept, {id}), {"id": new, "content": text, "supersedes": id}]
        else:  # the old line is still there, and names the new one, by a chain
            kept = [{**one, "superseded_by": 790} if one["id"] == id else one for one in kept]
            kept.append(
                {"id": 790, "content": "20 July 2027: stand-up moves.", "superseded_by": new}
            )
            kept.append({"id": new, "content": text})
    return Rewritten(kept, _lost(loses, texts))


def translated_ids(lines: Lines, *, loses: bool) -> Rewritten:
    """Ids become texts, and two memories another language, which only an id map can follow."""
    danish = {
        110: "Yusuf spiser ikke svinekød.",
        169: "Belastningstest: 340 reservationer i minuttet.",
    }
    moved = [
        {**line, "id": f"mem-{line['id']:05}", "content": danish.get(line["id"], line["content"])}
        for line in lines
    ]
    known = {str(id): None if loses and id == 110 else f"mem-{id:05}" for id in danish}
    return Rewritten(moved, _lost(loses, [110]), known)


def deduplicated(lines: Lines, *, loses: bool) -> Rewritten:
    """The first of each two copies is removed; with losses, both are."""
    both = {109, 142, 107, 901, 902, 903}
    return Rewritten(_without(lines, both if loses else {109, 142, 107}), _lost(loses, [109, 142]))


def reordered(lines: Lines, *, loses: bool) -> Rewritten:
    """Another order, white space around texts; with losses, one text was cut in the middle."""
    mixed = [{**line, "content": f"\n {line['content']}\t"} for line in lines]
    random.Random(3).shuffle(mixed)
    if loses:
        for line in mixed:
            if line["id"] in (120, 177):
                line["content"] = line["content"][: len(line["content"]) // 2]
    return Rewritten(mixed, _lost(loses, [120, 177]))


def half_deleted(lines: Lines, *, loses: bool) -> Rewritten:
    """Every second memory is deleted; so that nothing is lost, the gold ones stay."""
    needed = gold()
    deleted = {line["id"] for line in lines[::2]} | {901, 902}
    deleted = deleted if loses else deleted - needed
    return Rewritten(_without(lines, deleted), _lost(loses, deleted & needed))


def _lost(loses: bool, ids: Any) -> frozenset[int]:
    return frozenset(ids) & gold() if loses else frozenset()


WAYS: tuple[Callable[..., Rewritten], ...] = (
    reworded, merged, split, renumbered, pruned,
    superseded, translated_ids, deduplicated, reordered, half_deleted,
)  # fmt: skip
