"""report.md: the benchmark report, sections 0 to 9, written from the runs and release.yaml.

The report is not edited by hand: people's texts come from release.yaml. So the report can be
written again without a loss, and a report with other bytes is an edited one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mnemoscope._store.fingerprint import differences
from mnemoscope._store.jsonl import read_text, write_atomically
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.comparison import OVERALL, Comparison
from mnemoscope.release.decide import (
    FALSE_HOLD,
    POLICY,
    RATIONALE,
    comparisons,
    guard,
    margins,
    regressions,
    row_name,
    standing,
    together,
    worsened,
    write_comparisons,
)
from mnemoscope.release.process import TRIGGERS
from mnemoscope.release.release_log import check_time, record
from mnemoscope.release.report_tables import (
    category_table,
    detectable,
    effect,
    overall_table,
    p_equals,
    points,
    points_interval,
    verbatim,
)
from mnemoscope.release.state import ROLES, Moment, Release, Role, RunPair, Signature, State
from mnemoscope.reports.render_markdown import table
from mnemoscope.reports.tables import Markup, document_table
from mnemoscope.text.display import as_code, as_markdown

BEGIN, END = "<!-- signatures -->", "<!-- /signatures -->"
TITLES: dict[Role, str] = {
    "pi": "PI (Principal Investigator)",
    "architect": "Chief Architect",
    "statistician": "StatAnalyst",
    "research-supervisor": "ResSup (Research Supervisor)",
}


def write_report(release: Release, when: Moment) -> list[Comparison]:
    """Write the comparisons and the report; the first call sets the time of the draft."""
    found = comparisons(release)
    write_comparisons(release, found)
    is_first = release.state.drafted is None
    if is_first:
        check_time(release.state, when)
        release.state.drafted = when
    write_atomically(release.report_path, render(release, found).encode())
    if is_first:
        record(release, "drafted", when, by=release.state.author)
    release.save()
    return found


def is_current(release: Release, found: Sequence[Comparison]) -> bool:
    """Whether report.md equals, byte for byte, the report of the runs and release.yaml."""
    path = release.report_path
    return path.exists() and read_text(path) == render(release, found)


def render(release: Release, found: Sequence[Comparison]) -> str:
    state = release.state
    cite = release.protocol.protocol.cite
    parts = [
        f"# Benchmark report: {state.version}",
        f"Measured under {cite} (`{release.protocol.id}`). Author: {state.author}. "
        f"Started {state.created}.",
        "## 0. Executive summary",
        _summary(release, found),
        "## 1. Methodology",
        *_methodology(release),
        *_benchmarks(release, found),
        "## 4. Significance output",
        *(_output(release, one) for one in found),
        "## 5. Threats to validity",
        *_threats(release),
        "## 6. Decision",
        *_decision(release, found),
        "## 7. Working group notes",
        _quoted(state.words.notes),
        "## 8. Working group sign-off",
        f"The sha256 covers this report without the block below.\n\n{BEGIN}{END}",
        "## 9. Raw data",
        _raw_data(release),
    ]
    return sealed("\n\n".join(parts) + "\n", state)


def _summary(release: Release, found: Sequence[Comparison]) -> str:
    decision = release.state.decision
    lines = [f"- Decision: {decision.outcome if decision else 'not yet decided'}."]
    for one in found:
        rules = release.protocol.benchmark(one.benchmark)
        for kind, metric in (("primary", rules.primary), ("secondary", rules.secondary)):
            row = one.row(metric)
            ns = "" if standing(row) != "neutral" else ", ns"
            lines.append(
                f"- {one.benchmark}, {kind} metric {metric}: {points(row.delta)} "
                f"(95% CI {points_interval(row)}, {p_equals(row.p)}{ns}, {effect(row)}); "
                f"smallest detectable difference {detectable(row)}."
            )
    lines += ["", "Metrics that worsened, significant or not:", "", *(_worsened(found))]
    return "\n".join(lines)


def _worsened(found: Sequence[Comparison]) -> list[str]:
    return [
        f"- {one.benchmark}, {row_name(row)}: {points(row.delta)} (95% CI {points_interval(row)}, "
        f"{p_equals(row.p)}{', ns' if standing(row) == 'neutral' else ''})"
        for one in found
        for row in worsened(one)
    ] or ["- none"]


def _methodology(release: Release) -> list[str]:
    deviations = [
        f"- {pair.benchmark}, {as_markdown(run.label)}: {as_markdown(deviation)}"
        for pair, run in _runs(release)
        for deviation in run.manifest().deviations
    ]
    declared = [f"- {as_markdown(line)}" for line in departures(release)]
    return [
        "### Conformance",
        f"Protocol `{release.protocol.id}`, sha256 `{release.protocol.sha256}`. Release process "
        f"{release.state.process or 'not recorded'}.",
        "\n".join([*deviations, *declared]) or "No deviations.",
        _base(release),
        *_triggered(release),
        *_amended(release),
        "### Run configuration",
        _configuration(release),
        "### Changes from the previous version",
        "\n".join(f"- {as_markdown(line)}" for line in changes(release)) or "None.",
    ]


def departures(release: Release) -> list[str]:
    """What the release declares to do otherwise than the process says; the PI must accept it."""
    state = release.state
    waived = [f"{name} was not run: {why}" for name, why in state.waived.items()]
    other = [f"the base is not the previous release: {state.base.reason}"]
    return [*waived, *(other if state.base.reason else [])]


def _base(release: Release) -> str:
    base = release.state.base
    if base.previous:
        return f"The base is the candidate of the previous release, {as_markdown(base.previous)}."
    return "The base is declared, see above." if base.reason else "The base is not declared."


def _triggered(release: Release) -> list[str]:
    """The benchmarks that a change made mandatory (§2.2)."""
    state = release.state
    lines = [
        f"- {trigger.benchmark}, because {trigger.when}: {_extra(state, trigger.benchmark)}"
        for kind in state.changed
        if (trigger := TRIGGERS.get(kind))
    ]
    if lines:
        return ["Benchmarks that a change triggers:", "\n".join(lines)]
    return ["No declared change triggers another benchmark."] if state.changed else []


def _extra(state: State, name: str) -> str:
    for one in state.extras:
        if one.name == name:
            return f"{as_code(one.path)}, sha256 `{one.sha256}`"
    return "waived, see above" if name in state.waived else "missing"


def _amended(release: Release) -> list[str]:
    lines = [
        f"- {entry.when}, by {as_markdown(entry.by)}: {as_code(entry.what)}. "
        f"Reason: {as_markdown(entry.why)}"
        for entry in release.state.amendments
    ]
    return ["### Amendments", "\n".join(lines)] if lines else []


def changes(release: Release) -> list[str]:
    """The differences between the identities of each base and its candidate."""
    return [
        f"{pair.benchmark}: {change}"
        for pair in release.state.pairs
        for change in differences(
            release.run(pair.base).manifest().identity, release.run(pair.cand).manifest().identity
        )
    ]


def _configuration(release: Release) -> str:
    rows = []
    for pair, run in _runs(release):
        about = run.manifest()
        options = ", ".join(f"{k}={v}" for k, v in about.identity["benchmark"]["options"].items())
        versions = ", ".join(f"{k} {v}" for k, v in about.identity.get("versions", {}).items())
        rows.append(
            [
                pair.benchmark,
                run.label,
                Markup(as_code(about.identity["system"]["spec"])),
                options,
                about.identity.get("depth", "--"),
                about.identity.get("seed", "--"),
                versions,
                Markup(f"`{about.fingerprint[:16]}…`"),
            ]
        )
    head = ["benchmark", "run", "system", "options", "depth", "seed", "versions", "fingerprint"]
    return table(document_table(head, rows))


def _benchmarks(release: Release, found: Sequence[Comparison]) -> list[str]:
    """Sections 2 and 3: the protocol's first benchmark, and its others."""
    variant = release.protocol.protocol.variants[release.protocol.variant]
    first, *others = variant.benchmarks
    by_name = {one.benchmark: one for one in found}
    sections = [f"## 2. {first}", *_benchmark(release, first, by_name.get(first))]
    sections.append(f"## 3. {', '.join(others) or 'Further benchmarks'}")
    for name in others:
        sections += _benchmark(release, name, by_name.get(name))
    return sections if others else [*sections, "The protocol has no further benchmarks."]


