"""Datasets: one module each. Every dataset yields scenarios; `_io` streams and downloads files.

A dataset is one module and one line here, or an entry point in the group `mnemoscope.datasets`.
"""

from collections.abc import Mapping
from pathlib import Path

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import read_records
from mnemoscope._store.registry import Entry, Registry, bind_arguments
from mnemoscope._store.spec import Spec
from mnemoscope.datasets._io.locate import locate
from mnemoscope.datasets.base import (
    AnswerNeeds,
    Dataset,
    DatasetInfo,
    FileDataset,
    Findings,
    PinnedFile,
)
from mnemoscope.types import Scalar

DATASETS = Registry(
    "dataset",
    {
        "locomo": Entry("mnemoscope.datasets.locomo:Locomo"),
        "longmemeval": Entry("mnemoscope.datasets.longmemeval:LongMemEval"),
        "beam": Entry("mnemoscope.datasets.beam:Beam"),
        "memoryagentbench": Entry("mnemoscope.datasets.memoryagentbench:MemoryAgentBench"),
        "precisionmembench": Entry("mnemoscope.datasets.precisionmembench:PrecisionMemBench"),
        "rhelm": Entry("mnemoscope.datasets.rhelm:Rhelm"),
        "realmem": Entry("mnemoscope.datasets.realmem:RealMem"),
        "strata": Entry("mnemoscope.datasets.strata:Strata"),
        "beir": Entry("mnemoscope.datasets.beir:Beir"),
        "personas": Entry("mnemoscope.datasets.personas:Personas"),
        "disclosure": Entry("mnemoscope.datasets.disclosure:DisclosureRooms"),
        "change": Entry("mnemoscope.datasets.change:ChangeBenchmark"),
        "tofu": Entry("mnemoscope.datasets.tofu:Tofu"),
        "trec": Entry("mnemoscope.datasets.trec:Trec"),
    },
    group="mnemoscope.datasets",
)


def open_dataset(name: str, data: Path | None, options: Mapping[str, Scalar] = {}) -> Dataset:
    """Find the dataset's files, check its options, and build it."""
    factory = DATASETS.get(name)
    arguments = bind_arguments(factory, Spec(name, dict(options)), "data")
    dataset: Dataset = factory(locate(dataset_info(name), data), **arguments)
    return dataset


def dataset_info(name: str) -> DatasetInfo:
    """The record of a dataset; an empty one if it is not installed or declares none."""
    known = ":" in name or name in DATASETS
    found = getattr(DATASETS.get(name), "info", None) if known else None
    return found if isinstance(found, DatasetInfo) else DatasetInfo(name=name)


def downloadable(name: str) -> DatasetInfo:
    """The record of a dataset that `fetch` can download."""
    if name in DATASETS and dataset_info(name).downloadable:
        return dataset_info(name)
    others = [other for other in DATASETS.builtin if dataset_info(other).downloadable]
    raise UsageError(
        f"{name!r} cannot be downloaded: pass your own data with --data "
        f"(downloadable datasets: {', '.join(others)})"
    )


__all__ = [
    "DATASETS",
    "AnswerNeeds",
    "Dataset",
    "DatasetInfo",
    "FileDataset",
    "Findings",
    "PinnedFile",
    "dataset_info",
    "downloadable",
    "open_dataset",
    "read_records",
]
