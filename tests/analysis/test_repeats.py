"""Declared repeats: the components of their variance, and the ways to cheat with them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.noisy_system import (
    Deaf,
    ManyQuestions,
    Noisy,
    Unseeded,
    planted,
)

import mnemoscope as ms
from mnemoscope._store.attempt_ledger import read_ledger
from mnemoscope._store.errors import EditedRun, RunConflict, UsageError
from mnemoscope._store.run_directory import RunDirectory, declared_repeat
from mnemoscope.analysis.repeats import RepeatSet, repeat_sets, set_of_run
from mnemoscope.analysis.verify import verify
from mnemoscope.api import ProgressUpdate
from mnemoscope.cli.app import invoke
from mnemoscope.models import model
from mnemoscope.reports.repeat_tables import what_to_buy
from mnemoscope.results import Results

STRATA = Path(__file__).resolve().parents[2] / "examples" / "strata"


def run(
    system: object, out: Path, repeat: int = 3, size: tuple[int, int] = (4, 6), **more: Any
) -> Results:
    dataset = ManyQuestions(out.parent, conversations=size[0], questions=size[1])
    options = {"baselines": False, "isolation": 0, "depth": 10, "progress": False, "workers": 1}
    return ms.run(dataset, systems=[system], repeat=repeat, out=out, **{**options, **more})


def the_set(out: Path) -> RepeatSet:
    [found] = repeat_sets(out)
    return found


# What repeats show.


def test_five_repeats_of_a_noisy_system_recover_the_planted_components(tmp_path: Path) -> None:
    results = run(Noisy, tmp_path / "out", 5, (60, 30), workers=0)

    found = results.repeats()["Noisy"]

    assert (found.problems, found.notes) == ([], [])
    figure = found.figures["recall@10"]
    assert figure.estimates is not None
    for name, value in planted()._asdict().items():
        assert figure.estimates[name] == pytest.approx(value, rel=0.1), name
    assert [one.seed for one in found.runs] == [42, 43, 44, 45, 46]
    assert figure.mean == pytest.approx(sum(figure.means) / 5)
    low, high = figure.ci95
    own = results["Noisy@3"].metrics["overall"]["recall@10"]["ci95"]
    assert own is not None and high - low > 1.5 * (own[1] - own[0]), "one run ignores the others"
    assert figure.next[0].what == "repeat", "five runs are few where runs differ this much"
    assert "one more repeat gives" in what_to_buy("recall@10", figure).lower()
    report = results["Noisy@1"].report
    assert "## Noisy: 5 repeats" in report and "repeat 1 of 5, declared beforehand" in report
    written = json.loads((tmp_path / "out" / "repeats.json").read_text())
    assert written["Noisy"]["figures"]["recall@10"]["mean"] == figure.mean


def test_the_set_is_declared_before_the_first_question(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(at: ProgressUpdate) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        run(Noisy, tmp_path / "out", progress=stop)

    starts = [line for line in read_ledger().lines if line.event == "start"]
    assert [(line.repeat.number, line.repeat.of) for line in starts if line.repeat] == [
        (1, 3),
        (2, 3),
        (3, 3),
    ]
    for number in (1, 2, 3):
        manifest = RunDirectory(tmp_path / "out" / f"Noisy@{number}").manifest()
        repeat = declared_repeat(manifest.identity)
        assert repeat is not None and (repeat.number, repeat.of) == (number, 3)
        assert repeat.seed == 41 + number


@pytest.mark.parametrize("system", ["recency", Deaf])
def test_identical_journals_show_nothing(
    system: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deaf is the cheat of one seed for all repeats: no variance of zero is claimed."""
    found = next(iter(run(system, tmp_path / "out").repeats().values()))

    assert found.identical and found.is_whole
    assert all(figure.variance is None and figure.se is None for figure in found.figures.values())
    assert all(not figure.next for figure in found.figures.values())
    report = (tmp_path / "out" / "summary.md").read_text()
    assert "identical" in report and "no variance from run to run is claimed" in report
    assert ("each had its own seed" in report) == (system is Deaf)


def test_a_given_seed_is_the_first_of_different_ones(tmp_path: Path) -> None:
    found = run("random,seed=7", tmp_path / "out").repeats()["random"]

    assert [one.seed for one in found.runs] == [7, 8, 9]
    assert [one.label for one in found.runs] == ["random@1", "random@2", "random@3"]


@pytest.mark.parametrize(
    ("given", "message"),
    [({"repeat": 0}, "must be 1 or more"), ({"system": "random,seed=x"}, "not a whole number")],
)
def test_wrong_repeats_are_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        run(**{"system": "random", "out": tmp_path / "out", **given})


