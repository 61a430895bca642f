"""The data of docs/field.md: figures of finished surveys, read from their folders."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from growth_page import machine
from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.run_directory import RunDirectory, find_runs
from mnemoscope._store.spec import Spec
from mnemoscope.analysis.system_groups import SystemGroups, system_groups
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.survey_table import SurveyRow, measured
from mnemoscope.survey import SurveyEntry, survey_entries

REFERENCE = "dense"
"""The row that times are divided by: it embeds every text and question, as most rows do."""
_DIGITS = 4
_FOLDER = re.compile(r" \(/[^)]*\)")
"""The folder of another attempt: of the machine that ran it."""


class FieldRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One system of a survey, with what its run was made from."""

    name: str
    system: str
    """The spec that runs it again."""
    profile: str
    contract: str = "not checked"
    recall: float | None = None
    low: float | None = None
    high: float | None = None
    group: str = ""
    ranks: tuple[int, int] | None = None
    is_best: bool = False
    tokens: float | None = None
    """Mean tokens of the first ten hits."""
    ingestion: float | None = None
    """The time of ingestion, divided by that of the reference."""
    search: float | None = None
    """The median time of a recall, divided by that of the reference."""
    memories: int = 0
    lost: int = 0
    hits: int = 0
    untraced: int = 0
    notes: list[str] = []
    problem: str = ""
    unavailable: str = ""
    versions: dict[str, str] = {}
    embedder: str = ""
    fingerprint: str = ""
    trials_sha256: str = ""
    metrics_sha256: str = ""


class Pair(msgspec.Struct, frozen=True, array_like=True):
    """Two systems and their difference, with its simultaneous interval."""

    first: str
    second: str
    delta: float
    low: float
    high: float
    decided: bool


class FieldTable(msgspec.Struct, frozen=True):
    """One survey."""

    title: str
    command: str
    """What runs all rows; `-s SPEC` runs one."""
    commit: str
    """The revision of Mnemoscope that ran it."""
    machine: str
    options: dict[str, Any]
    data_sha256: list[str]
    metric: str
    questions: int
    """Questions that all systems measured."""
    clusters: int
    rows: list[FieldRow]
    """The best first; then those without a rank."""
    pairs: list[Pair]
    notes: list[str] = []


class SecondRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """One system that was run a second time, in a fresh folder."""

    table: str
    system: str
    first: dict[str, str]
    """File to sha256."""
    second: dict[str, str]
    recall: tuple[float, float] | None = None
    """recall@10 of both runs, if they differ."""

    @property
    def is_equal(self) -> bool:
        return self.first == self.second


_COMPARED = ("metrics.json", "trials.jsonl")


def survey_data(folders: Sequence[Path], *, title: str, command: str, commit: str) -> FieldTable:
    """Read the runs of surveys with the same questions; the rows are those of both profiles."""
    runs = {run.label: run for folder in folders for run in finished(folder)}
    if REFERENCE not in runs:
        raise UsageError(f"no run of {REFERENCE!r}, by which times are divided")
    reference = RunView.of(runs[REFERENCE])
    specs = [Spec.parse(label) for label in runs]
    entries = survey_entries([one for one in specs if "model" not in one.args], "both", "wordllama")
    shipped = {
        str(entry.spec)
        for entry in entries
        if entry.profile == "as shipped" and not entry.unavailable
    }
    entries = [
        entry
        for entry in entries
        if entry.profile == "as shipped" or str(entry.spec) not in shipped
        # That a product's own defaults cannot run is said once, not for each choice of options.
        if not (entry.unavailable and entry.spec.args and entry.spec.name in runs)
    ]
    groups = system_groups(list(runs.values()))
    checked = _conformance(folders)
    rows = [
        _row(
            entry,
            None if entry.unavailable else runs.get(str(entry.spec)),
            reference,
            groups,
            checked.get(entry.spec.slug),
        )
        for entry in entries
    ]
    place = {own.system: number for number, own in enumerate(groups.systems)}
    names = {str(entry.spec): entry.name for entry in entries if not entry.unavailable}
    about = reference.manifest.identity["benchmark"]
    return FieldTable(
        title=title,
        command=command,
        commit=commit,
        machine=machine(),
        options=dict(about["options"]),
        data_sha256=about["sha256"],
        metric=groups.metric,
        questions=groups.questions,
        clusters=groups.clusters,
        rows=sorted(rows, key=lambda row: (place.get(row.system, len(place)), row.name)),
        pairs=_pairs(groups, names),
        notes=list(groups.notes),
    )


def finished(folder: Path) -> list[RunDirectory]:
    return [run for run in find_runs(folder) if run.manifest().state == "complete"]


def _conformance(folders: Sequence[Path]) -> dict[str, str]:
    """The slug of each checked system to what the conformance kit said."""
    found = {}
    for folder in folders:
        for file in sorted((folder / "conformance").glob("*.json")):
            checks = msgspec.json.decode(file.read_bytes())["checks"]
            failed = [one["check"] for one in checks if one["verdict"] == "failed"]
            found[file.stem] = f"fails {', '.join(failed)}" if failed else "kept"
    return found


