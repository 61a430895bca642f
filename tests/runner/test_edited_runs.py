"""An edited run is refused by every command that prints a figure, with the name of the file."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing

import mnemoscope as ms
from mnemoscope._store.attempt_ledger import ledger_path
from mnemoscope._store.errors import EditedRun, MnemoscopeError
from mnemoscope._store.fingerprint import fingerprint, sha256_file
from mnemoscope._store.journal_chain import JournalChain
from mnemoscope._store.jsonl import write_json
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.ssh_signatures import signature_of
from mnemoscope.analysis.verify import verify
from mnemoscope.cli.app import invoke
from mnemoscope.release.start_release import new_release
from mnemoscope.release.state import moment
from mnemoscope.reports.run_view import RunView

MUTATIONS = 300


class World:
    """A folder with two finished runs, and the command that made them."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.out = folder / "out"
        self.data = data
        self.run = self.out / "recency"
        self.other = self.out / "bm25"
        self.command = [
            *("run", "locomo", "--data", str(data), "--out", str(self.out), "--no-arms"),
            *("--system", "recency", "--system", "bm25", "--workers", "1"),
        ]

    def repeat(self) -> int:
        return invoke(self.command)


def run_again(world: World, systems: Sequence[str] = ("recency", "bm25")) -> None:
    """Do what the command does, without reading a command line."""
    ms.run("locomo", data=world.data, out=world.out, systems=systems, baselines=False, workers=1)


@pytest.fixture(scope="module")
def data(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "locomo10.json"
    return write_locomo(path, conversations=2, sessions=4, questions=6)


@pytest.fixture(scope="module")
def original(data: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("world"), data)
    assert world.repeat() == 0
    return world


@pytest.fixture
def world(original: World, tmp_path: Path) -> World:
    """A copy that no ledger of this machine knows; its own copy of the ledger travels with it."""
    shutil.copytree(original.out, tmp_path / "out")
    return World(tmp_path, original.data)


@pytest.fixture
def own(data: Path, tmp_path: Path) -> World:
    """Runs that were made here, so that the user's ledger knows them."""
    world = World(tmp_path, data)
    assert world.repeat() == 0
    return world


def edit_rankings(run: Path) -> None:
    """Put the evidence first in every ranking of the journal."""
    path = run / "trials.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("evidence"):
            line["ranking"] = [*line["evidence"], *line["ranking"]][: len(line["ranking"])]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def edit_manifest(run: Path, **fields: Any) -> None:
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, **fields}, indent=2))


def redo_chain(run: Path) -> None:
    """Compute the hash chain anew, as a forger who knows it would."""
    chain = JournalChain(run, json.loads((run / "manifest.json").read_text())["fingerprint"])
    chain.path.unlink()
    chain.cover()


