"""A small persona to be written in tests, and the replies of a scripted model.

Two sessions are isolated. On purpose, the profile, cast, projects and shared knowledge name their
topics, and an arc of an isolated session references another session.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.scripted_server import Request

from mnemoscope.personas.write.persona_files import (
    Arcs,
    Persona,
    PersonaFiles,
    as_yaml,
    open_persona_files,
)

SESSIONS = ("principal", "crew", "counsel-room", "family", "brokers")
ISOLATED = ("counsel-room", "family")
CANARIES = {session: f"zebra{number}quartz" for number, session in enumerate(SESSIONS)}
"""What each session's writer says in every entry."""
SECRETS = ("collision settlement", "Aunt Rosa's clinic", "Sealed claim papers", "Hana Quill")
"""What the persona files say about isolated sessions."""

_SESSION = re.compile(r"Write the entry of the session ([\w-]+) ")
_DATE = re.compile(r" for (\w+, \d+ \w+ \d+)[,.]")

PERSONA: dict[str, Any] = {
    "id": "planner",
    "name": "Ines Calder",
    "role": "berth planner",
    "domain": "port logistics",
    "company": "Northquay",
    "profile": "Ines plans berths. She worries about the collision settlement. She walks persona.",
    "communication_style": "Short sentences.",
    "principal": {
        "name": "Tomas Reeve",
        "role": "harbour master",
        "profile": "Patient. Signed the Collision-Settlement himself.",
    },
    "cast": [
        {"name": "Lena Osei", "role": "crane foreman"},
        {"name": "Noor Bell", "role": "counsel for the collision settlement"},
        {"name": "Hana Quill", "role": "mediator"},
        {"name": "Karl Finch", "role": "broker"},
        {"name": "Rosa Calder", "role": "aunt"},
    ],
    "projects": [
        {"id": "quay", "name": "Quay Four", "description": "New rails."},
        {"id": "claim", "name": "Claim", "description": "Pay the collision settlement."},
    ],
    "sessions": [
        {"id": "principal", "kind": "1to1", "participants": ["Ines Calder", "Tomas Reeve"]},
        {"id": "crew", "kind": "group", "participants": ["Lena Osei"]},
        {
            "id": "counsel-room",
            "kind": "group",
            "participants": ["Noor Bell", "Hana Quill"],
            "isolated": True,
            "sensitive_topics": ["collision settlement"],
        },
        {
            "id": "family",
            "kind": "group",
            "participants": ["Rosa Calder"],
            "isolated": True,
            "sensitive_topics": ["Aunt Rosa's clinic"],
        },
        {"id": "brokers", "kind": "group", "participants": ["Karl Finch"]},
    ],
    "sharedKnowledge": ["Berths are given out on Mondays.", "Aunt Rosa's clinic is on the hill."],
}


def arc(id: str, type: str, start: int, end: int, session: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "type": type,
        "title": f"The {id} matter",
        "description": f"What happens with {id}.",
        "startDay": start,
        "endDay": end,
        "primarySession": session,
        **more,
    }


ARCS: dict[str, Any] = {
    "epoch": "2026-03-02",
    "arcs": [
        arc(
            "rails",
            "project",
            1,
            40,
            "crew",
            referencedSessions=["principal", "family"],
            directives=[{"day": 6, "event": "Two rails arrive bent."}],
        ),
        arc(
            "claim",
            "decision",
            3,
            45,
            "counsel-room",
            title="Sealed claim papers",
            referencedSessions=["principal", "crew"],
            description="The collision settlement is prepared.",
            directives=[{"day": 9, "event": "The collision settlement is signed."}],
        ),
        arc("visits", "relationship", 5, 50, "family"),
        arc("slots", "learning", 20, 56, "brokers", referencedSessions=["principal"]),
        arc("outage", "incident", 46, 50, "principal"),
        arc(
            "depth",
            "correction",
            41,
            56,
            "principal",
            description="The basin is measured. The collision settlement hangs on it.",
            wrongDay=42,
            correctedDay=54,
            wrongBelief="The basin is 11.2 metres deep.",
            correctedBelief="The basin is 10.7 metres deep.",
        ),
    ],
}


def write_persona_files(folder: Path, days: int = 60) -> PersonaFiles:
    import msgspec

    folder.mkdir(parents=True, exist_ok=True)
    persona, arcs = msgspec.convert(PERSONA, Persona), msgspec.convert(ARCS, Arcs)
    (folder / "persona.yaml").write_text(as_yaml(persona))
    (folder / f"arcs-{days}d.yaml").write_text(as_yaml(arcs))
    return open_persona_files(folder)


def session_of(text: str) -> str:
    found = _SESSION.search(text)
    assert found is not None, text
    return found[1]


def date_of(text: str) -> str:
    found = _DATE.search(text)
    assert found is not None, text
    return found[1]


def entry_for(request: Request) -> str:
    """An entry with the session's canary, and with all that does not belong into one."""
    session = session_of(request.text)
    others = "\n".join(f"# session: {other}\n{CANARIES[session]}" for other in SESSIONS)
    return (
        f"---\ntype: daily\n---\n# {date_of(request.text)}\n\n### Topic\n\n"
        f"On {date_of(request.text)} we spoke of {CANARIES[session]}.\n\n{others}\n\nThe end."
    )
