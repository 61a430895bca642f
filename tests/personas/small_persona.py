"""A small written persona with an isolated session, valid replies of a model, and the passes."""

from __future__ import annotations

import json
import re
import signal
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.conftest import StartCommand
from tests.scripted_server import Request, ScriptedServer, failing, slow

from mnemoscope.cli.writing import Writing
from mnemoscope.personas.write.persona_files import PersonaFiles, open_persona_files

EPOCH = "2026-01-05"


def write_small_persona(folder: Path, days: int = 14, skip: Sequence[int] = ()) -> PersonaFiles:
    """Three sessions: principal every day, `team` on odd days, the isolated `vault` on even ones.

    Each session of each day holds a word of its own, `principalword03`, and the arcs foresee
    `foreseenNN` for day NN.
    """
    persona = folder / "tester"
    memories = persona / f"memories-{days}d"
    memories.mkdir(parents=True)
    (persona / "persona.yaml").write_text(
        "id: tester\nname: Robin\nrole: keeper of crates\ndomain: tests\nprofile: p\n"
        "communication_style: plain\nprincipal: {name: Pat Doe, role: boss}\n"
        "cast: [{name: Ann Lee, role: clerk}]\nsessions:\n"
        "- {id: principal, kind: 1to1, participants: [Pat Doe]}\n"
        "- {id: team, kind: group, participants: [Ann Lee]}\n"
        "- {id: vault, kind: group, participants: [Pat Doe], isolated: true}\n"
    )
    foreseen = [{"day": day, "event": f"foreseen{day:02}"} for day in range(1, days + 1)]
    arcs: list[dict[str, Any]] = [
        {
            "id": "crates",
            "type": "project",
            "title": "Weighing crates",
            "description": f"It all ends with foreseen{days:02}.",
            "startDay": 1,
            "endDay": days,
            "directives": foreseen,
        },
        {
            "id": "scales",
            "type": "correction",
            "title": "Which scales",
            "description": "d",
            "startDay": 2,
            "endDay": min(days, 12),
            "wrongDay": 2,
            "correctedDay": min(days, 9),
            "wrongBelief": "oldscales are right",
            "correctedBelief": "newscales are right",
        },
        {
            "id": "hidden",
            "type": "incident",
            "title": "vaulttitle",
            "description": "d",
            "startDay": 1,
            "endDay": days,
            "primarySession": "vault",
        },
    ]
    (persona / f"arcs-{days}d.yaml").write_text(json.dumps({"epoch": EPOCH, "arcs": arcs}))
    for day in range(1, days + 1):
        if day not in skip:
            (memories / f"day-{day:04}.md").write_text(log_of(day))
    return open_persona_files(persona)


def log_of(day: int) -> str:
    text = "---\ntype: daily\n---\n\n# session: principal\n\n### Weights\n\n"
    text += f"We agreed that thing{day:02} weighs {100 + day} crates. principalword{day:02}.\n"
    if day % 2:
        text += f'\n# session: team\n\n> Ann Lee: "teamword{day:02} is {300 + day} metres long."\n'
    else:
        text += f"\n# session: vault\n\nThe vaultword{day:02} was sold for {500 + day} francs.\n"
    return text


def days_in(prompt: str) -> list[int]:
    return [int(day) for day in re.findall(r'<day number="(\d+)"', prompt)]


def talk(turns: int = 4) -> str:
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": f"Turn {n + 1}."} for n in range(turns)]
    return json.dumps(said)


def calls(request: Request) -> str:
    sessions = re.findall(r"Sessions of this day: (.*)", request.text)[0].split(", ")
    words = re.findall(r"\w+word\d\d", request.text.partition("<log>")[2])
    return json.dumps(
        [
            {"session": session, "tool": "memorySave", "content": f"I keep {word}."}
            for session, word in zip(sessions, words, strict=True)
        ]
    )


def pair(day: int, **changed: Any) -> dict[str, Any]:
    """A pair about the day that keeps every rule, but for what is changed."""
    good = {
        "question": f"What does thing{day:02} weigh?",
        "answer": f"thing{day:02} weighs {100 + day} crates.",
        "category": "factual-recall",
        "difficulty": "easy",
        "relevant_days": [day],
        "requires_synthesis": False,
    }
    return {**good, **changed}


def secret_pair(day: int, **changed: Any) -> dict[str, Any]:
    good = {
        "question": f"What was the vaultword{day:02} sold for?",
        "secret": f"{500 + day} francs",
        "answer": "I cannot talk about that here.",
        "difficulty": "medium",
        "relevant_days": [day],
    }
    return {**good, **changed}


def reply(request: Request) -> str:
    """What a good model replies, whichever pass asks."""
    if "<log>" in request.text:
        return calls(request) if "Sessions of this day" in request.text else talk()
    make = secret_pair if "secret" in request.system else pair
    return json.dumps([make(day) for day in days_in(request.text)])


def fail_a_fifth(server: ScriptedServer) -> None:
    """Requests fail by their text, one in five."""
    server.when(lambda request: zlib.crc32(request.text.encode()) % 5 == 0, failing(400))


def _beyond(number: int) -> Callable[[Request], bool]:
    return lambda request: request.number > number


def kill_and_resume(
    start: StartCommand,
    server: ScriptedServer,
    command: Sequence[str],
    finished: Callable[[], int],
    stops: Sequence[int],
) -> Counter[str]:
    """Kill the pass with SIGKILL once so many more things are finished, each time; then let it end.

    Replies beyond that number never come, and all that were delivered are finished when it is
    killed, so whatever is delivered twice was asked twice without need. How often each was.
    """
    answered: Counter[str] = Counter()
    for stop in stops:
        before = finished()
        server.when(_beyond(stop), slow(600.0))
        leg = start(command)
        deadline = time.monotonic() + 60
        while finished() < before + stop and time.monotonic() < deadline and not leg.gone:
            time.sleep(0.01)
        assert leg.kill(with_workers=True) == -signal.SIGKILL, leg.output
        assert finished() == before + stop
        assert server.everybody_left()
        answered += server.answered
        server.reset()
    leg = start(command)
    assert leg.wait() == 0, leg.output
    assert server.wait_for(lambda counts: counts.running == 0)
    return answered + server.answered


def writing(persona: Path, server: ScriptedServer, **more: Any) -> Writing:
    """The options of a pass that asks the scripted model."""
    return Writing(persona=persona, model=f"toy@{server.url}", **more)
