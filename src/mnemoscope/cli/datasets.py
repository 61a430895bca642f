"""`mnemoscope datasets`: list, download and check datasets, export your own memories."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App
from rich.progress import Progress

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import describe_options
from mnemoscope.cli.console import (
    err,
    name_cell,
    out,
    parse_options,
    print_json,
    print_table,
    progress_bar,
    say,
)
from mnemoscope.reports.tables import Lines

if TYPE_CHECKING:
    from mnemoscope.datasets.dataset_check import Checked

app = App(name="datasets", help="List, download and check the datasets that systems are tested on.")


@app.command(name="list")
def list_datasets(*, json: bool = False) -> None:
    """List the datasets with their options, licences and the places of their files.

    For example:

        mnemoscope datasets list

    Parameters
    ----------
    json
        Print JSON instead of a table.
    """
    from mnemoscope._store.errors import MissingData
    from mnemoscope.datasets import DATASETS, DatasetInfo, dataset_info
    from mnemoscope.datasets._io.locate import locate

    rows = []
    for name in DATASETS.names():
        info, options = DatasetInfo(name=name), {}
        try:
            info, options = dataset_info(name), describe_options(DATASETS.get(name), "data")
            summary = info.summary or DATASETS.summary(name)
        except UsageError as error:
            summary = str(error)
        try:
            place = str(locate(info, None))
        except MissingData:
            place = (
                f"mnemoscope datasets fetch {name}"
                if info.downloadable
                else "your own, with --data"
            )
        rows.append((name, summary, options, info.licence, place))
    if json:
        fields = ("name", "summary", "options", "licence", "place")
        print_json([dict(zip(fields, row, strict=True)) for row in rows])
        return
    shown = []
    for name, summary, options, licence, place in rows:
        listed = Lines("\n".join(f"--{key} {value}" for key, value in options.items()))
        about = Lines("\n".join(filter(None, (summary, licence, place))))
        shown.append((name_cell(name), about, listed))
    print_table(("dataset", "description", "options, default first"), shown)


@app.command
def fetch(name: str, /, *, files: list[str] | None = None, to: Path | None = None) -> None:
    """Download a dataset from its publisher, verify its sha256, and resume a broken download.

    For example:

        mnemoscope datasets fetch locomo

        mnemoscope datasets fetch longmemeval --files longmemeval_oracle.json

        mnemoscope datasets fetch beam --files '500K/*'

    Parameters
    ----------
    name
        The dataset.
    files
        The files to download, or patterns of their names. Default: all files that are not optional.
    to
        The folder for the files. Default: the user's cache.
    """
    from mnemoscope.datasets import downloadable
    from mnemoscope.datasets._io.download import download
    from mnemoscope.datasets._io.locate import cache_folder
    from mnemoscope.datasets.base import shortened

    found = downloadable(name)
    wanted = [file for file, pinned in found.files.items() if not pinned.optional]
    if files:
        wanted = [file for file in found.files if any(fnmatchcase(file, one) for one in files)]
    for pattern in files or ():
        if not any(fnmatchcase(file, pattern) for file in found.files):
            raise UsageError(f"{name} has no file {pattern!r}; it has {shortened(found.files)}")
    folder = to or cache_folder(name)
    say(err, f"{name}: {found.citation}; licence {found.licence}")
    for file in wanted:
        with progress_bar(file, found.files[file].bytes) as bar:

            def advance(have: int, of: int | None, bar: Progress = bar) -> None:
                bar.update(bar.task_ids[0], completed=have, total=of, refresh=True)

            digest = download(found.files[file], folder / file, advance)
        verified = "verified" if found.files[file].sha256 else "not verified: no pinned hash"
        say(out, f"{folder / file}  sha256 {digest}  {verified}")


@app.command
def check(
    name: str,
    /,
    *,
    data: Path | None = None,
    subset: bool = False,
    json: bool = False,
    **options: str,
) -> int:
    """Read a whole dataset and report counts, repairs, dropped data, hashes and leaked labels.

    Of `strata`, every rule of every question's stratum is computed again. The exit code is 1 if the
    sha256 is not the pinned one, ids are not unique, labels leak, or a question breaks a rule.

    For example:

        mnemoscope datasets check locomo --data ~/data/locomo10.json

        mnemoscope datasets check longmemeval --variant s --subset

    Parameters
    ----------
    name
        The dataset.
    data
        The dataset's file or folder.
    subset
        Accept a part of the dataset, whose hash differs from the pinned one.
    json
        Print JSON instead of tables.
    options
        Options of the dataset, such as --granularity turn.
    """
    from mnemoscope.datasets import open_dataset
    from mnemoscope.datasets.dataset_check import check as check_dataset

    checked = check_dataset(open_dataset(name, data, parse_options(options, check)), subset=subset)
    if json:
        print_json(
            {
                "counts": checked.counts,
                "findings": dict(checked.findings.counts),
                "examples": checked.findings.examples,
                "files": {file.path.name: file.sha256 for file in checked.files},
                "broken": [one._asdict() for one in checked.broken],
                "problems": checked.problems,
            }
        )
    else:
        _print_check(name, checked)
    return 1 if checked.problems else 0


def _print_check(name: str, checked: Checked) -> None:
    counts = [(what, f"{n:,}") for what, n in checked.counts.items()]
    print_table(("counted", ""), counts, title=name)
    if checked.findings.counts:
        found = [
            (kind, f"{n:,}", ", ".join(checked.findings.examples[kind]))
            for kind, n in checked.findings.counts.items()
        ]
        print_table(("repaired or dropped", "n", "where (first ten)"), found)
    if checked.broken:
        rows = [(one.question, one.stratum, one.rule, one.detail) for one in checked.broken]
        print_table(("question", "stratum", "questions like it", "why"), rows)
    pins = {True: "as pinned", False: "NOT as pinned", None: "no pinned hash"}
    for file in checked.files:
        say(out, f"{file.path.name}: sha256 {file.sha256}, {pins[file.matches_pin]}")
    if not checked.leaked:
        out.print("leakage scan: no label in the data that systems see")
    for problem in checked.problems:
        say(err, problem, before="[bold red]problem:[/] ")


@app.command
def export(
    store: Path, /, *, to: Path, table: str = "memories", assume_not_sensitive: bool = False
) -> None:
    """Export a SQLite memory store, without sensitive rows, as the corpus of a `strata` dataset.

    For example:

        mnemoscope datasets export ~/.memory/store.db --to my-strata

    Parameters
    ----------
    store
        The SQLite file. It is not changed.
    to
        The folder for corpus.jsonl. Write queries.jsonl and qrels.jsonl beside it.
    table
        The table with the memories.
    assume_not_sensitive
        Accept a store without an is_sensitive column.
    """
    from mnemoscope.datasets.strata_export import export_store

    corpus = to / "corpus.jsonl"
    done = export_store(store, corpus, table=table, assume_not_sensitive=assume_not_sensitive)
    say(
        out,
        f"{corpus}: {done.exported:,} memories; left out {done.left_out:,} sensitive "
        f"and {done.without_text:,} without text",
    )
