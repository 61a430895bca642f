"""A small history in the layout of simulated ones, written by hand: every number of it is known."""

from __future__ import annotations

import json
from pathlib import Path

DAYS = 40
ENTITIES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel", "Ivy", "Juniper")
SINGLES = ("code", "venue", "sponsor", "slogan")
"""Attributes that never change."""


def write_change_history(folder: Path, entities: int = len(ENTITIES)) -> Path:
    """Each thing has a fee that changes twice, a desk that changes once, and four fixed facts."""
    persona = folder / "mini"
    logs = persona / "memories"
    logs.mkdir(parents=True)
    (persona / "qa").mkdir()
    (persona / "persona.yaml").write_text(
        "id: mini\ncast:\n- name: Ann Able\n- name: Bob Baker\n", encoding="utf-8"
    )
    (persona / "arcs.yaml").write_text("epoch: '2025-01-01'\n", encoding="utf-8")
    facts: list[dict[str, object]] = []
    for number, entity in enumerate(ENTITIES[:entities]):
        values = {
            "fee": [
                (day, f"{fee + number} euros") for day, fee in ((3, 100), (12, 300), (20, 500))
            ],
            "desk": [(5, f"{entity} north counter"), (14, f"{entity} south counter")],
        }
        for place, name in enumerate(SINGLES):
            values[name] = [(6 + place, f"{entity} {name} {number}x{place}")]
        for attribute, told in values.items():
            first = len(facts)
            for place, (day, value) in enumerate(told):
                fact: dict[str, object] = {
                    "id": f"f{len(facts):03}",
                    "entity": entity,
                    "attribute": f"thing.{attribute}",
                    "value": value,
                    "day": day + number,
                    "arc": f"arc-{number}",
                }
                if place + 1 < len(told):
                    fact["superseded_by"] = f"f{first + place + 1:03}"
                    fact["superseded_on"] = told[place + 1][0] + number
                facts.append(fact)
    for day in range(1, DAYS + 1):
        parts = ["# session: principal", f"Day {day}.", "### Round", f"Nothing much, {day} times."]
        for fact in facts:
            if fact["day"] == day:
                attribute = str(fact["attribute"]).partition(".")[2]
                line = f"The {attribute} of {fact['entity']} is {fact['value']}."
                parts += [f"### {fact['entity']}", line]
        parts += ["# session: team", "### Elsewhere", "The team met and talked."]
        (logs / f"day-{day:04}.md").write_text("\n\n".join(parts), encoding="utf-8")
    lines = "".join(json.dumps(fact) + "\n" for fact in facts)
    (persona / "qa" / "ledger.jsonl").write_text(lines, encoding="utf-8")
    (persona / "qa" / "questions.yaml").write_text(
        "- id: q1\n  question: How much does one pay for Alder?\n  category: factual-recall\n"
        "  answer: The fee for Alder is 100 euros.\n  relevant_days: [3]\n  key: [f000.value]\n",
        encoding="utf-8",
    )
    return folder
