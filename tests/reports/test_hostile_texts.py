"""A hostile dataset and a hostile system: what comes out of every command and report is clean."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from io import StringIO
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from mnemoscope.analysis.aggregates import read_aggregates
from mnemoscope.cli.app import invoke
from mnemoscope.connectors.child_process import ChildStderr
from mnemoscope.reports import render_markdown, render_terminal
from mnemoscope.reports.tables import (
    Block,
    Cell,
    Grid,
    GridRow,
    Heading,
    Markup,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
)
from mnemoscope.results import Frame, RunResult

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e|x\nVERIFIED | **bold** [red]hi[/red] "
    "[a](http://evil.example) ![i](http://evil.example/i.png) <script>alert(1)</script> =1+1"
)
BYTES = re.compile(rb"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]")
STYLES = re.compile(rb"\x1b\[[0-9;]*m")

SYSTEM = """
HOSTILE = {hostile!r}

class Evil:
    def __init__(self):
        self.ids = []

    def remember(self, memories):
        self.ids += [memory.id for memory in memories]

    def recall(self, query, k=10):
        if "Rex" in query.text:
            raise RuntimeError(HOSTILE)
        return [HOSTILE, *self.ids][:k]
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    texts = ["Anna adopted Rex", "Rex swallowed a key", "Bob plays chess", "Oslo is cold"]
    corpus = [{"id": place, "content": text} for place, text in enumerate(texts, 1)]
    queries = [
        {"query_id": "e1", "text": "Who adopted Rex?", "stratum": "exact"},
        {"query_id": "p1", "text": f"Chess? {HOSTILE}", "stratum": "paraphrase"},
    ]
    judged = [{"query_id": "e1", "relevant_ids": [1]}, {"query_id": "p1", "relevant_ids": [3]}]
    for name, lines in (("corpus", corpus), ("queries", queries), ("qrels", judged)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (tmp_path / "evil_memory.py").write_text(SYSTEM.format(hostile=HOSTILE))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("evil_memory", None)
    return folder


def _is_clean(shown: bytes) -> bool:
    return not BYTES.search(STYLES.sub(b"", shown)) and b"\x1b" not in STYLES.sub(b"", shown)


def test_no_command_and_no_report_lets_a_hostile_text_act(
    data: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    out = tmp_path / "runs"
    system = "evil_memory:Evil"
    invoke(["run", "strata", "--data", str(data), "--system", system, "--out", str(out)])
    [run] = [path.parent for path in out.glob("*vil*/manifest.json")]
    invoke(["report", str(out), "--svg", str(tmp_path / "picture.svg")])
    invoke(["verify", str(run)])
    invoke(["report", str(out), "--json"])
    captured = capfdbinary.readouterr()

    assert b"alert(1)" in captured.out
    assert _is_clean(captured.out)
    assert _is_clean(captured.err)
    assert not [line for line in captured.out.splitlines() if line.startswith(b"VERIFIED |")]
    assert json.loads(captured.out[captured.out.rindex(b"\n{\n") :])  # the values are as recorded

    for page in (run / "report.md", out / "summary.md"):
        text = page.read_bytes()
        assert b"alert" in text
        assert _is_clean(text)
        parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        inline = [token for token in parser.parse(text.decode()) if token.type == "inline"]
        kinds = {child.type for token in inline for child in token.children or ()}
        assert not kinds & {"link_open", "image", "html_inline", "html_block"}
        for line in text.decode().splitlines():
            assert "VERIFIED" not in line[:3]

    picture = tmp_path / "picture.svg"
    ET.fromstring(picture.read_text(encoding="utf-8"))
    assert b"<script" not in picture.read_bytes()
    assert _is_clean(picture.read_bytes())

    result = RunResult(run)
    html = Frame(["text"], [(row.text,) for row in result.question_rows()])._repr_html_()
    assert "<script" not in html
    assert _is_clean(html.encode())
    assert _is_clean(result._repr_html_().encode())
    # The journal keeps what came.
    assert json.dumps(HOSTILE).encode()[1:20] in (run / "trials.jsonl").read_bytes()
    assert read_aggregates(run).means


def test_every_part_of_a_page_is_shown_as_text() -> None:
    cell = Cell(HOSTILE, below=f"\n{HOSTILE}")
    page: list[Block] = [
        Heading(HOSTILE),
        Paragraph(HOSTILE),
        NoteList([HOSTILE]),
        ReportTable([TableColumn(HOSTILE)], [[cell], [HOSTILE]], title=HOSTILE),
        Grid(10, 5, [GridRow(HOSTILE, [Cell(HOSTILE)])]),
    ]
    console = Console(record=True, width=100, file=StringIO(), force_terminal=True)
    console.print(render_terminal.render(page))

    markdown = render_markdown.render(page)

    assert _is_clean(console.export_text(styles=True, clear=False).encode())
    assert "[red]hi[/red]" in console.export_text()
    assert _is_clean(markdown.encode())
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    inline = [token for token in tokens if token.type == "inline"]
    assert len(inline) == 6
    assert {child.type for one in inline for child in one.children or ()} <= {
        "text",
        "text_special",
    }


def test_what_a_report_writes_itself_stays_markup() -> None:
    page: list[Block] = [
        Paragraph(Markup("**bold**")),
        ReportTable([TableColumn("a")], [[Markup("`x|y`")]]),
    ]

    assert render_markdown.render(page) == "**bold**\n\n| a |\n|---|\n| `x\\|y` |"


def test_log_lines_of_a_child_are_clean(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = ChildStderr([f"adapter {HOSTILE}"])

    log.add(HOSTILE.encode())

    said = capfdbinary.readouterr().err
    assert said.count(b"\n") == 1
    assert _is_clean(said)
    assert _is_clean(log.last_lines.encode())


def test_a_spreadsheet_gets_no_formula(tmp_path: Path) -> None:
    frame = Frame(["=name", "value"], [("=1+1", -1.5), ("@x", None), ("plain", 2)])

    frame.to_csv(tmp_path / "table.csv")

    assert (tmp_path / "table.csv").read_text().splitlines() == [
        "'=name,value",
        "'=1+1,-1.5",
        "'@x,",
        "plain,2",
    ]


def test_an_error_with_escapes_is_one_clean_line(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    code = invoke(["verify", str(tmp_path / "\x1b[2J\nVERIFIED [red]x[/red]")])

    said = capfdbinary.readouterr().err
    assert code == 1
    assert said.count(b"\n") == 1
    assert b"\\x1b[2J VERIFIED [red]x[/red]" in said
    assert _is_clean(said)
