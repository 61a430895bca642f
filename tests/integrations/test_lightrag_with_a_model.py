"""LightRAG with a language model: its graph is traced to memories, its usage is counted."""

from __future__ import annotations

import json

from tests.integrations.needed import need
from tests.integrations.scripted_model import MEMORIES, about, opened, origins
from tests.scripted_server import Request, failing

from mnemoscope.models.chat import metered
from mnemoscope.types import Query, Selector

need("lightrag")


def _reply(request: Request) -> str:
    """An entity for each person and object in the text; Ferribane for every question."""
    if "high_level_keywords" in request.system + request.text:
        return json.dumps({"high_level_keywords": [], "low_level_keywords": ["Ferribane"]})
    rows = []
    for name, thing, words in about(request.text):
        rows.append(f"entity<|#|>{name}<|#|>Person<|#|>{words}")
        rows.append(f"entity<|#|>{thing}<|#|>Artifact<|#|>A {thing}.")
        rows.append(f"relation<|#|>{name}<|#|>{thing}<|#|>has<|#|>{words}")
    return "\n".join([*rows, "<|COMPLETE|>"])


def test_graph_hits_are_traced_to_their_memory() -> None:
    # With one entity and no vectors of chunks, nothing else can come back.
    with opened("lightrag,mode=local,top_k=1", _reply) as (system, server):
        with metered() as usages:
            receipt = system.remember(MEMORIES)
        assert not receipt["rejected"] and not receipt["merged"]
        assert len(usages) == server.requests > 0
        assert sum(usage.input_tokens for usage in usages) > 0
        hits = system.recall(Query("Who keeps no animals any more?"), 5)
        assert origins(hits) == [[MEMORIES[0].id]]
        system.forget(Selector((MEMORIES[0],)))
        left = system.recall(Query("Who keeps no animals any more, once forgotten?"), 5)
        assert [MEMORIES[0].id] not in origins(left)


def test_the_mode_is_mix_with_a_model() -> None:
    with opened("lightrag", _reply) as (system, _):
        assert system.identity()["hello"]["identity"]["mode"] == "mix"
        system.remember(MEMORIES)
        found = origins(system.recall(Query("Whose letters are written with a feather?"), 5))
        assert sorted(found) == [[memory.id] for memory in MEMORIES]


def test_a_memory_on_which_the_model_fails_is_reported_as_rejected() -> None:
    def refuses(request: Request) -> str:
        raise AssertionError("a model that is spoiled below is never heard")

    with opened("lightrag", refuses) as (system, server):
        server.when(lambda request: True, failing(400, "no such thing"))
        receipt = system.remember(MEMORIES[:1])
        assert MEMORIES[0].id in receipt["rejected"]
