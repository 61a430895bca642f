"""Systems with planted effects of age, and a small history on which their size is known.

Eight stable things and eight moving ones are stated on days 1 to 8. On days 21 to 28 the moving
things get a new value, and eight fresh things are stated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mnemoscope.types import Memory, Query

EARLY, LATE = range(1, 9), range(21, 29)
EXPIRES = 20
_THING = re.compile(r"(?:stable|moving|fresh)\d\d")


class Exact:
    """Returns the latest memory that names the thing of the question."""

    def reset(self, scope: str) -> None:
        self.memories: list[Memory] = []

    def fork(self) -> Exact:
        twin = type(self)()
        twin.memories = list(self.memories)
        return twin

    def remember(self, memories: Sequence[Memory]) -> None:
        self.memories.extend(memories)

    def recall(self, query: Query, k: int) -> list[str]:
        thing = named[0] if (named := _THING.search(query.text)) else ""
        found = [one for one in self.memories if thing and thing in one.text]
        return [self.chosen(found).id] if found and not self.is_lost(thing) else []

    def chosen(self, found: list[Memory]) -> Memory:
        return found[-1]

    def is_lost(self, thing: str) -> bool:
        return False

    @property
    def is_old(self) -> bool:
        return len(self.memories) > len(EARLY)


class Stale(Exact):
    """Returns the earliest memory: the old value after an update."""

    def chosen(self, found: list[Memory]) -> Memory:
        return found[0]


class Crowded(Exact):
    """Loses every second stable thing as its memory grows."""

    def is_lost(self, thing: str) -> bool:
        return self.is_old and thing.startswith("stable") and int(thing[-2:]) % 2 == 0


class KnowsNoFreshThings(Exact):
    def is_lost(self, thing: str) -> bool:
        return thing.startswith("fresh")


class AllAtOnce(Stale, Crowded):
    """Is stale and crowded, and knows no fresh things."""

    def is_lost(self, thing: str) -> bool:
        return thing.startswith("fresh") or super().is_lost(thing)


class OnlyNewDays(Exact):
    """Remembers the last eight days alone."""

    def remember(self, memories: Sequence[Memory]) -> None:
        self.memories = [*self.memories, *memories][-len(LATE) :]


def write_history(folder: Path) -> Path:
    place = folder / "ager"
    memories, qa = place / "memories-28d", place / "qa-28d"
    memories.mkdir(parents=True)
    qa.mkdir()
    (place / "persona.yaml").write_text(
        "id: ager\nname: A\nrole: tester\ndomain: tests\nprofile: p\ncommunication_style: c\n"
        "principal: {name: P, role: boss}\ncast: []\n"
        "sessions: [{id: principal, kind: 1to1, participants: [P]}]\n"
    )
    (place / "arcs-28d.yaml").write_text(
        'epoch: "2026-01-05"\narcs: [{id: a, type: project, title: t, description: d, '
        "startDay: 1, endDay: 28}]\n"
    )
    facts: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []
    for day in (*EARLY, *LATE):
        number = day if day in EARLY else day - LATE.start + 1
        lines = []
        for kind in ("stable", "moving") if day in EARLY else ("moving", "fresh"):
            thing, value = f"{kind}{number:02}", f"{1000 + 37 * len(facts)} crates"
            fact: dict[str, Any] = {"id": f"f{len(facts)}", "entity": thing, "attribute": "a.b"}
            fact |= {"value": value, "day": day}
            lines.append(f"We agreed that {thing} weighs {value}.")
            asked: dict[str, Any] = {
                "id": f"q{len(facts):02}",
                "question": f"What does {thing} weigh?",
                "answer": f"{thing} weighs {value}.",
                "category": "factual-recall",
                "difficulty": "easy",
                "relevant_days": [day],
                "key": [f"{fact['id']}.value"],
                "arc": f"arc-{number}",
            }
            if kind == "moving" and day in EARLY:
                asked["irrelevant_after"] = EXPIRES
            elif kind == "moving":
                [old] = [one for one in facts if one["entity"] == thing]
                old |= {"superseded_by": fact["id"], "superseded_on": day}
            facts.append(fact)
            questions.append(asked)
        text = "\n\n".join(f"### {line.split()[3]}\n\n{line}" for line in lines)
        (memories / f"day-{day:04}.md").write_text(
            f"---\ntype: daily\n---\n\n# session: principal\n\n{text}\n"
        )
    (qa / "questions.yaml").write_text(json.dumps(questions))
    (qa / "ledger.jsonl").write_text("".join(f"{json.dumps(fact)}\n" for fact in facts))
    return folder
