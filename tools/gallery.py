"""The page docs/gallery.md: every picture of docs/img with what it shows and its command."""

from __future__ import annotations

import tomllib
from pathlib import Path

PICTURES = (".png", ".svg", ".jpg", ".webp", ".gif")


def gallery(docs: Path, notice: str) -> str:
    """The page; docs/img/captions.toml must have an entry for each picture and no other."""
    folder = docs / "img"
    captions = tomllib.loads((folder / "captions.toml").read_text(encoding="utf-8"))["picture"]
    there = {path.name for path in folder.iterdir() if path.suffix in PICTURES}
    named = {own["file"] for own in captions}
    if there != named:
        wrong = ", ".join(sorted(there ^ named))
        raise SystemExit(f"docs/img and docs/img/captions.toml differ: {wrong}")
    lines = [
        "# Gallery",
        "",
        notice,
        "What the output looks like, with the commands that make it.",
        "",
    ]
    for own in captions:
        lines += [f"## {own['title']}", "", own["shows"], ""]
        lines += [f"![{own['shows']}](img/{own['file']})", ""]
        lines += ["```", own["command"].strip(), "```", ""]
        written = f"`{own['file_written']}` is this picture. " if "file_written" in own else ""
        page = (docs / own["page"].partition("#")[0]).read_text(encoding="utf-8")
        title = page.partition("\n")[0].removeprefix("# ")
        lines += [f"{written}More: [{title}]({own['page']}).", ""]
    return "\n".join(lines)
