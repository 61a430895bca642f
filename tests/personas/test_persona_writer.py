"""Creating a persona with a scripted server: both files or none, and retries with reasons."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_server import Request, ScriptedServer, failing

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.yaml import load_yaml
from mnemoscope.cli.create_persona import create
from mnemoscope.datasets.persona_folder import find_personas, read_epoch
from mnemoscope.models.prompts import shipped
from mnemoscope.personas.write.llm_writer import TRIES
from mnemoscope.personas.write.persona_files import open_persona_files

PROMPTS = Path(__file__).parents[2] / "src" / "mnemoscope" / "models" / "prompts"
PERSONA, ARCS = (
    load_yaml(PROMPTS / f"{name}.yaml")["typical"] for name in ("write-persona", "write-arcs")
)


def wants_arcs(request: Request) -> bool:
    return "Plan a life of" in request.text


def good(request: Request) -> str:
    return str(ARCS if wants_arcs(request) else PERSONA)


def without_incident() -> str:
    content: Any = json.loads(ARCS)
    content["arcs"].pop(1)
    return json.dumps(content)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "cache"))
    with ScriptedServer(good) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "personas" / "planner"


def made(server: ScriptedServer, folder: Path, **more: Any) -> int:
    given = {"prompt": "A berth planner", "days": 60, "epoch": "2026-03-02", **more}
    return create(model=f"toy@{server.url}", persona=folder, **given)


def test_a_file_in_place_of_the_folder_is_an_error_before_any_request(
    server: ScriptedServer, folder: Path
) -> None:
    folder.parent.mkdir()
    folder.touch()

    for place in (folder, folder / "below"):
        with pytest.raises(UsageError, match="is a file or below a file: give a folder"):
            made(server, place)
    assert server.requests == 0


def test_two_requests_make_two_files_that_can_be_read(server: ScriptedServer, folder: Path) -> None:
    assert made(server, folder) == 0
    assert server.requests == 2
    persona = open_persona_files(folder)
    assert (persona.persona.name, persona.days, len(persona.arcs.arcs)) == ("Ines Calder", 60, 6)
    [found] = find_personas(folder)
    assert read_epoch(found).isoformat() == "2026-03-02"
    assert "A berth planner" in server.seen[0].text and "Ines Calder" in server.seen[1].text


def test_a_reply_that_breaks_a_rule_is_retried_with_the_reasons(
    server: ScriptedServer, folder: Path
) -> None:
    server.reply(lambda request: without_incident() if request.number == 2 else good(request))
    assert made(server, folder) == 0
    assert server.requests == 3
    assert "0 arcs of type incident: at least 1" in server.seen[2].text
    assert not list(folder.glob("rejected/*/*"))


@pytest.mark.parametrize("rubbish", ["I cannot do that.", '{"id": "x"}', '{"arcs": [{"id": '])
def test_a_reply_in_another_format_is_retried(
    server: ScriptedServer, folder: Path, rubbish: str
) -> None:
    server.reply(lambda request: rubbish if request.number == 1 else good(request))
    assert made(server, folder) == 0
    assert rubbish.strip() in server.seen[1].text


def test_after_the_last_try_only_the_rejected_reply_is_written(
    server: ScriptedServer, folder: Path
) -> None:
    server.reply(lambda one: without_incident() if wants_arcs(one) else good(one))
    with pytest.raises(MnemoscopeError, match=r"(?s)create/arcs\.txt.*arcs of type incident"):
        made(server, folder)
    assert server.requests == 1 + TRIES
    assert (folder / "rejected" / "create" / "arcs.txt").read_text() == without_incident()
    assert not list(folder.glob("*.yaml"))


def test_a_persona_that_was_paid_for_is_not_requested_again(
    server: ScriptedServer, folder: Path
) -> None:
    server.when(wants_arcs, failing(400), times=1)
    with pytest.raises(MnemoscopeError, match="no usable arcs"):
        made(server, folder)
    assert not list(folder.glob("*.yaml"))
    assert made(server, folder) == 0
    assert [wants_arcs(one) for one in server.seen] == [False, True, True]


def test_existing_files_are_not_replaced(server: ScriptedServer, folder: Path) -> None:
    made(server, folder)
    before = (folder / "persona.yaml").read_bytes()
    with pytest.raises(UsageError, match="--overwrite"):
        made(server, folder)
    assert server.requests == 2 and (folder / "persona.yaml").read_bytes() == before
    server.reply(lambda one: good(one).replace("Ines Calder", "Ida Calder"))
    assert made(server, folder, overwrite=True) == 0
    assert open_persona_files(folder).persona.name == "Ida Calder"


def test_the_files_of_a_persona_with_logs_are_not_replaced(
    server: ScriptedServer, folder: Path
) -> None:
    made(server, folder)
    (folder / "memories-60d").mkdir()
    (folder / "memories-60d" / "day-0001.md").write_text("text")
    with pytest.raises(UsageError, match="is a log of the persona in this folder"):
        made(server, folder, overwrite=True)
    assert server.requests == 2


def test_an_estimate_and_a_dry_run_make_no_request(
    server: ScriptedServer, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert made(server, folder, estimate=True, days=1000) == 0
    assert "2 requests" in capfd.readouterr().out
    assert made(server, folder, dry_run=True) == 0
    assert "2 prompts shown" in capfd.readouterr().out
    assert server.requests == 0 and not folder.exists()


@pytest.mark.parametrize("given", [{"days": 0}, {"epoch": "today"}, {"prompt": " "}])
def test_invalid_options_are_errors_before_any_request(
    server: ScriptedServer, folder: Path, given: dict[str, Any]
) -> None:
    with pytest.raises(UsageError):
        made(server, folder, **given)
    assert server.requests == 0 and not folder.exists()


def test_the_prompts_are_shipped() -> None:
    assert {"write-persona", "write-arcs", "write-day", "write-filler"} <= set(shipped())


def output_tokens(said: str) -> int:
    found = re.search(r"([\d,]+) output tokens", said)
    assert found is not None, said
    return int(found[1].replace(",", ""))


def test_the_estimate_grows_with_the_arcs_that_a_history_needs(
    server: ScriptedServer, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    estimated = []
    for days in (30, 60, 300, 1000):
        made(server, folder, estimate=True, days=days)
        estimated.append(output_tokens(capfd.readouterr().out))
    assert estimated == sorted(set(estimated))
    assert estimated[-1] > 2 * estimated[0]


@pytest.mark.parametrize("days", [1, 5, 20])
def test_a_short_history_needs_one_arc_and_can_be_written(
    server: ScriptedServer, folder: Path, days: int
) -> None:
    content: Any = json.loads(ARCS)
    one = {**content["arcs"][0], "endDay": days, "directives": []}
    server.reply(lambda asked: json.dumps({"arcs": [one]}) if wants_arcs(asked) else PERSONA)
    assert made(server, folder, days=days) == 0
    assert open_persona_files(folder).days == days


@pytest.mark.parametrize("given", [{"days": 10**11}, {"days": 30, "epoch": "9999-12-20"}])
def test_days_after_the_last_date_are_an_error_before_any_request(
    server: ScriptedServer, folder: Path, given: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match="a history that begins on"):
        made(server, folder, **given)
    assert server.requests == 0 and not folder.exists()


def test_the_reason_of_a_failure_is_printed_once(
    server: ScriptedServer, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.reply(lambda request: "I cannot do that.")
    with pytest.raises(MnemoscopeError, match=r"tried 3 times.*cannot be used: there is no"):
        made(server, folder)
    assert not capfd.readouterr().err
