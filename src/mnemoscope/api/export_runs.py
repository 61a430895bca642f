"""Export finished runs to the formats of other tools, and draw them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from mnemoscope._store.errors import UsageError
from mnemoscope.api.arguments import RunLike, Where, all_runs, optional_path, readable
from mnemoscope.exports.export_formats import ExportContent, ExportFormat
from mnemoscope.exports.exported_files import ExportedFiles, refuse_run_directory
from mnemoscope.results import Results, RunResult

_log = logging.getLogger(__name__)


def export(
    runs: RunLike | Sequence[RunLike] | Results,
    format: ExportFormat,
    *,
    what: ExportContent | None = None,
    metrics: Sequence[str] = (),
    standalone: bool = False,
    out: Where | None = None,
) -> ExportedFiles:
    """Export finished runs of one benchmark, and write the files to `out` if it is given.

    `what` is `figures`, or `rankings` for trec, ranx and ir-measures. `metrics` chooses the figures
    of a table. `standalone` writes a LaTeX document instead of a table to \\input. Each run is
    checked and verified first; its status and its caveats are part of the export.
    """
    place = optional_path(out)
    if place is not None:
        refuse_run_directory(place)
    results = finished(runs)
    with readable():
        return results.export(
            format, what=what, metrics=list(metrics), standalone=standalone, out=place
        )


def finished(runs: RunLike | Sequence[RunLike] | Results) -> Results:
    """The finished runs, baselines last, each with a label that no other has."""
    from mnemoscope.analysis.system_groups import labelled

    given = [runs] if isinstance(runs, str | Path | RunResult) else runs
    found = []
    for one in labelled(all_runs(given)):
        if (state := one.manifest.state) != "complete":
            _log.warning("%s is %s and left out", one.run.path, state)
            continue
        result = RunResult(one.run.path)
        result.label = one.label
        found.append(result)
    if not found:
        raise UsageError("no finished run: repeat its command to continue it")
    return Results(sorted(found, key=lambda one: one.is_baseline))
