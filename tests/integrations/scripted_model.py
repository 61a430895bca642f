"""For tests of integrations with a language model: a scripted model, and the memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from tests.scripted_server import Reply, ScriptedServer

from mnemoscope._store.spec import Spec
from mnemoscope.systems.loader import plan
from mnemoscope.types import Memory

FACTS = {
    "Ferribane": ("sailing boat", "Ferribane traded seven goats for a sailing boat."),
    "Umbrecht": ("passport", "Umbrecht lost his passport inside an accordion case."),
    "Velloway": ("peacock feather", "Velloway writes every letter with a peacock feather."),
}
"""Each fact: its person, its object, and its text."""

MEMORIES = [
    Memory(f"talk/{number}", words, datetime(2021, 5, number, 9, tzinfo=UTC), "talk", "Ann")
    for number, (_, words) in enumerate(FACTS.values(), start=1)
]


@contextmanager
def opened(spec: str, reply: Reply) -> Iterator[tuple[Any, ScriptedServer]]:
    """The system, reset, with a scripted model behind `llm=`."""
    with ScriptedServer(reply) as server:
        system = plan(Spec.parse(f"{spec},llm=scripted@{server.url}")).build()
        try:
            system.reset("scope")
            yield system, server
        finally:
            system.close()


def about(text: str) -> list[tuple[str, str, str]]:
    """The facts about the people that a text names."""
    return [(name, *FACTS[name]) for name in FACTS if name in text]


def origins(hits: Sequence[dict[str, Any]]) -> list[list[str]]:
    return [list(hit.get("sources") or [hit["id"]]) for hit in hits]