def _benchmark(release: Release, name: str, comparison: Comparison | None) -> list[str]:
    if comparison is None:
        why = as_markdown(release.state.waived.get(name, "without a reason"))
        return [f"{name} was not run: {why}."]
    pair = next(pair for pair in release.state.pairs if pair.benchmark == name)
    base, cand = release.run(pair.base), release.run(pair.cand)
    before, after = base.read_json("metrics.json"), cand.read_json("metrics.json")
    categories = category_table(comparison, before, after, cand.manifest().category_names)
    return [
        f"{comparison.paired:,} questions, paired, in {comparison.clusters} clusters. "
        "Each mean has its own interval; the difference has a bootstrap interval over clusters. "
        "The effect size is h for proportions and d_z for means of per-question values.",
        f"### {name}, overall",
        table(overall_table(comparison, before, after)),
        f"### {name}, by category",
        table(categories) if categories else "The dataset has no categories.",
    ]


def _output(release: Release, comparison: Comparison) -> str:
    pair = next(pair for pair in release.state.pairs if pair.benchmark == comparison.benchmark)
    text = verbatim(comparison, release.run(pair.base).path, release.run(pair.cand).path)
    return f"```\n{text}\n```"


def _threats(release: Release) -> list[str]:
    words = release.state.words
    kinds = {"Internal": words.internal, "External": words.external, "Simulation": words.simulation}
    return [part for kind, text in kinds.items() for part in (f"### {kind}", _quoted(text))]


