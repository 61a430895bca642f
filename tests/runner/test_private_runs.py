"""A private run has ids and figures only, in every file, and its figures are the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pytest
from tests.importers.scanned_files import files_with
from tests.importers.sources import files, imported
from tests.optional import missing
from tests.viewer.viewed_runs import Viewed

import mnemoscope as ms
from mnemoscope._store.errors import RunConflict, UsageError
from mnemoscope._store.private_files import is_private_run
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.cli.app import invoke
from mnemoscope.connectors import child_process
from mnemoscope.connectors.shown_lines import ShownLines
from mnemoscope.isolation.lock import best_mechanism
from mnemoscope.models.cache import text_cache
from mnemoscope.runner.merge import JournalMerger
from mnemoscope.types import Hit, Memory, Query
from mnemoscope.viewer.view_server import ViewServer

_WORDS = "zebrafinch quokkafur wombatden ibexhorn lynxpaw otterbay ravenhill swanlake".split()
_TEXTS = [f"Secretly {one} met {two} at noon" for one in _WORDS for two in _WORDS if one != two]


class Talkative:
    """Returns texts of its own, and repeats the question in its errors."""

    def __init__(self) -> None:
        self._memories: list[Memory] = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self._memories += memories

    def recall(self, query: Query, k: int) -> list[Hit]:
        os.write(2, f"asked: {query.text}\n".encode())
        if "lynxpaw" in query.text:
            raise ValueError(f"cannot answer {query.text}")
        words = set(query.text.lower().split())
        ranked = sorted(self._memories, key=lambda m: -len(words & set(m.text.lower().split())))
        return [Hit(m.id, text=f"I recall: {m.text}") for m in ranked[:k]]


def dataset(folder: Path, *, private: bool) -> Path:
    """Imported memories with questions, each about one of them."""
    notes = {f"{number}.md": text for number, text in enumerate(_TEXTS)}
    notes["named.md"] = "---\ntitle: Quietly titled\n---\nA note with a title"
    out = folder / "memory"
    _, rows = imported(files(folder / "notes", notes), out, private=private)
    ids = {row["content"]: row["id"] for row in rows}
    queries, qrels = [], []
    for number, text in enumerate(_TEXTS[::3]):
        words = text.split()
        asked = f"whom did {words[1]} meet, was it {words[3]} perhaps"
        queries.append({"query_id": f"q{number}", "text": asked, "stratum": "exact"})
        qrels.append({"query_id": f"q{number}", "relevant_ids": [ids[text]]})
    files(
        out,
        {
            "queries.jsonl": "\n".join(map(json.dumps, queries)),
            "qrels.jsonl": "\n".join(map(json.dumps, qrels)),
        },
    )
    return out


_SYSTEMS = ["bm25", "hybrid", "fts5", Talkative]
_WANTED = [*_WORDS, "quietly titled", "was it", "I recall", "at noon", "named.md"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a private and an open run of the same memories, caches and ledger included."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MNEMOSCOPE_CACHE", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TMPDIR"):
            (folder / "private" / name).mkdir(parents=True)
            patch.setenv(name, str(folder / "private" / name))
        data = dataset(folder / "private", private=True)
        ms.run("strata", systems=_SYSTEMS, data=data, out=folder / "private" / "runs", workers=1)
    data = dataset(folder / "open", private=False)
    ms.run("strata", systems=_SYSTEMS, data=data, out=folder / "open" / "runs", workers=1)
    yield folder


def test_no_text_of_a_private_dataset_is_outside_its_folder(home: Path) -> None:
    kept = [home / "private" / name for name in ("memory", "notes")]
    assert files_with(home / "private", _WANTED, but=kept) == {}
    # The scan finds the same texts where they may be.
    assert len(files_with(home / "open" / "runs", _WANTED)) > 10


def test_a_private_run_that_is_killed_leaves_its_texts_beside_the_data(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    data = home / "private" / "memory"
    before, runs = set(data.iterdir()), tmp_path / "runs"
    left: dict[str, str] = {}

    def stop(merger: JournalMerger, unit: object) -> None:
        """At the last moment: all was asked, and nothing was merged or removed."""
        left.update(files_with(tmp_path, _WANTED))
        raise KeyboardInterrupt

    def start() -> None:
        ms.run("strata", systems=[Talkative], data=data, out=runs, workers=1, baselines=False)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(JournalMerger, "finished", stop)
        start()
    assert left == {}
    assert files_with(tmp_path, _WANTED) == {}
    (spools,) = set(data.iterdir()) - before
    assert files_with(spools, _WANTED) != {}
    start()
    assert set(data.iterdir()) == before
    assert not os.path.lexists(runs / "Talkative" / "units")
    trials = (runs / "Talkative" / "trials.jsonl").read_bytes()
    assert trials == (home / "private" / "runs" / "Talkative" / "trials.jsonl").read_bytes()


def test_a_load_test_on_private_data_keeps_no_text(
    home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = home / "private" / "memory"
    found = ms.load_test(
        "strata", systems=[Talkative], data=data, out=tmp_path, requests=20, clients=[1]
    )
    assert any(step.error_texts for step in found.steps)
    assert files_with(tmp_path, _WANTED) == {}
    said = capfd.readouterr()
    assert not [text for text in _WANTED if text.lower() in (said.out + said.err).lower()]


def test_the_figures_of_a_private_run_are_those_of_an_open_one(home: Path) -> None:
    for label in ("bm25", "hybrid", "fts5", "Talkative", "random"):
        one, other = (
            json.loads((home / kind / "runs" / label / "metrics.json").read_text())
            for kind in ("private", "open")
        )
        assert one["overall"] == other["overall"], label
    run = RunDirectory(home / "private" / "runs" / "Talkative")
    assert run.manifest().private
    errors = {trial.error for trial in run.trials() if trial.error}
    assert errors == {"ValueError: (private)"}
    assert any(trial.texts for trial in run.trials())
    checks = ms.verify(run.path)
    assert {gate.name for gate in checks.gates if not gate.passed} == {"protocol", "coverage"}


def test_commands_on_a_private_run_show_texts_only_if_the_data_is_named(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, data = home / "private" / "runs", home / "private" / "memory"
    one, other = str(runs / "bm25"), str(runs / "hybrid")
    for command in (
        ["show", one, "q3"],
        ["show", one, "--failed"],
        ["report", one, "--full"],
        ["compare", one, other],
        ["questions", str(runs)],
        ["export", one, "--format", "csv", "--what", "questions", "--out", str(tmp_path / "q.csv")],
        ["export", one, "--format", "trec", "--out", str(tmp_path / "t")],
        ["export", one, "--format", "json", "--what", "questions", "--out", str(tmp_path / "j")],
        # Its page is a file of the run, so that it gets no texts either.
        ["report", one, "--data", str(data)],
    ):
        code = invoke(command)
        said = capsys.readouterr()
        assert code in (0, 1), (command, said.err)
        for text in _WANTED:
            assert text.lower() not in (said.out + said.err).lower(), command
    assert files_with(tmp_path, _WANTED) == {}
    assert files_with(runs, _WANTED) == {}
    assert invoke(["show", one, "q3", "--data", str(data)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "whom did quokkafur meet, was it ibexhorn" in shown
    assert "Secretly zebrafinch met" in shown
    assert files_with(runs, _WANTED) == {}


def test_the_gate_of_a_private_store_asks_its_questions_and_tells_ids_only(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run has no hashes of words, which could be guessed: the data as they were are needed."""
    base, before = str(home / "private" / "runs" / "bm25"), home / "private" / "memory"
    assert not Path(base, "kept_store.json").exists()
    assert (home / "open" / "runs" / "bm25" / "kept_store.json").exists()
    now = tmp_path / "now"
    now.mkdir()
    for name in ("corpus.jsonl", "import.json"):
        (now / name).write_bytes((before / name).read_bytes())
    lines = (now / "corpus.jsonl").read_text().splitlines(keepends=True)
    out = tmp_path / "out"
    words = ["gate", str(now), "--baseline", base, "--out", str(out)]
    assert invoke(words) == 3
    assert "it is private" in capsys.readouterr().err
    words = [*words[:4], "--baseline-data", str(before), *words[4:]]
    wanted = ["--summary", str(tmp_path / "one.md"), "--comment", str(tmp_path / "two.md")]
    assert invoke([*words, *wanted, "--junit", str(tmp_path / "junit.xml")]) == 0
    assert "passed" in capsys.readouterr().out.lower()
    gold = json.loads((before / "qrels.jsonl").read_text().splitlines()[0])["relevant_ids"][0]
    lost = next(set(line.split()) for line in lines if json.loads(line)["id"] == gold)
    both = {word for word in _WORDS if any(word in one for one in lost)}
    kept = [line for line in lines if not all(word in line for word in both)]
    assert len(kept) == len(lines) - 2  # A met B, and B met A
    (now / "corpus.jsonl").write_text("".join(kept))
    out = tmp_path / "lost"
    words[-1] = str(out)
    assert invoke([*words, "--summary", str(tmp_path / "lost.md")]) == 1
    said = capsys.readouterr()
    assert gold in said.out
    assert RunDirectory(out / "bm25").manifest().private
    for text in _WANTED:
        assert text.lower() not in (said.out + said.err).lower()
    assert files_with(tmp_path, _WANTED, but=[now]) == {}


