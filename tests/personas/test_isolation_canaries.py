"""No prompt of a session contains text of another one, nor topics of isolated ones."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from tests.personas.written_persona import (
    CANARIES,
    ISOLATED,
    SECRETS,
    SESSIONS,
    entry_for,
    session_of,
    write_persona_files,
)
from tests.scripted_server import Request, ScriptedServer, failing

from mnemoscope.cli.write_days import generate
from mnemoscope.cli.writing import Writing
from mnemoscope.datasets.day_logs import pieces, read_day
from mnemoscope.personas.write.daily_log_writer import gaps
from mnemoscope.personas.write.persona_files import PersonaFiles
from mnemoscope.personas.write.session_schedule import SessionSchedule
from mnemoscope.personas.write.visibility import Visibility


class Story(NamedTuple):
    asked: list[Request]
    persona: PersonaFiles


def spoilt(request: Request) -> bool:
    return zlib.crc32(request.text.encode()) % 5 == 0


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All requests of a history that is written in two legs with failures and then completed."""
    folder = tmp_path_factory.mktemp("canaries")
    persona = write_persona_files(folder / "planner")
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(entry_for) as server:
        patch.setenv("MNEMOSCOPE_CACHE", str(folder / "cache"))
        model = f"toy@{server.url}"
        server.when(spoilt, failing(400))
        generate(writing=Writing(persona=persona.folder, model=model, end=25))
        generate(writing=Writing(persona=persona.folder, model=model))
        lost, seen = gaps(persona), server.seen
        server.reset()
        assert lost, "nothing failed, so nothing is mended"
        assert generate(writing=Writing(persona=persona.folder, model=model), missing=True) == 0
        assert gaps(persona) == []
        yield Story([*seen, *server.seen], persona)


def test_a_canary_is_only_in_prompts_of_its_own_session(story: Story) -> None:
    found = dict.fromkeys(SESSIONS, 0)
    for request in story.asked:
        own = session_of(request.text)
        whole = request.system + request.text
        found[own] += CANARIES[own] in whole
        for other in SESSIONS:
            assert other == own or CANARIES[other] not in whole, f"{own} reads {other}"
    assert all(found.values()), f"some session never saw its own last entries: {found}"


def test_no_other_prompt_names_the_topics_of_isolated_sessions(story: Story) -> None:
    keeps = {"family": SECRETS[1:2], "counsel-room": (*SECRETS[:1], *SECRETS[2:])}
    for request in story.asked:
        own = session_of(request.text)
        whole = (request.system + request.text).casefold().replace("-", " ")
        for room, secrets in keeps.items():
            told = [secret for secret in secrets if secret.casefold() in whole]
            assert room == own or not told, f"{own} is told {told}"
    counsel = [one for one in story.asked if session_of(one.text) == "counsel-room"]
    assert all("Sealed claim papers" in one.text for one in counsel)


def test_open_arcs_echo_into_other_sessions(story: Story) -> None:
    echoed = [
        one for one in story.asked if session_of(one.text) == "principal" and "rails" in one.text
    ]
    assert echoed


def test_people_of_isolated_sessions_only_are_not_participants_elsewhere(tmp_path: Path) -> None:
    persona = write_persona_files(tmp_path / "planner")
    arc = msgspec.structs.replace(persona.arcs.arcs[0], participants=("Lena Osei", "Hana Quill"))

    told = {
        session: Visibility(persona.persona, persona.arcs, session).arc(arc).participants
        for session in ("crew", "counsel-room")
    }

    assert told == {"crew": ("Lena Osei",), "counsel-room": ("Lena Osei", "Hana Quill")}


def test_isolated_arcs_add_no_other_session_to_a_day(tmp_path: Path) -> None:
    calendar = SessionSchedule.of(write_persona_files(tmp_path / "planner"))
    agendas = [calendar.agenda(day, id) for day in range(1, 61) for id in SESSIONS]
    echoed = {arc.primary_session for agenda in agendas for arc in agenda.echoed}
    assert echoed and not echoed & set(ISOLATED)


def test_headings_in_a_reply_do_not_add_text_to_another_session(story: Story) -> None:
    for path in sorted(story.persona.beside("memories").iterdir()):
        for piece in pieces(read_day(path), "session"):
            assert [id for id in SESSIONS if CANARIES[id] in piece.text] == [piece.session]
