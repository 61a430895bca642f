"""Published numbers to cite: a link only where one is stated or was read, and marks elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.test_published_command import call
from tests.published.test_published_registry import ROW, write
from tools.build_published import LINKS, ReadFile, linked, read_files

from mnemoscope._store.errors import DataError
from mnemoscope.published import Published, cohort_of, load
from mnemoscope.published.citations import bibtex, citation
from mnemoscope.published.source_links import publisher, stated_link

COMMIT = "0" * 39 + "a"
FILE = f"https://github.com/o/r/blob/{COMMIT}/README.md"


def row(**changes: Any) -> Published:
    return msgspec.convert({**ROW, **changes}, Published)


def test_every_row_has_a_link_that_cannot_change_or_says_that_it_has_none() -> None:
    counts = Counter(one.link_kind for one in load())
    assert counts == {"none": 400, "permalink": 177, "doi": 141, "thread": 109}
    for one in load():
        marked = {"no permalink", "no citation", "thread, can change"} & set(one.marks)
        assert bool(marked) != one.can_be_checked, one.source
        if one.link_kind == "permalink":
            assert re.search(r"/blob/[0-9a-f]{40}/", one.link) and one.read_on == "2026-11-18"
        else:
            assert not one.read_on  # no day is recorded for what was not read here


def test_every_link_is_stated_by_its_source_or_was_read() -> None:
    files = read_files(LINKS)
    for one in load():
        if one.link_kind == "permalink":
            file = files[one.source]
            value = Decimal(one.as_printed.value)
            assert one.link == file.link and {value, value / 100} & file.numbers
        elif one.link:
            number = re.search(r"\d{4}\.\d{4,5}$|\d+$", one.link)
            assert number is not None and number[0] in one.source


@pytest.mark.parametrize(
    ("source", "kind", "link"),
    [
        ("arXiv:2504.19413 Table 5 (disputed)", "doi", "https://doi.org/10.48550/arXiv.2504.19413"),
        ("getzep/zep-papers#5", "thread", "https://github.com/getzep/zep-papers/issues/5"),
        ("a/b PR#41", "thread", "https://github.com/a/b/pull/41"),
        (
            "mem0ai/mem0 discussions 7851",
            "thread",
            "https://github.com/mem0ai/mem0/discussions/7851",
        ),
        ("a/b README.md", "none", ""),
        ("memmachine.ai blog 2025-12", "none", ""),
        ("Letta blog 2025", "none", ""),
    ],
)
def test_a_link_is_what_the_source_states(source: str, kind: str, link: str) -> None:
    found = stated_link(source)
    assert (found.kind, found.address) == (kind, link)


def test_a_number_that_was_not_found_in_the_file_gets_no_permalink() -> None:
    files = {"o/r README.md": ReadFile(FILE, "2026-11-18", frozenset({Decimal("51.0")}))}
    printed = {"metric": "accuracy_llm_judge", "value": "51", "unit": "percent"}
    found = linked(row(source="o/r README.md", value=0.51, as_printed=printed), files)
    assert (found.link_kind, found.link) == ("permalink", FILE)
    other = linked(row(source="o/r README.md"), files)  # 50, which is not there
    assert (other.link_kind, other.marks) == ("none", ["no permalink"])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"link_kind": "permalink", "link": "https://github.com/o/r/blob/main/R.md"}, "no commit"),
        ({"link_kind": "doi", "link": "https://example.org/paper"}, "is not a DOI"),
        ({"link_kind": "permalink"}, "give both, or neither"),
        ({"link": FILE}, "give both, or neither"),
        ({"read_on": "yesterday"}, "is not a day"),
    ],
)
def test_a_link_that_only_looks_like_one_is_refused(
    changes: dict[str, str], told: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=told):
        load(write(tmp_path / "r.jsonl", {**ROW, **changes}))


def test_a_run_of_another_vendor_is_marked_with_who_ran_it() -> None:
    for one in load():
        run_by = [mark for mark in one.marks if mark.startswith("run by another vendor")]
        assert len(run_by) == (one.reported_by == "competitor")
    omni = next(one for one in load() if one.system == "Mem0 (OmniMemEval run)")
    assert "run by another vendor (MemTensor)" in omni.marks and publisher(omni.source)
    thread = next(one for one in load() if one.source == "getzep/zep-papers#5")
    assert "run by another vendor" in thread.marks  # its repository is not who ran it


def test_a_citation_has_conditions_link_day_and_marks() -> None:
    told = citation(
        row(link_kind="permalink", link=FILE, read_on="2026-11-18", reported_by="competitor")
    )
    assert told.startswith("S: 0.50 (B · all, n=10 · judged accuracy")
    assert f"{FILE} (read 2026-11-18)" in told and told.endswith("[run by another vendor]")
    entry = bibtex([row(), row(system="T", link_kind="doi", link="https://doi.org/10.1/x")])
    assert entry.count("@misc{") == 2 and "doi = {10.1/x}" in entry and "[no permalink]" in entry


def test_cohorts_with_several_sources_come_first_and_single_rows_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call("list", "--benchmark", "LoCoMo")
    shown = re.findall(r"^(c[0-9a-f]{6})  ", capsys.readouterr().out, re.MULTILINE)
    rows: dict[str, list[Published]] = {}
    for one in load():
        if one.benchmark == "LoCoMo":
            rows.setdefault(cohort_of(one).id, []).append(one)
    assert sorted(shown) == sorted(rows)
    places = [
        0 if len({one.source for one in rows[id]}) > 1 else 1 if len(rows[id]) > 1 else 2
        for id in shown
    ]
    assert places == sorted(places) and {*places} == {0, 1, 2}


def test_the_command_cites(capsys: pytest.CaptureFixture[str]) -> None:
    call("cite", "--benchmark", "LoCoMo", "--system", "Mem0 (2025-04)", "--category", "all")
    told = " ".join(capsys.readouterr().out.split())
    assert "Mem0 (2025-04): 0.6688" in told and "/blob/0fe290cb86a4" in told
    call("cite", "--system", "Mem0 (2025-04)", "--category", "all", "--bibtex")
    assert "urldate = {2026-11-18}" in capsys.readouterr().out
