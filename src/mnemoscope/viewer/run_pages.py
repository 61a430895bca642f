"""The list of runs, and the page of one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mnemoscope.analysis.answers import headline_of
from mnemoscope.metrics import PRIMARY
from mnemoscope.reports.run_view import RunView, caveats, headline
from mnemoscope.reports.tables import MISSING, brackets, decimal
from mnemoscope.viewer.html_elements import (
    NOTHING,
    Child,
    Html,
    el,
    facts,
    foreign,
    row,
    table,
    url,
)
from mnemoscope.viewer.interval_marks import level_mark
from mnemoscope.viewer.run_folder import ViewedRun, short_hash

STATES = {
    "complete": "complete",
    "running": "running",
    "interrupted": "interrupted",
    "edited": "edited",
    "unreadable": "not readable",
}
_BEST_COMPOSITE = 6.0


def list_content(runs: Sequence[ViewedRun], *, is_truncated: bool) -> list[Html]:
    """A filter, then the runs of each benchmark with what can be done with several of them."""
    if not runs:
        return [
            el("p", "No runs below this folder. ", el("code", "mnemoscope run"), " makes them.")
        ]
    parts = [
        el(
            "div",
            el("label", "Filter", for_="filter"),
            el("input", id="filter", type="search", data_filter="tr[data-text]"),
            el("output", id="filter-count", for_="filter", role="status"),
            class_="controls",
        )
    ]
    if is_truncated:
        parts.append(el("p", "The folder has more runs than are listed here.", class_="warning"))
    by_set: dict[str, list[ViewedRun]] = {}
    for one in runs:
        by_set.setdefault(one.set, []).append(one)
    titles = [(own[0].benchmark, own[0].options) for own in by_set.values()]
    for key, own in sorted(by_set.items(), key=lambda item: (not item[0], item[1][0].benchmark)):
        title, options = own[0].benchmark or "Runs without figures", own[0].options
        if titles.count((title, options)) > 1:  # the data or the depth differ
            options = f"{options} · {short_hash(key)}"
        parts.append(_set(key, title, options, own))
    return parts


def _set(key: str, title: str, options: str, runs: Sequence[ViewedRun]) -> Html:
    complete = [one for one in runs if one.state == "complete"]
    buttons = []
    if len(complete) > 1:
        buttons = [
            el("button", "Table of systems", formaction="/systems"),
            el("button", "Forest plot", formaction="/forest"),
            el("button", "Compare two", formaction="/compare"),
            el(
                "span", "of the chosen runs; table and plot: of all if none is chosen", class_="dim"
            ),
        ]
    has_answers = any(one.view and one.view.answers for one in complete)
    answers = ["Answers"] if has_answers else []
    rows = [_listed_or_reason(one, len(complete) > 1, has_answers) for one in runs]
    choose = [el("td", el("span", "Choose", class_="hidden"))] if len(complete) > 1 else []
    head: list[Child] = [*choose, "Run", "State", "System", "Figure", "", *answers, "Questions"]
    return el(
        "section",
        el("h2", foreign(title, 100)),
        el("p", foreign(options, 400), class_="dim") if options else None,
        el(
            "form",
            el("input", type="hidden", name="set", value=key) if key else None,
            el("div", buttons, class_="controls") if buttons else None,
            table([*head, "Started"], rows, caption=f"Runs of {title}", shows_caption=False),
            method="get",
            action="/systems",
        ),
    )


def _listed_or_reason(run: ViewedRun, choice: bool, answers: bool) -> Html:
    """The row of a run; figures that another program wrote may not be figures."""
    try:
        return _listed(run, choice, answers)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        problem = f"its figures cannot be read: {error!r}"
        broken = run._replace(state="unreadable", problem=problem, manifest=None, view=None)
        return _listed(broken, choice, answers)


def _listed(run: ViewedRun, choice: bool, answers: bool) -> Html:
    view, manifest = run.view, run.manifest
    box: list[Html] = []
    if choice:
        label = f"Choose {run.name}"
        own = el("input", type="checkbox", name="run", value=run.id, aria_label=label)
        box = [el("td", own if view else NOTHING)]
    text = f"{run.name} {run.system} {run.state}".lower()
    link = el("a", foreign(run.name, 200), href=url("/run", run=run.id))
    state: Html | str = badge(run)
    if run.state == "running":
        state = el("a", state, " watch", href=url("/live", run=run.id))
    started = f"{manifest.started:%Y-%m-%d}" if manifest and manifest.started else MISSING
    if manifest is None:
        told = el("td", foreign(run.problem, 400), colspan=4 + answers, class_="problem")
        return el("tr", box, el("th", link, scope="row"), el("td", state), told, data_text=text)
    figure, mark = _figure(view) if view else (MISSING, NOTHING)
    asked = f"{view.metrics['questions']['measured']:,}" if view else MISSING
    graded = [el("td", _graded(view), class_="line")] if answers else []
    cells = [
        el("td", foreign(run.system, 80), " (baseline)" if view and view.is_baseline else None),
        el("td", figure, class_="line"),
        el("td", mark),
        *graded,
        el("td", asked, class_="num"),
        el("td", started, class_="line"),
    ]
    return el("tr", box, el("th", link, scope="row"), el("td", state), cells, data_text=text)


def badge(run: ViewedRun) -> Html:
    return el("span", STATES[run.state], class_=f"state {run.state}")


def _figure(view: RunView) -> tuple[str, Html]:
    """The first figure of a run: of its last checkpoint, or of its rankings."""
    if view.longitudinal and view.judged:
        last = view.longitudinal["checkpoints"][-1]
        mean, interval = last["overall"]["mean"], last["overall"]["ci95"]
        text = f"{decimal(mean, 2)} of 6 {brackets(interval, 2)} at {last['label']}"
        return text, level_mark(mean, interval, _BEST_COMPOSITE)
    overall = view.metrics["overall"]
    name = PRIMARY if PRIMARY in overall else next(iter([*headline([view]), *overall]), "")
    if not name:
        return MISSING, NOTHING
    mean, interval = overall[name]["mean"], overall[name]["ci95"]
    return f"{name} {decimal(mean, 3)} {brackets(interval, 3)}", level_mark(mean, interval)


def _graded(view: RunView | None) -> str:
    if view is None or not view.answers:
        return MISSING
    figures = view.answers["figures"]
    own = headline_of(figures, "answerable")
    if "withheld" in own:
        return f"{figures['metric']} withheld"  # the report has the long reason
    mean, interval = own["mean"], own["ci95"]
    return f"{figures['metric']} {decimal(mean, 3)} {brackets(interval, 3)}"


def run_content(run: ViewedRun, siblings: Sequence[ViewedRun]) -> list[Html]:
    """One run: its state, links, figures and caveats."""
    about: list[tuple[str, Child]] = [("State", badge(run)), ("Folder", foreign(run.name, 200))]
    links: list[Html] = []
    if run.manifest is not None:
        manifest = run.manifest
        about.append(("System", foreign(run.system, 200)))
        about.append(("Benchmark", foreign(f"{run.benchmark} ({run.options})", 300)))
        about += [
            (name, Html(f"{when:%Y-%m-%d %H:%M} UTC"))
            for name, when in (("Started", manifest.started), ("Finished", manifest.finished))
            if when
        ]
        about.append(("Fingerprint", el("code", manifest.fingerprint[:16])))
    if run.state == "running":
        links.append(el("a", "Watch this run", href=url("/live", run=run.id), class_="button"))
    view = run.view
    if view is not None:
        links.append(el("a", "Report page", href=url("/report", run=run.id), class_="button"))
        if view.longitudinal:
            place = url("/checkpoints", run=run.id)
            links.append(el("a", "Checkpoints", href=place, class_="button"))
        links.append(
            el("a", "Table of systems", href=url("/systems", set=run.set), class_="button")
        )
        place = url("/forest", set=run.set, reference=run.id)
        links.append(el("a", "Forest plot against it", href=place, class_="button"))
    parts = [
        facts(about),
        el("p", run.problem, class_="problem") if run.problem else NOTHING,
        el("p", links, class_="controls") if links else NOTHING,
    ]
    if run.state == "edited":
        parts.append(el("p", "A run that was edited has no figures here, as in every command."))
    if view is None:
        return parts
    others = [one for one in siblings if one.id != run.id and one.state == "complete"]
    if others:
        parts.append(_compare_form(run, others))
    told = caveats(view)
    if told:
        parts += [el("h2", "Caveats"), el("ul", [el("li", foreign(line)) for line in told])]
    return [*parts, *_figures(view)]


def _compare_form(run: ViewedRun, others: Sequence[ViewedRun]) -> Html:
    return el(
        "form",
        el("input", type="hidden", name="base", value=run.id),
        el("label", "Compare with", for_="cand"),
        select("cand", others, ""),
        el("button", "Compare"),
        method="get",
        action="/compare",
        class_="controls",
    )


def select(name: str, runs: Iterable[ViewedRun], chosen: str) -> Html:
    """A choice of runs."""
    options = [
        el("option", one.name, value=one.id, selected=one.id == chosen or None) for one in runs
    ]
    return el("select", options, name=name, id=name)


def _figures(view: RunView) -> list[Html]:
    overall = view.metrics["overall"]
    if not overall:
        return []
    shown = headline([view]) or list(overall)
    rows = []
    for name in shown:
        own = overall[name]
        chance, ceiling = decimal(own.get("chance"), 3), decimal(own.get("ceiling"), 3)
        figure = f"{decimal(own['mean'], 4)} {brackets(own['ci95'], 3)}"
        mark = el("td", level_mark(own["mean"], own["ci95"]))
        rows.append(row(name, mark, figure, chance, ceiling, f"{own['n']:,}", numbers=4))
    head = ["Metric", "", "Mean [95 % interval]", "Chance", "Ceiling", "n"]
    parts = [el("h2", "Figures"), table(head, rows, caption="Headline metrics", numbers=4)]
    name = PRIMARY if PRIMARY in overall else shown[0]
    by_category = {
        key: own[name] for key, own in view.metrics["by_category"].items() if name in own
    }
    if len(by_category) > 1:
        rows = [
            row(
                foreign(view.category_name(key), 100),
                el("td", level_mark(own["mean"], own["ci95"])),
                f"{decimal(own['mean'], 4)} {brackets(own['ci95'], 3)}",
                f"{own['n']:,}",
                numbers=2,
            )
            for key, own in by_category.items()
        ]
        head = ["Category", "", f"{name} [95 % interval]", "n"]
        parts += [
            el("h2", "By category"),
            table(head, rows, caption=f"{name} by category", numbers=2),
        ]
    return parts