def test_partly_identical_repeats_are_named(tmp_path: Path) -> None:
    class Half(Noisy):
        """Repeats 1 and 3 use the same random numbers."""

        def __init__(self, seed: int = 42) -> None:
            super().__init__(42 + seed % 2)

    found = run(Half, tmp_path / "out").repeats()["Half"]

    assert not found.identical and found.is_whole
    assert "the journals of repeats 1, 3 are identical" in " ".join(found.notes)


def test_the_same_answer_judged_in_several_repeats_shows_the_noise_of_the_judge(
    write_locomo: Callable[..., Path], tmp_path: Path
) -> None:
    results = ms.run(
        "locomo",
        systems="random",
        data=write_locomo(tmp_path / "locomo10.json", conversations=2, sessions=3, questions=6),
        out=tmp_path / "out",
        reader="extractive",
        judge="f1",
        repeat=3,
        baselines=False,
        progress=False,
    )
    variance = results.repeats()["random"].figures["f1"].variance
    assert variance is not None and variance["judge"] == 0.0, "f1 has no noise"


def test_each_repeat_asks_a_model_again() -> None:
    from mnemoscope.models.chat import Prompt
    from mnemoscope.models.model_loader import load_model

    own = load_model("m@http://127.0.0.1:9/v1")
    keys = []
    for number in (1, 2, 2, 3, 1):
        model.reply_for_repeat(number)
        keys.append(own._key(Prompt(system="", user="hello")))
    assert keys[1] == keys[2] and keys[0] == keys[4] and len({*keys}) == 3


# Cheats.


def test_deleting_the_worst_repeat_leaves_no_combined_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    means = {one.label: one.metrics["overall"]["recall@10"]["mean"] for one in run(Noisy, out).runs}
    worst = min(means, key=lambda label: means[label] or 0.0)
    shutil.rmtree(out / worst)

    found = the_set(out)

    assert not found.figures
    number = worst.rpartition("@")[2]
    assert f"repeat {number} of 3 is missing" in found.problems[0]
    assert "it was finished, and its folder was deleted or moved" in found.problems[0]
    assert invoke(["report", str(out)]) == 0
    assert json.loads((out / "repeats.json").read_text())["Noisy"]["figures"] == {}
    for name in ("summary.md", "Noisy@2/report.md"):
        assert "No combined figure: all 3 declared repeats count." in (out / name).read_text()
    gate = verify(RunDirectory(out / "Noisy@2")).gate("attempts")
    assert not gate.passed and f"repeat {number} of 3 is missing" in gate.why


def test_running_one_repeat_until_it_is_lucky_is_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(Unseeded, out)
    shutil.rmtree(out / "Unseeded@2")

    found = run(Unseeded, out).repeats()["Unseeded"]

    assert not found.figures
    assert "repeat 2 of 3 was run again: attempt 2 of 2, the first counts" in found.problems[0]


