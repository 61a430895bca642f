"""Write report.html: one file with everything about a run, which needs no network.

The sections are those of report.md, from the same blocks. A list of all questions follows, which a
script unpacks from data in the page. The page's policy allows no other script and no request.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from mnemoscope.analysis.answers import headline_of
from mnemoscope.analysis.gates import Gate
from mnemoscope.analysis.question_details import RunQuestions
from mnemoscope.metrics import PRIMARY
from mnemoscope.reports.ageing_tables import cohort_sentence, shown_ageing
from mnemoscope.reports.page_data import packed, page_data
from mnemoscope.reports.render_html import Section, bar, render, sections, shown
from mnemoscope.reports.run_view import Figures, RunView, headline
from mnemoscope.reports.tables import (
    MISSING,
    Bar,
    Block,
    Cell,
    Heading,
    Markup,
    Paragraph,
    brackets,
    document_table,
    percent,
)
from mnemoscope.text.display import as_html, one_line

_FOLDER = "page"
_TILES = 6
_WIDE = 200


def report_page(
    view: RunView, blocks: Sequence[Block], questions: RunQuestions, gates: Sequence[Gate]
) -> bytes:
    """The page of a run; `blocks` are those of its report, with a level 1 heading first."""
    title = blocks[0].text if isinstance(blocks[0], Heading) else view.label
    facts, *parts = sections(blocks)
    found = [*parts, Section("s-gates", "Gates", render(_gates(gates)))]
    found.append(Section("s-run", "The run", facts.html))
    style, script = _part("page.css"), _part("page.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    )
    asked = len(questions.questions)
    named = as_html(one_line(title, 200))
    page = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{named} · Mnemoscope</title>",
        f"<style>{style}</style>\n</head>\n<body>",
        '<a class="skip" href="#s-questions">Skip to the questions</a>',
        f'<header><div class="wrap"><p class="kind">Mnemoscope · report of a run</p>'
        f'<h1>{shown(title)}</h1><p class="lead">{shown(headline_sentence(view))}</p>'
        f'<ul class="tiles">{"".join(tiles(view))}</ul></div></header>',
        _navigation(found, asked),
        '<main class="wrap">',
        *(_written(one) for one in found),
        _part("questions.html"),
        "</main>",
        f'<footer><div class="wrap">Fingerprint {shown(view.manifest.fingerprint)}. '
        "metrics.json, questions.jsonl and trials.jsonl beside this page have all figures and "
        "texts; report.md has the same sections.</div></footer>",
        packed(page_data(questions, view.manifest.category_names, _withheld(view))),
        f"<script>{script}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(page).encode()


def _withheld(view: RunView) -> str:
    """Why the accuracy is not shown; empty if it is, as with `--raw`."""
    figures: Figures = view.answers["figures"] if view.answers else {}
    return str(figures.get("all", {}).get("withheld", ""))


def headline_sentence(view: RunView) -> str:
    """What the run found, in one or two sentences, each figure with its interval."""
    parts = []
    overall = view.metrics["overall"]
    names = [PRIMARY, *headline([view])] if overall else []
    if name := next((one for one in names if one in overall), ""):
        own = overall[name]
        what = f"{name} {own['mean']:.3f} {brackets(own['ci95'], 3)}"
        if name == PRIMARY:
            what = f"finds {percent(own['mean'])} of the evidence in its first 10 hits ({what})"
        else:
            what = f"reaches {what}"
        chance = own["chance"]
        by_chance = "" if chance is None else f"; a random ranking finds {percent(chance)}"
        if name != PRIMARY:
            by_chance = "" if chance is None else f"; a random ranking reaches {chance:.3f}"
        parts.append(f"{view.label} {what}{by_chance}.")
    if (points := view.longitudinal) and view.judged:
        last = points["checkpoints"][-1]
        own_mean, rate = last["overall"], last["hallucination"]
        if own_mean["mean"] is not None and rate["rate"] is not None:
            parts.append(
                f"At {last['label']} its answers score {own_mean['mean']:.2f} of 6 "
                f"{brackets(own_mean['ci95'], 2)}, and {percent(rate['rate'])} contain a "
                "hallucination."
            )
    if (aged := shown_ageing(points)) and (sentence := cohort_sentence(aged)):
        parts.append(sentence)
    if view.answers and not (points and view.judged):
        figures: Figures = view.answers["figures"]
        answered: Figures = headline_of(view.answers["figures"], "answerable")
        if "withheld" in answered:
            parts.append(f"The {figures['metric']} of its answers is {answered['withheld']}.")
        elif answered["mean"] is not None:
            parts.append(
                f"Its answers reach {figures['metric']} {answered['mean']:.3f} "
                f"{brackets(answered['ci95'], 3)} on {answered['n']:,} questions with an answer."
            )
    return " ".join(parts) or f"{view.label} was not measured: no question has a figure."


def tiles(view: RunView) -> list[str]:
    """The headline figures, each with its interval as a bar."""
    found: list[str] = []
    figures: Figures = view.answers["figures"] if view.answers else {}
    if figures and not view.longitudinal:
        own = figures.get("corrected", figures).get("answerable", figures["answerable"])
        if own["mean"] is not None:
            found.append(_tile(f"{figures['metric']}, answers", own["mean"], own["ci95"], own["n"]))
    if view.longitudinal and view.judged:
        last = view.longitudinal["checkpoints"][-1]
        mean, rate = last["overall"], last["hallucination"]
        if mean["mean"] is not None:
            label = f"composite 0–6 at {last['label']}"
            found.append(_tile(label, mean["mean"], mean["ci95"], mean["n"], best=6))
        if rate["rate"] is not None:
            found.append(_tile("hallucination", rate["rate"], rate["ci95"], rate["n"]))
    overall = view.metrics["overall"]
    for name in headline([view]):
        if len(found) < _TILES - 1:
            one = overall[name]
            found.append(_tile(name, one["mean"], one["ci95"], one["n"], chance=one["chance"]))
    if latency := view.timing["recall_ms"]:
        more = f"p95 {latency['p95']:,.1f} ms"
        found.append(_box("recall, median", f"{latency['p50']:,.1f} ms", "", more))
    return found


def _tile(
    name: str,
    value: float,
    interval: Sequence[float] | None,
    n: int,
    *,
    best: float = 1.0,
    chance: float | None = None,
) -> str:
    digits = 3 if best == 1 else 2
    drawn = ""
    if interval:
        low, high = (end / best for end in interval)
        drawn = bar(Bar(value / best, low, high, chance), wide=_WIDE)
    more = [brackets(interval, digits) or MISSING, f"n {n:,}"]
    return _box(name, f"{value:.{digits}f}", drawn, *more)


def _box(name: str, figure: str, drawn: str, *more: str) -> str:
    lines = " ".join(f"<span>{shown(one)}</span>" for one in more)
    return (
        f'<li><div class="name">{shown(name)}</div><div class="figure">{shown(figure)}</div>'
        f'{drawn}<div class="more">{lines}</div></li>'
    )


def _navigation(parts: Sequence[Section], asked: int) -> str:
    links = [f'<li class="first"><a href="#s-questions">Questions ({asked:,})</a></li>']
    seen = {""}
    for one in parts:
        if one.title not in seen:
            seen.add(one.title)
            links.append(f'<li><a href="#{one.id}">{shown(one.title)}</a></li>')
    return f'<nav aria-label="Sections"><ol>{"".join(links)}</ol></nav>'


def _written(part: Section) -> str:
    kind = ' class="caveats"' if part.title == "Caveats" else ""
    return (
        f'<section id="{part.id}"{kind} aria-labelledby="t-{part.id}">'
        f'<h2 id="t-{part.id}">{shown(part.title)}</h2>\n{part.html}\n</section>'
    )


def _gates(gates: Sequence[Gate]) -> list[Block]:
    rows = [
        [gate.name, Cell("pass" if gate.passed else "FAIL"), " ".join(gate.why.split())]
        for gate in gates
    ]
    failed = [gate.name for gate in gates if not gate.passed]
    said = f"{', '.join(failed)} failed. " if failed else ""
    return [
        Paragraph(
            Markup(
                f"{said}What the run recorded, checked when this page was written. "
                "`mnemoscope verify` also recomputes every figure and decides whether the run is "
                "VERIFIED."
            )
        ),
        document_table(["gate", "result", "why"], rows),
    ]


def _hash(content: str) -> str:
    """The source of this inline content in the page's policy."""
    return f"sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


@cache
def _part(name: str) -> str:
    return (files("mnemoscope.reports") / _FOLDER / name).read_text(encoding="utf-8")
