"""Tiny runs made through the real code: journal, measure, finish; only the rankings are invented.

A run is a list of ranks, one for each question: where its evidence stands, 0 for nowhere.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from mnemoscope._store.jsonl import Journal
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.measure import Depth
from mnemoscope.protocols import load_protocol
from mnemoscope.release.benchmark_report import write_report
from mnemoscope.release.decide import comparisons, decide
from mnemoscope.release.notes import write_notes
from mnemoscope.release.rederive import rederive
from mnemoscope.release.release_log import record
from mnemoscope.release.signatures import circulate, sign
from mnemoscope.release.start_release import new_release, start
from mnemoscope.release.state import ROLES, Moment, Release, Words, moment
from mnemoscope.reports.run_report import write_report as write_run_report
from mnemoscope.runner.finish import finish
from mnemoscope.types import Ingestion, Isolation, Question, Trial

PROTOCOL = "claude-memory-strata-1"
DEPTH, POOL, CLUSTERS = 20, 40, 20
N = 200

EVIDENCE = "mail to the working group"
UP, DOWN = [1] * 4 + [2] * 4, [2] * 4 + [1] * 4
"""As many questions lose a rank as gain one, in both categories: noise without direction."""

PAIRS: dict[str, tuple[list[int], list[int]]] = {
    # 180 of 200 come up from rank 15 to rank 1: both metrics gain.
    "SHIP": ([15] * 200, [1] * 180 + [15] * 20),
    # 56 come from 11 to 9: recall@10 gains, their reciprocal ranks hardly; the others are noise.
    "SHIP with caveat": ([11] * 56 + UP * 18, [9] * 56 + DOWN * 18),
    # The same, and four fall from rank 1 to rank 2: mrr@20 worsens, not significantly.
    "SHIP although a metric fell": (
        [11] * 56 + UP * 18,
        [9] * 56 + DOWN * 17 + [2] * 8,
    ),
    # From 5 to 1: found all along, but further up.
    "CONDITIONAL SHIP": ([5] * 200, [1] * 150 + [5] * 50),
    "HOLD or SHIP as no-claim": (UP * 25, DOWN * 25),
    "HOLD": ([1] * 180 + [15] * 20, [15] * 200),
}


class _DayBefore:
    """A clock for runs: they are finished on the day before the releases of these tests."""

    @staticmethod
    def now(tz: tzinfo) -> datetime:
        return datetime(2025, 11, 15, 12, tzinfo=tz)


def at(time: str) -> Moment:
    return moment(f"2025-11-{time}")


@pytest.fixture(scope="session")
def make_run() -> Callable[..., RunDirectory]:
    """Write a finished run under the protocol of one's own data."""

    def make(
        path: Path, ranks: Sequence[int], system: str = "mine", seed: int = 42
    ) -> RunDirectory:
        run = RunDirectory(path)
        chosen = load_protocol(PROTOCOL)
        manifest = run.open(
            {
                "benchmark": {
                    "name": "strata",
                    "options": {"twins": "none"},
                    "sha256": ["ab" * 32],
                },
                "system": {"spec": system},
                "depth": DEPTH,
                "seed": seed,
                "versions": {"python": "3.11", "mnemoscope": "0.1.0"},
            },
            protocol={"id": chosen.id, "sha256": chosen.sha256},
            environment={"platform": "test", "python": "3.11.7", "cores": 2},
            isolation=Isolation("child", 2, mechanism="Landlock ABI 7", starts=1, passed=1),
        )
        trials = [_trial(number, rank) for number, rank in enumerate(ranks)]
        with Journal(run.trials_path) as journal:
            journal.append(Ingestion("own", POOL))
            for trial in trials:
                journal.append(trial)
        questions = {
            t.question: Question(t.question, "?", category=t.category, evidence=t.evidence)
            for t in trials
        }
        with patch("mnemoscope._store.run_directory.datetime", _DayBefore):
            finish(run, manifest, questions, Depth(DEPTH))
        run.release()
        write_run_report(run)
        return run

    return make


def _trial(number: int, rank: int) -> Trial:
    others = [f"m{n}" for n in range(POOL) if n != number % POOL]
    ranking = others[:DEPTH]
    evidence = f"m{number % POOL}"
    if rank:
        ranking = [*ranking[: rank - 1], evidence, *ranking[rank - 1 :]][:DEPTH]
    return Trial(
        scenario="own",
        question=f"q{number}",
        status="answered",
        category="ab"[number % 4 == 3],
        cluster=f"c{number % CLUSTERS}",
        evidence=(evidence,),
        pool=POOL,
        reachable=1,
        ranking=tuple(ranking),
        tokens=(10,) * len(ranking),
    )


