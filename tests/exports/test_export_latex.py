"""LaTeX tables: what they say, and that a real LaTeX compiles them, hostile labels included."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from shutil import which

import pytest
from msgspec.structs import replace
from tests.conftest import REPOSITORY
from tests.exports.conftest import HOSTILE, SmallRuns
from tests.optional import missing

import mnemoscope as ms
from mnemoscope.cli.app import invoke
from mnemoscope.exports.latex_table import figures_table, latex_file
from mnemoscope.exports.latex_text import as_comment, as_latex
from mnemoscope.reports.run_view import RunView

WILD = (
    "".join(map(chr, range(32, 127)))
    + "--- '' ?` !` ,, << >> éÅñŞőßłµα–—“”… \u202e\x1b\n中😀\ud800"
)


def compiled(folder: Path, name: str) -> str:
    """Compile a file with pdflatex, which stops at the first error; return its log."""
    if which("pdflatex") is None:
        missing("no pdflatex on this machine")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False)
    log = (folder / name).with_suffix(".log").read_text(errors="replace")
    assert done.returncode == 0, log[-1500:]
    assert (folder / name).with_suffix(".pdf").stat().st_size > 1000
    return log


def test_figures_have_intervals_letters_and_bold_for_the_best_group_only(
    small_runs: SmallRuns,
) -> None:
    results = small_runs.results
    assert results.groups is not None
    ranked = [
        replace(one, letters="ab"[place > 1], is_best=place < 2)
        for place, one in enumerate(results.groups.systems)
    ]
    views = [RunView.of(run.directory) for run in results.runs]
    table = figures_table(
        views, ["recall@10", "ndcg@10"], replace(results.groups, systems=ranked), [], []
    )
    lines = latex_file(table).decode("ascii").splitlines()
    assert r"System & recall@10 & ndcg@10 \\" in lines
    for one in ranked:
        [row] = [line for line in lines if f"{as_latex(one.system, 40)} & " in line]
        recall, ndcg = row.removesuffix(r" \\").split(" & ")[1:]
        mean = results[one.system].metrics["overall"]["recall@10"]["mean"]
        bold = rf"\textbf{{{mean:.3f}}}" if one.is_best else f"{mean:.3f}"
        assert recall == rf"{bold}\rlap{{\textsuperscript{{{one.letters}}}}}"
        assert re.fullmatch(r"\d\.\d{3}", ndcg)
        interval = lines[lines.index(row) + 1]
        assert re.search(r"\\scriptsize \[\.\d+, [.\d]+\]", interval)
    [oracle] = [line for line in lines if "oracle & " in line]
    assert r"\text" not in oracle


def test_status_and_weak_figures_stand_below_the_table(small_runs: SmallRuns) -> None:
    text = small_runs.results.to_latex(metrics=["recall@10", "ndcg@10"])
    below = text.partition(r"\end{tabular}")[2]
    assert "UNVERIFIED" in below
    assert "questions failed; counted as wrong" in below
    assert "not shown to be above chance" in below
    assert "cannot be told apart by recall@10" in below
    assert r"\textit{chance} & " in text
    assert text.isascii()


def test_every_text_becomes_ascii_that_only_prints_it() -> None:
    shown = as_latex(WILD)
    assert shown.isascii()
    assert r"\texttt{U+4E2D}\texttt{U+1F600}" in shown
    assert r"\'{e}" in shown
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)[$&#%_]", shown)
    assert "\n" not in as_comment("a\nb\r\x0b\u2028c")
    assert len(re.findall(r"\\ldots", as_latex("x" * 500, 40))) == 1
    assert as_latex("x" * 500, 40).startswith("x" * 39)


def test_pdflatex_compiles_tables_with_hostile_labels(
    small_runs: SmallRuns, tmp_path: Path
) -> None:
    ms.export(small_runs.folder, "latex", standalone=True, out=tmp_path / "figures.tex")
    log = compiled(tmp_path, "figures.tex")
    assert "Overfull" not in log
    # Tables to \input: a comparison of two runs, one of many, and every character there is.
    pair = [small_runs.folder / "bm25", small_runs.folder / HOSTILE]
    ms.export(pair, "latex", what="comparison", out=tmp_path / "pair.tex")
    ms.export(small_runs.folder, "latex", what="comparison", out=tmp_path / "many.tex")
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
        f"\\input{{pair}}\n\\input{{many}}\n{as_comment(WILD)}\n{as_latex(WILD)}\n"
        "\\end{document}\n"
    )
    compiled(tmp_path, "paper.tex")


def test_the_three_commands_of_the_documentation_make_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run as they stand, in a folder that has the example's data."""
    page = (REPOSITORY / "docs" / "plots-and-exports.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- three commands -->\n```\n(.*?)```", page, flags=re.DOTALL)
    assert found is not None
    commands = [shlex.split(line) for line in found[1].splitlines()]
    assert len(commands) == 3
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    monkeypatch.chdir(tmp_path)
    for command in commands:
        if command[0] == "mnemoscope":
            assert invoke(command[1:]) == 0
        else:
            assert command[:1] == ["pdflatex"]
            compiled(tmp_path, command[-1])
    assert (tmp_path / "table.pdf").exists()
