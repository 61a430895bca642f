"""HTML elements whose texts and attributes are always escaped, and the frame of a page.

Texts come from datasets, systems and errors. Only what these functions return is `Html`; every
other text is escaped where it becomes part of an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from mnemoscope.text.display import as_html

_EMPTY = frozenset({"input", "link", "meta"})
"""Elements of HTML without an end; those of SVG have one."""
_LONGEST = 4_000
"""Characters of a text from a dataset or a system that a page shows."""


class Html(str):
    """Markup that can be shown as it is."""


Child = Html | str | int | None
Attribute = str | int | float | bool | None

NOTHING = Html("")


def el(tag: str, /, *children: Child | Iterable[Child], **attributes: Attribute) -> Html:
    """An element; attributes that are None or False are omitted.

    `class_` is the attribute class, `data_id` is data-id.
    """
    parts = [f"<{tag}"]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(f" {attribute}")
        elif value is not None and value is not False:
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            parts.append(f' {attribute}="{as_html(shown)}"')
    parts.append(">")
    if tag in _EMPTY:
        return Html("".join(parts))
    parts.append(join(children))
    parts.append(f"</{tag}>")
    return Html("".join(parts))


def join(children: Iterable[Child | Iterable[Child]]) -> Html:
    """Children one after the other; texts are escaped."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(as_html(child))
        elif isinstance(child, int):
            parts.append(f"{child:,}")
        elif child is not None:
            parts.append(join(child))
    return Html("".join(parts))


def url(path: str, *pairs: tuple[str, str], **values: str) -> str:
    """An address of this server; a name may have several values as `pairs`."""
    query = urlencode([*pairs, *((key, value) for key, value in values.items() if value)])
    return f"{path}?{query}" if query else path


def foreign(text: str, most: int = _LONGEST, *, element: str = "span") -> Html:
    """A text of a dataset or system, with its own direction of writing; a long one is cut."""
    cut = text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
    return el(element, cut, class_="text", dir="auto")


def table(
    head: Sequence[Child],
    rows: Iterable[Html],
    *,
    caption: str,
    class_: str = "",
    numbers: int = 0,
    shows_caption: bool = True,
) -> Html:
    """A table that scrolls in its own frame, which keys can reach.

    The titles of the last `numbers` columns are aligned right.
    """
    first = len(head) - numbers
    titles = [
        title
        if _is_cell(title)
        else el("th", title, scope="col", class_="num" if at >= first else None)
        for at, title in enumerate(head)
    ]
    content = el(
        "table",
        el("caption", caption, class_=None if shows_caption else "hidden"),
        el("thead", el("tr", titles)),
        el("tbody", rows),
        class_=class_ or None,
    )
    return el("div", content, class_="scroll", tabindex="0", role="region", aria_label=caption)


def facts(pairs: Iterable[tuple[str, Child]]) -> Html:
    """Names and values."""
    return el("dl", [join([el("dt", name), el("dd", value)]) for name, value in pairs])


def row(*cells: Child, numbers: int = 0, head: bool = True) -> Html:
    """A row: the first cell names it if `head`, and the last `numbers` are aligned right."""
    drawn = []
    for place, cell in enumerate(cells):
        kind = "num" if place >= len(cells) - numbers else None
        if _is_cell(cell):
            drawn.append(cell)
        elif place == 0 and head:
            drawn.append(el("th", cell, scope="row"))
        else:
            drawn.append(el("td", cell, class_=kind))
    return el("tr", drawn)


def _is_cell(child: Child) -> bool:
    return isinstance(child, Html) and child.startswith(("<td", "<th"))


def page(
    title: str,
    *content: Child | Iterable[Child],
    folder: str,
    here: str = "",
    below: str = "",
) -> bytes:
    """A whole page with its navigation; `below` is a line under its title."""
    links = [el("a", "All runs", href="/", aria_current="page" if here == "/" else None)]
    document = el(
        "html",
        el(
            "head",
            el("meta", charset="utf-8"),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("meta", name="color-scheme", content="light dark"),
            el("title", f"{title} · Mnemoscope"),
            el("link", rel="icon", href="data:,"),
            el("link", rel="stylesheet", href="/view.css"),
            el("script", src="/view.js", defer=True),
        ),
        el(
            "body",
            el("a", "Skip to content", href="#content", class_="skip"),
            el(
                "header",
                el("strong", "Mnemoscope"),
                el("nav", links, aria_label="Pages"),
                el("span", folder, class_="folder"),
            ),
            el(
                "main",
                el("h1", foreign(title, 200)),
                el("p", foreign(below, 400), class_="dim") if below else None,
                *content,
                id="content",
            ),
        ),
        lang="en",
    )
    return f"<!doctype html>\n{document}\n".encode()
