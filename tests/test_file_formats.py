"""The published JSON Schemas describe the files of real runs, and leave out no field of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tools.docs import DOCS
from tools.file_formats import FORMATS, Format
from tools.schemas import closed

import mnemoscope as ms

STRATA = Path(__file__).resolve().parent.parent / "examples" / "strata"
KINDS = ("retrieval", "answers", "checkpoints", "forgetting", "imported", "datasets")


class Digests:
    """Returns texts of its own, and fails where a question is long."""

    def __init__(self) -> None:
        self.memories: list[ms.Memory] = []

    def remember(self, memories: list[ms.Memory]) -> None:
        self.memories += memories

    def recall(self, query: ms.Query, k: int) -> list[ms.Hit]:
        if len(query.text) > 60:
            raise RuntimeError("too long")
        one, other = self.memories[:2]
        text = f"In short: {one.text} {other.text}"
        return [ms.Hit("digest", text=text, sources=(one.id, other.id))]


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
    write_locomo: Callable[..., Path],
    write_persona: Callable[..., Path],
) -> Path:
    """A folder of runs for each kind."""
    folder = tmp_path_factory.mktemp("formats")
    ms.run("strata", systems=["bm25", Digests], data=STRATA, out=folder / "retrieval", workers=1)
    locomo = write_locomo(folder / "locomo.json", conversations=5, sessions=3, questions=5)
    answering: dict[str, Any] = {
        "data": locomo,
        "reader": "extractive",
        "judge": "f1",
        "workers": 1,
    }
    ms.run("locomo", systems=["fts5"], out=folder / "answers", repeat=2, **answering)
    persona = write_persona(folder / "persona")
    points: dict[str, Any] = {"ranges": "6,12", "heatmap_png": False, "workers": 1}
    ms.run("personas", systems=["bm25"], data=persona, out=folder / "checkpoints", **points)
    pairs = [
        {"question": f"What about author {n // 20}, point {n}?", "answer": f"Point {n}."}
        for n in range(4_000)
    ]
    (folder / "full.json").write_text("\n".join(json.dumps(pair) for pair in pairs))
    few: dict[str, Any] = {"questions": 10, "baselines": False, "workers": 1}
    ms.run("tofu", systems=["bm25"], data=folder, out=folder / "forgetting", **few)
    given = folder / "given.jsonl"
    lines = [
        {"question_id": "conv-0/q0", "answer": "so", "verdict": [True, True]},
        {"question_id": "conv-0/q1", "answer": "or so", "verdict": [True, False]},
        {"question_id": "conv-7/q7", "answer": "unknown"},
    ]
    given.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = folder / "imported" / "theirs"
    ms.score_answers(given, dataset="locomo", data=locomo, judge="f1", out=out, workers=1)
    config = ms.RunConfig(out=folder / "datasets", data=locomo, baselines=False, workers=1)
    ms.run_datasets(["locomo"], ["bm25"], config)
    return folder


def contents(folder: Path, form: Format) -> list[Any]:
    """What the files of this name contain; each line for itself, where they are lines."""
    found: list[Any] = []
    for path in sorted(folder.rglob(form.file)):
        text = path.read_text(encoding="utf-8")
        found += map(json.loads, text.splitlines()) if form.is_lines else [json.loads(text)]
    return found


def schema(form: Format) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DOCS / "schemas" / form.schema).read_text("utf-8"))
    return content


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.file)
def test_files_of_real_runs_follow_their_schema(runs: Path, form: Format) -> None:
    published = schema(form)
    jsonschema.Draft202012Validator.check_schema(published)
    strict = jsonschema.Draft202012Validator(closed(published))
    found = {kind: contents(runs / kind, form) for kind in KINDS}
    assert any(found.values()), f"no run has a {form.file}"
    for own in found.values():
        for content in own:
            strict.validate(content)


def test_every_phase_of_the_journal_is_there(runs: Path) -> None:
    [journal] = [form for form in FORMATS if form.file == "trials.jsonl"]
    assert {line["phase"] for line in contents(runs, journal)} == {
        *("remember", "recall", "answer", "judge")
    }


def test_the_json_files_of_a_run_have_a_schema(runs: Path) -> None:
    """Except those of other projects' formats, and the comparison with published numbers."""
    others = {"result.json", "progress.jsonl", "failures.jsonl", "published.json", "decoys.jsonl"}
    written = {path.name for kind in KINDS for path in (runs / kind).rglob("*.json*")}
    assert written - others <= {form.file for form in FORMATS}


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.file)
def test_a_schema_refuses_what_is_not_such_a_file(form: Format) -> None:
    strict = jsonschema.Draft202012Validator(closed(schema(form)))
    wrong: list[Any] = [[], {"phase": "recall"}, {"not": "it"}]
    assert not any(map(strict.is_valid, wrong))


def test_a_new_field_is_missed_by_the_published_schema_and_found_by_the_strict_one(
    runs: Path,
) -> None:
    [form] = [form for form in FORMATS if form.file == "metrics.json"]
    content = contents(runs / "retrieval" / "bm25", form)[0]
    content["overall"]["recall@10"]["new"] = 1
    assert jsonschema.Draft202012Validator(schema(form)).is_valid(content)
    assert not jsonschema.Draft202012Validator(closed(schema(form))).is_valid(content)
