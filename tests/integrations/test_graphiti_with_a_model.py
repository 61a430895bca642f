"""Graphiti with a language model: its facts are traced to their memories."""

from __future__ import annotations

import json

from tests.integrations.needed import need
from tests.integrations.scripted_model import MEMORIES, about, opened, origins
from tests.scripted_server import Request

from mnemoscope.models.chat import metered
from mnemoscope.types import Memory, Query, Selector

need("graphiti")


def _reply(request: Request) -> str:
    """The reply to each of Graphiti's prompts, which are recognised by their schema."""
    wanted = json.dumps(request.body)
    # Earlier episodes are shown as context; only the current one is to be read.
    text = request.text
    for start in ("<CURRENT MESSAGE>", "<CURRENT_MESSAGE>", "<TEXT>"):
        text = text.partition(start)[2] or text
    for end in ("</CURRENT MESSAGE>", "</CURRENT_MESSAGE>", "</TEXT>"):
        text = text.partition(end)[0]
    found = about(text)
    if "extracted_entities" in wanted:
        names = [name for person, thing, _ in found for name in (person, thing)]
        listed = [{"name": name, "entity_type_id": 0} for name in names]
        return json.dumps({"extracted_entities": listed})
    if "relation_type" in wanted:
        edges = [
            {
                "source_entity_name": person,
                "target_entity_name": thing,
                "relation_type": "HAS_TO_DO_WITH",
                "fact": words,
                "episode_indices": [0],
            }
            for person, thing, words in found
        ]
        return json.dumps({"edges": edges})
    empty: dict[str, list[object]] = {
        "entity_resolutions": [],
        "duplicate_facts": [],
        "contradicted_facts": [],
        "timestamps": [],
        "summaries": [],
    }
    return json.dumps(empty)


def test_a_fact_is_traced_to_its_memory() -> None:
    nothing = Memory("talk/9", "Well, hello there.", MEMORIES[0].at, "talk", "Ann")
    with opened("graphiti", _reply) as (system, server):
        with metered() as usages:
            receipt = system.remember([*MEMORIES, nothing])
        assert list(receipt["rejected"]) == [nothing.id], "no fact, so nothing to find it by"
        assert len(usages) == server.requests > 0
        hits = system.recall(Query("Who lost his passport?"), 5)
        assert origins(hits)[0] == [MEMORIES[1].id]
        assert hits[0]["text"] == MEMORIES[1].text
        assert sorted(origins(hits)) == [[memory.id] for memory in MEMORIES]
        system.forget(Selector((MEMORIES[1],)))
        left = system.recall(Query("Who lost his passport?"), 5)
        assert sorted(origins(left)) == [[MEMORIES[0].id], [MEMORIES[2].id]]
