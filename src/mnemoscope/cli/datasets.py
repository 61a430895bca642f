"""`mnemoscope datasets`: list, fetch, check, and export your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App
from rich import box
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import describe_options
from mnemoscope.cli.console import err, out, parse_options, print_json, progress_bar, say

if TYPE_CHECKING:
    from mnemoscope.datasets.dataset_check import Checked

app = App(name="datasets", help="The datasets that systems are tested on.")


@app.command(name="list")
def list_datasets(*, json: bool = False) -> None:
    """List the datasets, their options, and where their files are looked for.

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
    table = Table("dataset", "what it is", "options, default first", box=box.SIMPLE_HEAD)
    for name, summary, options, licence, place in rows:
        listed = "\n".join(f"--{key} {value}" for key, value in options.items())
        about = "\n".join(filter(None, (summary, licence, place)))
        table.add_row(Text(name, "bold cyan"), Text(about), Text(listed))
    out.print(table)


@app.command
def fetch(name: str, /, *, files: list[str] | None = None, to: Path | None = None) -> None:
    """Download a dataset from its publisher, verified by sha256 and resumed where it broke off.

    For example:

        mnemoscope datasets fetch locomo

        mnemoscope datasets fetch longmemeval --files longmemeval_oracle.json

    Parameters
    ----------
    name
        The dataset.
    files
        Only these of its files; by default all but the optional ones.
    to
        The folder to put them in; by default the user's cache.
    """
    from mnemoscope.datasets import downloadable
    from mnemoscope.datasets._io.download import download
    from mnemoscope.datasets._io.locate import cache_folder

    found = downloadable(name)
    unknown = sorted(set(files or ()) - set(found.files))
    if unknown:
        raise UsageError(f"{name} has no file {unknown[0]!r}; it has {', '.join(found.files)}")
    wanted = files or [file for file, pinned in found.files.items() if not pinned.optional]
    folder = to or cache_folder(name)
    say(err, f"{name}: {found.citation}; licence {found.licence}")
    for file in wanted:
        with progress_bar(file, found.files[file].bytes) as bar:

            def advance(have: int, of: int | None, bar: Progress = bar) -> None:
                bar.update(bar.task_ids[0], completed=have, total=of, refresh=True)

            digest = download(found.files[file], folder / file, advance)
        verified = "verified" if found.files[file].sha256 else "no pin to verify it against"
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
    """Read a dataset whole: counts, every repair and loss, the hash, leaked labels.

    Fails (exit code 1) when the sha256 is not the pinned one, ids are not unique, or labels leak.

    For example:

        mnemoscope datasets check locomo --data ~/data/locomo10.json

        mnemoscope datasets check longmemeval --variant s --subset

    Parameters
    ----------
    name
        The dataset.
    data
        Its file or folder.
    subset
        Accept a file that is only a part of the dataset: its hash may differ from the pin.
    json
        Print JSON instead of tables.
    options
        The dataset's own options, such as --granularity turn.
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
                "problems": checked.problems,
            }
        )
    else:
        _print_check(name, checked)
    return 1 if checked.problems else 0


def _print_check(name: str, checked: Checked) -> None:
    counts = Table("counted", "", title=name, title_justify="left", box=box.SIMPLE_HEAD)
    for what, n in checked.counts.items():
        counts.add_row(what, f"{n:,}")
    out.print(counts)
    if checked.findings.counts:
        found = Table("repaired or lost", "n", "where (first ten)", box=box.SIMPLE_HEAD)
        for kind, n in checked.findings.counts.items():
            found.add_row(Text(kind), f"{n:,}", Text(", ".join(checked.findings.examples[kind])))
        out.print(found)
    for file in checked.files:
        pinned = {True: "as pinned", False: "NOT as pinned", None: "no pin"}[file.matches_pin]
        say(out, f"{file.path.name}: sha256 {file.sha256}, {pinned}")
    if not checked.leaked:
        out.print("leakage scan: nothing that a system is given names a label")
    for problem in checked.problems:
        say(err, problem, before="[bold red]problem:[/] ")


@app.command
def export(
    store: Path, /, *, to: Path, table: str = "memories", assume_not_sensitive: bool = False
) -> None:
    """Export a SQLite memory store as the corpus of a `strata` dataset, sensitive rows left out.

    For example:

        mnemoscope datasets export ~/.memory/store.db --to my-strata

    Parameters
    ----------
    store
        The SQLite file; it is only read.
    to
        The folder that gets corpus.jsonl; write queries.jsonl and qrels.jsonl beside it.
    table
        The table that holds the memories.
    assume_not_sensitive
        Accept a store that has no is_sensitive column.
    """
    from mnemoscope.datasets.strata_export import export_store

    corpus = to / "corpus.jsonl"
    done = export_store(store, corpus, table=table, assume_not_sensitive=assume_not_sensitive)
    say(
        out,
        f"{corpus}: {done.exported:,} memories; left out {done.left_out:,} sensitive "
        f"and {done.without_text:,} without text",
    )
