"""The lengths of files that a system cannot read tell it nothing of the evidence.

Each hit of these systems names several memories, says nothing, and has an id of another length. A
journal line lists the hits that name evidence and do not carry it, so its length told which ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.runner import merge
from mnemoscope.runner.run import Settings, run
from mnemoscope.systems.loader import plan

SYSTEM = """
import json
from pathlib import Path
from mnemoscope.types import Hit

RUN, LOG = Path({run!r}), Path({log!r})

class Measures:
    \"\"\"Notes after each reply how much longer its files are.\"\"\"

    def __init__(self):
        self.asked, self.sizes, self.found = "", {{}}, []

    def reset(self, scope):
        self.ids = []

    def remember(self, memories):
        self.ids += [memory.id for memory in memories]

    def look(self):
        files = [RUN / "trials.jsonl", *RUN.glob("units/*.trials.jsonl")]
        sizes = {{file.name: file.stat().st_size for file in files if file.exists()}}
        return sizes

    def recall(self, query, k):
        sizes = self.look()
        if self.asked:
            grown = {{name: size - self.sizes.get(name, 0) for name, size in sizes.items()}}
            self.found.append([self.asked, grown])
            LOG.write_text(json.dumps(self.found))
        self.asked, self.sizes = query.text, sizes
        return [
            Hit(str(n).ljust(100 << n, "x"), text=".", sources=tuple(self.ids[n::4]))
            for n in range(4)
        ]
"""


@pytest.fixture
def locomo(write_locomo: Callable[..., Path], tmp_path: Path) -> Locomo:
    return Locomo(write_locomo(tmp_path / "locomo.json", conversations=3, sessions=12, questions=9))


@pytest.fixture
def measured(
    locomo: Locomo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], tuple[RunDirectory, list[dict[str, int]]]]]:
    for name in ("code", "logs"):
        (tmp_path / name).mkdir()
    out, log = tmp_path / "out", tmp_path / "logs" / "log"
    place = out / Spec("measuring:Measures").slug
    (tmp_path / "code" / "measuring.py").write_text(SYSTEM.format(run=str(place), log=str(log)))
    monkeypatch.syspath_prepend(str(tmp_path / "code"))

    def go() -> tuple[RunDirectory, list[dict[str, int]]]:
        log.write_text("[]")  # nothing new can be made beside the data
        [done] = run(locomo, [plan(Spec("measuring:Measures"))], out, Settings(workers=1))
        return done, [grown for _, grown in json.loads(log.read_text())]

    yield go


def test_a_spool_grows_by_the_same_length_whichever_hit_names_the_evidence(
    measured: Callable[[], tuple[RunDirectory, list[dict[str, int]]]],
) -> None:
    done, growths = measured()

    lines = {len(line) for line in done.trials_path.read_bytes().splitlines()}
    assert len(lines) > 4, "the lines with labels have different lengths"
    assert all(trial.carried for trial in done.trials())
    own = [grown for one in growths for name, grown in one.items() if name != "trials.jsonl"]
    assert len(own) >= 24
    # The first question of a conversation comes after the line of its ingestion.
    assert len({grown for grown in own if grown}) <= 2


def test_the_journal_grows_by_many_questions_at_once(
    measured: Callable[[], tuple[RunDirectory, list[dict[str, int]]]],
) -> None:
    """Else a conversation with one question would show the length of its line."""
    done, growths = measured()

    assert 3 * 9 > merge._TOGETHER > 2 * 9
    assert {one["trials.jsonl"] for one in growths} == {0}
    assert len(list(done.trials())) == 3 * 9
