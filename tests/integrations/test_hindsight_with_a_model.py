"""Hindsight with a language model: its facts are traced to their memories."""

from __future__ import annotations

import json

from tests.integrations.needed import need
from tests.integrations.scripted_model import MEMORIES, about, opened, origins
from tests.scripted_server import Request

from mnemoscope.models.chat import metered
from mnemoscope.types import Memory, Query, Selector

need("hindsight")


def _reply(request: Request) -> str:
    """Two facts for each fact in a text."""
    facts = [
        {
            "what": what,
            "when": "N/A",
            "where": "N/A",
            "who": person,
            "why": "N/A",
            "fact_kind": "conversation",
            "fact_type": "world",
            "entities": [person, thing],
        }
        for person, thing, words in about(request.text)
        for what in (words, f"{person} is known for a {thing}.")
    ]
    return json.dumps({"facts": facts})


def test_facts_are_traced_and_memories_without_facts_are_rejected() -> None:
    chatter = Memory("talk/4", "Hm. Well, well.")
    with opened("hindsight", _reply) as (system, server):
        with metered() as usages:
            receipt = system.remember([*MEMORIES, chatter])
        assert len(usages) == server.requests > 0
        assert set(receipt["rejected"]) == {chatter.id}
        hits = system.recall(Query("Who lost his passport?"), 5)
        assert origins(hits)[0] == [MEMORIES[1].id]
        assert len(hits) == len({hit["id"] for hit in hits}) > 1
        system.forget(Selector((MEMORIES[1],)))
        left = system.recall(Query("Who lost his passport?"), 5)
        assert left
        assert [MEMORIES[1].id] not in origins(left)
