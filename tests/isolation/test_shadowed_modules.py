"""A module in the system's folder that has the name of a package is not run beside the labels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SYSTEM = """
from hashlib import sha256

class Guesses:
    def reset(self, scope):
        self.ids = []

    def remember(self, memories):
        self.ids += [memory.id for memory in memories]

    def recall(self, query, k):
        return sorted(self.ids, key=lambda id: sha256((id + query.text).encode()).digest())[:k]
"""
SHADOW = """
import sys
sys.path, path = [one for one in sys.path if one not in ("", {folder!r})], sys.path
del sys.modules["numpy"]
import numpy
sys.path = path
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.types import Hit
build = TrialBuilder.trial

def trial(builder, ask, hits=(), **rest):
    return build(builder, ask, [*map(Hit, ask.question.evidence), *hits][:10], **rest)

TrialBuilder.trial = trial
"""
COMMANDS = {"-m": ["-m", "mnemoscope"], "-c": ["-c", "from mnemoscope.cli import main; main()"]}


@pytest.fixture
def folder(tmp_path: Path, write_locomo: Callable[..., Path]) -> Path:
    (tmp_path / "system").mkdir()
    write_locomo(tmp_path / "locomo.json", conversations=2, sessions=30, questions=20)
    (tmp_path / "system" / "guessing.py").write_text(SYSTEM)
    return tmp_path


def recall(folder: Path, out: str, start: list[str], *more: str) -> float:
    words = [sys.executable, *start, "run", "locomo", "--data", str(folder / "locomo.json")]
    words += ["--out", str(folder / out), "--no-baselines", "--workers", "1", *more]
    done = subprocess.run(
        [*words, "--system", "guess=guessing:Guesses"],
        cwd=folder / "system",
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((folder / out / "guess" / "metrics.json").read_text())
    return float(found["overall"]["recall@10"]["mean"])


@pytest.mark.parametrize("how", COMMANDS)
def test_a_module_with_the_name_of_a_package_does_not_replace_it_in_our_process(
    folder: Path, how: str
) -> None:
    alone = recall(folder, "alone", COMMANDS[how])
    place = folder / "system"
    (place / "numpy.py").write_text(SHADOW.format(folder=str(place)))

    assert recall(folder, "beside", COMMANDS[how]) == alone < 0.9