def test_a_repeat_whose_seed_gives_the_same_journal_again_is_the_same_repeat(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    first = run(Noisy, out).repeats()["Noisy"]
    shutil.rmtree(out / "Noisy@2")

    assert run(Noisy, out).repeats()["Noisy"] == first


def test_beginning_one_repeat_again_before_it_is_finished_is_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run(Unseeded, out, progress=_interrupt_after(2.5))
    shutil.rmtree(out / "Unseeded@3")

    found = run(Unseeded, out).repeats()["Unseeded"]

    assert not found.figures and "repeat 3 of 3 was begun again" in found.problems[0]


def test_declaring_five_and_stopping_after_good_ones(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run(Noisy, out, 5, progress=_interrupt_after(8.5))

    found = the_set(out)

    assert not found.figures
    assert sum("is not finished (state interrupted)" in one for one in found.problems) == 5
    with pytest.raises(RunConflict, match="contains another run"):
        run(Noisy, out, 3)
    fewer = run(Noisy, tmp_path / "fewer", 3).repeats()["Noisy"]
    assert not fewer.figures
    assert "a set of 5 repeats of the same system was declared before" in fewer.problems[0]
    more = run(Noisy, tmp_path / "more", 6).repeats()["Noisy"]
    assert more.is_whole and "a set of 5 repeats" in more.notes[0], "more repeats may be bought"


def test_an_interrupted_set_continues_and_gives_the_same_bytes(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Noisy, tmp_path / "broken", progress=_interrupt_after(5.5))
    run(Noisy, tmp_path / "broken")
    run(Noisy, tmp_path / "whole")

    names = [f"Noisy@{n}/{file}" for n in (1, 2, 3) for file in ("trials.jsonl", "metrics.json")]
    for name in [*names, "repeats.json"]:
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_edited_repeats_json_is_refused_and_written_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(Noisy, out)
    file = out / "repeats.json"
    before = file.read_bytes()
    content = json.loads(before)
    content["Noisy"]["figures"]["recall@10"]["mean"] = 0.99
    file.write_text(json.dumps(content))

    with pytest.raises(EditedRun, match=r"repeats\.json"):
        ms.load(out)["Noisy@1"].metrics  # noqa: B018
    assert invoke(["compare", str(out / "Noisy@1"), str(out / "Noisy@2")]) == 4
    assert invoke(["report", str(out)]) == 0
    assert file.read_bytes() == before


@pytest.mark.parametrize("copied", ["Noisy@4", "Noisy", "Noisy@x"])
def test_an_extra_or_renamed_folder_is_named(copied: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(Noisy, out)
    shutil.copytree(out / "Noisy@2", out / copied)

    problems = [problem for one in repeat_sets(out) for problem in one.problems]

    assert f"{copied} is an extra folder: its run is repeat 2 of 3" in " ".join(problems)
    assert not the_set(out).figures


def test_a_copied_repeat_is_no_set_of_its_own(tmp_path: Path) -> None:
    run(Noisy, tmp_path / "out")
    shutil.copytree(tmp_path / "out" / "Noisy@2", tmp_path / "out" / "other@2")

    sets = {one.label: one for one in repeat_sets(tmp_path / "out")}

    assert sets["Noisy"].is_whole
    assert not sets["other"].figures and "repeat 1 of 3 is missing" in sets["other"].problems[0]


def test_an_edited_declaration_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(Noisy, out)
    for number in (1, 2):  # two of two instead of three
        file = out / f"Noisy@{number}" / "manifest.json"
        file.write_text(file.read_text().replace('"of": 3', '"of": 2').replace('"of":3', '"of":2'))
    shutil.rmtree(out / "Noisy@3")

    assert repeat_sets(out) == [], "none of its runs can be read"
    with pytest.raises(EditedRun):
        ms.load(out)["Noisy@1"].metrics  # noqa: B018


def test_a_blocked_repeat_blocks_the_set(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(Noisy, out)
    ms.verify(out / "Noisy@1", block="the wrong data")

    assert not the_set(out).figures and "repeat 1 of 3 is blocked" in the_set(out).problems[0]


# Single repeats.


def test_one_repeat_is_not_to_be_picked(tmp_path: Path) -> None:
    out = tmp_path / "out"
    results = run(Noisy, out)
    lucky = run("tests.analysis.noisy_system:Noisy", tmp_path / "spec")

    compared = ms.compare(results["Noisy@1"], results["Noisy@3"])

    assert compared.paired is not None
    notes = " ".join(compared.paired.notes)
    assert "Noisy@1 is repeat 1 of 3" in notes and "Noisy@3 is repeat 3 of 3" in notes
    assert (
        verify(results["Noisy@3"].directory)
        .gate("attempts")
        .why.endswith("repeat 3 of a whole set of 3")
    )
    found = set_of_run(lucky.runs[0].directory)
    assert found is not None and found.is_whole
    alone = run("tests.analysis.noisy_system:Noisy,seed=44", tmp_path / "alone", 1)
    assert "the same as repeat 3 of a set of 3 that was declared before" in alone.runs[0].report


def test_the_variance_of_a_protocol_is_compared_with_the_measured_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["run", "strata", "--data", str(STRATA), "--out", str(out), "--system", "random"]
    command += ["--repeat", "3", "--protocol", "claude-memory-strata-1", "--workers", "1"]

    assert invoke(command) == 0

    said = " ".join(capsys.readouterr().out.split())
    assert "random: 3 repeats" in said
    assert "MORE than the 0.02 that the protocol accepts" in said
    assert sorted(path.name for path in out.glob("*/")) == [
        *("bm25", "oracle", "random", "random@1", "random@2", "random@3")
    ]
    gate = verify(RunDirectory(out / "random@1")).gate("variance")
    assert not gate.passed and "recall@10 differs by" in gate.why and "random@" in gate.why


def test_a_set_is_judged_again_as_a_set(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {"data": STRATA, "baselines": False, "progress": False, "workers": 1}
    ms.run(
        "strata", systems="random", out=out, reader="extractive", judge="f1", repeat=2, **options
    )

    again = ms.judge(out, judge="exact", data=STRATA, out=tmp_path / "again", progress=False)

    found = again.repeats()["random"]
    assert found.is_whole and [one.number for one in found.runs] == [1, 2]
    assert "random: 2 repeats" in (tmp_path / "again" / "random@1" / "report.md").read_text()


def _interrupt_after(done: float) -> Callable[[ProgressUpdate], None]:
    def update(at: ProgressUpdate) -> None:
        if at.done > done:
            raise KeyboardInterrupt

    return update
