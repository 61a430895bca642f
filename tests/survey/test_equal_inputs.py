"""A survey gives all systems the same texts and the same embedder, and says what a row is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.integrations.needed import need

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.cli.app import invoke
from mnemoscope.integrations import memory_adapters
from mnemoscope.integrations.catalog import ITEMS
from mnemoscope.integrations.shipped_defaults import SHIPPED
from mnemoscope.models.cache import ContentCache, without_caches
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.survey_table import SurveyRow, measured
from mnemoscope.runner.answer_setup import reopened
from mnemoscope.survey import Profile, SurveyEntry, survey_entries
from mnemoscope.systems.builtin.dense import Dense

_DAYS = 28
_QUESTIONS = 4
_LEGS = "tests.survey.leg_systems:TwoLegs"
_SYSTEMS = ("one=bm25", "other=bm25", "fts5", "dense")
_RUN_FIGURES = ("recall", "low", "high", "memories", "lost", "hits", "untraced", "group", "ranks")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, write_locomo: Callable[..., Path]) -> Path:
    """Conversations whose questions name a day: only a text with its date contains it."""
    place = tmp_path_factory.mktemp("data") / "locomo.json"
    write_locomo(place, conversations=1, sessions=_DAYS, questions=_QUESTIONS)
    samples = json.loads(place.read_text())
    for number, question in enumerate(samples[0]["qa"], 13):
        question |= {"question": f"[2023-05-{number}]", "evidence": [f"D{number}:1"]}
    place.write_text(json.dumps(samples))
    return place


Surveyed = Callable[..., dict[str, SurveyRow]]


@pytest.fixture(scope="module")
def surveyed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Surveyed:
    """Run a survey, and return its rows by name."""

    def run(*systems: str, out: Path | None = None, **options: str) -> dict[str, SurveyRow]:
        out = out or tmp_path_factory.mktemp("survey")
        words = ["systems", "survey", "--data", str(data), "--out", str(out), "--no-check"]
        words += [word for one in systems for word in ("--system", one)]
        words += [word for name, value in options.items() for word in (f"--{name}", value)]
        assert invoke(words) == 0
        rows = msgspec.json.decode((out / "survey.json").read_bytes(), type=list[SurveyRow])
        return {row.shown: row for row in rows}

    return run


@pytest.fixture(scope="module")
def undated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("undated")


@pytest.fixture(scope="module")
def both(surveyed: Surveyed, undated: Path) -> Mapping[str, dict[str, SurveyRow]]:
    """The rows without and with dates, of the same systems."""
    off = surveyed(*_SYSTEMS, _LEGS, out=undated, dates="off")
    return {"off": off, "on": surveyed(*_SYSTEMS, dates="on")}


def _figures(row: SurveyRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _RUN_FIGURES}


@pytest.mark.parametrize("dates", ["off", "on"])
def test_the_same_system_under_two_names_has_the_same_figures(
    both: Mapping[str, dict[str, SurveyRow]], dates: str
) -> None:
    one, other = both[dates]["one · bm25"], both[dates]["other · bm25"]
    assert one.hits > 0 or dates == "off"
    assert _figures(one) == _figures(other)


def test_dates_move_all_rows_alike(both: Mapping[str, dict[str, SurveyRow]]) -> None:
    names = ("one · bm25", "other · bm25", "fts5")
    assert {both["off"][name].recall for name in names} == {0.0}
    assert {both["on"][name].recall for name in names} == {1.0}
    dense = "dense · wordllama"
    assert (both["on"][dense].recall or 0) > (both["off"][dense].recall or 0)


def test_dates_move_real_systems_like_the_built_in_ones(surveyed: Surveyed) -> None:
    """An adapter that wrote dates on its own would find the days without --dates on."""
    need("sqlite-vec")
    systems = ("bm25", "sqlite-vec,legs=text")
    for dates, recall in (("off", 0.0), ("on", 1.0)):
        rows = surveyed(*systems, dates=dates)
        assert {name: row.recall for name, row in rows.items()} == dict.fromkeys(systems, recall)


def test_no_adapter_and_no_shipped_mapping_writes_a_date_into_a_text() -> None:
    adapters = Path(str(memory_adapters.__file__)).parent
    mappings = adapters.parent.parent / "connectors" / "mcp" / "mappings"
    sources = [*adapters.glob("*.py"), *mappings.glob("*.yaml")]
    assert len(sources) > 20
    for source in sources:
        text = source.read_text()
        assert "dated_text" not in text, source
        assert "at.date()" not in text, source


def test_a_run_with_dates_is_read_again_with_them(
    surveyed: Surveyed, data: Path, tmp_path: Path
) -> None:
    surveyed("fts5", out=tmp_path, dates="on")
    dataset = reopened(RunDirectory(tmp_path / "fts5").manifest(), data)
    [scenario] = dataset.scenarios()
    assert {memory.text[:13] for memory in scenario.memories} == {
        f"[2023-05-{day:02}] " for day in range(1, _DAYS + 1)
    }


def test_a_leg_that_never_answers_is_reported(both: Mapping[str, dict[str, SurveyRow]]) -> None:
    row = both["off"][_LEGS]
    # Without the warm-up question.
    assert row.legs == {"first": (_QUESTIONS, _QUESTIONS), "equal": (0, _QUESTIONS)}
    assert f"{_LEGS}: its equal leg never answered ({_QUESTIONS} questions): " in " ".join(
        row.notes
    )
    assert "first leg" not in " ".join(row.notes)


def test_a_warm_cache_does_not_shorten_the_ingestion(
    both: Mapping[str, dict[str, SurveyRow]],
    surveyed: Surveyed,
    undated: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "cache"))  # other tests embed these texts
    run = RunDirectory(undated / "dense")
    [scenario] = reopened(run.manifest(), data).scenarios()
    for reused in (0, _DAYS):  # a survey does not fill the cache either
        dense = Dense()
        dense.reset("warm")
        dense.remember(scenario.memories)
        dense.ready()
        assert dense.stats()["vectors_reused"] == reused
    surveyed("dense", out=tmp_path / "again")
    counted = RunView.of(RunDirectory(tmp_path / "again" / "dense")).timing["counters"]
    assert (counted["texts_embedded"], counted.get("vectors_reused", 0)) == (_DAYS, 0)


def test_times_of_a_run_that_used_caches_are_not_shown(
    both: Mapping[str, dict[str, SurveyRow]], undated: Path
) -> None:
    """The cheat: a run that was made with a warm cache is found in the survey's folder."""
    view = RunView.of(RunDirectory(undated / "dense"))
    assert measured(view, (), "dense")["memories_per_s"]
    warm = replace(view, timing={**view.timing, "counters": {"vectors_reused": 28}})
    row = measured(warm, (), "dense")
    assert row["memories_per_s"] is None
    assert "28 texts came from our caches" in str(row["notes"])


