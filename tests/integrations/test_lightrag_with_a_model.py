"""LightRAG with a language model: its graph leads to our memories, and the model is on its bill."""

from __future__ import annotations

import json

from tests.integrations.asked_with_a_model import TOLD, about, opened, origins
from tests.integrations.needed import need
from tests.scripted_server import Request, failing

from mnemoscope.models.chat import metered
from mnemoscope.types import Query, Selector

need("lightrag")


def _reply(request: Request) -> str:
    """An entity for each person and thing of the text; Ferribane whenever a question is asked."""
    if "high_level_keywords" in request.system + request.text:
        return json.dumps({"high_level_keywords": [], "low_level_keywords": ["Ferribane"]})
    rows = []
    for name, thing, words in about(request.text):
        rows.append(f"entity<|#|>{name}<|#|>Person<|#|>{words}")
        rows.append(f"entity<|#|>{thing}<|#|>Artifact<|#|>A {thing}.")
        rows.append(f"relation<|#|>{name}<|#|>{thing}<|#|>has<|#|>{words}")
    return "\n".join([*rows, "<|COMPLETE|>"])


def test_the_graph_leads_to_the_memory_it_was_made_from() -> None:
    # With one entity and no vectors of chunks, nothing else can come back.
    with opened("lightrag,mode=local,top_k=1", _reply) as (system, server):
        with metered() as usages:
            receipt = system.remember(TOLD)
        assert not receipt["rejected"] and not receipt["merged"]
        assert len(usages) == server.requests > 0
        assert sum(usage.input_tokens for usage in usages) > 0
        hits = system.recall(Query("Who keeps no animals any more?"), 5)
        assert origins(hits) == [[TOLD[0].id]]
        system.forget(Selector((TOLD[0],)))
        left = system.recall(Query("Who keeps no animals any more, once forgotten?"), 5)
        assert [TOLD[0].id] not in origins(left)


def test_mix_is_the_mode_where_there_is_a_model() -> None:
    with opened("lightrag", _reply) as (system, _):
        assert system.identity()["hello"]["identity"]["mode"] == "mix"
        system.remember(TOLD)
        found = origins(system.recall(Query("Whose letters are written with a feather?"), 5))
        assert sorted(found) == [[memory.id] for memory in TOLD]


def test_a_model_that_fails_costs_the_memory_and_not_in_silence() -> None:
    def refuses(request: Request) -> str:
        raise AssertionError("a model that is spoiled below is never heard")

    with opened("lightrag", refuses) as (system, server):
        server.when(lambda request: True, failing(400, "no such thing"))
        receipt = system.remember(TOLD[:1])
        assert TOLD[0].id in receipt["rejected"]
