"""`mnemoscope verify`: a sound run passes every gate, and each fault fails the right gate."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.passed_exams import exam_summary

from mnemoscope._store import run_directory
from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.fingerprint import fingerprint, sha256_file
from mnemoscope._store.journal_chain import CHAIN
from mnemoscope._store.jsonl import encode_lines, write_json
from mnemoscope._store.run_directory import (
    RECORDED,
    JournalLine,
    RunDirectory,
    read_journal,
)
from mnemoscope.analysis.measure import Depth
from mnemoscope.analysis.verify import ALWAYS, block, verify
from mnemoscope.cli.app import invoke
from mnemoscope.protocols import load_protocol, protocol_names
from mnemoscope.reports.run_report import write_report
from mnemoscope.runner.finish import finish
from mnemoscope.types import Isolation, Question, Trial

Shared = Callable[[str], Path]
PROTOCOL = "mnemoscope-retrieval-1"
SYSTEM = "recency"


@pytest.fixture(scope="module", autouse=True)
def _equal_journals_are_decoded_once() -> Iterator[None]:
    """Each test verifies a run and its three baselines, most of which it left as they were."""

    known: dict[tuple[bytes, type[Trial]], list[JournalLine]] = {}

    def read(path: Path, trial: type[Trial] = Trial) -> Iterator[JournalLine]:
        key = path.read_bytes(), trial
        if key not in known:
            known[key] = list(read_journal(path, trial))
        return iter(known[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_directory, "read_journal", read)
        yield


@pytest.fixture(scope="module")
def original(shared_data: Shared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of LoCoMo under the protocol, with its baselines."""
    out = tmp_path_factory.mktemp("original") / "locomo"
    data = str(shared_data("locomo"))
    arguments = ["--data", data, "--system", SYSTEM, "--protocol", PROTOCOL, "--out", str(out)]
    assert invoke(["run", "locomo", *arguments]) == 0
    return out


@pytest.fixture
def sound(original: Path, tmp_path: Path) -> RunDirectory:
    """A copy of that run, for the test to damage."""
    shutil.copytree(original, tmp_path / "locomo")
    return RunDirectory(tmp_path / "locomo" / SYSTEM)


def change_byte(path: Path, where: float = 0.5) -> None:
    content = bytearray(path.read_bytes())
    place = int(len(content) * where)
    content[place] = ord("7") if content[place] != ord("7") else ord("8")
    path.write_bytes(content)


def rewrite(run: RunDirectory, change: Callable[[Trial], Trial | None]) -> None:
    """Change the journal and everything made from it, hashes and hash chain included."""
    texts = {line["id"]: line for line in run.questions()}
    questions = {id: Question(id, line["question"]) for id, line in texts.items()}
    lines: list[JournalLine] = []
    for line in list(run.journal()):
        kept = change(line) if isinstance(line, Trial) else line
        lines += [kept] if kept else []
    run.trials_path.write_bytes(encode_lines(lines))
    (run.path / CHAIN).unlink()
    asked = {line.question for line in lines if isinstance(line, Trial)}
    kept_questions = {id: question for id, question in questions.items() if id in asked}
    finish(run, run.manifest(), kept_questions, Depth(50))
    write_report(run)


