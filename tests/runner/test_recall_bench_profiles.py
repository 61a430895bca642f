"""Profiles of Recall Bench load as published; what cannot run here says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mnemoscope._store.errors import MissingData, MnemoscopeError, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.models.model_loader import missing_keys
from mnemoscope.runner.profile import Profile, load_profile
from mnemoscope.runner.run_setup import RunConfig, prepare
from mnemoscope.types import Scalar

EVERY_SIX_DAYS = ",".join(f"{days}d" for days in range(6, 181, 6))
PUBLISHED = {
    "ea-180d-mempalace-tuned": ("createMempalaceAdapter", 60.0),
    "ea-180d-openclaw": ("createOpenClawAdapter", 60.0),
    "ea-180d-recall-dreaming": ("createRecallAdapter", 180.0),
    "ea-180d-vector": ("createOpenClawAdapter", 60.0),
}


@pytest.fixture(scope="module")
def profiles(shared_data: Callable[[str], Path]) -> Path:
    return shared_data("recall-bench/profiles")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_profile_loads(profiles: Path, name: str) -> None:
    found = load_profile(profiles / f"{name}.yaml")
    factory, seconds = PUBLISHED[name]
    assert (found.factory, found.timeout) == (factory, seconds)
    assert (found.personas, found.arcs) == ("executive-assistant", "arcs-180d.yaml")
    assert found.ranges == EVERY_SIX_DAYS
    assert (found.seed, found.sample, found.judge_memory_window) == (42, 50, 1)
    assert (found.parallelism, found.groups) == (1, False)
    assert found.judge_spec("judge") == "azure:gpt-5.4-mini"
    assert found.judge_spec("appellate_judge") == "azure:gpt-5.4"
    with pytest.raises(MissingData, match=r"harness\.adapter.*build the harness.*--system"):
        _ = found.system_specs


def test_lists_commas_and_names_of_variables_in_the_config_are_kept(profiles: Path) -> None:
    config = load_profile(profiles / "ea-180d-mempalace-tuned.yaml").config
    assert config["mempalaceCommand"] == ["C:/source/mempalace/.venv/Scripts/mempalace-mcp.exe"]
    assert config["env"] == {"MEMPALACE_MCP_IDLE_HOURS": "0"}
    assert "anticipatory, discreet, calm" in config["identity"]


RANGES = "  ranges:\n    start: 6\n    end: 180\n    step: 6\n"
ADAPTER = "  adapter: C:/source/openclaw/recall-bench-openclaw/dist/index.js\n"
FACTORY = "  factory: createOpenClawAdapter\n"
JUDGE = "  judge: azure:gpt-5.4-mini\n"
APPEAL = "  appellateJudge: azure:gpt-5.4\n"
LARGEST = "maxSearchResults: 15\n"


def changed(profiles: Path, tmp_path: Path, *changes: tuple[str, str]) -> Profile:
    """The published profile of OpenClaw, with other lines."""
    text = (profiles / "ea-180d-openclaw.yaml").read_text(encoding="utf-8")
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    place = tmp_path / "varied.yaml"
    place.write_text(text, encoding="utf-8")
    return load_profile(place)


def test_variation_1_a_series_of_ranges(profiles: Path, tmp_path: Path) -> None:
    found = changed(profiles, tmp_path, (RANGES, "  ranges: {series: [6, 2m, full]}\n"))
    assert found.ranges == "6,2m,full"


def test_variation_2_a_list_of_ranges(profiles: Path, tmp_path: Path) -> None:
    found = changed(profiles, tmp_path, (RANGES, "  ranges: [30d, 90, 6mo, 1y]\n"))
    assert found.ranges == "30d,90,6mo,1y"


def test_variation_3_a_server_over_grpc(profiles: Path, tmp_path: Path) -> None:
    found = changed(profiles, tmp_path, (ADAPTER, "  adapter: grpc://localhost\n"), (FACTORY, ""))
    assert found.system_specs == ("grpc://localhost",)


def test_variation_4_a_built_harness(profiles: Path, tmp_path: Path) -> None:
    (tmp_path / "adapter.mjs").touch()
    found = changed(profiles, tmp_path, (ADAPTER, "  adapter: ./adapter.mjs\n"))
    options: dict[str, Scalar] = {
        "factory": "createOpenClawAdapter",
        "config": str(tmp_path / "varied.yaml"),
    }
    assert found.system_specs == (Spec(f"recall-bench-js:{tmp_path / 'adapter.mjs'}", options),)


def test_variation_5_agents_as_judges(profiles: Path, tmp_path: Path) -> None:
    agents = (JUDGE, "  judge: claude\n"), (APPEAL, "  creation: codex\n")
    found = changed(profiles, tmp_path, *agents)
    assert (found.judge_spec("judge"), found.judge_spec("appellate_judge")) == ("claude", None)


def test_variation_6_judges_with_an_endpoint(profiles: Path, tmp_path: Path) -> None:
    own = "  judge: openai:small;http://localhost:8080/v1\n"
    found = changed(
        profiles, tmp_path, (JUDGE, own), (APPEAL, "  appellateJudge: azure:big;https://x.test\n")
    )
    assert found.judge_spec("judge") == "small@http://localhost:8080/v1"
    with pytest.raises(UsageError, match=r"export AZURE_OPENAI_ENDPOINT=https://x\.test"):
        found.judge_spec("appellate_judge")


def test_variation_7_days_are_generated_and_lists_are_nested(
    profiles: Path, tmp_path: Path
) -> None:
    block = "generate: {days: 500, temperature: 0.7, maxTokens: 2000, historyWindow: 3}\nrun:\n"
    found = changed(
        profiles,
        tmp_path,
        ("\nrun:\n", f"\n{block}"),
        (LARGEST, "weights: [[1, 0.5], {a: null}]\n"),
    )
    assert found.config["weights"] == [[1, 0.5], {"a": None}]


@pytest.mark.parametrize(
    ("harness", "field"),
    [
        ("adapter: bm25, config: {k1: [1, 2]}", "harness.config.k1"),
        ("adapter: my:System, config: {text: 'a, b'}", "harness.config.text"),
        ("adapter: ./adapter.ts", "TypeScript"),
        ("adapter: ./nowhere.js", "not on this machine"),
        ("adapter: 'D:\\harness\\index.js'", "not on this machine"),
    ],
)
def test_a_harness_that_cannot_run_here_is_an_error_only_when_it_is_used(
    tmp_path: Path, harness: str, field: str
) -> None:
    place = tmp_path / "profile.yaml"
    place.write_text(f"harness: {{{harness}}}", encoding="utf-8")
    found = load_profile(place)
    with pytest.raises(MnemoscopeError, match=field):
        _ = found.system_specs


def test_a_judge_in_javascript_names_the_option_that_replaces_it(tmp_path: Path) -> None:
    place = tmp_path / "profile.yaml"
    place.write_text("models: {judge: ./judge.mjs}", encoding="utf-8")
    with pytest.raises(UsageError, match="does not run here: give --judge"):
        load_profile(place).judge_spec("judge")


def test_a_published_profile_runs_with_another_system_and_judge(
    profiles: Path,
    shared_data: Callable[[str], Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = RunConfig(
        data=shared_data("recall-bench/executive-assistant"),
        out=tmp_path,
        profile=profiles / "ea-180d-openclaw.yaml",
        judge=["none"],
        reader="none",
        baselines=False,
        skip_preflight=True,
    )
    setup = prepare("personas", "bm25", config, {})
    assert setup.history is not None
    assert [one.days for one in setup.history.ranges] == list(range(6, 181, 6))
    assert (setup.history.sample, setup.settings.limits.recall) == (50, 60.0)
    said = caplog.text
    assert "env.file of the profile is not read; to set its variables: set -a; . " in said
    assert "the appellate judge of the profile is left out" in said


def test_an_adapter_of_recall_bench_answers_itself_with_one_worker(
    write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    data = write_persona(tmp_path)
    for name, workers in (("grpc://localhost", 1), ("recall-bench:localhost:1", 1)):
        setup = prepare("personas", name, RunConfig(data=data, skip_preflight=True), {})
        assert setup.pipeline.system_answers
        assert setup.settings.workers == workers
    given = RunConfig(data=data, skip_preflight=True, reader="extractive", workers=3)
    setup = prepare("personas", ["grpc://localhost", "bm25"], given, {})
    assert not setup.pipeline.system_answers
    assert setup.settings.workers == 3


def test_azures_version_may_have_the_name_that_recall_bench_gives_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.setenv(name, "x")
    for name in ("OPENAI_API_VERSION", "AZURE_OPENAI_API_VERSION"):
        monkeypatch.delenv(name, raising=False)
    assert missing_keys("azure:gpt-5.4") == ["OPENAI_API_VERSION"]
    monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2024-10-21")
    assert missing_keys("azure:gpt-5.4") == []
