"""An interrupted run that was edited, exchanged or set back is not continued."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mnemoscope as ms
from mnemoscope._store.errors import EditedRun
from mnemoscope._store.journal_chain import SpoolJournal, chain_of_spool
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.unfinished_runs import unfinished_run
from mnemoscope._store.user_data import user_data_folder

SPOOL = "units/000001.trials.jsonl"


@pytest.fixture(scope="module")
def data(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "locomo10.json"
    return write_locomo(path, conversations=2, sessions=4, questions=6)


def start(data: Path, out: Path, progress: Any = False) -> Path:
    ms.run(
        "locomo",
        systems="recency",
        data=data,
        out=out,
        baselines=False,
        workers=1,
        progress=progress,
    )
    return out / "recency"


def interrupted(data: Path, out: Path) -> Path:
    """A run that was stopped at once, with the spool that a killed worker leaves."""

    def stop(update: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(data, out, stop)
    run = out / "recency"
    shutil.rmtree(run / "units", ignore_errors=True)
    return run


def spool_of(run: Path, whole: Path) -> Path:
    """Write the first lines of the second unit, as its worker does."""
    lines = (whole / "trials.jsonl").read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])["scenario"]
    second = [line for line in lines if json.loads(line)["scenario"] == last]
    (run / "units").mkdir(exist_ok=True)
    spool = run / SPOOL
    for path in (spool, Path(str(spool).replace("trials", "timings"))):
        with SpoolJournal(path) as journal:
            if path == spool:
                journal.append_bytes(b"".join(second[:3]))
    return spool


@pytest.fixture
def whole(data: Path, tmp_path: Path) -> Path:
    """The same run, finished."""
    return start(data, tmp_path / "whole")


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Path:
    return interrupted(data, tmp_path / "out")


def resume(run: Path, data: Path) -> Path:
    return start(data, run.parent)


def edit(run: Path, **fields: Any) -> None:
    path = run / "manifest.json"
    manifest = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({k: v for k, v in manifest.items() if v is not None}, indent=2))


def test_an_interrupted_run_is_continued_with_its_spool(run: Path, whole: Path, data: Path) -> None:
    spool_of(run, whole)

    resume(run, data)

    assert (run / "trials.jsonl").read_bytes() == (whole / "trials.jsonl").read_bytes()
    assert unfinished_run(run) is None, "a finished run has its seal instead"


@pytest.mark.parametrize(
    "fields",
    [
        {"isolation": {"hosting": "child", "level": 3, "starts": 1, "passed": 1}},
        {"notes": ["another"]},
        {"attempt": 7},
        {"id": None},
        {"deviations": []},
    ],
)
def test_an_edited_manifest_is_refused(run: Path, data: Path, fields: dict[str, Any]) -> None:
    edit(run, **fields)

    with pytest.raises(EditedRun, match=r"manifest\.json "):
        resume(run, data)


def test_a_spool_with_a_chain_that_was_computed_anew_is_refused(
    run: Path, whole: Path, data: Path
) -> None:
    spool = spool_of(run, whole)
    lines = [json.loads(line) for line in spool.read_text().splitlines()]
    for line in lines:
        if line.get("ranking"):
            line["ranking"].reverse()
    spool.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    # Everything that is in the run, and no key.
    for seed in ("recency", "recency\n"):
        content = spool.read_bytes()
        first = hashlib.sha256(f"{spool.name}\n{seed}".encode()).digest()
        anew = len(content).to_bytes(8, "big") + hashlib.sha256(first + content).digest()
        chain_of_spool(spool).write_bytes(anew + bytes(len(anew)))
        with pytest.raises(EditedRun, match=r"000001\.trials\.jsonl does not match its hash chain"):
            resume(run, data)


def test_the_spool_of_another_attempt_is_refused(
    run: Path, whole: Path, data: Path, tmp_path: Path
) -> None:
    lucky = interrupted(data, tmp_path / "lucky")
    spool_of(lucky, whole)
    shutil.copytree(lucky / "units", run / "units")

    with pytest.raises(EditedRun, match=r"000001\.trials\.jsonl does not match its hash chain"):
        resume(run, data)


def test_a_run_that_is_set_back_is_refused(run: Path, whole: Path, data: Path) -> None:
    """Saved, continued until the result is known, and put back to try again."""
    saved = run.parent / "saved"
    shutil.copytree(run, saved)
    directory = RunDirectory(run)
    manifest = directory.open(json.loads((whole / "manifest.json").read_text())["identity"])
    chain = directory.chain(manifest)
    lines = (whole / "trials.jsonl").read_bytes().splitlines(keepends=True)[:3]
    directory.note_merged(chain.advance(chain.last(), "conv", b"".join(lines), b""))
    with (run / "trials.jsonl").open("ab") as file:
        file.write(b"".join(lines))
    directory.release()

    shutil.rmtree(run)
    saved.rename(run)

    with pytest.raises(EditedRun, match=r"(manifest\.json was changed|trials\.jsonl is not)"):
        resume(run, data)


def test_a_run_without_its_record_is_refused_with_a_way_out(run: Path, data: Path) -> None:
    shutil.rmtree(user_data_folder() / "unfinished")

    with pytest.raises(EditedRun, match=r"no record of this unfinished run\. Choose another --out"):
        resume(run, data)


def test_a_moved_run_is_continued_and_a_copy_is_not(
    run: Path, whole: Path, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "copy").mkdir()
    shutil.copytree(run, tmp_path / "copy" / "recency")
    with pytest.raises(EditedRun, match=r"no record of this unfinished run"):
        start(data, tmp_path / "copy")

    run.parent.rename(tmp_path / "moved")
    start(data, tmp_path / "moved")

    moved = tmp_path / "moved" / "recency" / "trials.jsonl"
    assert moved.read_bytes() == (whole / "trials.jsonl").read_bytes()


def test_the_record_is_private_and_not_in_the_run(run: Path) -> None:
    record = unfinished_run(run)
    assert record is not None
    [place] = (user_data_folder() / "unfinished").iterdir()

    assert place.stat().st_mode & 0o777 == 0o600
    assert record.manifest == [hashlib.sha256((run / "manifest.json").read_bytes()).hexdigest()]
    assert not any(record.key in path.read_text() for path in run.glob("**/*") if path.is_file())
