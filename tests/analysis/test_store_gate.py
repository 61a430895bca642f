"""`mnemoscope gate STORE`: a store that changed, asked the questions of a baseline."""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from tests.analysis import rewritten_store
from tests.analysis.rewritten_store import WAYS, Lines, Rewritten, example, gold, write
from tests.conftest import REPOSITORY, WORDS

import mnemoscope as ms
from mnemoscope._store.errors import DataError, EditedRun, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.compare import NotComparable
from mnemoscope.analysis.store_bridge import (
    DeclaredSuccessors,
    KeptStore,
    StoreBridge,
    keep_store,
)
from mnemoscope.analysis.store_gate import StoreGate, baseline_questions
from mnemoscope.api.kept_memories import kept_memories
from mnemoscope.cli.app import invoke
from mnemoscope.datasets.changed_store import read_store
from mnemoscope.reports.store_gate_outputs import store_gate_comment
from mnemoscope.text.memory_sketch import SketchKey, carried_by, sketches
from mnemoscope.types import Memory, Query, Question, Scenario

Gate = Callable[..., StoreGate]


class Silent:
    """A system whose every recall fails."""

    def remember(self, memories: list[Memory]) -> None: ...

    def recall(self, query: Query, k: int) -> list[str]:
        raise RuntimeError("no recall today")


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bm25 on the store before it changed; the store itself is deleted afterwards."""
    folder = tmp_path_factory.mktemp("baseline")
    write(folder / "store", example())
    for name in ("queries.jsonl", "qrels.jsonl"):
        shutil.copy(rewritten_store.EXAMPLE / name, folder / "store")
    results = ms.run("strata", systems=["bm25"], data=folder / "store", out=folder / "runs",
                     baselines=False, workers=1)  # fmt: skip
    shutil.rmtree(folder / "store")
    return results["bm25"].path


@pytest.fixture
def gate(baseline: Path, tmp_path: Path) -> Gate:
    def run(lines: Lines, **options: Any) -> StoreGate:
        store = write(tmp_path / "store", lines)
        return ms.gate_store(store, baseline=baseline, out=tmp_path / "runs", workers=1, **options)

    return run


def followed(baseline: Path, changed: Rewritten, folder: Path) -> dict[str, str]:
    """The method by which each gold memory is followed, without a run."""
    run = RunDirectory(baseline)
    store = read_store(write(folder, changed.lines), "strata")
    known = {old: [] if new is None else [str(new)] for old, new in (changed.id_map or {}).items()}
    bridge = StoreBridge(
        kept_memories(run, None), store.memories, DeclaredSuccessors(known, store.superseded)
    )
    found = bridge.follow(baseline_questions(run).gold)
    return {id: one.method for id, one in found.items()}


def missing(methods: dict[str, str]) -> set[int]:
    return {int(id) for id, method in methods.items() if method == "missing"}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_rewritten_store_that_lost_nothing_passes(
    way: Callable[..., Rewritten], gate: Gate
) -> None:
    changed = way(example(), loses=False)

    found = gate(changed.lines, id_map=changed.id_map)

    assert found.passed, found.reasons
    assert (found.missing, found.compared, found.left_out) == ([], 48, 0)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_planted_loss_is_found_and_nothing_else(
    way: Callable[..., Rewritten], baseline: Path, tmp_path: Path
) -> None:
    changed = way(example(), loses=True)

    assert changed.lost
    assert missing(followed(baseline, changed, tmp_path / "store")) == changed.lost


def test_a_planted_loss_fails_the_gate_and_is_named(gate: Gate) -> None:
    changed = rewritten_store.split(example(), loses=True)

    found = gate(changed.lines)

    assert not found.passed
    assert found.reasons == ["3 gold memories are missing"]
    assert found.needed_by["139"] == ["exact_006"]
    assert found.left_out == 2, "questions of which nothing is left"


def test_missing_gold_is_left_out_on_both_sides_by_choice(gate: Gate) -> None:
    changed = rewritten_store.half_deleted(example(), loses=True)

    found = gate(changed.lines, missing_gold="leave-out")

    assert found.passed
    assert {int(one.memory) for one in found.missing} == changed.lost
    assert 0 < found.compared < 48
    assert found.compared + found.left_out == 48
    assert found.primary is not None
    # bm25 finds the rest as before: what is missing does not lower the baseline either.
    assert found.primary.delta >= 0


def test_the_second_set_of_rewordings_was_held_back(baseline: Path) -> None:
    """What the bridge does with texts that it was not changed for, errors included."""
    rows = rewritten_store.rewordings("second")
    key = SketchKey("held back")
    texts = {str(line["id"]): line["content"] for line in example()}
    kept = sketches(texts, [str(row["id"]) for row in rows], key)

    def is_followed(row: dict[str, Any], kind: str) -> bool:
        sketch = kept[str(row["id"])]
        return not carried_by(sketch, key.parts(row[kind], sketch.words)).problem

    assert [row["id"] for row in rows if is_followed(row, "gone")] == []
    assert [row["id"] for row in rows if not is_followed(row, "kept")] == [101]


LEASE = "The lease of the flat in Harbour Street ends on 30 June 2027; Ms Okafor has the keys."
CHEATS = {
    "another number": LEASE.replace("2027", "2028"),
    "another day": LEASE.replace("30", "13"),
    "no number": LEASE.replace("on 30 June 2027", "soon"),
    "another month": LEASE.replace("June", "July"),
    "another name": LEASE.replace("Okafor", "Adeyemi"),
    "denied": "The lease of the flat in Harbour Street does not end on 30 June 2027, and Ms Okafor "
    "does not have the keys.",
    "a list of its words": "flat 30 of lots of other words that say nothing at all about it but "
    "are there to make this text long enough for a window of words to pass lease by and then June "
    "some more filler text which goes on and on until the next of the words is due which is street "
    "and then again a long row of empty words in front of 2027 and Harbour, then Okafor keys",
    "a stub": "The lease ends.",
    "an empty text": "",
}


def bridge_of(texts: dict[str, str], now: dict[str, str], **declared: Any) -> StoreBridge:
    """A bridge for a store in which every memory is gold."""
    memories = tuple(Memory(id, text) for id, text in texts.items())
    asked = Question("q", "when?", evidence=tuple(texts))
    kept = keep_store(Scenario("s", memories, (asked,)), "key")
    new = [Memory(id, text) for id, text in now.items()]
    return StoreBridge(kept, new, DeclaredSuccessors(**declared))


NOISE = {"n1": "The plumber fixed the boiler in March.", "n2": "Ana likes the tile museum."}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_memory_whose_information_is_gone_is_not_followed(cheat: str) -> None:
    bridge = bridge_of({"1": LEASE, **NOISE}, {"1": CHEATS[cheat], **NOISE})

    found = bridge.follow(["1", "n1"])

    assert found["1"].method == "missing", found["1"]
    assert found["1"].why
    assert found["n1"].method == "same text"


@pytest.mark.parametrize(
    ("before", "now", "method"),
    [
        ("We agreed on 4 May to move the index to Postgres soon.", "4 April", "missing"),
        ("You may ask 4 people to move the index to Postgres soon.", "can ask", "reworded"),
        ("Only one of us has to move the index to Postgres soon.", "Only Kim", "reworded"),
    ],
)
def test_may_is_a_month_or_a_verb_and_one_is_seldom_a_number(
    before: str, now: str, method: str
) -> None:
    old = {"4 April": "4 May", "can ask": "may ask", "Only Kim": "Only one"}[now]
    bridge = bridge_of({"1": before, **NOISE}, {"1": before.replace(old, now), **NOISE})

    assert bridge.follow(["1"])["1"].method == method


def test_an_id_that_now_belongs_to_another_memory_is_not_trusted() -> None:
    bridge = bridge_of({"1": LEASE, **NOISE}, {"1": NOISE["n1"], "n1": LEASE})

    found = bridge.follow(["1", "n1", "n2"])

    assert [found[id].ids for id in ("1", "n1", "n2")] == [["n1"], ["1"], []]


def test_a_memory_that_the_baseline_had_does_not_become_gold() -> None:
    """Else a loss of rank could hide behind a memory that never counted."""
    longer = f"{LEASE} The landlord wants three months of notice."

    bridge = bridge_of({"1": LEASE, "2": longer}, {"1": LEASE, "2": longer})
    new = bridge_of({"1": LEASE}, {"1": LEASE, "2": longer})

    assert bridge.follow(["1"])["1"].ids == ["1"]
    assert new.follow(["1"])["1"].ids == ["1", "2"]


def test_what_the_store_declares_about_its_ids_needs_words_of_a_memory_that_is_gone() -> None:
    """After renumbering, an id that a store supersedes may be that of another memory."""
    now = {"8": "Since May the boiler is new.", "9": "The lease in Harbour Street ends in 2028."}
    bridge = bridge_of({"1": LEASE, "n1": NOISE["n1"]}, now, superseded={"1": ["8", "9"]})

    assert bridge.follow(["1"])["1"].ids == ["9"]


def test_an_id_map_may_swap_ids_and_chains_end_in_the_store() -> None:
    swap = {"1": ["n1"], "n1": ["1"], "n2": ["gone"], "gone": ["n3"]}
    now = {"1": "x", "n1": "y", "n3": "z"}
    bridge = bridge_of({"1": LEASE, **NOISE}, now, id_map=swap)

    found = bridge.follow(["1", "n1", "n2"])

    assert [found[id].ids for id in ("1", "n1", "n2")] == [["n1"], ["1"], ["n3"]]


def test_memories_that_supersede_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="supersede each other: "):
        bridge_of({"1": LEASE}, {"1": LEASE, "2": "x"}, superseded={"1": ["2"], "2": ["1"]})


def test_a_store_that_names_an_unknown_successor_is_refused_with_its_line(tmp_path: Path) -> None:
    store = write(tmp_path, [{"id": 1, "content": "a"}, {"id": 2, "content": "b",
                                                         "superseded_by": 7}])  # fmt: skip

    with pytest.raises(DataError, match=r"line 2: memory 2 is superseded by 7, which is not"):
        read_store(store, "strata")


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ({"is_sensitive": 1}, "sensitive"),
        # A store that only marks what it deletes would lose nothing.
        ({"deleted_at": "2027-01-02"}, "deleted"),
        ({"is_deleted": True}, "deleted"),
    ],
)
def test_sensitive_and_deleted_memories_are_refused(
    flag: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    store = write(tmp_path, [{"id": 1, "content": "a", **flag}])

    with pytest.raises(DataError, match=reason):
        read_store(store, "strata")


def test_another_form_of_the_same_characters_is_the_same_text() -> None:
    before = unicodedata.normalize("NFD", "Zoë lives in Zürich.")
    bridge = bridge_of({"1": before}, {"2": unicodedata.normalize("NFC", before)})

    assert bridge.follow(["1"])["1"].method == "same text"


def test_the_comment_shows_what_an_id_map_redirects(gate: Gate) -> None:
    """Else a pull request could send the question of a deleted memory to any other one."""
    lines = [one for one in example() if one["id"] != 101]

    found = gate(lines, id_map={"101": "102"})

    assert not found.missing
    assert "`101 → 102 (declared)`" in store_gate_comment(found)


def test_exact_only_follows_nothing_in_other_words(gate: Gate) -> None:
    changed = rewritten_store.reworded(example(), loses=False)

    found = gate(changed.lines, bridge="exact")

    assert len(found.missing) == 16


def test_a_system_that_fails_does_not_pass(gate: Gate) -> None:
    """Failed questions would else be left out, and nothing would be worse."""
    found = gate(example(), system=Silent)

    assert not found.passed
    assert found.failed == 48
    assert "recall@10" in found.worse
    assert found.primary is not None and found.primary.cand == 0


def test_a_worse_system_and_a_buried_store_fail(gate: Gate, tmp_path: Path) -> None:
    questions = [
        json.loads(line)["text"]
        for line in (rewritten_store.EXAMPLE / "queries.jsonl").read_text().splitlines()
    ]
    echoes = [
        {"id": 10_000 + number, "content": f"{text} {copy}"}
        for number, (text, copy) in enumerate((t, c) for t in questions for c in range(12))
    ]

    found = gate([*example(), *echoes])

    assert not found.passed
    assert found.missing == [], "nothing is lost, but it is not found any more"
    assert found.new == len(echoes)
    assert "recall@10" in found.worse
    assert found.lost


def test_a_limit_on_the_mean_fails_where_an_interval_is_too_wide(gate: Gate) -> None:
    changed = rewritten_store.translated_ids(example(), loses=False)

    found = gate(changed.lines, id_map=changed.id_map, max_drop={"recall@10": 0.001})

    assert found.worse == []
    assert [(row.metric, row.passed) for row in found.limits] == [("recall@10", False)]
    assert not found.passed


def test_merged_memories_of_a_question_take_the_places_that_they_had(gate: Gate) -> None:
    changed = rewritten_store.merged(example(), loses=False)

    found = gate(changed.lines)

    assert found.gold["merged"] == 10
    assert found.primary is not None
    assert found.primary.n == 48
    assert found.primary.base == pytest.approx(0.6840, abs=1e-4), "the baseline's own figure"


def test_a_store_in_one_memory_does_not_answer_every_question(gate: Gate) -> None:
    """The cheat: everything is there, and the only hit is always right."""
    everything = "\n\n".join(line["content"] for line in example())

    found = gate([{"id": 1, "content": everything}])

    assert found.missing == [], "nothing is lost"
    assert not found.passed
    assert "recall@10" in found.worse
    assert found.primary is not None
    assert found.primary.cand == 0


def test_the_new_run_can_be_the_next_baseline(gate: Gate, baseline: Path, tmp_path: Path) -> None:
    changed = rewritten_store.renumbered(example(), loses=False)
    first = gate(changed.lines)

    second = ms.gate_store(
        write(tmp_path / "again", example()),
        baseline=first.run,
        out=tmp_path / "later",
        workers=1,
    )

    assert second.passed
    assert second.gold == {"same text": 54}


def test_a_baseline_keeps_no_text_of_a_memory(baseline: Path) -> None:
    kept = (baseline / "kept_store.json").read_text()

    words = {word for line in example() for word in line["content"].split() if len(word) > 5}
    assert len(words) > 300
    assert [word for word in words if word in kept] == []


def test_an_edited_sketch_is_refused(baseline: Path, tmp_path: Path) -> None:
    """The cheat: take a lost memory out of what the baseline kept."""
    copy = tmp_path / "copied" / "bm25"
    shutil.copytree(baseline, copy)
    content = json.loads((copy / "kept_store.json").read_text())
    content["memories"].pop("118")
    (copy / "kept_store.json").write_text(json.dumps(content))

    with pytest.raises(EditedRun, match=r"kept_store\.json"):
        ms.gate_store(write(tmp_path / "store", example()), baseline=copy)


@pytest.fixture
def older(baseline: Path, tmp_path: Path) -> Iterator[Path]:
    """A baseline that kept nothing, as an older version made it."""
    copy = tmp_path / "older" / "bm25"
    shutil.copytree(baseline, copy)
    RunDirectory(copy).write_files({"kept_store.json": None})
    yield copy


def test_without_a_sketch_the_data_of_the_baseline_are_needed(older: Path, tmp_path: Path) -> None:
    store = write(tmp_path / "store", example())
    with pytest.raises(NotComparable, match="name a copy with --baseline-data"):
        ms.gate_store(store, baseline=older)
    for name in ("queries.jsonl", "qrels.jsonl"):
        shutil.copy(rewritten_store.EXAMPLE / name, store)

    found = ms.gate_store(store, baseline=older, baseline_data=store, out=tmp_path / "runs")

    assert found.passed
    (store / "corpus.jsonl").write_text('{"id": 118, "content": "other"}\n')
    with pytest.raises(NotComparable, match=r"relevant ids|sha256"):
        ms.gate_store(store, baseline=older, baseline_data=store)


def test_wrong_maps_and_stores_are_usage_errors(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = write(tmp_path / "store", example())
    wrong = tmp_path / "map.json"
    for content, problem in (
        ('{"1": "2"}', "the baseline has no memory '1'"),
        ('{"118": "nope"}', "the store has no memory 'nope'"),
        ("[1]", "expected"),
    ):
        wrong.write_text(content)
        with pytest.raises(DataError, match=problem):
            ms.gate_store(store, baseline=baseline, id_map=wrong)

    for drop in ({"recall@99": 0.1}, {"recall@10": -0.1}):
        with pytest.raises(UsageError, match=r"has no metric 'recall@99'|must be zero or more"):
            ms.gate_store(store, baseline=baseline, max_drop=drop, out=tmp_path / "never")
    assert not (tmp_path / "never").exists(), "nothing was asked"
    assert invoke(["gate", str(tmp_path / "no"), "--baseline", str(baseline)]) == 2
    assert invoke(["gate", str(baseline), "--baseline", str(baseline), "--system", "bm25"]) == 2
    assert "--system is for a store" in capsys.readouterr().err
    assert invoke(["gate", str(tmp_path), "--baseline", str(baseline)]) == 2
    assert "neither a run" in capsys.readouterr().err
    assert invoke(["gate", str(store), "--baseline", str(baseline.parent)]) != 0
    assert f"did you mean {baseline}?" in capsys.readouterr().err


HOSTILE = "<img src=x onerror=alert(1)> `@org/all` #1 | [x](http://e.com)\x1b[31m\n## title\n-->"


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path]:
    """A store whose questions try to act, and of which one memory is gone."""
    notes = [{"id": n, "content": f"a note about {word}"} for n, word in enumerate(WORDS[:8])]
    store = write(tmp_path / "hostile", notes)
    queries = [
        {"query_id": f"q{n} {HOSTILE}", "text": f"{word} {HOSTILE}", "stratum": "exact"}
        for n, word in enumerate(WORDS[:6])
    ]
    qrels = [{"query_id": one["query_id"], "relevant_ids": [n]} for n, one in enumerate(queries)]
    for name, rows in (("queries", queries), ("qrels", qrels)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (store / f"{name}.jsonl").write_text(text)
    out = tmp_path / "base"
    ms.run("strata", systems=["bm25"], data=store, out=out, depth=1, baselines=False, workers=1)
    lines = [
        *notes[1:],
        *({"id": 100 + n, "content": one["text"]} for n, one in enumerate(queries)),
    ]
    return write(store, lines), tmp_path / "base" / "bm25"


def test_texts_of_questions_do_not_act_in_any_output(
    hostile: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, base = hostile
    files = {name: tmp_path / name for name in ("gate.xml", "gate.md", "comment.md", "badge.svg")}
    options = zip(("--junit", "--summary", "--comment", "--badge"), files.values(), strict=True)

    code = invoke(
        ["gate", str(store), "--baseline", str(base), "--out", str(tmp_path / "new"),
         *(str(part) for pair in options for part in pair)]
    )  # fmt: skip

    assert code == 1
    told = {name: file.read_text() for name, file in files.items()}
    printed = capsys.readouterr().out
    assert not any("\x1b[31m" in text for text in (*told.values(), printed))
    cases = ElementTree.fromstring(told["gate.xml"])
    assert cases.find(".//failure") is not None
    comment = told["comment.md"]
    assert comment.startswith("<!-- mnemoscope-gate -->\n")
    assert "Lost questions: 5" in comment
    for text in (comment, told["gate.md"]):
        assert "\n## title" not in text
    for line in comment.splitlines():
        if "@org/all" in line:  # only inside code, where nobody is called
            before = line[: line.index("@org/all")]
            assert before.count("``") % 2 == 1, line
    assert "<img" not in told["gate.md"]
    ElementTree.fromstring(told["badge.svg"])


def test_ids_only_keeps_the_texts_of_questions_out_of_every_output(
    hostile: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, base = hostile
    comment = tmp_path / "c.md"

    invoke(["gate", str(store), "--baseline", str(base), "--out", str(tmp_path / "new"),
            "--ids-only", "--json", "--comment", str(comment)])  # fmt: skip

    printed = capsys.readouterr().out
    found = json.loads(printed)
    assert found["lost"]
    assert all(one["text"] == "" for one in found["lost"])
    assert f"{WORDS[2]} <img" not in comment.read_text() + printed
    schema = json.loads((REPOSITORY / "docs" / "schemas" / "store-gate.json").read_text())
    jsonschema.validate(found, schema)


def test_a_badge_needs_a_known_ending(baseline: Path, tmp_path: Path) -> None:
    arguments = ["gate", str(baseline), "--baseline", str(baseline), "--max-drop", "recall@10=0"]
    badge = tmp_path / "badge.json"

    assert invoke([*arguments, "--badge", str(badge)]) == 0
    assert json.loads(badge.read_text())["message"] == "passed, recall@10 0.68"
    assert invoke([*arguments, "--badge", str(tmp_path / "badge.png")]) == 2


def test_the_gold_of_the_example_is_what_these_tests_believe() -> None:
    assert len(gold()) == 54
    assert isinstance(KeptStore("k", {}, {}), KeptStore)
