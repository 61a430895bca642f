"""A model rewrites a simulated history: texts that keep all facts pass, all others are rejected."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from shutil import copytree
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.conftest import StartCommand
from tests.optional import missing
from tests.scripted_server import Request, ScriptedServer, failing

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope.cli.write_days import generate
from mnemoscope.cli.writing import Writing
from mnemoscope.datasets.personas import Personas
from mnemoscope.personas.simulate.history_files import write_history
from mnemoscope.personas.simulate.simulator import simulate
from mnemoscope.personas.simulate.story import shipped_story
from mnemoscope.personas.write.from_ledger import HistoryRewriter, SessionNotes, broken, wordings
from mnemoscope.personas.write.llm_writer import TRIES, paid
from mnemoscope.personas.write.persona_files import PersonaFiles, open_persona_files
from mnemoscope.text.fact_ledger import LedgerFact

if importlib.util.find_spec("openai") is None:
    missing("openai is not installed")

DAYS = 24
FROZEN_PROMPTS = "00db119baacd8e3f1837192ef93b4b68f5431674d7b7cf663c029d762d795282"
_STOP = re.compile(r"(?<=[.!?]) (?=[A-Z])")


def notes_in(request: Request) -> str:
    """The notes of a prompt, also of a retry."""
    return request.text.partition("<notes>\n")[2].partition("\n</notes>")[0]


def reworded(notes: str) -> str:
    """Other words with the same values: lists become sentences, each with another beginning."""
    lines = []
    for line in notes.splitlines():
        if line.startswith("- "):
            lines.append(f"Besides that: {line[2:]}")
        elif line and line[0] not in "#>" and line.endswith("."):
            lines.append(" ".join(f"As I recall: {one}" for one in _STOP.split(line)))
        else:
            lines.append(line)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    history = simulate(shipped_story("executive-assistant"), DAYS, 5)
    return write_history(history, tmp_path_factory.mktemp("simulated"))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda request: reworded(notes_in(request))) as running:
        yield running


@pytest.fixture
def writing(source: Path, server: ScriptedServer) -> Writing:
    return Writing(persona=source, model=f"toy@{server.url}")


def from_ledger(writing: Writing, out: Path, *, overwrite: bool = False) -> int:
    return generate(writing=writing, from_ledger=True, out=out, overwrite=overwrite)


def logs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / f"memories-{DAYS}d").iterdir()}


def test_a_rewritten_history_has_the_same_files_and_other_logs(
    source: Path, writing: Writing, server: ScriptedServer, tmp_path: Path
) -> None:
    out = tmp_path / "retold" / "assistant"
    assert from_ledger(writing, out) == 0
    prompts = sorted(f"{one.system}\0{one.text}" for one in server.seen)
    assert sha256("\0".join(prompts).encode()).hexdigest() == FROZEN_PROMPTS
    for name in ("persona.yaml", f"arcs-{DAYS}d.yaml"):
        assert (out / name).read_bytes() == (source / name).read_bytes()
    for name in ("questions.yaml", "ledger.jsonl"):
        paired = f"qa-{DAYS}d/{name}"
        assert (out / paired).read_bytes() == (source / paired).read_bytes()
    assert logs(out).keys() == logs(source).keys()
    assert b"As I recall: " in b"".join(logs(out).values())
    assert not list((out / ".retold").iterdir())
    assert not (source / "account.jsonl").exists()
    [before], [after] = (list(Personas(folder).scenarios()) for folder in (source, out))
    assert before.questions == after.questions
    assert before.checkpoints == after.checkpoints
    assert [(m.id, m.at) for m in before.memories] == [(m.id, m.at) for m in after.memories]


@pytest.fixture(scope="module")
def benchmark(
    start_command: StartCommand, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], Path]:
    """Run the benchmark on a history; its run directory."""

    def run(history: Path) -> Path:
        out = tmp_path_factory.mktemp("runs")
        options = ["--system", "bm25", "--reader", "extractive", "--judge", "ledger"]
        quiet = ["--ranges", "full", "--no-heatmap-png", "--out", out, "--workers", 1]
        leg = start_command(["run", "personas", "--data", history, *options, *quiet])
        assert leg.wait() == 0, leg.output
        return out

    return run


@pytest.fixture(scope="module")
def source_run(source: Path, benchmark: Callable[[Path], Path]) -> Path:
    return benchmark(source)


def test_an_unchanged_rewrite_gives_byte_equal_results(
    source: Path,
    writing: Writing,
    server: ScriptedServer,
    tmp_path: Path,
    benchmark: Callable[[Path], Path],
    source_run: Path,
) -> None:
    server.reply(notes_in)
    out = tmp_path / "same"
    assert from_ledger(writing, out) == 0
    assert logs(out) == logs(source)
    second = benchmark(out)
    for system in ("bm25", "none", "random", "oracle"):
        for file in ("metrics.json", "answers.json", "longitudinal.json"):
            assert (source_run / system / file).read_bytes() == (
                second / system / file
            ).read_bytes()


def test_a_reworded_history_keeps_the_scores_of_oracle_and_random(
    writing: Writing, tmp_path: Path, benchmark: Callable[[Path], Path], source_run: Path
) -> None:
    """Systems that do not read the texts keep their scores."""
    out = tmp_path / "other"
    assert from_ledger(writing, out) == 0
    second = benchmark(out)
    for system in ("none", "random", "oracle"):
        assert _retrieval(source_run / system) == _retrieval(second / system)
    oracle = _retrieval(second / "oracle")
    assert oracle["questions"]["measured"] > 10
    assert oracle["overall"]["recall@10"]["mean"] == 1.0
    assert _scores(second / "oracle") == _scores(source_run / "oracle")


def _retrieval(run: Path) -> dict[str, Any]:
    """Its metrics without the hashes of the files and the tokens of their texts."""
    figures: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    return {name: value for name, value in figures.items() if name not in ("benchmark", "context")}


def _scores(run: Path) -> Any:
    """The scores of the ledger judge, by range and category."""
    [history] = json.loads((run / "result.json").read_text())["personas"]
    return [part["categoryScores"] for part in history["rangeResults"]]


def test_a_reply_without_a_value_is_retried_with_the_reasons_and_then_skipped(
    source: Path, writing: Writing, server: ScriptedServer, tmp_path: Path
) -> None:
    rewriter = HistoryRewriter(open_persona_files(source), tmp_path / "nowhere")
    fact = next(n.facts[0] for d in range(1, DAYS) for n in rewriter.split(d).notes if n.facts)
    about = f"session {fact.session}, with"

    def forget(request: Request) -> str:
        rewritten = reworded(notes_in(request))
        if about in request.text and f"- {fact.value}" in request.text:
            return re.sub(re.escape(fact.value), "something", rewritten, flags=re.IGNORECASE)
        return rewritten

    server.reply(forget)
    out = tmp_path / "out"
    assert from_ledger(writing, out) == 1
    assert sorted(set(logs(source)) - set(logs(out))) == [f"day-{fact.day:04}.md"]
    asked = [r for r in server.seen if about in r.text and f"- {fact.value}" in r.text]
    assert len(asked) == TRIES
    assert f"“{fact.value}” is missing" in asked[-1].text
    before = server.requests
    server.reply(lambda request: reworded(notes_in(request)))
    assert from_ledger(writing, out) == 0
    assert logs(out).keys() == logs(source).keys()
    assert server.requests == before + 1  # the other sessions of the day were kept


def test_a_failed_request_leaves_a_gap_that_the_next_call_fills(
    writing: Writing, source: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    draw = Random(3)
    server.when(lambda request: draw.random() < 0.2, failing(400, "no"), times=6)
    out = tmp_path / "out"
    assert from_ledger(writing, out) == 1
    there = logs(out)
    assert 0 < len(there) < DAYS
    assert from_ledger(writing, out) == 0
    assert logs(out).keys() == logs(source).keys()
    assert there.items() <= logs(out).items()
    assert all(count == 1 for count in server.answered.values())


def test_session_names_may_have_any_characters_and_repeat(
    source: Path, writing: Writing, tmp_path: Path
) -> None:
    history = tmp_path / "history"
    copytree(source, history)
    log = history / f"memories-{DAYS}d" / "day-0003.md"
    named = "# session: ../../../stray"
    log.write_text(f"{log.read_text()}\n{named}\n\nIt rained.\n\n{named}\n\nIt snowed.\n")
    out = tmp_path / "out"

    assert from_ledger(replace(writing, persona=history, start=3, end=3), out) == 0

    retold = (out / f"memories-{DAYS}d" / "day-0003.md").read_text()
    assert retold.endswith(
        f"{named}\n\nAs I recall: It rained.\n\n{named}\n\nAs I recall: It snowed.\n"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"history", "out"}


def test_only_the_requested_days_are_rewritten(writing: Writing, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert from_ledger(replace(writing, start=3, end=5), out) == 0
    assert sorted(logs(out)) == ["day-0003.md", "day-0004.md", "day-0005.md"]


def test_a_prompt_has_the_notes_of_its_session_only(
    source: Path, writing: Writing, server: ScriptedServer, tmp_path: Path
) -> None:
    from_ledger(writing, tmp_path / "out")
    rewriter = HistoryRewriter(open_persona_files(source), tmp_path / "nowhere")
    by_text = {notes_in(request): request for request in server.seen}
    for day in range(1, DAYS + 1):
        for notes in rewriter.split(day).notes:
            request = by_text[notes.text]
            values = request.text.partition("Values to keep:\n")[2].partition("\n\nThe notes")[0]
            assert values.count("- ") >= len(notes.facts)
            assert all(fact.value in values for fact in notes.facts)


def test_the_new_folder_records_the_cost(
    source: Path,
    writing: Writing,
    server: ScriptedServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    priced = replace(writing, model=f"{writing.model}?price_in=10&price_out=10", end=2)
    assert from_ledger(replace(priced, estimate=True), out) == 0
    assert "about $" in capsys.readouterr().out
    assert from_ledger(replace(priced, dry_run=True), out) == 0
    assert "Values to keep:" in capsys.readouterr().out
    assert server.requests == 0
    assert not out.exists()
    assert from_ledger(replace(priced, max_cost=5.0), out) == 0
    assert 0 < paid(out) <= 5.0
    assert not (source / "account.jsonl").exists()


def test_what_cannot_be_rewritten_is_a_usage_error(
    source: Path, writing: Writing, write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="another folder"):
        from_ledger(writing, source)
    other = write_persona(tmp_path) / "tester"
    with pytest.raises(UsageError, match="another --out"):
        from_ledger(writing, other)
    (other / "qa-12d" / "ledger.jsonl").unlink()
    with pytest.raises(MissingData, match="simulate"):
        from_ledger(replace(writing, persona=other), tmp_path / "out")


# Rejected rewrites.


class Material:
    """Every session of a history with its facts in the ledger."""

    def __init__(self, persona: PersonaFiles, nowhere: Path) -> None:
        rewriter = HistoryRewriter(persona, nowhere)
        self.persona = persona
        self.notes = [n for day in range(1, 61) for n in rewriter.split(day).notes]
        self.said = [(notes, fact) for notes in self.notes for fact in notes.facts]
        self.ledger = [fact for _, fact in self.said]
        self.people = [person.name for person in persona.persona.cast]


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    folder = tmp_path_factory.mktemp("material")
    persona = write_history(simulate(shipped_story("financial-advisor"), 60, 11), folder)
    return Material(open_persona_files(persona), folder / "nowhere")


def test_rewrites_that_keep_every_fact_are_accepted(material: Material) -> None:
    for notes in material.notes:
        assert broken(notes, notes.text, material.ledger) == []
        assert broken(notes, reworded(notes.text), material.ledger) == []


def _place(rewritten: str, fact: LedgerFact) -> tuple[int, int]:
    """Where the sentence stands that says it, beside as much as possible of whom and what."""
    found = []
    for line in re.finditer(r"[^\n]+", rewritten):
        cuts = [0, *(m.end() for m in _STOP.finditer(line[0])), len(line[0])]
        quoted = line[0].startswith(">")
        for start, end in [(0, len(line[0]))] if quoted else pairwise(cuts):
            sentence = line[0][start:end].lower()
            if fact.value.lower() in sentence:
                near = sum(n.lower() in sentence for n in (fact.entity, fact.speaker) if n)
                found.append((-near, line.start() + start, line.start() + end))
    assume(found)
    return min(found)[1:]


def _changed(rewritten: str, fact: LedgerFact, old: str, new: str) -> str:
    """The sentence that says the fact, with something replaced in it."""
    start, end = _place(rewritten, fact)
    pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)", re.IGNORECASE)
    sentence, times = pattern.subn(lambda _: new, rewritten[start:end])
    assume(times)
    return rewritten[:start] + sentence + rewritten[end:]


def _drop(material: Material, rewritten: str, fact: LedgerFact, draw: Random) -> str:
    return _changed(rewritten, fact, fact.value, draw.choice(["something", "the usual", "it"]))


def _drop_sentence(material: Material, rewritten: str, fact: LedgerFact, draw: Random) -> str:
    start, end = _place(rewritten, fact)
    return rewritten[:start] + rewritten[end:]


def _off_by_one(material: Material, rewritten: str, fact: LedgerFact, draw: Random) -> str:
    assume(any(map(str.isdigit, fact.value)))
    step = draw.choice([-1, 1])
    new = re.sub(r"\d+", lambda number: str(int(number[0]) + step), fact.value, count=1)
    assume(new not in wordings(fact))
    return _changed(rewritten, fact, fact.value, new)


def _another_value(material: Material, rewritten: str, fact: LedgerFact, draw: Random) -> str:
    other = draw.choice(material.ledger)
    assume(fact.value.lower() not in other.value.lower())
    return _changed(rewritten, fact, fact.value, other.value)


def _another_speaker(material: Material, rewritten: str, fact: LedgerFact, draw: Random) -> str:
    assume(fact.speaker and fact.speaker not in fact.value)
    other = draw.choice([name for name in material.people if name != fact.speaker])
    return _changed(rewritten, fact, fact.speaker, other)


def _another_thing(material: Material, rewritten: str, fact: LedgerFact, draw: Random) -> str:
    assume(fact.entity not in fact.value)
    other = draw.choice(material.ledger).entity
    assume(fact.entity.lower() not in other.lower())
    return _changed(rewritten, fact, fact.entity, other)


def _move_date(material: Material, rewritten: str, fact: LedgerFact, draw: Random) -> str:
    today = material.persona.date_of(fact.day)
    moved = today + timedelta(days=draw.choice([-7, -1, 1, 30]))
    old = f"{today.day} {today:%B} {today.year}"
    assume(old in rewritten)
    return rewritten.replace(old, f"{moved.day} {moved:%B} {moved.year}", 1)


def _tell_of_elsewhere(material: Material, rewritten: str, fact: LedgerFact, draw: Random) -> str:
    other = draw.choice(material.ledger)
    assume((other.day, other.session) != (fact.day, fact.session))
    assume(other.value.lower() not in rewritten.lower())
    return f"{rewritten}\nAs I recall: {other.entity} comes with {other.value}."


def _swap_order(material: Material, rewritten: str, fact: LedgerFact, draw: Random) -> str:
    """Two values of one session change places."""
    near = [o for n, o in material.said if (n.day, n.session) == (fact.day, fact.session)]
    other = draw.choice(near)
    assume(fact.value.lower() not in other.value.lower())
    assume(other.value.lower() not in fact.value.lower())
    gone = _changed(rewritten, fact, fact.value, "\0")
    return _changed(gone, other, other.value, fact.value).replace("\0", other.value)


_FILTERS = [HealthCheck.filter_too_much, HealthCheck.too_slow]
Spoil = Callable[[Material, str, LedgerFact, Random], str]


@pytest.mark.parametrize(
    "spoil",
    [
        _drop,
        _drop_sentence,
        _off_by_one,
        _another_value,
        _another_speaker,
        _another_thing,
        _move_date,
        _tell_of_elsewhere,
        _swap_order,
    ],
)
def test_a_rewrite_that_changes_a_fact_is_rejected(material: Material, spoil: Spoil) -> None:
    @settings(max_examples=25, suppress_health_check=_FILTERS)
    @given(place=st.integers(0, len(material.said) - 1), seed=st.integers(0, 10**6))
    def caught(place: int, seed: int) -> None:
        notes, fact = material.said[place]
        rewritten = reworded(notes.text)
        spoilt = spoil(material, rewritten, fact, Random(seed))
        assume(spoilt != rewritten)
        assert broken(notes, spoilt, material.ledger), (fact, spoilt)

    caught()


@pytest.mark.parametrize(
    ("rewritten", "reason"),
    [
        ("", "empty"),
        ("# Log\n\nMonday. Zeno paid $12k for Alpha.", "begins with #"),
        ("### New\n\nMonday. Zeno paid $12k for Alpha.", "### lines"),
        ("Tuesday. Zeno paid $12k for Alpha.", "Tuesday"),
        ("Monday. Zeno paid $12k for Alpha, 2 times.", "2"),
        ("Monday. Zeno paid. That was $12k for Alpha.", "Zeno"),
        ("Monday. Zeno paid $12,500 for Alpha.", "$12k"),
        ("Monday. Zeno paid $12k for Alpha, not $9k.", "$9k"),
    ],
)
def test_the_reasons_say_what_to_change(rewritten: str, reason: str) -> None:
    fact = LedgerFact("f1", "Alpha", "a.b", "$12k", 3, speaker="Zeno")
    old = LedgerFact("f0", "Alpha", "a.b", "$9k", 1, superseded_by="f1", superseded_on=3)
    notes = SessionNotes(3, "principal", "Monday. Zeno paid $12k for Alpha.", (fact,))
    assert broken(notes, notes.text, [old, fact]) == []
    assert reason in " ".join(broken(notes, rewritten, [old, fact]))
