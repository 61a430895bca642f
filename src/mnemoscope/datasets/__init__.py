"""Datasets: one module each, all giving scenarios; pins and downloads beside them."""

from collections.abc import Mapping
from pathlib import Path

from mnemoscope._store.registry import Entry, Registry, bind_arguments
from mnemoscope._store.spec import Spec
from mnemoscope.datasets._io.locate import locate
from mnemoscope.datasets.base import Dataset
from mnemoscope.types import Scalar

DATASETS = Registry(
    "dataset",
    {
        "locomo": Entry(
            "mnemoscope.datasets.locomo:Locomo", "10 long conversations, 1,986 questions"
        ),
        "longmemeval": Entry(
            "mnemoscope.datasets.longmemeval:LongMemEval", "500 questions, a haystack each"
        ),
        "strata": Entry(
            "mnemoscope.datasets.strata:Strata", "your memories: exact, paraphrase, multi-hop"
        ),
        "beir": Entry("mnemoscope.datasets.beir:Beir", "your corpus, queries and qrels"),
        "personas": Entry(
            "mnemoscope.datasets.personas:Personas", "lives in daily logs, questioned as they grow"
        ),
        "tofu": Entry(
            "mnemoscope.datasets.tofu:Tofu", "200 invented authors, of whom some are forgotten"
        ),
        "trec": Entry("mnemoscope.datasets.trec:Trec", "TREC qrels, to score run files"),
    },
    group="mnemoscope.datasets",
)


def open_dataset(name: str, data: Path | None, options: Mapping[str, Scalar] = {}) -> Dataset:
    """The dataset with its options checked and its files found."""
    factory = DATASETS.get(name)
    arguments = bind_arguments(factory, Spec(name, dict(options)), "data")
    dataset: Dataset = factory(locate(name, data), **arguments)
    return dataset


__all__ = ["DATASETS", "Dataset", "open_dataset"]
