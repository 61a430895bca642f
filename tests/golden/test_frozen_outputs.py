"""What commands write on fixed inputs is what was frozen; tools/golden.py has the commands.

A change that is meant to keep all figures keeps this green. One that rewrites wording renews the
texts alone: `python tools/golden.py --renew-text`.
"""

from __future__ import annotations

from functools import cache
from multiprocessing import get_context

import pytest
from tests.optional import missing
from tools import golden


@cache
def _differences(group: str) -> dict[str, list[str]]:
    """What differs in each command of a group.

    A child compares the outputs: they would stay in memory that every fork of this process copies.
    """
    with get_context("fork").Pool(1) as child:
        return child.apply(_found, [group])


def _found(group: str) -> dict[str, list[str]]:
    found, frozen = golden.run_group(golden.GROUPS[group]), golden.load()
    names = [one.name for one in golden.GROUPS[group].commands]
    return {name: golden.differences(frozen, name, found.get(name)) for name in names}


@pytest.mark.parametrize("name", golden.GROUP_OF)
def test_outputs_are_as_frozen(name: str) -> None:
    group = golden.GROUPS[golden.GROUP_OF[name]]
    if places := golden.missing_data(group):
        missing(f"no shared data at {places[0]}")
    if lines := _differences(group.name)[name]:
        pytest.fail(golden.explain(lines), pytrace=False)


def test_every_frozen_command_is_run() -> None:
    assert list(golden.load()) == list(golden.GROUP_OF)
