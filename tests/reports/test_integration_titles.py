"""Tables say what an integration is: its language model and its embedder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mnemoscope import api
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.reports.render_markdown import render
from mnemoscope.reports.run_tables import overview
from mnemoscope.reports.run_view import RunView

EMBEDDER = {"model": "wordllama l2_supercat_256", "dimensions": 256}


@pytest.fixture(scope="module")
def view(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> RunView:
    folder = tmp_path_factory.mktemp("run")
    data = write_locomo(folder / "locomo10.json", conversations=1, sessions=2, questions=2)
    out = folder / "runs"
    api.run("locomo", systems=["bm25"], data=data, out=out, baselines=False, workers=1)
    return RunView.of(RunDirectory(out / "bm25"))


def of(view: RunView, label: str, **system: Any) -> RunView:
    about = {**view.manifest.identity, "system": {"shelf": "mem0", **system}}
    return replace(
        view, label=label, manifest=msgspec.structs.replace(view.manifest, identity=about)
    )


def test_an_integration_says_its_model_and_its_embedder(view: RunView) -> None:
    assert view.title == "bm25"
    plain = of(view, "mem0", embedder=EMBEDDER)
    assert plain.title == "mem0, no LLM, wordllama"
    model = {"name": "gpt-4o-mini", "url": "x"}
    assert of(view, "mem0,infer=on", model=model).title == "mem0,infer=on, gpt-4o-mini"
    assert of(view, "mine", embedder=EMBEDDER).title == "mine (mem0, no LLM, wordllama)"
    assert "mem0, no LLM, wordllama" in render([overview([plain])])
