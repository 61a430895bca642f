"""Private runs record ids and figures only: texts stay in the folder of the dataset."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.private_files import PRIVATE_RUN, make_private_folder
from mnemoscope._store.run_directory import JournalLine
from mnemoscope.datasets.base import Dataset
from mnemoscope.runner.isolation_setup import data_paths
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.types import Ingestion, Trial

WITHHELD = "(private)"


def is_private(dataset: Dataset) -> bool:
    """Whether the dataset is marked; a dataset of a plug-in may not know the attribute."""
    return bool(getattr(dataset, "is_private", False))


def check_private(dataset: Dataset, out: Path, pipeline: Pipeline, executor: str = "local") -> None:
    """Refuse a private run that would record texts outside the dataset's folder."""
    if dataset.info.has_checkpoints or dataset.name == "tofu":
        raise UsageError(f"--private: runs of {dataset.name} record answers and cannot be private")
    if executor != "local":
        raise UsageError("--private: a cluster gets the texts; omit --executor")
    folders = _folders(dataset)
    place = out.resolve()
    if pipeline.answers and not any(place.is_relative_to(folder) for folder in folders):
        inside = folders[0] / "runs" if folders else "the dataset's folder"
        raise UsageError(
            "a run with a reader records answers, which repeat private texts: keep it in the "
            f"dataset's folder with --out {inside}, or omit --reader"
        )


def keep_spools_inside(dataset: Dataset, run: Path) -> None:
    """Let workers write to a folder beside the data: a killed run leaves texts of hits there."""
    spools, folders = run / "units", _folders(dataset)
    if folders and not spools.is_symlink() and not spools.exists():
        spools.symlink_to(folders[0] / f".unfinished-{secrets.token_hex(8)}")
    if not spools.is_symlink():
        return
    place = spools.resolve()
    try:
        make_private_folder(place)
    except OSError as error:
        raise UsageError(
            f"--private: unfinished results are kept beside the data, and {place} cannot be made: "
            f"{error.strerror}"
        ) from None


def _folders(dataset: Dataset) -> list[Path]:
    return sorted({path.resolve().parent for path in data_paths(dataset)})


@contextmanager
def no_texts_outside() -> Iterator[None]:
    """Keep words, vectors and replies in memory only, and print nothing that a system writes."""
    before = os.environ.get(PRIVATE_RUN)
    os.environ[PRIVATE_RUN] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[PRIVATE_RUN]
        else:
            os.environ[PRIVATE_RUN] = before


def without_texts(line: JournalLine) -> JournalLine:
    """The line without texts of hits, and without messages of errors, which may repeat them.

    What the texts carry is decided before, so that every figure stays the same.
    """
    replace = msgspec.structs.replace
    if isinstance(line, Trial):
        return replace(line, texts=dict.fromkeys(line.texts, ""), error=_type_of(line.error))
    if isinstance(line, Ingestion):
        rejected = dict.fromkeys(line.receipt.rejected, WITHHELD)
        return replace(
            line,
            receipt=replace(line.receipt, rejected=rejected),
            error=_type_of(line.error),
        )
    return line


def _type_of(error: str) -> str:
    """`ValueError: (private)`."""
    name = error.partition(":")[0]
    return f"{name if name.isidentifier() else 'error'}: {WITHHELD}" if error else ""
