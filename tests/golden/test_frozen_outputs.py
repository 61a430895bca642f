"""What commands write on fixed inputs is what was frozen; tools/golden.py has the commands.

A change that is meant to keep all figures keeps this green. One that rewrites wording renews the
texts alone: `python tools/golden.py --renew-text`.
"""

from __future__ import annotations

from functools import cache

import pytest
from tests.optional import missing
from tools import golden


@cache
def _outcomes(group: str) -> dict[str, golden.Outcome]:
    return golden.run_group(golden.GROUPS[group])


@pytest.mark.parametrize("name", golden.GROUP_OF)
def test_outputs_are_as_frozen(name: str) -> None:
    group = golden.GROUPS[golden.GROUP_OF[name]]
    if places := golden.missing_data(group):
        missing(f"no shared data at {places[0]}")
    outcome = _outcomes(group.name).get(name)
    if lines := golden.differences(golden.load(), name, outcome):
        pytest.fail(golden.explain(lines), pytrace=False)


def test_every_frozen_command_is_run() -> None:
    assert list(golden.load()) == list(golden.GROUP_OF)
