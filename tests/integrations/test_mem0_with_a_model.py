"""mem0 with a language model: facts are traced to memories, lost memories are reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integrations.needed import need
from tests.integrations.scripted_model import MEMORIES, about, opened, origins
from tests.scripted_server import Request, ScriptedServer, failing

from mnemoscope.models.chat import metered
from mnemoscope.types import Memory, Query, Selector

SMALL_TALK = Memory("talk/4", "Hello, how are you today?")
AGAIN = Memory("talk/5", f"Once more: {MEMORIES[0].text}")
UNHEARD = Memory("talk/6", "Umbrecht was told a story that no cache has heard.")
NAMES = ("Ferribane", "Umbrecht", "Velloway")


@pytest.fixture(scope="module")
def opened_once() -> Iterator[tuple[Any, ScriptedServer]]:
    """One worker for all tests: importing mem0 takes seconds."""
    need("mem0")
    with opened("mem0,infer=on", _reply) as both:
        yield both


@pytest.fixture
def infers(opened_once: tuple[Any, ScriptedServer]) -> tuple[Any, ScriptedServer]:
    """An empty mem0, and its model."""
    system, server = opened_once
    system.reset("scope")
    server.reset()
    return system, server


def _reply(request: Request) -> str:
    """Two facts about each person in the new messages; the rest of the prompt is ignored."""
    facts = [
        {"id": str(number), "text": text}
        for number, (name, thing, words) in enumerate(about(_new_messages(request)))
        for text in (words, f"{name} and the {thing} belong together.")
    ]
    return json.dumps({"memory": facts})


def _new_messages(request: Request) -> str:
    return request.text.partition("## New Messages")[2].partition("## Observation Date")[0]


def test_facts_are_traced_to_their_memory(
    infers: tuple[Any, ScriptedServer],
) -> None:
    system, _ = infers
    with metered() as usages:
        receipt = system.remember(MEMORIES)
    assert receipt == {"rejected": {}, "merged": {}}
    assert len(usages) == len(MEMORIES)
    assert sum(usage.input_tokens for usage in usages) > 0
    assert system.stats()["facts_add"] == 2 * len(MEMORIES)

    hits = system.recall(Query("What did Umbrecht lose with his passport?"), 10)
    assert origins(hits)[0] == ["talk/2"]
    assert len({hit["id"] for hit in hits}) == len(hits)
    assert all(set(NAMES) & set(hit["text"].split()) for hit in hits)


def test_a_memory_without_new_facts_is_in_the_receipt(
    infers: tuple[Any, ScriptedServer],
) -> None:
    system, _ = infers
    receipt = system.remember([*MEMORIES, SMALL_TALK, AGAIN])
    assert list(receipt["rejected"]) == [SMALL_TALK.id, AGAIN.id]


def test_forgetting_a_memory_deletes_all_its_facts(
    infers: tuple[Any, ScriptedServer],
) -> None:
    system, _ = infers
    system.remember(MEMORIES)
    system.forget(Selector((MEMORIES[1],)))
    hits = system.recall(Query("What did Umbrecht lose with his passport?"), 10)
    assert hits
    assert not any("Umbrecht" in hit["text"] for hit in hits)


def test_only_the_memory_on_which_the_model_fails_is_rejected(
    infers: tuple[Any, ScriptedServer],
) -> None:
    system, server = infers
    refused = failing(400, "no such thing")
    server.when(lambda request: UNHEARD.text in _new_messages(request), refused)
    receipt = system.remember([MEMORIES[0], UNHEARD, MEMORIES[2]])
    assert list(receipt["rejected"]) == [UNHEARD.id]
    assert "no such thing" in receipt["rejected"][UNHEARD.id]
