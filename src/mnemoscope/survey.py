"""A survey: check and run several systems on the same questions, with one row of figures each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.integrations import environments
from mnemoscope.integrations.catalog import ITEMS
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.survey_table import SurveyRow, measured
from mnemoscope.runner.conformance import CHECKS, Result, check_system
from mnemoscope.runner.run import Settings
from mnemoscope.runner.scheduler import Limits, describe
from mnemoscope.systems import CONNECTORS
from mnemoscope.systems.loader import Plan, plan

_COMPARED_WITH = ("bm25", "dense")
"""Part of every survey, unless the user chooses the systems."""

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


def survey_row(
    spec: Spec,
    folder: Path,
    run: Callable[[Plan, Settings], RunDirectory],
    *,
    dataset_notes: Sequence[str],
    checking: Checking | None,
    timeout: float,
) -> SurveyRow:
    """Check a system, run it, and return its row; the row of a system that fails has its error."""
    row = SurveyRow(system=spec.label or str(spec), door=_connector(spec))
    try:
        planned = plan(spec)
        if checking is not None:
            results = conformance_report(planned, folder, timeout, checking)
            failed = [result.check for result in results if result.verdict == "failed"]
            row = msgspec.structs.replace(row, conforms=not failed, failed=failed)
        # One worker, so that the times are those of the system alone.
        done = run(planned, Settings(limits=Limits(recall=timeout), workers=1))
        return msgspec.structs.replace(row, **measured(RunView.of(done), dataset_notes))
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