@pytest.fixture(scope="session")
def make_world(
    make_run: Callable[..., RunDirectory], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """A folder with base/ and cand/, each with its baselines; made once and copied."""
    root = tmp_path_factory.mktemp("worlds")

    def make(folder: Path, row: str) -> Path:
        world = root / row.replace(" ", "-")
        if not world.exists():
            build(world, row)
        return Path(shutil.copytree(world, folder))

    def build(folder: Path, row: str) -> None:
        dice = random.Random(7)
        base, cand = PAIRS[row]
        for side, ranks in (("base", base), ("cand", cand)):
            make_run(folder / side / "mine", ranks, f"mine,version={side}")
            make_run(folder / side / "oracle", [1] * N, "oracle")
            make_run(folder / side / "bm25", [3] * N, "bm25")
            chance = [rank if rank <= DEPTH else 0 for rank in dice.choices(range(1, 41), k=N)]
            make_run(folder / side / "random", chance, "random")

    return make


def _begin(
    folder: Path, make_world: Callable[..., Path], row: str, words: dict[str, str]
) -> Release:
    world = make_world(folder / "runs", row)
    release = new_release(
        "v0.2.0",
        [world / "base" / "mine"],
        [world / "cand" / "mine"],
        folder / "release",
        author="Ann",
        when=at("16T08:00"),
        tag_date=at("18T12:00").at,
        other_base="the first release under this process",
        changed=["none"],
    )
    said = {"internal": "one seed", "external": "own data", "rationale": "as decided", **words}
    release.state.words = Words(**said)
    start(release)
    return release


def _prepare(release: Release, without: str) -> None:
    found = write_report(release, at("16T08:30"))
    if without != "rederive":
        release.state.rederived = rederive(release, found, by="Stan", seed=7, when=at("16T08:40"))
        record(release, "rederived", at("16T08:40"), by="Stan")
    if without != "decide":
        release.state.decision = decide(release, found, at("16T08:45"))
        record(release, "decided", at("16T08:45"))
    write_report(release, at("16T08:50"))
    if without != "circulate":
        circulate(release, found, at("16T09:00"), EVIDENCE)


def _finish(release: Release) -> None:
    found = comparisons(release)
    for role, name in zip(ROLES, ("Pia", "Ada", "Stan", "Rae"), strict=True):
        accepts = release.state.declarations if role == "pi" else []
        sign(release, found, role, name, at("17T12:00"), accepts=accepts)
    write_notes(release, found)


_BEFORE = {"ready": "begun", "complete": "ready"}


@pytest.fixture(scope="session")
def made(
    make_world: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """The folder of a release at some stage, made once; paths in it are relative, so it moves."""
    root, known = tmp_path_factory.mktemp("releases"), dict[str, Path]()

    def make(stage: str, row: str, without: str, words: dict[str, str]) -> Path:
        left_out = "" if stage == "begun" else without
        key = f"{stage} {row} {left_out} {sorted(words.items())}"
        if key in known:
            return known[key]
        folder = root / key.replace("/", "_")
        if stage == "begun":
            _begin(folder, make_world, row, words)
        else:
            earlier = make(_BEFORE[stage], row, without, words)
            release = Release.load(Path(shutil.copytree(earlier, folder)) / "release")
            if stage == "ready":
                _prepare(release, without)
            else:
                _finish(release)
        known[key] = folder
        return folder

    return make


@pytest.fixture
def begin(tmp_path: Path, made: Callable[..., Path]) -> Callable[..., Release]:
    """A release of the pair of runs that reaches this row of the matrix."""
    return partial(_copy, tmp_path, made, "begun")


@pytest.fixture
def ready(tmp_path: Path, made: Callable[..., Path]) -> Callable[..., Release]:
    """A release with everything but the signatures and notes; `without` leaves a step out."""
    return partial(_copy, tmp_path, made, "ready")


@pytest.fixture
def complete(tmp_path: Path, made: Callable[..., Path]) -> Callable[..., Release]:
    """A release that may be tagged."""
    return partial(_copy, tmp_path, made, "complete")


def _copy(
    folder: Path,
    made: Callable[..., Path],
    stage: str,
    row: str,
    without: str = "",
    **words: str,
) -> Release:
    shutil.copytree(made(stage, row, without, words), folder, dirs_exist_ok=True)
    return Release.load(folder / "release")