@pytest.mark.parametrize("is_named", [False, True])
def test_the_viewer_shows_texts_only_if_the_data_is_named(home: Path, is_named: bool) -> None:
    runs, data = home / "private" / "runs", home / "private" / "memory"
    server = ViewServer(runs, data=data if is_named else None)
    server.start()
    try:
        viewed = Viewed(runs, server.url)
        pages = [
            viewed.get("/"),
            viewed.get("/run", run="bm25"),
            viewed.get("/compare", base="bm25", cand="fts5"),
            viewed.get("/report", run="bm25"),
            viewed.get("/question", base="bm25", cand="fts5", id="q3"),
        ]
    finally:
        server.close()
    assert [page.status for page in pages] == [200] * len(pages)
    assert ("whom did quokkafur meet" in pages[-1].text) == is_named
    assert ("Secretly quokkafur met" in pages[-1].text) == is_named
    if not is_named:
        assert not any(word in page.text for page in pages for word in _WORDS)
    assert files_with(runs, _WANTED) == {}


def test_a_private_run_with_a_reader_must_be_in_the_folder_of_its_data(
    home: Path, tmp_path: Path
) -> None:
    data = home / "private" / "memory"
    with pytest.raises(UsageError, match="keep it in the dataset's folder with --out"):
        ms.run(
            "strata",
            systems=["bm25"],
            data=data,
            out=tmp_path / "runs",
            reader="extractive",
            judge="contains",
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("isolation", [0, None])
def test_what_a_system_prints_is_not_shown(
    home: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    isolation: Literal[0] | None,
) -> None:
    monkeypatch.setattr(child_process, "_shown", ShownLines())  # it is said once in a process
    data = home / "private" / "memory"
    ms.run(
        "strata",
        systems=[Talkative],
        data=data,
        out=tmp_path,
        baselines=False,
        isolation=isolation,
        questions=9,
    )
    said = capfd.readouterr()
    for text in _WANTED:
        assert text.lower() not in (said.out + said.err).lower()
    assert "is not shown" in said.err
    assert files_with(tmp_path, _WANTED) == {}


def test_other_ways_to_a_run_obey_too(home: Path, tmp_path: Path) -> None:
    data, runs = home / "private" / "memory", home / "private" / "runs"
    ms.score(
        runs / "Talkative" / "raw_retrievals.jsonl", dataset="strata", data=data, out=tmp_path / "s"
    )
    open_rankings = home / "open" / "runs" / "Talkative" / "raw_retrievals.jsonl"
    ms.score(open_rankings, dataset="strata", data=data, out=tmp_path / "t")
    assert RunDirectory(tmp_path / "t").manifest().private
    with pytest.raises(UsageError, match="in the dataset's folder"):
        ms.answer(
            runs / "bm25", reader="extractive", judge="contains", data=data, out=tmp_path / "a"
        )
    with pytest.raises(UsageError, match="has no texts of hits"):
        ms.answer(
            runs / "Talkative", reader="extractive", judge="contains", data=data, out=data / "runs"
        )
    answers = files(tmp_path / "in", {"a.jsonl": json.dumps({"id": "q0", "answer": "ibexhorn"})})
    with pytest.raises(UsageError, match="in the dataset's folder"):
        ms.score_answers(
            answers / "a.jsonl", dataset="strata", data=data, judge="contains", out=tmp_path / "o"
        )
    assert files_with(tmp_path, _WANTED, but=[tmp_path / "in"]) == {}


def test_a_run_that_has_texts_does_not_become_private(home: Path) -> None:
    runs, data = home / "open" / "runs", home / "open" / "memory"
    with pytest.raises(RunConflict, match="begun without --private"):
        ms.run("strata", systems=["bm25"], data=data, out=runs, private=True, baselines=False)
    assert files_with(runs / "bm25", _WANTED)


def test_private_is_refused_where_runs_record_answers(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be private"):
        ms.simulate("executive-assistant", out=tmp_path / "d", days=7)
        ms.run("personas", systems=["bm25"], data=tmp_path / "d", out=tmp_path / "r", private=True)


def test_texts_are_cached_again_after_a_private_run(home: Path) -> None:
    assert not is_private_run()
    assert text_cache("x") is not None
    assert not list((home / "private" / "MNEMOSCOPE_CACHE").rglob("*.sqlite"))


def test_decoys_are_refused_if_they_are_demanded(home: Path, tmp_path: Path) -> None:
    """They repeat questions in a folder of the user, where a killed run would leave them."""
    if best_mechanism() is None:
        missing("no Landlock, bubblewrap or sandbox-exec")
    data = home / "private" / "memory"
    with pytest.raises(UsageError, match="decoys repeat the questions, and the run is private"):
        ms.run("strata", systems=[Talkative], data=data, out=tmp_path / "out", isolation=3)
