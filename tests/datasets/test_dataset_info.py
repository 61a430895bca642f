"""Each dataset's record: complete, and of names that exist."""

from __future__ import annotations

import pytest
from msgspec import structs

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import describe_options
from mnemoscope.datasets import DATASETS, dataset_info, downloadable
from mnemoscope.judges import JUDGES, judge_class, needs_of, scale_of
from mnemoscope.models.prompts import load_prompt
from mnemoscope.readers import READERS
from mnemoscope.systems import SYSTEMS

NAMES = list(DATASETS.builtin)


@pytest.mark.parametrize("name", NAMES)
def test_the_record_says_what_the_dataset_is(name: str) -> None:
    info = dataset_info(name)
    assert info.name == name
    assert info.summary and info.source and info.granularities
    assert all((info.licence, info.citation)) or not info.files


@pytest.mark.parametrize("name", NAMES)
def test_what_its_answers_need_exists(name: str) -> None:
    needs = dataset_info(name).answers
    holes = frozenset({"context", "now", "question", "session", "policy"})
    load_prompt(needs.prompt, holes, frozenset({"context", "question"}))
    assert needs.reader == "none" or needs.reader in READERS.names()
    for judge in filter(None, (needs.judge, needs.model_judge, *needs.judges)):
        assert judge in JUDGES.builtin
    assert needs.otherwise or not (needs.judges or needs.scales)


@pytest.mark.parametrize("name", NAMES)
def test_its_baselines_are_systems(name: str) -> None:
    info = dataset_info(name)
    beside = {*info.baselines, *info.answers.baselines, *info.answers.baselines_if_system_answers}
    assert beside <= {*SYSTEMS.names()}


@pytest.mark.parametrize("name", NAMES)
def test_granularities_and_published_rules_are_options_of_the_dataset(name: str) -> None:
    info, options = dataset_info(name), describe_options(DATASETS.get(name), "data")
    if "granularity" in options:
        assert options["granularity"] == "|".join(info.granularities)
    for rules in info.published_rules.values():
        assert rules.options.keys() <= options.keys()


def test_a_judge_of_ours_declares_its_scale_and_finds_what_it_needs_somewhere() -> None:
    provided = {
        what
        for info in map(dataset_info, NAMES)
        for what in (*info.answers.provides, *info.answers.may_provide)
    }
    for name in JUDGES.builtin:
        assert scale_of(judge_class(name)) is not None, name
        assert needs_of(judge_class(name)).keys() <= provided, name


def test_a_field_that_the_record_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        structs.replace(dataset_info("locomo"), colour="red")


def test_a_dataset_that_is_not_installed_has_an_empty_record() -> None:
    assert dataset_info("gone").answers == dataset_info("trec").answers
    assert dataset_info("gone").files == {}


def test_only_what_has_an_address_can_be_downloaded() -> None:
    assert set(downloadable("tofu").downloadable) > {"full.json"}
    with pytest.raises(
        UsageError, match="datasets: locomo, longmemeval, beam, precisionmembench, rhelm"
    ):
        downloadable("beir")
