"""The texts of a run's dataset: run directories have ids of memories, not their texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.run_directory import Manifest
from mnemoscope.analysis.question_details import AskedFrom, DatasetTexts, Key, SourceMemory
from mnemoscope.datasets.base import Dataset
from mnemoscope.runner.answer_setup import reopened
from mnemoscope.types import Scenario

_NO_IDS: frozenset[str] = frozenset()


def dataset_of(manifest: Manifest, data: Path | None = None) -> Dataset | None:
    """The dataset that a run was made from; None if it is not found and `data` does not name it.

    Data with another sha256 is not the run's: an error if `data` names it, else None.
    """
    try:
        dataset = reopened(manifest, data)
        sha256 = [file.sha256 for file in dataset.files()]
    except (MissingData, UsageError):
        if data is not None:
            raise
        return None
    if sha256 != list(manifest.identity["benchmark"]["sha256"]):
        if data is not None:
            raise DataError("is not the data of these runs: its sha256 is another one", file=data)
        return None
    return dataset


def dataset_texts(
    scenarios: Iterable[Scenario],
    wanted: Mapping[str, Set[str]],
    most: int | None = None,
    *,
    private: bool = False,
) -> DatasetTexts:
    """The texts of the wanted memories, by scenario and id, and when each question is asked.

    `most` is the most characters of a text that are kept. The text of an id that memories are parts
    of, such as a day, is that of its parts. A `private` run has no texts of questions either.
    """
    memories: dict[Key, SourceMemory] = {}
    asked: dict[Key, AskedFrom] = {}
    questions: dict[Key, str] = {}
    for scenario in scenarios:
        own = wanted.get(scenario.id, _NO_IDS)
        wholes: dict[str, list[str]] = {}
        for memory in scenario.memories:
            if memory.id in own:
                memories[scenario.id, memory.id] = SourceMemory(
                    memory.text[:most], len(memory.text), memory.at, memory.session, memory.speaker
                )
            if memory.part_of in own:
                wholes.setdefault(memory.part_of, []).append(memory.text)
        for id, parts in wholes.items():
            text = "\n".join(parts)
            memories.setdefault((scenario.id, id), SourceMemory(text[:most], len(text)))
        for question in scenario.questions:
            if private:
                questions[scenario.id, question.id] = question.text
            if question.now is not None or question.session:
                asked[scenario.id, question.id] = AskedFrom(question.now, question.session)
    return DatasetTexts(memories, asked, questions)
