"""Profiles: a run's settings in YAML, in the seed's keys and ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.runner.profile import Profile, load_profile


def loaded(tmp_path: Path, text: str) -> Profile:
    path = tmp_path / "profile.yaml"
    path.write_text(text, encoding="utf-8")
    return load_profile(path)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(DataError, match=r"profile\.yaml") as caught:
        loaded(tmp_path, text)
    return str(caught.value)


SEED = """
persona: {id: executive-assistant, dir: ../personas/executive-assistant, arcs: arcs-180d.yaml}
env: {file: ../.env}
models:
  generation: claude
  judge: openai:small
  appellateJudge: openai:large
harness:
  adapter: ./adapter.mjs
  factory: create
  config: {topK: 8, deep: true}
run:
  ranges: {start: 6, end: 20, step: 6}
  seed: 42
  timeout: 30000
  parallelism: 4
  sample: 50
  judgeMemoryWindow: 1
  groupsEnabled: false
generate: {days: 180, temperature: 0.7, maxTokens: 2000, historyWindow: 3}
"""


def test_recall_bench_keys_are_read_and_paths_are_relative_to_the_profile(tmp_path: Path) -> None:
    assert loaded(tmp_path, SEED) == Profile(
        path=tmp_path / "profile.yaml",
        data=tmp_path / "../personas/executive-assistant",
        personas="executive-assistant",
        arcs="arcs-180d.yaml",
        judge="openai:small",
        appellate_judge="openai:large",
        adapter=str(tmp_path / "adapter.mjs"),
        factory="create",
        config={"topK": 8, "deep": True},
        env_file=tmp_path / "../.env",
        ranges="6d,12d,18d",
        seed=42,
        timeout=30.0,
        parallelism=4,
        sample=50,
        judge_memory_window=1,
        groups=False,
    )


def test_our_keys_in_run_override_models(tmp_path: Path) -> None:
    profile = loaded(
        tmp_path,
        """
models: {judge: openai:small}
run:
  systems: [bm25, "hybrid,fusion=rrf"]
  reader: extractive
  judge: ledger
  appellateJudge: ledger
  granularity: section
  lifecycle: fork
  depth: 20
  out: runs/here
  personas: [er-physician, backend-eng-saas]
  workers: 2
""",
    )
    assert profile.systems == ("bm25", "hybrid,fusion=rrf")
    assert (profile.reader, profile.judge, profile.appellate_judge) == (
        "extractive",
        "ledger",
        "ledger",
    )
    assert (profile.granularity, profile.lifecycle, profile.depth) == ("section", "fork", 20)
    assert profile.out == tmp_path / "runs/here"
    assert profile.personas == "er-physician,backend-eng-saas"
    assert profile.workers == 2


@pytest.mark.parametrize("text", ["", "run: {}", "persona: {}\nenv: {}"])
def test_absent_settings_are_none(tmp_path: Path, text: str) -> None:
    assert loaded(tmp_path, text) == Profile(path=tmp_path / "profile.yaml")


@pytest.mark.parametrize(
    ("written", "ranges"),
    [
        ("30d,90d,full", "30d,90d,full"),
        ("90", "90"),
        ("[6d, 12, full]", "6d,12,full"),
        ("[{label: spring, days: 90}]", "spring:90"),
        ("{series: [6, 2m]}", "6,2m"),
        ("7-1000/7", "7-1000/7"),
    ],
)
def test_ranges_are_read_in_every_format_of_recall_bench(
    tmp_path: Path, written: str, ranges: str
) -> None:
    assert loaded(tmp_path, f"run: {{ranges: {quoted(written)}}}").ranges == ranges


def quoted(written: str) -> str:
    return written if written.startswith(("[", "{")) else f'"{written}"'


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("30000", 30.0), ("1.5", 0.0015), ("30s", 30.0), ('"500 ms"', 0.5), ("2m", 120.0)],
)
def test_a_timeout_is_in_milliseconds_unless_it_has_a_unit(
    tmp_path: Path, written: str, seconds: float
) -> None:
    assert loaded(tmp_path, f"run: {{timeout: {written}}}").timeout == pytest.approx(seconds)


@pytest.mark.parametrize("adapter", ["grpc://127.0.0.1:50052", "bm25", "my_package.memory:System"])
def test_an_adapter_that_is_not_a_path_is_unchanged(tmp_path: Path, adapter: str) -> None:
    assert loaded(tmp_path, f'harness: {{adapter: "{adapter}"}}').adapter == adapter


def test_an_adapter_that_is_a_file_beside_the_profile_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "adapter.py").touch()
    profile = loaded(tmp_path, "harness: {adapter: adapter.py}")
    assert profile.adapter == str(tmp_path / "adapter.py")


def test_the_environment_file_is_not_read_and_need_not_exist(tmp_path: Path) -> None:
    assert loaded(tmp_path, "env: {file: nowhere.env}").path == tmp_path / "profile.yaml"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("run: {seed: many}", "run.seed"),
        ("run: {lifecycle: forkk}", "run.lifecycle"),
        ("harness: {config: [a]}", "harness.config"),
        ("run: {seed: true}", "run.seed"),
        ("run: {sample: -1}", "run.sample"),
        ("run: {parallelism: 0}", "run.parallelism"),
        ("run: {groupsEnabled: 'yes'}", "run.groupsEnabled"),
        ("run: {granularity: month}", "run.granularity"),
        ("run: {timeout: soon}", "run.timeout"),
        ("run: {timeout: 0s}", "run.timeout"),
        ("run: {timeout: -5}", "run.timeout"),
        ("run: {ranges: [6d, soon]}", "run.ranges"),
        ("run: {ranges: {start: 6, end: 12}}", "run.ranges"),
        ("run: {ranges: {start: 6, end: 2, step: 1}}", "run.ranges"),
        ("run: {ranges: {series: [6], step: 2}}", "run.ranges"),
        ("run: {ranges: [{label: a, length: 3}]}", "run.ranges"),
        ("persona: {id: 7}", "persona.id"),
        ("generate: {maxTokens: lots}", "generate.maxTokens"),
        ("models: {judge: [a]}", "models.judge"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(tmp_path: Path, text: str, field: str) -> None:
    assert field in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "slip", "section"),
    [
        ("run: {sed: 4}", "sed", "run"),
        ("persona: {name: x}", "name", "persona"),
        ("rum: {}", "rum", ""),
    ],
)
def test_an_unknown_key_is_refused(tmp_path: Path, text: str, slip: str, section: str) -> None:
    said = refused(tmp_path, text)
    assert f"`{slip}`" in said
    assert section in said


def test_a_profile_that_is_missing_or_not_a_yaml_mapping_is_an_error(tmp_path: Path) -> None:
    refused(tmp_path, "- run")
    assert "line 2" in refused(tmp_path, "run: {}\n\tx: 1")
    with pytest.raises(MissingData, match="no such file"):
        load_profile(tmp_path / "nowhere.yaml")
