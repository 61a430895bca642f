"""notes.md: public release notes with the five sections of the process (§6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.comparison import OVERALL, Comparison, Row
from mnemoscope.release.benchmark_report import changes, departures
from mnemoscope.release.claims import ProhibitedClaim as ProhibitedClaim
from mnemoscope.release.claims import lint
from mnemoscope.release.decide import standing
from mnemoscope.release.release_facts import Facts
from mnemoscope.release.report_tables import effect, p_equals, points, points_interval
from mnemoscope.release.state import Release
from mnemoscope.text.display import as_code, as_markdown

SECTIONS = (
    "Significant Improvements",
    "Marginal / Non-Significant Changes",
    "Regressions",
    "Methodology Changes",
    "Benchmark Integrity",
)


def write_notes(release: Release, found: Sequence[Comparison]) -> Path:
    """Write notes.md, unless they contain a prohibited claim."""
    text = render(release, found)
    if claims := lint(text, Facts(release, found), release.folder):
        listed = "; ".join(f"line {c.line}, {c.rule}: {c.what}" for c in claims)
        raise ProhibitedClaim(f"the notes are not written, they make prohibited claims: {listed}")
    write_atomically(release.notes_path, text.encode())
    return release.notes_path


def render(release: Release, found: Sequence[Comparison]) -> str:
    chosen, state = release.protocol, release.state
    decision = state.decision.outcome if state.decision else "not yet decided"
    parts = [
        f"# {state.version}",
        f"Measured per {chosen.protocol.cite} (`{chosen.id}`). Decision: {decision}. Release "
        f"process {state.process}.\n"
        "Differences are new minus previous, with the interval of the difference, which holds "
        "for all secondary metrics\nat once; p is adjusted alike; the effect size is h for "
        "proportions, d_z for means.",
        *(part for title in SECTIONS[:3] for part in (f"## {title}", _listed(found, title))),
        f"## {SECTIONS[3]}",
        "\n".join(f"- {as_markdown(line)}" for line in _methodology(release)) or "None.",
        f"## {SECTIONS[4]}",
        "\n".join(_integrity(release)),
    ]
    return "\n\n".join(parts) + "\n"


def _listed(found: Sequence[Comparison], section: str) -> str:
    parts = []
    for one in found:
        if lines := [f"- {_line(row)}" for row in one.rows if _section(row) == section]:
            parts.append(f"### {one.benchmark}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) or "None."


def _section(row: Row) -> str:
    """The section of a metric; of the categories all that worsened are listed, and no others."""
    state = standing(row)
    if row.delta < 0:
        return SECTIONS[2]
    if row.scope != OVERALL:
        return ""
    return {"improved": SECTIONS[0], "neutral": SECTIONS[1]}.get(state, "")


def _line(row: Row) -> str:
    state = standing(row)
    shown = [f"95% CI {points_interval(row)}", p_equals(row.p)]
    shown[1] += " ns" if state == "neutral" else ""
    shown += [effect(row)] if state == "improved" else []
    where = "" if row.scope == OVERALL else f" in category {row.scope}"
    return f"{row.metric}: {points(row.delta)} ({', '.join(shown)}){where}"


def _methodology(release: Release) -> list[str]:
    deviations = [
        f"{pair.benchmark}, {run.label}: {deviation}"
        for pair in release.state.pairs
        for run in (release.run(pair.base), release.run(pair.cand))
        for deviation in run.manifest().deviations
    ]
    return [*changes(release), *deviations, *departures(release)]


def _integrity(release: Release) -> list[str]:
    lines = []
    for pair in release.state.pairs:
        base, cand = release.run(pair.base), release.run(pair.cand)
        data = ", ".join(f"`{h}`" for h in cand.manifest().identity["benchmark"]["sha256"])
        lines.append(f"- {pair.benchmark}: dataset sha256 {data}")
        lines += [f"  - {kind} {_run(run)}" for kind, run in (("base", base), ("candidate", cand))]
    lines.append(f"- protocol sha256 `{release.protocol.sha256}`")
    return lines


def _run(run: RunDirectory) -> str:
    about = run.manifest()
    place = about.environment
    clock = "not recorded"
    if about.started and about.finished:
        clock = f"{(about.finished - about.started).total_seconds():.1f} s"
    return (
        f"{as_code(run.label)}, fingerprint `{about.fingerprint}`; environment: "
        f"{place.get('platform', 'not recorded')}, Python {place.get('python', 'not recorded')}; "
        f"wall clock: {clock}; device: {place.get('device', 'no accelerator recorded')}, "
        f"{place.get('cores', 'unknown')} CPU cores"
    )