def _decision(release: Release, found: Sequence[Comparison]) -> list[str]:
    decision, words = release.state.decision, release.state.words
    if decision is None:
        return ["Not yet decided."]
    lines = [f"- {name}: row “{row}” of the decision matrix" for name, row in decision.rows.items()]
    lines += [f"- regressed significantly: {what}" for one in found for what in regressions(one)]
    lines.append(f"- may be claimed as improved: {', '.join(_claimable(found)) or 'no metric'}")
    for one in found:
        found_by_guard = guard(one, margins(release.protocol.benchmark(one.benchmark)))
        lines.append(
            f"- guard on {one.benchmark}: {found_by_guard}. Policy: {POLICY[found_by_guard]}"
        )
    row = together(list(decision.rows.values()))
    parts = [f"**{decision.outcome}**: {RATIONALE[row]}.", "\n".join(lines), FALSE_HOLD]
    for title, text in (
        ("Rationale", words.rationale),
        ("Theoretical justification", words.theory),
        ("Accepted regression", words.accept_regression),
        ("Shipped without claims", words.no_claim),
    ):
        parts += [f"### {title}", _quoted(text)] if text else []
    if done := release.state.rederived:
        parts.append(
            f"Independent re-derivation by {done.by}, seed {done.seed}: {done.checked} statistics "
            f"repeated, {len(done.disagreements) or 'none'} of them differ from the report."
        )
    return parts


def _claimable(found: Sequence[Comparison]) -> list[str]:
    return [
        f"{row.metric} on {one.benchmark}"
        for one in found
        for row in one.rows
        if row.scope == OVERALL and standing(row) == "improved"
    ]


def _raw_data(release: Release) -> str:
    rows = [
        [pair.benchmark, *(Markup(as_code(text)) for text in (f"{record.path}/{name}", sha256))]
        for pair in release.state.pairs
        for record in (pair.base, pair.cand)
        for name, sha256 in {"manifest.json": record.manifest_sha256, **record.files}.items()
    ]
    return table(document_table(["benchmark", "file", "sha256"], rows))


def _runs(release: Release) -> list[tuple[RunPair, RunDirectory]]:
    return [
        (pair, release.run(record))
        for pair in release.state.pairs
        for record in (pair.base, pair.cand)
    ]


def _quoted(text: str) -> str:
    """People's text; a comment in it must not look like the report's own markers."""
    return text.strip().replace("<!--", "<!\u200b--") or "Nothing stated."


# A signature covers the report's bytes without the block of signatures. The block is written from
# release.yaml; if the block of a report differs, the report was edited and its signatures are void.


def split(report: str) -> tuple[str, str]:
    """The report without its block of signatures, and the block (empty if there is none)."""
    before, begin, rest = report.partition(BEGIN)
    block, end, after = rest.partition(END)
    if not begin or not end:
        return report, ""
    return before + BEGIN + END + after, block


def digest(report: str) -> str:
    """The sha256 that is signed."""
    return hashlib.sha256(split(report)[0].encode()).hexdigest()


def latest(signatures: Sequence[Signature]) -> dict[Role, Signature]:
    """The last signature of each role; a role can sign again if its signature is void."""
    return {signature.role: signature for signature in signatures}


def block(state: State, sha256: str) -> str:
    """The table of signatures for a report with this hash."""
    given = latest(state.signatures)
    lines = [
        "",
        _circulated(state, sha256),
        "",
        "| role | name | signed | report sha256 | | proof | accepts |",
        "|---|---|---|---|---|---|---|",
    ]
    for role in ROLES:
        if (one := given.get(role)) is None:
            lines.append(f"| {TITLES[role]} | | not signed | | | | |")
            continue
        standing = "valid" if one.sha256 == sha256 else "void: the report changed"
        if one.amendments != len(state.amendments):
            standing = "void: the release was amended"
        proof = f"SSH key {one.key}" if one.key else "typed name only, not proven"
        lines.append(
            f"| {TITLES[role]} | {one.name} | {one.when} | `{one.sha256[:16]}…` | {standing} "
            f"| {proof} | {', '.join(one.accepts)} |"
        )
    for one in given.values():
        if one.quorum_exception:
            lines += ["", f"Quorum exception, 3 of 4, by {one.name}: {one.quorum_exception}"]
    return "\n".join([*lines, ""])


def sealed(report: str, state: State) -> str:
    """The report with a new block of signatures."""
    text = split(report)[0]
    return text.replace(BEGIN + END, BEGIN + block(state, digest(text)) + END, 1)


def _circulated(state: State, sha256: str) -> str:
    if (one := state.circulated) is None:
        return "Not yet circulated."
    changed = "" if one.sha256 == sha256 else " The report changed: the 48 hours start again."
    return f"Circulated {one}.{changed}"
