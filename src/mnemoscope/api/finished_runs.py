"""Load, report, verify, sign and cite finished runs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope._store.attempt_ledger import COPY
from mnemoscope._store.errors import MissingData
from mnemoscope._store.run_directory import RunDirectory, find_runs, is_run
from mnemoscope.api.arguments import (
    RunLike,
    Where,
    benchmark_of,
    existing,
    optional_path,
    readable,
    run_path,
)
from mnemoscope.api.new_runs import declared_repeats
from mnemoscope.api.page_texts import found_page_texts
from mnemoscope.results import (
    Results,
    RunResult,
)

if TYPE_CHECKING:
    from mnemoscope.analysis.ssh_signatures import RunSignature
    from mnemoscope.analysis.verify import Verification
    from mnemoscope.release.citation import Citation

_log = logging.getLogger(__name__)


def verify(
    run: RunLike,
    *,
    protocol: str | None = None,
    block: str | None = None,
    replay: int | None = None,
    data: Where | None = None,
    system: Any = None,
    allowed_signers: Where | None = None,
) -> Verification:
    """Recompute a run's figures from its journal and check every gate of its protocol.

    `block` gives a reason why the run must not be cited; it is recorded before the check. With
    `replay` the system is asked again for so many questions, drawn at random; `data` is then the
    dataset's file or folder, and `system` the class or object, if it cannot be imported. With
    `allowed_signers`, a file as of ssh-keygen, the run must be signed by one of them.
    """
    from mnemoscope.analysis import verify as analysis
    from mnemoscope.protocols import load_protocol

    directory = RunDirectory(run_path(run), checked=False)  # the gates say what was edited
    if block is not None:
        analysis.block(directory, block)
    chosen = load_protocol(protocol) if protocol else None
    found = analysis.verify(directory, chosen, optional_path(allowed_signers))
    if replay is not None:
        from mnemoscope.runner.answer_setup import reopened
        from mnemoscope.runner.replay import replay as ask_again

        dataset = reopened(directory.manifest(), optional_path(data))
        found = found.with_gate(ask_again(directory, dataset, replay, system=system).gate())
    return found


def sign(run: RunLike, *, key: Where) -> RunSignature:
    """Sign the manifest of a finished run with an SSH key."""
    from mnemoscope.analysis.ssh_signatures import sign_run

    return sign_run(RunDirectory(run_path(run)), Path(key).expanduser())


def cite(run: RunLike, *, base: RunLike | None = None, author: str = "") -> Citation:
    """The citation of a run, as text, BibTeX and CITATION.cff; of a VERIFIED one only.

    With `base`, another VERIFIED run under the same protocol, each value is shown as base → new.
    """
    from mnemoscope.datasets import dataset_info
    from mnemoscope.release.citation import cite as cite_run

    directory = RunDirectory(existing(run))
    before = RunDirectory(existing(base)) if base is not None else None
    with readable():
        corpus = dataset_info(benchmark_of(directory)).citation
        return cite_run(directory, before, author=author, corpus=corpus)


def load(run: RunLike) -> Results:
    """Load the finished run at a path, or all finished runs in a folder, baselines last."""
    return _loaded(run)


def _loaded(run: RunLike, *, rewriting: bool = False) -> Results:
    path = run_path(run)
    found = []
    for directory in find_runs(path):
        result = RunResult(directory.path, rewriting=rewriting)
        if (state := result.manifest.state) == "complete":
            found.append(result)
        else:
            _log.warning(
                "%s is %s and left out; repeat its command to continue it", directory.path, state
            )
    if not found:
        raise MissingData(f"no finished run at {path}")
    return Results(sorted(found, key=lambda one: one.is_baseline))


def report(run: RunLike, *, data: Where | None = None) -> Results:
    """Write the reports and pictures of finished runs again; no system is called.

    report.html shows texts of memories, which come from the dataset at `data`. If it is not given
    and not found where it usually is, the texts of the page that is there are kept.
    """
    from mnemoscope.reports.run_report import write_report, write_summary
    from mnemoscope.reports.run_view import RunView

    results, path = _loaded(run, rewriting=True), run_path(run)
    folder = path.absolute().parent if is_run(path) else path
    sets = declared_repeats([one.directory for one in results.runs], folder)
    directories = [one.directory for one in results.runs]
    texts = found_page_texts(directories, optional_path(data))
    for directory, own in zip(directories, texts, strict=True):
        write_report(directory, repeats=sets, texts=own)
    if (folder / COPY).exists():  # `run` wrote a summary there
        write_summary(folder, [RunView.of(one.directory) for one in results.runs], sets)
    return results
