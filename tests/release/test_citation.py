"""Citations: what the protocol asks for, only of verified runs, escaped for each format."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.verify import block
from mnemoscope.cli.app import invoke
from mnemoscope.release.citation import NotCitable, cite
from mnemoscope.release.claims import lint
from mnemoscope.release.people import check_name


@pytest.fixture
def runs(
    tmp_path: Path, make_world: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[RunDirectory, RunDirectory]]:
    """The base and the candidate of a world, below the current folder."""
    monkeypatch.chdir(tmp_path)

    def make(row: str) -> tuple[RunDirectory, RunDirectory]:
        world = make_world(tmp_path / "runs", row)
        return RunDirectory(world / "base" / "mine"), RunDirectory(world / "cand" / "mine")

    return make


def test_a_citation_has_values_intervals_artefacts_protocol_and_hashes(
    runs: Callable[[str], tuple[RunDirectory, RunDirectory]],
) -> None:
    base, cand = runs("SHIP")
    text = ms.cite(cand.path, base=base.path).text
    per = (
        r"measured per claude-memory stratified recall benchmark \(claude-memory-strata-1:own-\w+\)"
    )
    change = r"\+90\.00pp \(95% CI \[\+\d\d\.\d\d, \+\d\d\.\d\d\], p<0\.0001\)"
    assert re.match(rf"recall@10 improvement of {change}, {per}\.\n", text)
    level = r"0\.\d{4} \[0\.\d{4}, 0\.\d{4}\]"
    assert re.search(rf"\n- recall@10 {level} → {level}: {change}\n", text)
    for metric in ("recall@5", "ndcg@10", "mrr@20"):
        assert f"\n- {metric} " in text, "no metric of the protocol is left out"
    for part in ("Corpus: strata", "Embedder: none recorded", "runs/cand/mine/", "runs/base/mine/"):
        assert part in text
    for run in (base, cand):
        assert run.manifest().fingerprint in text
    assert run.manifest().protocol["sha256"] in text
    assert "ab" * 32 in text
    assert lint(text) == []


@pytest.mark.parametrize("row", ["HOLD or SHIP as no-claim", "HOLD"])
def test_only_a_proven_improvement_is_called_one(
    row: str, runs: Callable[[str], tuple[RunDirectory, RunDirectory]]
) -> None:
    base, cand = runs(row)
    found = cite(cand, base)
    for text in (found.text, found.bibtex, found.cff):
        assert "improvement of" not in text
    assert ("regression of -90.00pp" in found.text) == (row == "HOLD")
    assert lint(found.text) == []


def test_a_run_that_is_not_verified_is_refused(
    runs: Callable[[str], tuple[RunDirectory, RunDirectory]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    base, cand = runs("SHIP")
    block(base, "wrong embedder")
    with pytest.raises(NotCitable, match=r"is BLOCKED and cannot be cited: blocked \(.*wrong emb"):
        cite(cand, base)
    assert cite(cand).text
    assert invoke(["cite", str(base.path)]) == 1
    assert "is BLOCKED" in capsys.readouterr().err


HOSTILE = r"a}\input{/etc/passwd}$x$ %&#_~^ {"


def test_hostile_text_is_escaped_for_each_format(
    tmp_path: Path,
    runs: Callable[[str], tuple[RunDirectory, RunDirectory]],
) -> None:
    _, cand = runs("SHIP")
    folder = cand.path.with_name(HOSTILE.replace("/", "-"))
    cand.path.rename(folder)
    found = cite(RunDirectory(folder), author="Zoë O'Neil: {x}")
    body = re.sub(r"\\textbackslash\{\}|\\text\w+\{\}|\\[{}$&#_%]", "", found.bibtex)
    assert "\\" not in body, "every backslash is part of an escape"
    assert body.count("{") == body.count("}")
    assert not re.search(r"[$&#_%~^]", body)
    content = yaml.safe_load(found.cff)
    assert content["authors"] == [{"name": "Zoë O'Neil: {x}"}]
    assert content["title"].startswith(folder.name)
    assert content["cff-version"] == "1.2.0"


@pytest.mark.parametrize("format", ["text", "bibtex", "cff"])
def test_the_command_prints_and_writes_each_format(
    format: str,
    runs: Callable[[str], tuple[RunDirectory, RunDirectory]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, cand = runs("SHIP")
    expected = getattr(cite(cand), format)
    assert invoke(["cite", str(cand.path), "--format", format, "--out", "citation"]) == 0
    assert Path("citation").read_text() == expected
    capsys.readouterr()
    assert invoke(["cite", str(cand.path), "--format", format]) == 0
    assert capsys.readouterr().out.split() == expected.split()


@pytest.mark.parametrize("name", ["", "a\u200bb", "a|b", "<b>", "x\ny"])
def test_an_author_that_cannot_be_read_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a valid name"):
        check_name(name)
