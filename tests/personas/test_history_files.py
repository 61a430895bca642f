"""Simulated histories on disk: the same bytes each time, readable, never overwritten."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope._store.yaml import dump_yaml, load_yaml, parse_yaml
from mnemoscope.cli.personas import app
from mnemoscope.personas.authored_question import AuthoredQuestion
from mnemoscope.personas.simulate.history_files import history_files, list_histories, write_history
from mnemoscope.personas.simulate.simulator import simulate
from mnemoscope.personas.simulate.story import SHIPPED, shipped_story
from mnemoscope.text.fact_ledger import Ledger


def mnemoscope(*arguments: str) -> Any:
    return app(arguments, exit_on_error=False, result_action="return_value")


def written(question: AuthoredQuestion) -> Any:
    """As it is read from YAML: lists, no tuples."""
    return msgspec.json.decode(msgspec.json.encode(question))


def everything(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_history_has_the_same_bytes_for_any_number_of_jobs(tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        out = str(tmp_path / jobs)
        mnemoscope("simulate", "all", "--days", "25", "--seed", "5", "--jobs", jobs, "--out", out)
    one, two = everything(tmp_path / "1"), everything(tmp_path / "2")
    assert one == two
    assert {Path(name).parts[0] for name in one} == set(SHIPPED)


def test_a_folder_has_the_files_of_recall_bench(tmp_path: Path) -> None:
    history = simulate(shipped_story("executive-assistant"), 40, 3)
    folder = write_history(history, tmp_path)
    assert folder == tmp_path / "executive-assistant"
    days = sorted(path.name for path in (folder / "memories-40d").iterdir())
    assert days == [f"day-{day:04}.md" for day in range(1, 41)]
    persona = load_yaml(folder / "persona.yaml")
    assert persona["id"] == "executive-assistant"
    assert persona["sessions"][0]["id"] == "principal"
    arcs = load_yaml(folder / "arcs-40d.yaml")
    assert arcs["epoch"] == history.epoch.isoformat()
    assert [arc["id"] for arc in arcs["arcs"]] == [arc.id for arc in history.arcs]
    corrections = [arc for arc in arcs["arcs"] if "wrongDay" in arc]
    assert all(arc["wrongDay"] < arc["correctedDay"] for arc in corrections)


def test_questions_and_ledger_can_be_read_back(tmp_path: Path) -> None:
    history = simulate(shipped_story("backend-eng-saas"), 60, 3)
    folder = write_history(history, tmp_path)
    assert load_yaml(folder / "qa-60d" / "questions.yaml") == list(map(written, history.questions))
    ledger = Ledger.read(folder / "qa-60d" / "ledger.jsonl", date(2026, 1, 5))
    assert tuple(ledger.facts.values()) == history.facts


def test_a_day_beyond_the_ten_thousandth_has_a_longer_number() -> None:
    short = simulate(shipped_story("backend-eng-saas"), 20, 1)
    history = replace(short, days=10_001, daily_logs=("",) * 10_001)
    names = history_files(history)
    assert "memories-10001d/day-9999.md" in names
    assert "memories-10001d/day-10001.md" in names


def test_writing_the_same_again_changes_nothing(tmp_path: Path) -> None:
    history = simulate(shipped_story("backend-eng-saas"), 20, 3)
    write_history(history, tmp_path)
    before = everything(tmp_path)
    write_history(history, tmp_path)
    assert everything(tmp_path) == before


def test_another_history_does_not_overwrite_this_one_unless_forced(tmp_path: Path) -> None:
    story = shipped_story("backend-eng-saas")
    write_history(simulate(story, 20, 1), tmp_path)
    before = everything(tmp_path)
    other = simulate(story, 20, 2)
    with pytest.raises(UsageError, match=r"arcs-20d.yaml is there already.*--force"):
        write_history(other, tmp_path)
    assert everything(tmp_path) == before
    write_history(other, tmp_path, force=True)
    written = {name.partition("/")[2]: content for name, content in everything(tmp_path).items()}
    assert written == history_files(other)


def test_a_stray_day_in_the_folder_is_refused_and_removed_when_forced(tmp_path: Path) -> None:
    history = simulate(shipped_story("backend-eng-saas"), 20, 1)
    stray = write_history(history, tmp_path) / "memories-20d" / "day-0021.md"
    stray.write_text("not of this history")
    with pytest.raises(UsageError, match=r"day-0021\.md"):
        write_history(history, tmp_path)
    write_history(history, tmp_path, force=True)
    assert not stray.exists()


def test_histories_of_two_lengths_share_a_folder(tmp_path: Path) -> None:
    story = shipped_story("backend-eng-saas")
    for days in (20, 30):
        write_history(simulate(story, days, 1), tmp_path)
    found = list_histories(tmp_path)
    assert [(one.arcs, one.days) for one in found] == [
        ("arcs-20d.yaml", 20),
        ("arcs-30d.yaml", 30),
    ]
    assert list_histories(tmp_path / "backend-eng-saas") == found
    assert all(one.ledger and one.questions for one in found)


def test_a_users_story_is_simulated_from_its_path(tmp_path: Path) -> None:
    import mnemoscope.personas.simulate.story as stories

    path = Path(stories.__file__).parent / "stories" / "backend-eng-saas.yaml"
    own = tmp_path / "own.yaml"
    own.write_text(path.read_text(encoding="utf-8").replace("id: backend-eng-saas", "id: mine"))
    mnemoscope("simulate", str(own), "--days", "20", "--out", str(tmp_path / "personas"))
    assert (tmp_path / "personas" / "mine" / "memories-20d" / "day-0020.md").exists()


def test_list_shows_the_shipped_stories(capsys: pytest.CaptureFixture[str]) -> None:
    mnemoscope("list", "--json")
    printed = capsys.readouterr().out
    assert all(f'"{persona}"' in printed for persona in SHIPPED)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nobody", "--out", "x"), "unknown persona 'nobody': give one of backend-eng-saas"),
        (("none.yaml", "--out", "x"), "none.yaml does not exist"),
        (("backend-eng-saas", "--days", "0", "--out", "x"), "between 1 and 100,000"),
        (("all", "--jobs", "0", "--out", "x"), "--jobs 0"),
    ],
)
def test_a_wrong_argument_is_named(arguments: tuple[str, ...], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        mnemoscope("simulate", *arguments)


def test_a_folder_without_personas_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains no personas"):
        mnemoscope("list", "--data", str(tmp_path))


def test_yaml_that_is_written_is_the_same_when_read() -> None:
    awkward = [{"question": "What: is 6:30?", "answer": "2026-05-10", "days": [1, 2], "no": "on"}]
    assert parse_yaml(dump_yaml(awkward), Path("awkward.yaml")) == awkward