def edit_identity(run: RunDirectory, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the identity of the run, its fingerprint and the hash chain that begins with it."""
    manifest = run.manifest()
    change(manifest.identity)
    manifest.fingerprint = fingerprint(manifest.identity)
    chain = run.chain(manifest)
    chain.path.unlink()
    end = chain.cover()
    manifest.chain = {"trials.jsonl": end.trials, "timings.jsonl": end.timings}
    manifest.files[CHAIN] = sha256_file(chain.path)
    run.save(manifest)


def test_a_sound_run_is_verified(sound: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    found = verify(sound)

    assert (found.status, found.failed) == ("VERIFIED", [])
    gates = ["protocol", "deviations", *load_protocol(PROTOCOL).protocol.gates]
    assert [gate.name for gate in found.gates] == [*gates, *ALWAYS[1:], "signature"]
    assert invoke(["verify", str(sound.path)]) == 0
    assert "VERIFIED under mnemoscope-retrieval-1:sound\n" in capsys.readouterr().out


def test_accepted_leaks_leave_a_run_unverified(sound: RunDirectory) -> None:
    manifest = sound.manifest()
    manifest.leaks = 3
    sound.save(manifest)

    found = verify(sound)

    assert (found.status, found.failed) == ("UNVERIFIED", ["leaks"])
    assert "3 findings of the leak scan" in found.gate("leaks").why


def test_hits_that_are_not_memories_leave_a_run_unverified(sound: RunDirectory) -> None:
    def stray(trial: Trial) -> Trial:
        ids = tuple(f"row {id}" for id in trial.ranking)
        return msgspec.structs.replace(trial, ranking=ids, unknown=len(ids))

    rewrite(sound, stray)

    found = verify(sound)
    assert "hits" in found.failed
    assert "hits are not memories that were ingested" in found.gate("hits").why


JUDGE = "binary,model=m@http://h/v1"


@pytest.mark.parametrize(
    ("exams", "why"),
    [
        ({}, "has not taken the exam"),
        (
            {JUDGE: exam_summary(false_accepts=90)},
            "failed the exam",
        ),
        (
            {
                JUDGE: {
                    **exam_summary(false_accepts=90),
                    "passed": True,
                }
            },
            "failed the exam",
        ),
        (
            {JUDGE: exam_summary(false_accepts=5)},
            "passed the exam",
        ),
    ],
)
def test_a_judge_without_a_passed_exam_leaves_a_run_unverified(
    sound: RunDirectory, exams: dict[str, dict[str, Any]], why: str
) -> None:
    manifest = sound.manifest()
    manifest.identity["judge"] = {"spec": JUDGE}
    manifest.exams = {
        spec: {**one, "data": manifest.identity["benchmark"]["sha256"]}
        for spec, one in exams.items()
    }
    sound.save(manifest)

    gate = verify(sound).gate("judges")

    assert gate.passed == (why == "passed the exam")
    assert why in gate.why


def test_every_judge_of_a_panel_and_of_appeals_needs_its_exam(sound: RunDirectory) -> None:
    manifest = sound.manifest()
    manifest.identity["judge"] = {"spec": "a + b", "panel": {"a": {}, "b": {}}}
    manifest.identity["appellate_judge"] = {"spec": "c"}
    passed = exam_summary(data=manifest.identity["benchmark"]["sha256"])
    manifest.exams = {"a": passed, "b": passed}
    sound.save(manifest)

    assert "c has not taken the exam" in verify(sound).gate("judges").why


@pytest.mark.parametrize("baseline", ["random", "bm25", "oracle"])
def test_a_baseline_can_be_verified_itself(original: Path, baseline: str) -> None:
    assert verify(RunDirectory(original / baseline)).status == "VERIFIED"


def test_a_run_can_be_verified_from_within_its_folder(
    sound: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sound.path)

    assert verify(RunDirectory(Path())).status == "VERIFIED"


@pytest.mark.parametrize(
    "name", ["trials.jsonl", "raw_retrievals.jsonl", "questions.jsonl", "metrics.json"]
)
def test_one_changed_byte_in_a_recorded_file_is_noticed(
    sound: RunDirectory, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change_byte(sound.path / name)

    found = verify(sound)

    assert found.status == "UNVERIFIED"
    assert found.gate("files").why == f"{name} was changed after the run"
    assert invoke(["verify", str(sound.path)]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("UNVERIFIED under mnemoscope-retrieval-1:sound: ")
    assert "files" in last


def test_every_changed_byte_fails_the_files_gate(
    write_locomo: Callable[..., Path], tmp_path: Path
) -> None:
    data = write_locomo(tmp_path / "locomo10.json", conversations=2, sessions=5, questions=5)
    where = ["--data", str(data), "--out", str(tmp_path / "runs")]
    invoke(["run", "locomo", "--system", "oracle", "--no-arms", *where])
    run = RunDirectory(tmp_path / "runs" / "oracle")
    draw = random.Random(1)

    for name in RECORDED:
        whole = (run.path / name).read_bytes()
        for _ in range(60):
            damaged = bytearray(whole)
            damaged[draw.randrange(len(whole))] ^= draw.randrange(1, 256)
            (run.path / name).write_bytes(damaged)
            assert "files" in verify(run).failed
        (run.path / name).write_bytes(whole)


@pytest.mark.parametrize("byte", [b"?", b"\xff"])
def test_a_manifest_that_cannot_be_read_is_an_error_that_names_the_file(
    sound: RunDirectory, byte: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = sound.manifest_path.read_bytes().replace(b'"state": "c', b'"state": "' + byte)
    sound.manifest_path.write_bytes(broken)

    assert invoke(["verify", str(sound.path)]) == 1
    assert "manifest.json: " in "".join(capsys.readouterr().err.split("\n"))


def test_rankings_swapped_in_the_raw_file_alone_fail_the_figures_too(sound: RunDirectory) -> None:
    path = sound.path / "raw_retrievals.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["ranking"].reverse()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert verify(sound).gate("figures").why == "raw_retrievals.jsonl does not match the journal"


def test_an_edited_figure_is_named(sound: RunDirectory) -> None:
    metrics = sound.read_json("metrics.json")
    metrics["overall"]["recall@10"]["mean"] += 0.1
    write_json(sound.path / "metrics.json", metrics)
    manifest = sound.manifest()
    manifest.files["metrics.json"] = sha256_file(sound.path / "metrics.json")
    sound.save(manifest)

    found = verify(sound)

    assert found.failed == ["figures"]
    assert "overall.recall@10.mean: 0.488" in found.gate("figures").why


def record_metrics(run: RunDirectory, metrics: dict[str, Any]) -> None:
    """Write metrics.json together with its hash."""
    write_json(run.path / "metrics.json", metrics)
    manifest = run.manifest()
    manifest.files["metrics.json"] = sha256_file(run.path / "metrics.json")
    run.save(manifest)


def test_intervals_of_an_older_version_are_told_from_edited_ones(sound: RunDirectory) -> None:
    metrics = sound.read_json("metrics.json")
    del metrics["interval"]
    for figure in metrics["overall"].values():
        figure["ci95"] = [figure["mean"] - 0.001, figure["mean"] + 0.001]
    record_metrics(sound, metrics)

    why = verify(sound).gate("figures").why
    assert why.startswith("all means match the journal, but the intervals were computed by an old")

    # A file that says it is of an older version does not get any mean past the gate.
    metrics["overall"]["recall@10"]["mean"] += 0.01
    record_metrics(sound, metrics)
    assert "metrics.json does not match the journal: overall.recall@10.mean" in (
        verify(sound).gate("figures").why
    )


def test_a_narrowed_interval_is_named(sound: RunDirectory) -> None:
    metrics = sound.read_json("metrics.json")
    low, high = metrics["overall"]["recall@10"]["ci95"]
    metrics["overall"]["recall@10"]["ci95"] = [low + 0.01, high - 0.01]
    record_metrics(sound, metrics)

    found = verify(sound)
    assert found.failed == ["figures"]
    assert "overall.recall@10.ci95" in found.gate("figures").why


def test_the_last_digits_of_an_interval_may_differ(sound: RunDirectory) -> None:
    """They depend on the linear algebra of the machine."""
    metrics = sound.read_json("metrics.json")
    for figure in metrics["overall"].values():
        figure["ci95"] = [round(end, 7) for end in figure["ci95"]]
    record_metrics(sound, metrics)
    assert verify(sound).gate("figures").passed


def test_repeating_the_command_renews_older_intervals(
    sound: RunDirectory, shared_data: Shared
) -> None:
    metrics = sound.read_json("metrics.json")
    expected = json.dumps(metrics, sort_keys=True)
    del metrics["interval"]
    metrics["overall"]["recall@10"]["ci95"] = [0.1, 0.2]
    record_metrics(sound, metrics)
    data = ["--data", str(shared_data("locomo")), "--system", SYSTEM, "--no-baselines"]

    code = invoke(["run", "locomo", *data, "--protocol", PROTOCOL, "--out", str(sound.path.parent)])

    assert code == 0
    assert json.dumps(sound.read_json("metrics.json"), sort_keys=True) == expected


def test_one_question_dropped_is_noticed_even_if_all_else_agrees(sound: RunDirectory) -> None:
    rewrite(sound, lambda trial: None if trial.question == "conv-26/q7" else trial)

    found = verify(sound)

    assert found.failed == ["evidence", "coverage"]
    assert found.gate("coverage").why == "1,985 of 1,986 questions were asked"


def test_one_question_twice_is_noticed(sound: RunDirectory) -> None:
    lines = sound.trials_path.read_bytes().splitlines(keepends=True)
    sound.trials_path.write_bytes(b"".join([*lines, lines[-1]]))

    assert "the journal has 1 questions more than once" in verify(sound).gate("coverage").why


def test_questions_that_failed_lower_the_coverage(sound: RunDirectory) -> None:
    def fail(trial: Trial) -> Trial:
        lost = trial.question == "conv-26/q7"
        return msgspec.structs.replace(trial, status="timeout") if lost else trial

    rewrite(sound, fail)

    found = verify(sound)

    assert found.failed == ["coverage"]
    assert found.gate("coverage").why == "only 1,981 of 1,982 questions were measured"


def test_the_wrong_dataset_is_noticed(sound: RunDirectory) -> None:
    def other(identity: dict[str, Any]) -> None:
        identity["benchmark"]["sha256"] = ["0" * 64]

    edit_identity(sound, other)

    found = verify(sound)

    # The baselines are of another dataset now, and metrics.json names the original one.
    assert found.failed == ["dataset", "arms", "figures"]
    assert found.gate("dataset").why.startswith("sha256 000000000000…, the protocol says 79fa87")


def test_a_missing_seed_is_noticed(sound: RunDirectory) -> None:
    edit_identity(sound, lambda identity: identity.pop("seed"))

    found = verify(sound)

    assert found.gate("seed").why == "the manifest records no seed"
    assert set(found.failed) == {"seed", "arms"}


def test_another_seed_is_noticed(sound: RunDirectory) -> None:
    edit_identity(sound, lambda identity: identity.update(seed=7))

    assert verify(sound).gate("seed").why == "seed 7, the protocol says 42"


def test_settings_that_the_protocol_asks_for_must_be_recorded(sound: RunDirectory) -> None:
    edit_identity(sound, lambda identity: identity.pop("system"))

    assert verify(sound).gate("seed").why == "the manifest does not record identity.system.spec"


def test_missing_versions_are_noticed(sound: RunDirectory) -> None:
    edit_identity(sound, lambda identity: identity["versions"].pop("mnemoscope"))

    assert "versions" in verify(sound).failed


def test_an_identity_edited_without_its_fingerprint_is_noticed(sound: RunDirectory) -> None:
    manifest = sound.manifest()
    manifest.identity["limits"]["recall"] = 1.0
    sound.save(manifest)

    found = verify(sound)

    assert found.failed == ["files"]
    assert "fingerprint" in found.gate("files").why


def test_a_hash_taken_out_of_the_manifest_is_noticed(sound: RunDirectory) -> None:
    manifest = sound.manifest()
    del manifest.files["trials.jsonl"]
    sound.save(manifest)

    assert verify(sound).gate("files").why == "trials.jsonl was added after the run"


def test_an_oracle_below_its_ceiling_fails_the_baselines_gate(sound: RunDirectory) -> None:
    def forget(trial: Trial) -> Trial:
        return msgspec.structs.replace(trial, ranking=(), tokens=(), scores=())

    rewrite(
        RunDirectory(sound.path.parent / "oracle"),
        lambda trial: forget(trial) if trial.question == "conv-26/q7" else trial,
    )

    found = verify(sound)

    assert found.failed == ["arms"]
    assert found.gate("arms").why == "oracle: hit@1 is 0.9995, the ceiling is 1.0000"


def test_a_random_baseline_away_from_chance_fails_the_baselines_gate(sound: RunDirectory) -> None:
    draw = random.Random(1)

    def know(trial: Trial) -> Trial:
        """Rank the evidence first for one question in ten: above chance, below the ceiling."""
        if draw.random() > 0.1:
            return trial
        others = [id for id in trial.ranking if id not in trial.evidence]
        return msgspec.structs.replace(trial, ranking=(*trial.evidence, *others))

    def fitting(trial: Trial) -> Trial:
        known = know(trial)
        return msgspec.structs.replace(known, tokens=(1,) * len(known.ranking), scores=())

    rewrite(RunDirectory(sound.path.parent / "random"), fitting)

    why = verify(sound).gate("arms").why
    assert why.startswith("random: recall@10 is +0.0")
    assert "from chance, more than 3 standard errors" in why


def test_an_edited_baseline_fails_the_baselines_gate(sound: RunDirectory) -> None:
    change_byte(sound.path.parent / "bm25" / "trials.jsonl")

    assert verify(sound).gate("arms").why == "bm25: changed since the run: trials.jsonl"


@pytest.mark.parametrize("baseline", ["random", "bm25", "oracle"])
def test_a_missing_baseline_is_noticed(sound: RunDirectory, baseline: str) -> None:
    shutil.rmtree(sound.path.parent / baseline)

    found = verify(sound)

    assert found.failed == ["arms"]
    assert found.gate("arms").why == f"{baseline}: there is no run at ../{baseline}"


def test_a_baseline_must_be_of_the_system_that_its_folder_names(sound: RunDirectory) -> None:
    shutil.rmtree(sound.path.parent / "bm25")
    shutil.copytree(sound.path, sound.path.parent / "bm25")

    assert verify(sound).gate("arms").why == f"bm25: the run is of another system, {SYSTEM}"


@pytest.mark.parametrize("name", ["report.md", "questions.jsonl", "metrics.json", "trials.jsonl"])
def test_a_missing_artefact_is_named(sound: RunDirectory, name: str) -> None:
    (sound.path / name).unlink()

    found = verify(sound)

    assert found.status == "UNVERIFIED"
    assert found.gate("artefacts").why == f"missing: {name}"


def test_an_unfinished_run_is_not_verified(sound: RunDirectory) -> None:
    manifest = sound.manifest()
    manifest.state = "interrupted"
    sound.save(manifest)

    assert "state interrupted" in verify(sound).gate("artefacts").why


def test_blocked_md_blocks_with_its_reason(
    sound: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = "turns were ingested instead of sessions"

    assert invoke(["verify", str(sound.path), "--block", reason]) == 1

    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "BLOCKED under mnemoscope-retrieval-1:sound: blocked failed"
    found = verify(sound)
    assert (found.status, found.failed) == ("BLOCKED", ["blocked"])
    assert found.gate("blocked").why.endswith(f"UTC: {reason}")
    text = (sound.path / "BLOCKED.md").read_text()
    assert text.startswith("# BLOCKED\n\n- 20")


def test_a_second_reason_is_added_to_the_first(sound: RunDirectory) -> None:
    block(sound, "the first")
    block(sound, "the second")

    why = verify(sound).gate("blocked").why
    assert "the first; " in why
    assert why.endswith("the second")


def test_an_empty_blocked_md_blocks_too(sound: RunDirectory) -> None:
    (sound.path / "BLOCKED.md").touch()

    assert verify(sound).status == "BLOCKED"


def test_only_a_run_can_be_blocked_and_only_with_a_reason(
    sound: RunDirectory, tmp_path: Path
) -> None:
    with pytest.raises(UsageError):
        block(sound, "  ")
    with pytest.raises(MissingData):
        block(RunDirectory(tmp_path), "no run")
    assert not list(tmp_path.glob("BLOCKED.md"))


def test_without_a_protocol_nothing_can_be_cited(sound: RunDirectory) -> None:
    manifest = sound.manifest()
    manifest.protocol = {}
    sound.save(manifest)

    found = verify(sound)

    assert (found.status, found.failed) == ("UNVERIFIED", ["protocol"])
    assert "cannot be cited" in found.gate("protocol").why
    assert verify(sound, load_protocol(PROTOCOL)).status == "VERIFIED"
    assert invoke(["verify", str(sound.path), "--protocol", PROTOCOL]) == 0


def test_a_protocol_that_changed_since_the_run_is_noticed(sound: RunDirectory) -> None:
    manifest = sound.manifest()
    manifest.protocol["sha256"] = "0" * 64
    sound.save(manifest)

    for protocol in (None, load_protocol(PROTOCOL)):
        found = verify(sound, protocol)
        assert found.failed == ["protocol"]
        assert "the run recorded sha256 000000000000…" in found.gate("protocol").why


def test_an_unknown_protocol_is_noticed(sound: RunDirectory) -> None:
    manifest = sound.manifest()
    manifest.protocol["id"] = "homemade-1:best"
    sound.save(manifest)

    assert verify(sound).gate("protocol").why.startswith("unknown protocol 'homemade-1'")


def test_a_protocol_for_other_datasets_is_wrong_usage(sound: RunDirectory) -> None:
    assert invoke(["verify", str(sound.path), "--protocol", "claude-memory-strata-1"]) == 2


def test_a_declared_deviation_is_shown_and_leaves_the_run_unverified(sound: RunDirectory) -> None:
    manifest = sound.manifest()
    manifest.deviations = ["depth=20 instead of 50: the index returns no more"]
    sound.save(manifest)

    found = verify(sound)

    assert found.failed == ["deviations"]
    assert found.gate("deviations").why == manifest.deviations[0]


def test_an_undeclared_deviation_is_found(sound: RunDirectory) -> None:
    def turns(identity: dict[str, Any]) -> None:
        identity["benchmark"]["options"]["granularity"] = "turn"

    edit_identity(sound, turns)

    why = verify(sound).gate("deviations").why
    assert why == "granularity=turn instead of session (not declared)"


def test_runs_of_one_fingerprint_may_differ_within_the_band_only(sound: RunDirectory) -> None:
    other = RunDirectory(sound.path.parent.parent / "again" / SYSTEM)
    shutil.copytree(sound.path, other.path)
    assert verify(sound).gate("variance").why.endswith("of 1 other run")

    metrics = other.read_json("metrics.json")
    metrics["overall"]["recall@10"]["mean"] += 0.011
    write_json(other.path / "metrics.json", metrics)
    manifest = other.manifest()
    manifest.files["metrics.json"] = sha256_file(other.path / "metrics.json")
    other.save(manifest)

    found = verify(sound)

    assert found.failed == ["variance"]
    expected = f"recall@10 differs by 0.0110 from again/{SYSTEM}; at most 0.01 allowed"
    assert found.gate("variance").why == expected


def test_blocked_and_other_runs_do_not_count_for_the_variance(sound: RunDirectory) -> None:
    blocked = RunDirectory(sound.path.parent.parent / "blocked" / SYSTEM)
    other = RunDirectory(sound.path.parent.parent / "other" / SYSTEM)
    shutil.copytree(sound.path, blocked.path)
    shutil.copytree(sound.path, other.path)
    for run in (blocked, other):  # a copy is the same run for the ledger
        manifest = run.manifest()
        manifest.id = run.path.parent.name
        run.save(manifest)
    block(blocked, "broken")
    edit_identity(other, lambda identity: identity.update(depth=20))

    assert "there are no other runs" in verify(sound).gate("variance").why


def test_every_gate_that_a_protocol_names_is_known(original: Path) -> None:
    """A run could never pass a misspelt gate."""
    known = {gate.name for gate in verify(RunDirectory(original / SYSTEM)).gates}

    assert all(set(load_protocol(name).protocol.gates) <= known for name in protocol_names())


def test_scored_rankings_are_unverified_with_the_reason(
    shared_data: Shared, original: Path, tmp_path: Path
) -> None:
    rankings = str(original / SYSTEM / "raw_retrievals.jsonl")
    where = ["--data", str(shared_data("locomo")), "--out", str(tmp_path / "scored")]
    assert invoke(["score", rankings, "--dataset", "locomo", *where]) == 0

    found = verify(RunDirectory(tmp_path / "scored"), load_protocol(PROTOCOL))

    assert found.status == "UNVERIFIED"
    assert found.failed == ["granularity", "arms"]
    assert "the rankings were read from a file" in found.gate("granularity").why


def test_a_benchmark_that_the_runs_protocol_lacks_leaves_it_unverified(sound: RunDirectory) -> None:
    edit_identity(sound, lambda identity: identity["benchmark"].update(name="homemade"))

    found = verify(sound)

    assert found.status == "UNVERIFIED"
    assert "protocol" in found.failed
    assert "homemade" in found.gate("protocol").why


def test_a_run_without_evidence_fails_the_evidence_gate(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", [True, False])
    whole = run.trials_path.read_text()
    run.trials_path.write_text(
        whole.replace('"evidence":["m0"],', "").replace('"reachable":1,', "")
    )

    gate = verify(run).gate("evidence")

    assert (gate.passed, gate.why) == (False, "0 questions have evidence")


def test_a_run_without_a_protocol_passes_every_gate_but_that_one(
    make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", [True, False])
    run.write_files({"report.md": b""})

    found = verify(run)

    assert found.failed == ["protocol"]
    assert found.gate("evidence").why == "all evidence of 2 questions exists"


LOCKED = Isolation("child", 2, mechanism="Landlock ABI 7", starts=3, passed=3)


@pytest.mark.parametrize(
    ("isolation", "under_1", "under_2", "why"),
    [
        (Isolation("server", 0), "CONSISTENT", "CONSISTENT", "within the system's reach"),
        (Isolation("child", 1), "VERIFIED", "UNVERIFIED", "labels were not given"),
        (LOCKED, "VERIFIED", "VERIFIED", "(Landlock ABI 7, self-test 3 of 3 starts)"),
        (msgspec.structs.replace(LOCKED, passed=2), "UNVERIFIED", "UNVERIFIED", "not every start"),
    ],
)
def test_the_status_depends_on_what_kept_the_labels_away(
    sound: RunDirectory, isolation: Isolation, under_1: str, under_2: str, why: str
) -> None:
    manifest = sound.manifest()
    manifest.isolation = isolation
    sound.save(manifest)

    first, second = verify(sound), verify(sound, load_protocol("mnemoscope-retrieval-2"))

    assert (first.status, second.status) == (under_1, under_2)
    assert why in first.gate("isolation").why


def test_an_old_run_of_another_system_is_at_most_consistent(
    sound: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_identity(sound, lambda identity: identity["system"].update(spec="my_package:Memory"))
    manifest = sound.manifest()
    manifest.isolation = None
    sound.save(manifest)

    assert verify(sound).status == "CONSISTENT"
    assert invoke(["verify", str(sound.path)]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("CONSISTENT under mnemoscope-retrieval-1:sound: figures follow from")
