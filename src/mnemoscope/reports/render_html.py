"""Write blocks as HTML without scripts: text is escaped, intervals are drawn as bars."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mnemoscope.reports.curve_svg import curve_svg
from mnemoscope.reports.tables import (
    Bar,
    Block,
    Cell,
    ColourScale,
    CurveChart,
    Grid,
    Heading,
    Heatmap,
    Markup,
    NoteList,
    ReportTable,
)
from mnemoscope.text.display import as_html, one_line

MOST = 2_000
"""Longer texts are cut: an error message of a system has any length."""
_LONG = 25
"""Tables with more rows scroll in their own box."""
_ABREAST = 2
"""With more bars in a row, each is below its figure."""
_TICKS = 8
"""Labels above a heatmap whose columns are too narrow for theirs."""
_WIDE, _HIGH = 120, 12
_NUMBER = re.compile(r"[-+−]?\$?\d[\d,.]*( ?%)?")
_INLINE = re.compile(
    r"\\(?P<literal>[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+) ?(?P<code>.+?) ?(?P=ticks)(?!`)"
    r"|(?P<strong>\*\*)|(?P<em>\*)"
    r"|&(?P<entity>lt|amp);"
)
_ENTITIES = {"lt": "&lt;", "amp": "&amp;"}


class Section(NamedTuple):
    """A part of a page below a heading of level 2; the first part may have no heading."""

    id: str
    title: str
    html: str


def sections(blocks: Iterable[Block]) -> list[Section]:
    """The blocks, divided at their headings of level 2; headings of level 1 are left out."""
    found: list[Section] = []
    own: list[Block] = []
    title = ""

    def close() -> None:
        if own:
            slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "about"
            same = sum(one.title == title for one in found)
            number = f"-{same + 1}" if same else ""
            found.append(Section(f"s-{slug}{number}", title, render(own)))

    for block in blocks:
        if isinstance(block, Heading) and block.level <= 2:
            close()
            own, title = [], block.text
            if block.level == 1:
                title = ""
        else:
            own.append(block)
    close()
    return found


def render(blocks: Iterable[Block]) -> str:
    """The blocks, one below the other; what only a terminal shows is left out."""
    parts: list[str] = []
    name = ""
    for block in blocks:
        if isinstance(block, Heatmap):
            parts.append(_heatmap(block))
        elif isinstance(block, CurveChart):
            parts.append(curve_svg(block))
        elif isinstance(block, Grid | ColourScale) or block.only == "terminal":
            continue
        elif isinstance(block, ReportTable):
            parts.append(table(block, name))
        elif isinstance(block, Heading):
            name = block.text
            parts.append(f"<h{block.level}>{shown(block.text)}</h{block.level}>")
        elif isinstance(block, NoteList):
            items = "".join(f"<li>{shown(line)}</li>" for line in block.lines)
            parts.append(f"<ul>{items}</ul>")
        elif block.text:
            parts.append(f"<p>{shown(block.text)}</p>")
    return "\n".join(parts)


def table(content: ReportTable, name: str = "") -> str:
    """A table in a box that scrolls, so that the page never does sideways."""
    kept = [place for place, column in enumerate(content.columns) if column.only != "terminal"]
    columns = [content.columns[place] for place in kept]
    head = ""
    for place, one in zip(kept, columns, strict=True):
        texts = [_text(row[place]) for row in content.rows]
        is_number = any(texts) and all(map(_NUMBER.fullmatch, filter(None, texts)))
        title = shown(one.title if one.markdown is None else one.markdown)
        head += f'<th scope="col"{_kind("n" if is_number else "")}>{title}</th>'
    rows = []
    for row in content.rows:
        first, *others = (_cell(row[place]) for place in kept)
        body = "".join(f"<td{one}</td>" for one in others)
        rows.append(f'<tr><th scope="row"{first}</th>{body}</tr>\n')
    long = " long" if len(rows) > _LONG else ""
    drawn = [
        isinstance(cell, Cell) and cell.bar is not None for row in content.rows for cell in row
    ]
    stack = _kind("stack" if sum(drawn) > _ABREAST * len(rows) else "")
    label = as_html(one_line(f"Table: {name or content.title or columns[0].title}"))
    return (
        f'<div class="scroll{long}" tabindex="0" role="region" aria-label="{label}">'
        f"<table{stack}><thead><tr>{head}</tr></thead><tbody>\n{''.join(rows)}</tbody></table></div>"
    )


def shown(text: str) -> str:
    """A text in one line, with control characters as escapes; of Markup, what it marks."""
    if isinstance(text, Markup):
        return _marked(one_line(text))
    more = f" … ({len(text) - MOST:,} characters more)" if len(text) > MOST else ""
    return as_html(one_line(text, MOST).strip()) + more


def bar(drawn: Bar, *, wide: int = _WIDE) -> str:
    """The figure as a line on its interval, between 0 and the best value; dashes mark chance."""
    low, high, at = (_place(value, wide) for value in (drawn.low, drawn.high, drawn.value))
    middle = _HIGH / 2
    chance = ""
    if drawn.chance is not None:
        x = _place(drawn.chance, wide)
        chance = f'<path class="chance" d="M{x:.1f} 1V{_HIGH - 1}"/>'
    return (
        f'<svg class="bar" viewBox="0 0 {wide} {_HIGH}" width="{wide}" height="{_HIGH}" '
        'aria-hidden="true" focusable="false">'
        f'<rect class="track" x="0" y="{middle - 1:g}" width="{wide}" height="2" rx="1"/>{chance}'
        f'<rect class="interval" x="{low:.1f}" y="{middle - 3:g}" '
        f'width="{max(high - low, 1):.1f}" height="6" rx="1"/>'
        f'<rect class="value" x="{at - 1.25:.1f}" y="0" width="2.5" height="{_HIGH}" rx="1"/></svg>'
    )


def _place(share: float, wide: int) -> float:
    return 4 + min(max(share, 0.0), 1.0) * (wide - 8)


def _cell(cell: Cell | str) -> str:
    """The end of the opening tag and the content of a cell."""
    text = _text(cell)
    written = shown(text)
    if isinstance(cell, Cell) and cell.bar is not None:
        return f"{_kind('drawn')}><span>{written}</span>{bar(cell.bar)}"
    return f"{_kind('n' if _NUMBER.fullmatch(text) else '')}>{written}"


def _text(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return cell
    return cell.text if cell.markdown is None else cell.markdown


def _kind(name: str) -> str:
    return f' class="{name}"' if name else ""


def _marked(text: str) -> str:
    """The few marks of Markdown that reports use: strong, emphasis, code and escapes."""
    open_marks: list[str] = []

    def write() -> Iterator[str]:
        end = 0
        for found in _INLINE.finditer(text):
            yield as_html(text[end : found.start()])
            end = found.end()
            kind = found.lastgroup
            if kind == "literal":
                yield as_html(found["literal"])
            elif found["code"] is not None:
                yield f"<code>{as_html(found['code'])}</code>"
            elif kind == "entity":
                yield _ENTITIES[found["entity"]]
            elif kind in open_marks:
                open_marks.remove(str(kind))
                yield f"</{kind}>"
            elif f"{found[0]}" in text[end:]:
                open_marks.append(str(kind))
                yield f"<{kind}>"
            else:
                yield found[0]
        yield as_html(text[end:])
        yield from (f"</{mark}>" for mark in reversed(open_marks))

    return "".join(write())


def _heatmap(drawn: Heatmap) -> str:
    """A table of coloured cells; the script shows what a cell is about."""
    narrow = " narrow" if len(drawn.checkpoints) > _LONG else ""
    every = max(1, len(drawn.checkpoints) // _TICKS)
    head = ""
    for place, label in enumerate(drawn.checkpoints):
        is_tick = narrow and place % every == 0 and place + every // 2 < len(drawn.checkpoints)
        head += (
            f'<th scope="col"{_kind("tick" if is_tick else "")}><span>{shown(label)}</span></th>'
        )
    rows = []
    for row in drawn.rows:
        cells = []
        for cell in row.cells:
            step = "none" if cell.share is None else str(round(10 * min(max(cell.share, 0), 1)))
            about = as_html(cell.about)
            cells.append(f'<td class="h{step}" data-about="{about}">{shown(cell.text)}</td>')
        key = f' data-category="{as_html(row.category)}"' if row.category else ' class="apart"'
        rows.append(f'<tr{key}><th scope="row">{shown(row.name)}</th>{"".join(cells)}</tr>\n')
    steps = "".join(f'<span class="h{step}"></span>' for step in range(11))
    return (
        f'<div class="scroll" role="region" aria-label="Heatmap" tabindex="0">'
        f'<table class="heat{narrow}" aria-describedby="heat-help"><thead><tr><td></td>{head}</tr>'
        f"</thead><tbody>\n{''.join(rows)}</tbody></table></div>\n"
        f'<p class="scale" id="heat-help">worst <span class="steps" aria-hidden="true">{steps}'
        "</span> best. Point at a cell, or move with the arrow keys, to read its number of "
        'questions and its interval.</p><p class="readout" id="readout" role="status"></p>'
    )
