"""cognee, which needs a language model to ingest: its chunks are traced to memories."""

from __future__ import annotations

import json

import pytest
from tests.integrations.needed import need
from tests.integrations.scripted_model import MEMORIES, about, opened, origins
from tests.scripted_server import Request

from mnemoscope._store.errors import UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.models.chat import metered
from mnemoscope.systems.loader import plan
from mnemoscope.types import Query, Selector

need("cognee")


def _reply(request: Request) -> str:
    if "knowledge graph" not in request.system:
        return json.dumps({"summary": request.text[:60], "description": "a chunk"})
    found = about(request.text)
    nodes = [
        {"id": name, "name": name, "type": "Thing", "description": name}
        for person, thing, _ in found
        for name in (person, thing)
    ]
    edges = [
        {"source_node_id": person, "target_node_id": thing, "relationship_name": "has"}
        for person, thing, _ in found
    ]
    return json.dumps({"nodes": nodes, "edges": edges})


def test_chunks_are_traced_to_their_memories() -> None:
    with opened("cognee", _reply) as (system, server):
        with metered() as usages:
            assert not system.remember(MEMORIES)["rejected"]
        assert len(usages) == server.requests > 0
        hits = system.recall(Query("Who lost his passport?"), 5)
        assert origins(hits)[0] == [MEMORIES[1].id]
        assert sorted(origins(hits)) == [[memory.id] for memory in MEMORIES]
        system.forget(Selector((MEMORIES[1],)))
        left = system.recall(Query("Who lost his passport?"), 5)
        assert sorted(origins(left)) == [[MEMORIES[0].id], [MEMORIES[2].id]]


def test_without_a_model_the_error_names_the_option() -> None:
    with pytest.raises(UsageError, match="llm="):
        plan(Spec.parse("cognee")).build()