def _pairs(groups: SystemGroups, names: Mapping[str, str]) -> list[Pair]:
    rows = []
    for pair in groups.pairs:
        delta, low, high = (round(one, _DIGITS) for one in (pair.delta, *pair.ci95))
        rows.append(Pair(names[pair.first], names[pair.second], delta, low, high, pair.is_decided))
    return rows


def _row(
    entry: SurveyEntry,
    run: RunDirectory | None,
    reference: RunView,
    groups: SystemGroups,
    contract: str | None,
) -> FieldRow:
    row = FieldRow(
        name=entry.name,
        system=str(entry.spec),
        profile=entry.profile,
        contract=contract if contract and not entry.unavailable else "not checked",
        unavailable=entry.unavailable,
    )
    if run is None:
        return row if entry.unavailable else msgspec.structs.replace(row, problem="not run")
    view = RunView.of(run)
    found = SurveyRow(system=row.system, door="", **measured(view, (), ""))  # type: ignore[arg-type]
    system, files = view.manifest.identity["system"], view.manifest.files
    own = groups.of(run.label)
    return msgspec.structs.replace(
        row,
        recall=_rounded(found.recall),
        low=_rounded(found.low),
        high=_rounded(found.high),
        group=own.letters if own else "",
        ranks=own.ranks if own else None,
        is_best=own.is_best if own else False,
        tokens=_rounded(view.metrics["context"].get("tokens@10"), 0),
        ingestion=_ratio(view.timing["index_ms"], reference.timing["index_ms"]),
        search=_ratio(found.p50_ms, (reference.timing["recall_ms"] or {}).get("p50")),
        memories=found.memories,
        lost=found.lost,
        hits=found.hits,
        untraced=found.untraced,
        notes=[
            _FOLDER.sub("", note.removeprefix(": "))
            for note in [f": {entry.note}", *found.notes]
            if note != ": "
        ],
        versions=_versions(system)
        or {"mnemoscope": view.manifest.identity["versions"]["mnemoscope"]},
        embedder=str(system.get("embedder", {}).get("model", "")),
        fingerprint=view.manifest.fingerprint,
        trials_sha256=files["trials.jsonl"],
        metrics_sha256=files["metrics.json"],
    )


def _versions(system: Mapping[str, Any]) -> dict[str, str]:
    """The versions that the running system reported, else those of its packages."""
    hello = system.get("hello") or {}
    found = hello.get("identity", {}).get("versions") or {}
    if not found and hello.get("version"):
        found = {hello.get("name", "system"): hello["version"]}
    return {name: str(version) for name, version in found.items()}


def _ratio(value: float | None, reference: float | None) -> float | None:
    """A ratio with two significant digits: more would be noise of the machine."""
    return float(f"{value / reference:.2g}") if value is not None and reference else None


def _rounded(value: float | None, digits: int = _DIGITS) -> float | None:
    return None if value is None else round(value, digits)


def second_runs(table: str, first: Path, second: Path) -> list[SecondRun]:
    """Compare the files of every run of `second` with those of the same system in `first`."""
    before = {run.label: run for run in finished(first)}
    return [_second_run(table, before[run.label], run) for run in finished(second)]


def _second_run(table: str, first: RunDirectory, second: RunDirectory) -> SecondRun:
    found = SecondRun(table, second.label, _hashes(first), _hashes(second))
    if found.is_equal:
        return found
    both = (RunView.of(run).metrics["overall"]["recall@10"]["mean"] for run in (first, second))
    one, other = (round(mean, _DIGITS) for mean in both)
    return msgspec.structs.replace(found, recall=(one, other))


def _hashes(run: RunDirectory) -> dict[str, str]:
    files = run.manifest().files
    return {name: files[name] for name in _COMPARED}


def write(place: Path, value: FieldTable | Sequence[SecondRun]) -> None:
    content = msgspec.json.format(msgspec.json.encode(value), indent=1)
    write_atomically(place, content + b"\n")


def tables(folder: Path) -> list[FieldTable]:
    """The surveys in a folder of data, in the order of their file names."""
    return [
        msgspec.json.decode(file.read_bytes(), type=FieldTable)
        for file in sorted(folder.glob("table-*.json"))
    ]


def repeated(folder: Path) -> list[SecondRun]:
    """What was run a second time."""
    place = folder / "second-run.json"
    return msgspec.json.decode(place.read_bytes(), type=list[SecondRun]) if place.exists() else []


def not_run(folder: Path) -> dict[str, str]:
    """Why systems of the catalog that can be installed are in no table."""
    place = folder / "not-run.json"
    return msgspec.json.decode(place.read_bytes(), type=dict[str, str]) if place.exists() else {}
