"""Makes text from datasets, systems and errors safe to show, with one function for each target.

A control character acts on a terminal, a `|` ends a cell of Markdown, a `=` starts a formula. Data
files keep the text as it came; whatever shows it passes it through one of these functions.
"""

from __future__ import annotations

import re
from typing import TypeVar

T = TypeVar("T")

_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they turn the direction of writing
    "\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff"  # separators, byte order marks, surrogates
)
_CONTROL = re.compile(f"[{_CONTROLS}]")
_LINE_BREAK = re.compile("[ \t]*[\t\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029][\\s\x1c-\x1e]*")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_MARKDOWN = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])"  # a backslash that would escape what follows it
    r"|[`*|]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore inside a word is not emphasis
    r"|~(?=~)|(?<=~)~"
    r"|(?<=\])\("  # a link or an image
    r"|(?<=http):(?=//)|(?<=https):(?=//)|(?<=ftp):(?=//)|(?<=www)\.",  # links of GitHub
    re.IGNORECASE,
)
_BLOCK = re.compile(
    r"(?:#{1,6}|[-+=])(?=\s|$)|>|~~~|---|==="  # headings, lists, quotes, fences, rules
    r"|\[(?=[^\]]*\]:|[ xX]\]\s)"  # the target of a link, a box to tick
)
_NUMBERED = re.compile(r"(\d+)(?=[.)](?:\s|$))")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def visible(text: str) -> str:
    """Show control characters as escape sequences such as `\\x1b`; keep tabs and newlines."""
    return _CONTROL.sub(_escape_sequence, text)


def one_line(text: str, most: int | None = None) -> str:
    """Show control characters as escape sequences, and line breaks and tabs as one space.

    `most` is the most characters that are kept.
    """
    return visible(_LINE_BREAK.sub(" ", text[:most]))[:most]


def as_markdown(text: str, *, starts_line: bool = False) -> str:
    """Escape a text so that Markdown shows it as it is, in one line, without links and HTML.

    A text that starts a line is kept from starting a list, a heading or another block, too.
    """
    text = _TAG.sub("&lt;", _ENTITY.sub("&amp;", one_line(text).strip()))
    text = _MARKDOWN.sub(lambda found: "\\" + found[0], text)
    if starts_line and (number := _NUMBERED.match(text)):  # `\3.` would show the backslash
        return f"{number[0]}\\{text[number.end() :]}"
    return "\\" + text if starts_line and _BLOCK.match(text) else text


def as_code(text: str) -> str:
    """A text between backticks, more of them than follow each other in it."""
    text = one_line(text).strip()
    longest = max(map(len, re.findall("`+", text)), default=0)
    if not longest:
        return f"`{text}`"
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}"


def as_html(text: str) -> str:
    """Escape a text for HTML and SVG, in elements and in attributes."""
    from html import escape  # its table of entities takes longer to import than this module

    return escape(visible(text))


def as_csv(cell: T) -> T | str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def as_json(encoded: str) -> str:
    """Write control characters in JSON as escape sequences; the values stay the same."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def _escape_sequence(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