def refused(world: World, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert world.repeat() == 4
    told = capsys.readouterr().err
    assert name in "".join(told.split("\n"))
    assert "Traceback" not in told


def test_rankings_edited_and_resumed_are_refused(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_rankings(world.run)
    edit_manifest(world.run, state="interrupted")

    refused(world, capsys, "recency/trials.jsonl does not match its hash chain")


def test_failed_trials_deleted_and_resumed_are_refused(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    path = world.run / "trials.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3] + lines[5:]))
    edit_manifest(world.run, state="interrupted")

    refused(world, capsys, "recency/trials.jsonl does not match its hash chain")


def test_edited_timings_are_refused(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    path = world.run / "timings.jsonl"
    path.write_text(path.read_text().replace('"recall_ms":0.', '"recall_ms":0.0', 3))
    edit_manifest(world.run, state="interrupted")

    refused(world, capsys, "recency/timings.jsonl does not match its hash chain")


@pytest.mark.parametrize("ledger", ["the user's", "the copy"])
def test_a_chain_that_was_redone_is_refused_by_the_ledger(
    own: World, ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (own.out / "attempts.jsonl" if ledger == "the user's" else ledger_path()).unlink()
    edit_rankings(own.run)
    redo_chain(own.run)
    edit_manifest(own.run, state="interrupted")
    (own.run / "seal.json").unlink()

    refused(own, capsys, "trials.jsonl was edited: the run was finished with other lines")


def test_a_chain_that_was_deleted_is_refused(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_rankings(world.run)
    (world.run / "trials.chain.jsonl").unlink()
    edit_manifest(world.run, state="interrupted")

    refused(world, capsys, "trials.chain.jsonl is missing")


def test_an_identity_edited_to_fit_the_command_is_refused(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((world.run / "manifest.json").read_text())
    manifest["identity"]["depth"] = 49
    edit_manifest(world.run, identity=manifest["identity"], state="interrupted")

    refused(world, capsys, "manifest.json was edited: its fingerprint is another one")


def seal_again(run: Path) -> None:
    """Write the hashes of the edited files into manifest and seal, as a forger would."""
    manifest = json.loads((run / "manifest.json").read_text())
    for name in manifest["files"]:
        manifest["files"][name] = sha256_file(run / name)
    write_json(run / "manifest.json", manifest)
    RunDirectory(run).vouch("manifest.json")


def test_a_seal_that_was_redone_is_refused_by_the_ledger(own: World) -> None:
    metrics = json.loads((own.run / "metrics.json").read_text())
    metrics["overall"]["recall@10"]["mean"] = 0.5
    write_json(own.run / "metrics.json", metrics)
    seal_again(own.run)

    with pytest.raises(EditedRun, match=r"manifest\.json is not the one that the ledger"):
        ms.load(own.run)
    assert "files" in verify(RunDirectory(own.run)).failed


def test_another_id_does_not_hide_a_run_from_the_ledger(own: World) -> None:
    for id in ("0" * 32, ""):
        edit_manifest(own.run, id=id)
        seal_again(own.run)

        with pytest.raises(EditedRun, match="has another id than the run"):
            ms.load(own.run)


def old_schema(run: Path) -> None:
    """Make a run look like one of an older version."""
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["identity"]["schema"]
    for name in ("id", "attempt", "ledger", "chain", "schema"):
        manifest.pop(name, None)
    manifest["files"].pop("trials.chain.jsonl")
    manifest["fingerprint"] = fingerprint(manifest["identity"])
    write_json(run / "manifest.json", {**manifest, "schema": 1})
    for name in ("seal.json", "trials.chain.jsonl"):
        (run / name).unlink()


def test_a_new_run_does_not_pass_as_an_old_one(own: World) -> None:
    old_schema(own.run)

    with pytest.raises(EditedRun, match="knows a newer run here"):
        ms.load(own.run)


def test_a_run_of_an_older_version_is_readable_with_a_caveat_and_unverified(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    old_schema(world.run)
    (world.out / "attempts.jsonl").unlink()

    assert invoke(["report", str(world.run)]) == 0
    assert "made by an older version" in " ".join(capsys.readouterr().out.split())
    found = verify(RunDirectory(world.run))
    assert {"files", "journal"} <= {*found.failed}
    assert "hash chain" in found.gate("journal").why


def test_an_edited_spool_is_refused(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line of a spool renews its hash, so that an edit of any line is found."""
    shutil.rmtree(world.run)
    (world.out / "attempts.jsonl").unlink()
    lines = (world.other / "trials.jsonl").read_bytes().splitlines(keepends=True)
    spool = world.run / "units" / "000000.trials.jsonl"
    spool.parent.mkdir(parents=True)
    spool.write_bytes(b"".join(lines[:4]))

    assert world.repeat() == 4
    assert "000000.trials.jsonl does not match its hash chain" in "".join(
        capsys.readouterr().err.split("\n")
    )


def test_a_deleted_block_is_noticed(own: World) -> None:
    kept = own.out.parent / "kept"
    shutil.copytree(own.run, kept)
    assert invoke(["verify", str(own.run), "--block", "wrong data"]) == 1
    assert ms.load(own.run).runs, "a blocked run can be read"

    (own.run / "BLOCKED.md").unlink()
    with pytest.raises(EditedRun, match=r"BLOCKED\.md is missing"):
        ms.load(own.run)
    shutil.rmtree(own.run)
    shutil.move(kept, own.run)
    with pytest.raises(EditedRun, match=r"BLOCKED\.md is missing: the run was blocked"):
        ms.load(own.run)


READERS: dict[str, Callable[[World], object]] = {
    "load": lambda world: ms.load(world.run).runs[0].metrics,
    "load folder": lambda world: ms.load(world.out),
    "report text": lambda world: ms.load(world.run).runs[0].report,
    "compare": lambda world: ms.compare(world.run, world.other),
    "compare as candidate": lambda world: ms.compare(world.other, world.run),
    "compare means": lambda world: ms.compare(world.run, world.other, tests="seed"),
    "compare a file": lambda world: ms.compare(
        world.other, world.run / "metrics.json", tests="seed"
    ),
    "gate": lambda world: ms.gate(world.run, baseline=world.other, max_drop={"recall@10": 1.0}),
    "gate baseline": lambda world: ms.gate(
        world.other, baseline=world.run / "metrics.json", max_drop={"recall@10": 1.0}
    ),
    "view": lambda world: RunView.of(RunDirectory(world.run)),
    "release": lambda world: new_release(
        "v1",
        [world.run],
        [world.other],
        world.out / "r",
        author="Ann",
        when=moment(),
        other_base="first",
    ),
    "judge": lambda world: ms.judge(world.run, judge="f1", data=world.data, progress=False),
    "answer": lambda world: ms.answer(
        world.run, reader="extractive", data=world.data, progress=False
    ),
}
"""Functions that print a figure or make another run from one."""


def test_sound_runs_are_read(world: World) -> None:
    """The mutations below would be noticed for the wrong reason otherwise."""
    for name in ("load", "load folder", "report text", "compare", "compare means", "gate", "view"):
        assert READERS[name](world) is not None
    assert "files" not in verify(RunDirectory(world.run)).failed
    assert invoke(["report", str(world.out)]) == 0
    assert world.repeat() == 0


def state_of(folder: Path) -> list[tuple[str, str]]:
    return sorted(
        (str(path.relative_to(folder)), "link" if path.is_symlink() else sha256_file(path))
        for path in folder.rglob("*")
        if path.is_file() or path.is_symlink()
    )


def edit_field(path: Path, draw: random.Random) -> None:
    """Change one value of a JSON document, or of one line of a JSONL file."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    place = draw.randrange(len(lines))
    document = json.loads(lines[place])
    within: Any = document
    while True:
        keys = list(within) if isinstance(within, dict) else list(range(len(within)))
        key = draw.choice(keys)
        if not isinstance(within[key], dict | list) or not within[key]:
            break
        within = within[key]
    value = within[key]
    if isinstance(value, bool):
        within[key] = not value
    elif isinstance(value, int | float):
        within[key] = value + 1
    else:
        within[key] = f"{value}x" if isinstance(value, str) else 1
    lines[place] = json.dumps(document, indent=None if path.suffix == ".jsonl" else 2)
    path.write_text("\n".join(lines) + "\n")


def mutate(world: World, draw: random.Random) -> tuple[str, str]:
    """Change one file of the run; returns its name and what was done."""
    files = [path for path in sorted(world.run.iterdir()) if path.name != ".lock"]
    files += [world.out / "summary.md", world.out / "summary.json"]
    path = draw.choice(files)
    content = path.read_bytes()
    kinds = ["flip", "truncate", "delete", "append", "rename", "folder", "link", "swap", "empty"]
    kinds += ["field"] * 3 if path.suffix in (".json", ".jsonl") else []
    kinds += ["unreadable"] if os.geteuid() else []
    kind = draw.choice(kinds)
    if kind == "flip":
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] ^= draw.randrange(1, 256)
        path.write_bytes(damaged)
    elif kind == "truncate":
        path.write_bytes(content[: draw.randrange(1, len(content))])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "append":
        path.write_bytes(content + draw.choice([b"\n", b" ", b"{}\n", content]))
    elif kind == "rename":
        path.rename(path.with_name(f"{path.name}.bak"))
    elif kind == "delete":
        path.unlink()
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    elif kind == "link":
        path.rename(path.with_name("aside"))
        path.symlink_to(path.with_name("aside"))
    elif kind == "swap":
        other = world.other / path.name
        swapped = other.read_bytes() if other.exists() else b"# report\n"
        path.write_bytes(swapped if swapped != content else b"{}")
    elif kind == "unreadable":
        path.chmod(0)
    else:
        edit_field(path, draw)
    return path.name, kind


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], str]]:
    def taken() -> str:
        told = caplog.text
        caplog.clear()
        return told

    with caplog.at_level(logging.WARNING, "mnemoscope"):
        yield taken


@pytest.mark.parametrize("part", range(4))
def test_no_mutation_of_a_run_goes_unnoticed(
    part: int,
    original: World,
    tmp_path: Path,
    warnings: Callable[[], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    draw = random.Random(part)
    sound = state_of(original.out)
    for number in range(MUTATIONS // 4):
        shutil.copytree(original.out, tmp_path / "out")
        world = World(tmp_path, original.data)
        name, kind = mutate(world, draw)
        about = f"{kind} of {name}"
        assert kind in ("folder", "unreadable") or state_of(world.out) != sound, about
        for reader, read in READERS.items():
            try:
                read(world)
            except MnemoscopeError as error:
                assert name in str(error), f"{reader}: {about}: {error}"
            else:
                raise AssertionError(f"{reader} did not notice: {about}")
        try:
            assert "files" in verify(RunDirectory(world.run)).failed, f"verify: {about}"
        except MnemoscopeError as error:
            assert name in str(error), f"verify: {about}: {error}"
        if number % 5 == 0:  # it writes reports again, so that `report` would find nothing
            try:
                run_again(world)
            except (MnemoscopeError, OSError) as error:  # the command prints either
                assert name in str(error), f"run: {about}: {error}"
            else:
                assert name in warnings(), f"run: {about}"
        else:
            warnings()
            invoke(["report", str(world.run)])
            told = "".join(capsys.readouterr().err.split("\n"))
            assert name in told or name in warnings(), f"report: {about}"
            assert "Traceback" not in told
        (world.run / name).chmod(0o700) if (world.run / name).exists() else None
        shutil.rmtree(tmp_path / "out")


def run_recency(world: World) -> None:
    """What the command does for its first system alone, without reading a command line."""
    ms.run("locomo", data=world.data, out=world.out, systems="recency", baselines=False, workers=1)


def killed_while_it_writes(world: World, write: int, *, replaced: bool) -> bool:
    """Make the run in a process that dies at this write; whether it came so far."""
    child = os.fork()
    if not child:
        left, replace = [write], Path.replace

        def counted(draft: Path, target: Path) -> Path:
            left[0] -= 1
            if left[0] < 0:
                if replaced:
                    replace(draft, target)
                os._exit(9)
            return replace(draft, target)

        Path.replace = counted  # type: ignore[method-assign, assignment]
        try:
            run_again(world, ["recency"])
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("replaced", [False, True])
def test_a_kill_at_any_write_leaves_a_run_that_the_same_command_completes(
    replaced: bool, original: World, tmp_path: Path
) -> None:
    write = 0
    while True:
        world = World(tmp_path / str(write), original.data)
        killed = killed_while_it_writes(world, write, replaced=replaced)
        run_again(world, ["recency"])
        for name in ("trials.jsonl", "metrics.json"):
            assert (world.run / name).read_bytes() == (original.run / name).read_bytes()
        assert not RunDirectory(world.run).edited_files()
        if not killed:
            break
        write += 1
    assert write > 10, "the command writes more files than that"


def test_added_files_that_commands_would_read_are_refused(world: World) -> None:
    for name in ("answers.json", "longitudinal.json", "forgetting.json", "BLOCKED.md", "units"):
        place = world.run / name
        place.mkdir() if name == "units" else place.write_text("{}")
        with pytest.raises(EditedRun, match=f"{name} was added after the run"):
            ms.load(world.run)
        place.rmdir() if name == "units" else place.unlink()
    (world.run / "my notes.txt").write_text("good run")
    assert ms.load(world.run).runs


@pytest.mark.parametrize("name", ["manifest.json", "seal.json", "trials.jsonl", "answers.json"])
def test_a_pipe_in_a_run_is_refused_and_not_waited_for(world: World, name: str) -> None:
    (world.run / name).unlink(missing_ok=True)
    os.mkfifo(world.run / name)
    for read in (RunView.of, verify):
        with pytest.raises(EditedRun, match=f"{name} is not a regular file"):
            read(RunDirectory(world.run))


def test_a_pipe_as_the_ledger_of_a_folder_is_not_waited_for(world: World) -> None:
    (world.out / "attempts.jsonl").unlink()
    os.mkfifo(world.out / "attempts.jsonl")
    assert RunView.of(RunDirectory(world.run)).metrics["overall"]


def test_an_edited_report_is_written_again_by_report_and_run_alone(
    world: World, warnings: Callable[[], str]
) -> None:
    report = world.run / "report.md"
    before = report.read_bytes()
    report.write_bytes(before + b"recall@10 is 1.000\n")
    with pytest.raises(EditedRun, match=r"report\.md was changed"):
        ms.compare(world.run, world.other)

    for command in (["report", str(world.run)], world.command):
        report.write_bytes(before + b"recall@10 is 1.000\n")
        assert invoke(command) == 0
        assert "report.md was changed after the run; it is written again" in warnings()
        assert report.read_bytes() == before
    assert ms.compare(world.run, world.other).paired


def test_a_signature_is_part_of_the_run(world: World, tmp_path: Path) -> None:
    """Signing does not change the manifest, and writing the report again keeps the signature."""
    if shutil.which("ssh-keygen") is None:
        missing("no ssh-keygen")
    key = tmp_path / "key"
    os.spawnlp(os.P_WAIT, "ssh-keygen", "ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", key)
    ms.sign(world.run, key=key)
    assert ms.report(world.run).runs
    assert signature_of(RunDirectory(world.run)).state == "good"

    (world.run / "manifest.json.sig").unlink()
    with pytest.raises(EditedRun, match=r"manifest\.json\.sig is missing"):
        ms.load(world.run)
