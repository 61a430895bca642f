"""A survey: check and run several systems on the same questions, with one row of figures each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.integrations import environments
from mnemoscope.integrations.catalog import ITEMS
from mnemoscope.integrations.shipped_defaults import SHIPPED
from mnemoscope.models.cache import without_caches
from mnemoscope.models.embedders import DEFAULT_EMBEDDER
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.survey_table import SurveyRow, measured
from mnemoscope.runner.conformance import CHECKS, Result, check_system
from mnemoscope.runner.run import Settings
from mnemoscope.runner.scheduler import Limits, describe
from mnemoscope.systems import BUILT_IN, CONNECTORS
from mnemoscope.systems.loader import Plan, options_of, plan

_COMPARED_WITH = ("bm25", "dense")
"""Part of every survey, unless the user chooses the systems."""

Profile = Literal["controlled", "as-shipped", "both"]
"""Which rows a survey has: the same embedder and no language model, a product's own defaults, or
both side by side."""
_WAYS = {"whole": "whole query", "keywords": "word by word"}
_WORDS_ONLY = {("legs", "text"), ("search", "keyword")}
"""Options with which a system searches without vectors."""
_ON = ("on", "true", "True", "1", "yes")

Checking = Callable[[Plan], AbstractContextManager[Callable[[Result], None]]]
"""A context for the check of a system, such as a progress bar; its value gets each result."""


class _ConformanceReport(msgspec.Struct, frozen=True):
    """A conformance report on disk, and the fingerprint of its system."""

    fingerprint: str
    checks: list[Any]


def default_systems() -> list[str]:
    """bm25, dense, and all installed integrations that do not need a language model."""
    installed = [
        name
        for name, item in ITEMS.items()
        if environments.state(name) == "installed"
        and item.model != "required"
        and (not item.variable or item.variable in os.environ)
    ]
    return [*_COMPARED_WITH, *installed]


class SurveyEntry(msgspec.Struct, frozen=True):
    """One row to be: what is run, and what the row is called."""

    spec: Spec
    profile: str
    """controlled, as shipped, both if they are the same, or as given if the user chose models."""
    note: str = ""
    unavailable: str = ""
    """Why it cannot be run here."""

    @property
    def name(self) -> str:
        """What the row is: `mem0 · no LLM · wordllama`, with the user's label in front."""
        spec, item = self.spec, ITEMS.get(self.spec.name)
        hidden = {"model", "llm"}
        way = ""
        if item and item.ways and item.ways[0] in spec.args:
            hidden.add(item.ways[0])
            way = _WAYS.get(str(spec.args[item.ways[0]]), str(spec.args[item.ways[0]]))
        shown = Spec(spec.name, {k: v for k, v in spec.args.items() if k not in hidden})
        parts = [spec.label, str(shown), way, self._llm()]
        if _takes_embedder(spec.name) and not _WORDS_ONLY & set(spec.args.items()):
            parts.append(str(spec.args.get("model", DEFAULT_EMBEDDER)))
        if self.unavailable:  # its models are not those of the spec
            parts = [spec.label, str(shown)]
        return " · ".join(filter(None, parts))

    def _llm(self) -> str:
        spec, item = self.spec, ITEMS.get(self.spec.name)
        if item is None or item.model == "never":
            return ""
        used = not item.model_for or any(spec.args.get(one) in _ON for one in item.model_for)
        return str(spec.args.get("llm") if used and spec.args.get("llm") else "no LLM")


def survey_entries(specs: Sequence[Spec], profile: Profile, embedder: str) -> list[SurveyEntry]:
    """The rows of these systems: each way of asking, in each profile, with the same embedder."""
    return [
        entry
        for spec in specs
        for one in _ways_of(spec)
        for entry in _in_profiles(one, profile, embedder)
    ]


def _ways_of(spec: Spec) -> list[Spec]:
    item = ITEMS.get(spec.name)
    if item is None or item.ways is None or item.ways[0] in spec.args:
        return [spec]
    option, values = item.ways
    return [_changed(spec, {option: value}, value) for value in values]


