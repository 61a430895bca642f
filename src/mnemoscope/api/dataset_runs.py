"""Run systems on several datasets in one call, with one summary over all of them."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope._store.errors import UsageError
from mnemoscope.api.new_runs import run_config
from mnemoscope.api.run_progress import Progress
from mnemoscope.results import Results
from mnemoscope.runner.run_setup import RunConfig, Systems, prepare
from mnemoscope.types import Scalar

if TYPE_CHECKING:
    from mnemoscope.reports.dataset_summary import DatasetRow

_log = logging.getLogger(__name__)
_ONE_FILE = ("resume", "json_out", "question_log", "progress_jsonl", "profile")


class DatasetResults(Mapping[str, Results]):
    """The results of each dataset by its name, and one row a system and figure over all."""

    def __init__(self, results: Mapping[str, Results], path: Path) -> None:
        self._results = dict(results)
        self.path = path
        """The folder of the datasets' folders, with datasets.md."""

    def __getitem__(self, dataset: str) -> Results:
        return self._results[dataset]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def rows(self) -> list[DatasetRow]:
        """One row for each dataset, system and figure."""
        from mnemoscope.reports.dataset_summary import dataset_rows
        from mnemoscope.reports.run_view import RunView

        return dataset_rows(
            {
                name: [RunView.of(run.directory) for run in own.runs]
                for name, own in self._results.items()
            }
        )


def run_datasets(
    benchmarks: Sequence[str],
    systems: Systems,
    config: RunConfig = RunConfig(),
    options: Mapping[str, Scalar] = {},
    progress: Progress = None,
) -> DatasetResults:
    """Run the systems on each dataset below `out/NAME`, then write one summary into `out`.

    `data` is a folder with a folder for each dataset, such as `data/locomo`. An option is passed to
    the datasets that have it. A judge that a dataset does not allow is left out there, and its own
    judge is used. The options of all datasets are checked before the first is run.
    """
    from mnemoscope.reports.dataset_summary import write_dataset_summary
    from mnemoscope.runner.run import paid

    names = _checked(benchmarks, config)
    out = config.out or Path("runs")
    work = [(name, _config_of(name, config, out), _options_of(name, options)) for name in names]
    _refuse_unknown(names, options)
    for name, own, accepted in work:
        prepare(name, systems, own, accepted)
    left, done = config.max_cost, {}
    for name, own, accepted in work:
        done[name] = run_config(name, systems, replace(own, max_cost=left), accepted, progress)
        if left is not None:
            left -= sum(paid(run.path) for run in done[name].runs)
    results = DatasetResults(done, out)
    write_dataset_summary(out, results.rows())
    return results


def _checked(benchmarks: Sequence[str], config: RunConfig) -> list[str]:
    for name in benchmarks:
        if benchmarks.count(name) > 1:
            raise UsageError(f"{name} is named twice")
    for option in _ONE_FILE:
        if getattr(config, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')} is for one dataset: run it alone")
    return list(benchmarks)


def _config_of(name: str, config: RunConfig, out: Path) -> RunConfig:
    """The arguments for one dataset: its own folders, and judges that it allows."""
    from mnemoscope.datasets import DATASETS, dataset_info

    DATASETS.get(name)  # a wrong name is reported before anything is run
    changes: dict[str, Any] = {"out": out / name}
    if config.data is not None:
        changes["data"] = own if (own := config.data / name).exists() else config.data
    allowed = dataset_info(name).answers.judges
    if allowed and config.judge and tuple(config.judge) != allowed:
        _log.warning(
            "note: %s is judged by %s, not by %s", name, ", ".join(allowed), ", ".join(config.judge)
        )
        changes |= {"judge": None, "appellate_judge": None}
    return replace(config, **changes)


def _options_of(name: str, options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    known = _parameters(name)
    return {key: value for key, value in options.items() if key in known}


def _refuse_unknown(names: Sequence[str], options: Mapping[str, Scalar]) -> None:
    known = {key for name in names for key in _parameters(name)}
    for key in options:
        if key not in known:
            raise UsageError(f"none of {', '.join(names)} has an option {key!r}")


def _parameters(name: str) -> set[str]:
    from mnemoscope.datasets import DATASETS

    return set(inspect.signature(DATASETS.get(name)).parameters)