def test_without_caches_equal_texts_are_computed_again(tmp_path: Path) -> None:
    def compute(texts: list[str]) -> list[bytes]:
        return [text.encode() for text in texts]

    warm = ContentCache(tmp_path / "c.sqlite", "n")
    warm.get_or_compute(["a", "b"], compute)
    with without_caches():
        off = ContentCache(tmp_path / "c.sqlite", "n")
    assert off.get_or_compute(["a", "a", "b"], compute) == [b"a", b"a", b"b"]
    assert (off.computed, off.reused) == (3, 0)
    again = ContentCache(tmp_path / "c.sqlite", "n")
    again.get_or_compute(["a"], compute)
    assert (again.computed, again.reused) == (0, 1)


def _rows(system: str, profile: Profile = "both", embedder: str = "wordllama") -> list[SurveyEntry]:
    return survey_entries([Spec.labelled(system)], profile, embedder)


@pytest.mark.parametrize(
    ("system", "name"),
    [
        ("bm25", "bm25"),
        ("dense", "dense · wordllama"),
        ("mem0", "mem0 · no LLM · wordllama"),
        ("mem0,llm=openai:x", "mem0 · no LLM · wordllama"),
        ("mem0,infer=on,llm=openai:x", "mem0,infer=on · openai:x · wordllama"),
        ("mine=lightrag,model=minilm", "mine · lightrag · no LLM · minilm"),
        ("postgres,legs=text", "postgres,legs=text"),
        ("stdio:python a.py", "stdio:python a.py"),
    ],
)
def test_a_row_is_named_by_what_it_is(system: str, name: str) -> None:
    [entry] = _rows(system, "controlled")
    assert entry.name == name


def test_all_systems_get_the_same_embedder_unless_a_row_says_otherwise() -> None:
    specs = ["dense", "hybrid", "bm25", "qdrant", "chroma,model=wordllama", "server-memory"]
    entries = survey_entries([Spec.parse(one) for one in specs], "controlled", "minilm")
    assert [(entry.name, entry.profile) for entry in entries] == [
        ("dense · minilm", "controlled"),
        ("hybrid · minilm", "controlled"),
        ("bm25", "controlled"),
        ("qdrant · minilm", "controlled"),
        ("chroma · wordllama", "as given"),
        ("server-memory · whole query", "controlled"),
        ("server-memory · word by word", "controlled"),
    ]


def test_the_profiles_stand_side_by_side() -> None:
    assert [(one.name, one.profile) for one in _rows("chroma")] == [
        ("chroma · wordllama", "controlled"),
        ("chroma · minilm", "as shipped"),
    ]
    assert [(one.name, one.profile) for one in _rows("qdrant")] == [("qdrant · wordllama", "both")]
    assert [one.profile for one in _rows("chroma", embedder="minilm")] == ["both"]
    assert [one.name for one in _rows("chroma", "as-shipped")] == ["chroma · minilm"]
    controlled, shipped = _rows("mem0")
    assert (controlled.unavailable, shipped.profile) == ("", "as shipped")
    assert "OpenAI" in shipped.unavailable


def test_the_folders_of_a_labelled_system_differ() -> None:
    assert [one.spec.slug for one in _rows("x=chroma")] == ["x", "x-as-shipped"]
    assert [one.spec.slug for one in _rows("x=server-memory")] == ["x-whole", "x-keywords"]


def test_the_defaults_of_every_system_that_can_run_are_stated() -> None:
    assert SHIPPED.keys() == {name for name, item in ITEMS.items() if not item.untested}


def test_what_cannot_run_is_a_row_with_its_reason(
    surveyed: Surveyed, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = surveyed("mem0", profile="as-shipped")
    assert rows["mem0"].unavailable
    assert rows["mem0"].recall is None
    assert "mem0, as shipped, cannot run here: its defaults are" in " ".join(
        capsys.readouterr().out.split()
    )