def _in_profiles(spec: Spec, profile: Profile, embedder: str) -> Iterator[SurveyEntry]:
    is_known = spec.name in ITEMS or spec.name in BUILT_IN
    if not is_known or "model" in spec.args or "llm" in spec.args:
        yield SurveyEntry(spec, "as given")
        return
    controlled = spec
    if embedder != DEFAULT_EMBEDDER and _takes_embedder(spec.name):
        controlled = _changed(spec, {"model": embedder}, "")
    if profile == "controlled" or spec.name in BUILT_IN:
        yield SurveyEntry(controlled, "controlled")
        return
    shipped = SHIPPED[spec.name]
    own = _changed(spec, shipped.args, "as-shipped")
    # A system without an embedder of its own gets that of the survey.
    if not shipped.missing and (not shipped.args or own.args == controlled.args):
        name = "both" if profile == "both" else "as shipped"
        yield SurveyEntry(controlled, name, shipped.note)
        return
    if profile == "both":
        yield SurveyEntry(controlled, "controlled")
    yield SurveyEntry(own, "as shipped", shipped.note, shipped.missing)


def _changed(spec: Spec, args: dict[str, str], suffix: str) -> Spec:
    """The spec with these options; a label gets the suffix, because it names a folder."""
    label = f"{spec.label}-{suffix}" if spec.label and suffix else spec.label
    return Spec(spec.name, {**spec.args, **args}, label)


def _takes_embedder(name: str) -> bool:
    if name in ITEMS:
        return ITEMS[name].embeds
    return name in BUILT_IN and "model" in options_of(name)


def survey_row(
    entry: SurveyEntry,
    folder: Path,
    run: Callable[[Plan, Settings], RunDirectory],
    *,
    dataset_notes: Sequence[str],
    checking: Checking | None,
    timeout: float,
) -> SurveyRow:
    """Check a system, run it, and return its row; the row of a system that fails has its error."""
    spec = entry.spec
    row = SurveyRow(
        system=spec.label or str(spec),
        name=entry.name,
        profile=entry.profile,
        door=_connector(spec),
        unavailable=entry.unavailable,
    )
    if entry.unavailable:
        return row
    try:
        planned = plan(spec)
        if checking is not None:
            results = conformance_report(planned, folder, timeout, checking)
            failed = [result.check for result in results if result.verdict == "failed"]
            row = msgspec.structs.replace(row, conforms=not failed, failed=failed)
        # One worker, so that the times are those of the system alone.
        with without_caches():
            done = run(planned, Settings(limits=Limits(recall=timeout), workers=1))
        found = measured(RunView.of(done), dataset_notes, row.name)
        row = msgspec.structs.replace(row, **found)
        about = [f"{row.name}: {entry.note}"] if entry.note else []
        return msgspec.structs.replace(row, notes=[*about, *row.notes])
    except MnemoscopeError as error:
        return msgspec.structs.replace(row, problem=str(error))


def conformance_report(
    planned: Plan, folder: Path, timeout: float, checking: Checking
) -> Sequence[Result]:
    """Load the conformance report of exactly this system, or make it."""
    place = folder / "conformance" / f"{planned.spec.slug}.json"
    [described] = describe([planned])
    system_fingerprint = fingerprint(described.identity)
    try:
        before = msgspec.json.decode(place.read_bytes(), type=_ConformanceReport)
        results = msgspec.convert(before.checks, list[Result])
        if before.fingerprint == system_fingerprint and [r.check for r in results] == list(CHECKS):
            return results
    except (OSError, ValueError, RecursionError):  # not written yet, or damaged
        pass
    with checking(planned) as done:
        results = check_system(planned, timeout=timeout, done=done)
    report = _ConformanceReport(system_fingerprint, msgspec.to_builtins(results))
    write_atomically(place, msgspec.json.format(msgspec.json.encode(report)))
    return results


def _connector(spec: Spec) -> str:
    connector = spec.name.partition(":")[0]
    if connector in CONNECTORS.builtin:
        return connector
    if spec.name in ITEMS:
        return "mcp" if ITEMS[spec.name].mapping else "stdio"
    return "python"
