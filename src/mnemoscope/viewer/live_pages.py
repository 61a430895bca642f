"""A run in progress: the page, and the small JSON that it asks for every two seconds."""

from __future__ import annotations

from mnemoscope.text.display import visible
from mnemoscope.viewer.html_elements import NOTHING, Html, el, foreign, row, table, url
from mnemoscope.viewer.live_progress import LiveProgress
from mnemoscope.viewer.run_folder import ViewedRun
from mnemoscope.viewer.run_pages import STATES, badge


def live_state(run: ViewedRun, progress: LiveProgress | None) -> dict[str, object]:
    """What the page shows, as texts that it inserts."""
    if progress is None:
        return {"state": run.state, "word": STATES[run.state], "text": _ended(run), "statuses": {}}
    return {
        "state": run.state,
        "word": STATES[run.state],
        "done": progress.done,
        "total": progress.total,
        "text": progress_text(progress),
        "statuses": progress.statuses,
    }


def progress_text(progress: LiveProgress) -> str:
    """Questions done, of how many, and the time left."""
    text = f"{progress.done:,} questions done"
    if progress.total is not None:
        about = "about " if progress.is_estimate else ""
        text = f"{progress.done:,} of {about}{progress.total:,} questions done"
    if progress.seconds_left is not None:
        text += f", {_duration(progress.seconds_left)} left"
    return f"{text}; {progress.memories:,} memories ingested"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _ended(run: ViewedRun) -> str:
    if run.state == "complete":
        return "The run is complete."
    return visible(run.problem) or f"The run is {STATES[run.state]}."


def live_content(run: ViewedRun, progress: LiveProgress | None) -> list[Html]:
    """The progress bar and the statuses so far; figures are shown when the run is complete."""
    known = progress is not None and progress.total is not None
    bar = el(
        "progress",
        id="bar",
        max=str(progress.total) if progress and progress.total else "1",
        value=str(progress.done) if known and progress else None,
        aria_label="Questions done",
    )
    text = progress_text(progress) if progress else _ended(run)
    rows = [
        row(name, f"{n:,}", numbers=1)
        for name, n in (progress.statuses if progress else {}).items()
    ]
    return [
        el("p", el("span", badge(run), id="state"), " ", el("span", text, id="progress-text")),
        el("p", bar),
        el("p", id="announce", role="status", class_="hidden"),
        el(
            "div",
            table(["Status", "Questions"], rows, caption="Statuses so far", numbers=1),
            id="live",
            data_src=url("/live.json", run=run.id) if run.state == "running" else None,
        ),
        el(
            "p",
            el("a", "Page of the run", href=url("/run", run=run.id), id="run-link"),
        ),
        el("p", "System: ", foreign(run.system, 200)) if run.system else NOTHING,
        el("p", "Figures are shown when the run is complete.", class_="dim"),
    ]
