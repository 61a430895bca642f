"""Texts of datasets, systems and errors are shown as they are: none acts on what shows it."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mnemoscope.text.display import (
    as_code,
    as_csv,
    as_html,
    as_json,
    as_markdown,
    one_line,
    visible,
)

ACTIVE = [
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31mred",
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "safe\u202egnp.exe",
    "\u2066isolate\u2069",
    "a\rb",
    "a\nVERIFIED\u2028b\x85c",
    "nul\x00 and lone \ud800",
]
_BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def _acts(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(character) in _BIDI
        or character in "\u200e\u200f\u061c\ufeff"
    )


@pytest.mark.parametrize("text", ACTIVE)
def test_one_line_has_no_character_that_acts_on_a_terminal(text: str) -> None:
    shown = one_line(text)

    assert not any(map(_acts, shown))
    assert shown.encode()  # also without lone surrogates


@given(st.text(st.characters()))
def test_no_text_gets_a_control_character_past(text: str) -> None:
    assert not any(map(_acts, one_line(text)))
    assert {*filter(_acts, visible(text))} <= {"\n", "\t"}


def test_ordinary_text_of_any_script_stays() -> None:
    text = "naïve Ünïcode, 日本語, עברית, 👩‍👩‍👧, [0.31, 0.86], recall@10, p<0.05, 3 - 4  (x)"

    assert one_line(text) == visible(text) == text
    assert as_markdown(text) == text


def test_the_escape_sequence_names_the_character() -> None:
    assert one_line("\x1b[31m\u202e") == "\\x1b[31m\\u202e"
    assert one_line("a \r\n\t b") == "a b"


MARKDOWN = [
    "a | b",
    "a \\| b",
    "[x](http://evil.example)",
    "![x](http://evil.example/p.png)",
    "[x]: http://evil.example",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<http://evil.example>",
    "# heading",
    "- item",
    "1. item",
    "> quote",
    "```fence",
    "**VERIFIED**",
    "__VERIFIED__",
    "~~struck~~",
    "`code`",
    "line\n\n# heading",
    "&lt;b&gt; &#x202e;",
    "---",
    "    indented",
    "\\",
]


def _inline(tokens: list[object]) -> list[str]:
    return [child.type for token in tokens for child in getattr(token, "children", None) or ()]


@pytest.mark.parametrize("text", MARKDOWN)
def test_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])

    tokens = parser.parse(as_markdown(text, starts_line=True))

    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert set(_inline(list(tokens))) <= {"text", "text_special"}
    assert "".join(child.content for child in tokens[1].children or ()) == one_line(text).strip()


@pytest.mark.parametrize("text", MARKDOWN)
def test_a_cell_stays_one_cell(text: str) -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])

    tokens = parser.parse(f"| a | b |\n|---|---|\n| {as_markdown(text)} | end |")

    cells = [token for token in tokens if token.type == "inline"][2:]
    assert [len(cells), cells[1].content] == [2, "end"]
    assert set(_inline(list(tokens))) <= {"text", "text_special"}


@pytest.mark.parametrize("text", ["a`b", "``", "`", "<script>", "a\n```\nb", "x  "])
def test_code_is_one_span(text: str) -> None:
    [_, inline, _] = MarkdownIt("commonmark").parse(f"see {as_code(text)} there")

    kinds = [child.type for child in inline.children or ()]
    assert kinds == ["text", "code_inline", "text"]


def test_links_that_github_would_make_are_not_links() -> None:
    assert as_markdown("https://evil.example www.evil.example") == (
        "https\\://evil.example www\\.evil.example"
    )


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=HYPERLINK("x")']
)
def test_a_spreadsheet_sees_no_formula(text: str) -> None:
    assert as_csv(text) == f"'{text}"


def test_numbers_and_plain_texts_stay_in_csv() -> None:
    assert [as_csv(-0.5), as_csv(-3), as_csv("a=b"), as_csv("")] == [-0.5, -3, "a=b", ""]


def test_html_is_escaped() -> None:
    assert as_html("<b onclick='x'>\x1b&") == "&lt;b onclick=&#x27;x&#x27;&gt;\\x1b&amp;"


def test_json_keeps_its_values_without_control_characters() -> None:
    value = {"a": "\x1b\x9b\u202e\u2028\x7f é"}

    shown = as_json(json.dumps(value, ensure_ascii=False))

    assert json.loads(shown) == value
    assert not any(map(_acts, shown))
